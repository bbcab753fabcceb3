"""What an error tells of a server: the tables of the SDAM specification ("Error handling"). Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from bson.errors import BSONError

from gmongo.cmap.overload import OVERLOADED
from gmongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    PoolClearedError,
    ProtocolError,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)

NOT_PRIMARY_CODES = frozenset({10107, 13435, 10058})
RECOVERING_CODES = frozenset({11600, 11602, 13436, 189, 91})
SHUTDOWN_CODES = frozenset({11600, 91})
STATE_CHANGE_CODES = NOT_PRIMARY_CODES | RECOVERING_CODES

# MongoDB 4.2: from here on a stepped-down primary keeps its connections open.
_KEEPS_CONNECTIONS = 8


class Consequence(Enum):
    """What follows for the server."""

    NOTHING = "nothing"
    UNKNOWN = "mark Unknown and check again at once"
    UNKNOWN_AND_CLEAR = "mark Unknown, clear the pool, check again at once"
    UNKNOWN_CLEAR_AND_CANCEL = "mark Unknown, clear the pool, cancel the check in progress"


def is_network_error(error: BaseException) -> bool:
    """Whether the connection failed, rather than the server replied."""
    return isinstance(error, AutoReconnect) and not isinstance(
        error, (NotPrimaryError, PoolClearedError, ServerSelectionTimeoutError)
    )


def is_network_timeout(error: BaseException) -> bool:
    """Whether the connection failed by a time-out."""
    return isinstance(error, NetworkTimeout)


def consequence(error: BaseException, during_handshake: bool, max_wire_version: int) -> Consequence:
    """What an application's error on a connection means for the server."""
    if isinstance(error, PoolClearedError):
        return Consequence.NOTHING
    if during_handshake:
        if isinstance(error, PyMongoError) and error.has_error_label(OVERLOADED):
            return Consequence.NOTHING  # a server that is busy is there; to take its pool away would add to its load
        if is_network_error(error):  # a streaming monitor would else go on waiting for news of its own
            return Consequence.UNKNOWN_CLEAR_AND_CANCEL
        of_server = isinstance(error, (ConnectionFailure, OperationFailure, ProtocolError, BSONError))
        return Consequence.UNKNOWN_AND_CLEAR if of_server else Consequence.NOTHING
    changed = isinstance(error, WriteConcernError) and error.code in STATE_CHANGE_CODES  # the write itself was done
    if changed or isinstance(error, NotPrimaryError):
        clears = getattr(error, "code", None) in SHUTDOWN_CODES or max_wire_version < _KEEPS_CONNECTIONS
        return Consequence.UNKNOWN_AND_CLEAR if clears else Consequence.UNKNOWN
    if is_network_error(error) and not is_network_timeout(error):
        return Consequence.UNKNOWN_CLEAR_AND_CANCEL
    return Consequence.NOTHING


def is_state_change(reply: Mapping[str, Any]) -> bool:
    """Whether a reply, or a write concern error inside one, says that the server is not primary or recovering."""
    code = reply.get("code")
    if code is not None:
        return code in STATE_CHANGE_CODES
    message = (reply.get("errmsg") or "").lower()
    return "not master" in message or "node is recovering" in message
