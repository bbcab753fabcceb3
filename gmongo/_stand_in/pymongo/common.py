"""Names of the private module ``pymongo.common`` that libraries import: limits, defaults and a check."""

from __future__ import annotations

from gmongo import MAX_SUPPORTED_WIRE_VERSION, MIN_SUPPORTED_WIRE_VERSION
from gmongo.operations.client_bulk import USUAL_LIMITS
from gmongo.options.structured import _UUID_REPRESENTATIONS
from gmongo.read_preferences import _ReadPreference

__all__ = ["MAX_SUPPORTED_WIRE_VERSION", "MIN_SUPPORTED_WIRE_VERSION", "_UUID_REPRESENTATIONS"]

MAX_WRITE_BATCH_SIZE, MAX_MESSAGE_SIZE, MAX_BSON_SIZE, _ = USUAL_LIMITS
MAX_POOL_SIZE = 100
MIN_POOL_SIZE = 0
MAX_CONNECTING = 2
CONNECT_TIMEOUT = 20.0
HEARTBEAT_FREQUENCY = 10
SERVER_SELECTION_TIMEOUT = 30
LOCAL_THRESHOLD_MS = 15


def validate_read_preference(_name: object, value: object) -> _ReadPreference:
    """Return `value`, or raise TypeError if `value` is not a read preference."""
    if not isinstance(value, _ReadPreference):
        raise TypeError(f"{value!r} is not a read preference")
    return value
