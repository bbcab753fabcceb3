"""Network errors (SDAM specification)."""

from __future__ import annotations

from gmongo.errors import AutoReconnect, NotPrimaryError, PoolClearedError, ServerSelectionTimeoutError


def is_network_error(error: BaseException) -> bool:
    """Return True if an error is a network error or a network timeout."""
    others = (NotPrimaryError, PoolClearedError, ServerSelectionTimeoutError)
    return isinstance(error, AutoReconnect) and not isinstance(error, others)
