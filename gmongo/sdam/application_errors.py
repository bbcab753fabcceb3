"""Effects of errors on server descriptions and pools (SDAM specification, "Error handling")."""

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
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    PoolClearedError,
    ProtocolError,
    PyMongoError,
    WriteConcernError,
)
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription, find_topology_version, is_network_error
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.sdam.transitions import is_stale
from gmongo.wire.address import Address
from gmongo.wire.transport import without_frames


class ErrorAction(Enum):
    """Action of a topology after an error of a connection."""

    NOTHING = "nothing"
    UNKNOWN = "mark the server Unknown and request a check"
    UNKNOWN_AND_CLEAR = "mark the server Unknown, clear its pool and request a check"
    UNKNOWN_CLEAR_AND_CANCEL = "mark the server Unknown, clear its pool and cancel the check in progress"


def choose_error_action(error: BaseException, during_handshake: bool, max_wire_version: int) -> ErrorAction:
    """Return the action of the topology after an error. `max_wire_version` is 0 before the hello."""
    if isinstance(error, PoolClearedError):
        return ErrorAction.NOTHING
    if during_handshake:
        if isinstance(error, PyMongoError) and error.has_error_label(OVERLOADED):
            return ErrorAction.NOTHING  # a clear of the pool would increase the overload
        # After a network error, cancel the check, because a streaming monitor would otherwise continue to wait.
        if is_network_error(error):
            return ErrorAction.UNKNOWN_CLEAR_AND_CANCEL
        is_server_error = isinstance(error, (ConnectionFailure, OperationFailure, ProtocolError, BSONError))
        return ErrorAction.UNKNOWN_AND_CLEAR if is_server_error else ErrorAction.NOTHING
    # A write concern error of a successful write is not a NotPrimaryError, but may report a state
    # change of the server.
    reports_state_change = isinstance(error, WriteConcernError) and error.code in codes.STATE_CHANGE
    if reports_state_change or isinstance(error, NotPrimaryError):
        closes_connections = max_wire_version < wire_versions.CONNECTIONS_SURVIVE_STEP_DOWN
        needs_clear = closes_connections or getattr(error, "code", None) in codes.SHUTDOWN
        return ErrorAction.UNKNOWN_AND_CLEAR if needs_clear else ErrorAction.UNKNOWN
    if is_network_error(error) and not isinstance(error, NetworkTimeout):
        return ErrorAction.UNKNOWN_CLEAR_AND_CANCEL
    return ErrorAction.NOTHING


def is_state_change(reply: Document) -> bool:
    """Return True if an error reply reports that the server is not primary or is recovering."""
    code = reply.get("code")
    if code is not None:
        return code in codes.STATE_CHANGE
    message = (reply.get("errmsg") or "").lower()
    return "not master" in message or "node is recovering" in message


class ErrorTarget(Protocol):
    """The attributes and methods of a topology that :func:`handle_error` uses."""

    settings: TopologySettings
    description: TopologyDescription
    servers: dict[Address, Server]

    def apply(self, new: ServerDescription, clear_cause: BaseException | None = None) -> None: ...


def handle_error(topology: ErrorTarget, connection: Connection, error: BaseException, during_handshake: bool) -> None:
    """Apply a connection error that is not stale to the topology. Do not switch greenlets."""
    server = topology.servers.get(connection.address)
    if server is None:
        return
    current = topology.description.server_descriptions()[server.address]
    # the error is stale after a clear of the pool, or if its topology version is not newer
    if connection.generation < server.pool.generations.generation_of(connection.service_id) or is_stale(
        current.topology_version, find_topology_version(error), equal_is_stale=True
    ):
        return
    wire_version = connection.hello.max_wire_version if connection.handshake_done else 0
    action = choose_error_action(error, during_handshake, wire_version)
    if action is ErrorAction.NOTHING:
        return
    # remove the traceback, because the description keeps the error while the server is Unknown
    cause = without_frames(error)
    needs_clear = action is not ErrorAction.UNKNOWN
    if topology.settings.load_balanced:
        if needs_clear and connection.service_id is not None:  # no service ID is known before the hello
            server.pool.clear(cause, connection.service_id)
        return
    topology.apply(current.to_unknown(cause), cause if needs_clear else None)
    if action is ErrorAction.UNKNOWN_CLEAR_AND_CANCEL and server.monitor is not None:
        server.monitor.cancel_check()
    if during_handshake or action is not ErrorAction.UNKNOWN_CLEAR_AND_CANCEL:
        server.request_check()
