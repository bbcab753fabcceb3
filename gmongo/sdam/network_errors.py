"""Which errors mean that a connection failed, rather than that the server replied. Pure functions."""

from __future__ import annotations

from gmongo.errors import (
    AutoReconnect,
    NetworkTimeout,
    NotPrimaryError,
    PoolClearedError,
    ServerSelectionTimeoutError,
)


def is_network_error(error: BaseException) -> bool:
    """Whether the connection failed, by a time-out or otherwise."""
    return isinstance(error, AutoReconnect) and not isinstance(
        error, (NotPrimaryError, PoolClearedError, ServerSelectionTimeoutError)
    )


def is_network_timeout(error: BaseException) -> bool:
    """Whether the connection failed by a time-out."""
    return isinstance(error, NetworkTimeout)
