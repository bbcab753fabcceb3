"""Effect of application errors on server descriptions and pools (SDAM specification, "Error handling").

The rules are pure functions. :func:`handle_error` applies them to the topology.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from bson.errors import BSONError

from gmongo._documents import Document
from gmongo._server_facts import codes, wire_versions
from gmongo._server_facts.labels import OVERLOADED
from gmongo.cmap.connection import Connection
from gmongo.errors import (
    ConnectionFailure,
    NotPrimaryError,
    OperationFailure,
    PoolClearedError,
    ProtocolError,
    PyMongoError,
    WriteConcernError,
)
from gmongo.sdam.network_errors import is_network_error, is_network_timeout
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription, topology_version_of
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.sdam.transitions import is_stale
from gmongo.wire.address import Address
from gmongo.wire.transport import without_frames


class ErrorAction(Enum):
    """Action of the topology on a server after an error."""

    NOTHING = "nothing"
    UNKNOWN = "mark the server Unknown and request a check"
    UNKNOWN_AND_CLEAR = "mark the server Unknown, clear its pool and request a check"
    UNKNOWN_CLEAR_AND_CANCEL = "mark the server Unknown, clear its pool and cancel the check in progress"


def error_action(error: BaseException, during_handshake: bool, max_wire_version: int) -> ErrorAction:
    """Return the action on a server after an error on a connection to this server.

    :param during_handshake: True if the error occurred before the connection was established.
    :param max_wire_version: wire version of the server; 0 before the hello.
    """
    if isinstance(error, PoolClearedError):
        return ErrorAction.NOTHING
    if during_handshake:
        if isinstance(error, PyMongoError) and error.has_error_label(OVERLOADED):
            return ErrorAction.NOTHING  # an overloaded server is reachable, and a pool clear would add load
        if is_network_error(error):  # otherwise a streaming monitor would continue its wait
            return ErrorAction.UNKNOWN_CLEAR_AND_CANCEL
        of_server = isinstance(error, (ConnectionFailure, OperationFailure, ProtocolError, BSONError))
        return ErrorAction.UNKNOWN_AND_CLEAR if of_server else ErrorAction.NOTHING
    # The write succeeded, so this error is not a NotPrimaryError, but the state of the server has changed.
    changed = isinstance(error, WriteConcernError) and error.code in codes.STATE_CHANGE
    if changed or isinstance(error, NotPrimaryError):
        disconnects = max_wire_version < wire_versions.CONNECTIONS_SURVIVE_STEP_DOWN
        clears = disconnects or getattr(error, "code", None) in codes.SHUTDOWN
        return ErrorAction.UNKNOWN_AND_CLEAR if clears else ErrorAction.UNKNOWN
    if is_network_error(error) and not is_network_timeout(error):
        return ErrorAction.UNKNOWN_CLEAR_AND_CANCEL
    return ErrorAction.NOTHING


def is_state_change(reply: Document) -> bool:
    """Return True if an error reply or a write concern error reports that the server is not primary or recovers."""
    code = reply.get("code")
    if code is not None:
        return code in codes.STATE_CHANGE
    message = (reply.get("errmsg") or "").lower()
    return "not master" in message or "node is recovering" in message


class ErrorTarget(Protocol):
    """Attributes and methods of a topology that :func:`handle_error` uses."""

    settings: TopologySettings
    description: TopologyDescription
    servers: dict[Address, Server]

    def apply(self, new: ServerDescription, clear_cause: BaseException | None = None) -> None:
        """Apply a new server description. If `clear_cause` is an error, also clear the pool because of this error."""


def handle_error(topology: ErrorTarget, connection: Connection, error: BaseException, during_handshake: bool) -> None:
    """Apply an error on a connection to the topology, unless the error is stale. Does not switch greenlets.

    :param during_handshake: True if the error occurred before the connection was established.
    """
    server = topology.servers.get(connection.address)
    if server is None:
        return
    current = topology.description.server_descriptions()[server.address]
    if _is_stale_error(current, server, connection, error):
        return
    wire_version = connection.hello.max_wire_version if connection.handshake_done else 0
    action = error_action(error, during_handshake, wire_version)
    if topology.settings.load_balanced:
        _clear_service(server, connection, error, action)
    elif action is not ErrorAction.NOTHING:
        _mark_unknown(topology, current, server, error, action, during_handshake)


def _is_stale_error(current: ServerDescription, server: Server, connection: Connection, error: BaseException) -> bool:
    """Return True if, since the error, the pool was cleared or the client received a newer topology version."""
    if connection.generation < server.pool.generations.of(connection.service_id):
        return True
    return is_stale(current.topology_version, topology_version_of(error), equal_is_stale=True)


def _mark_unknown(
    topology: ErrorTarget,
    current: ServerDescription,
    server: Server,
    error: BaseException,
    action: ErrorAction,
    during_handshake: bool,
) -> None:
    cause = without_frames(error)  # the description keeps the error while the server is Unknown
    topology.apply(current.to_unknown(cause), None if action is ErrorAction.UNKNOWN else cause)
    if action is ErrorAction.UNKNOWN_CLEAR_AND_CANCEL and server.monitor is not None:
        server.monitor.cancel_check()
    if during_handshake or action is not ErrorAction.UNKNOWN_CLEAR_AND_CANCEL:
        server.request_check()


def _clear_service(server: Server, connection: Connection, error: BaseException, action: ErrorAction) -> None:
    """Clear the connections of one service in the pool, behind a load balancer."""
    if connection.service_id is None:  # the error occurred before the hello
        return
    if action in (ErrorAction.UNKNOWN_AND_CLEAR, ErrorAction.UNKNOWN_CLEAR_AND_CANCEL):
        server.pool.clear(without_frames(error), connection.service_id)
