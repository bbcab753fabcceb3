"""Events and log messages of server discovery and monitoring, and log messages of server selection.

A publisher first calls the listeners and then logs a message, because an exception may interrupt a
log handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bson.objectid import ObjectId

from gmongo import monitoring
from gmongo._documents import DocumentDict
from gmongo.events import log
from gmongo.events.delivery import Delivery
from gmongo.monitoring import EventListeners, publish
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.cmap.connection import Connection
    from gmongo.sdam.hello_reply import HelloReply
    from gmongo.sdam.selection import Selector
    from gmongo.sdam.server_description import ServerDescription
    from gmongo.sdam.topology_description import TopologyDescription


class TopologyEvents:
    """Publisher of the events of one topology. A silent publisher logs nothing."""

    def __init__(self, topology_id: ObjectId, listeners: EventListeners, delivery: Delivery, *, silent: bool) -> None:
        self._logger = log.silent_log if silent else log.topology_log
        self.delivery = delivery
        self._id = topology_id
        self._listeners = listeners

    def topology_opened(self) -> None:
        publish(self._listeners.topology, "opened", monitoring.TopologyOpenedEvent(self._id))
        self._log("Starting topology monitoring")

    def topology_closed(self) -> None:
        publish(self._listeners.topology, "closed", monitoring.TopologyClosedEvent(self._id))
        self._log("Stopped topology monitoring")

    def topology_changed(self, previous: TopologyDescription, new: TopologyDescription) -> None:
        event = monitoring.TopologyDescriptionChangedEvent(previous, new, self._id)
        publish(self._listeners.topology, "description_changed", event)
        if self._logger.isEnabledFor(log.DEBUG):
            old_text, new_text = repr(previous), repr(new)
            detail = f". Previous description: {old_text}. New description: {new_text}"
            fields = {"previousDescription": old_text, "newDescription": new_text}
            self._log("Topology description changed", detail, **fields)

    def server_opened(self, address: Address) -> None:
        publish(self._listeners.server, "opened", monitoring.ServerOpeningEvent(address, self._id))
        self._log("Starting server monitoring", **log.address_fields(address))

    def server_closed(self, address: Address) -> None:
        publish(self._listeners.server, "closed", monitoring.ServerClosedEvent(address, self._id))
        self._log("Stopped server monitoring", **log.address_fields(address))

    def server_changed(self, previous: ServerDescription, new: ServerDescription) -> None:
        event = monitoring.ServerDescriptionChangedEvent(previous, new, new.address, self._id)
        publish(self._listeners.server, "description_changed", event)

    def heartbeat_started(self, address: Address, connection: Connection | None, awaited: bool) -> None:
        event = monitoring.ServerHeartbeatStartedEvent(address, awaited)
        publish(self._listeners.heartbeat, "started", event)
        self._log_heartbeat("Server heartbeat started", address, connection, awaited=awaited)

    def heartbeat_succeeded(
        self, address: Address, connection: Connection | None, duration: float, reply: HelloReply, awaited: bool
    ) -> None:
        event = monitoring.ServerHeartbeatSucceededEvent(duration, reply, address, awaited)
        publish(self._listeners.heartbeat, "succeeded", event)
        if self._logger.isEnabledFor(log.DEBUG):
            text = log.document_text(reply)
            extra = {"awaited": awaited, "durationMS": log.milliseconds(duration), "reply": text}
            self._log_heartbeat("Server heartbeat succeeded", address, connection, f", reply: {text}", **extra)

    def heartbeat_failed(
        self, address: Address, connection: Connection | None, duration: float, error: Exception, awaited: bool
    ) -> None:
        event = monitoring.ServerHeartbeatFailedEvent(duration, error, address, awaited)
        publish(self._listeners.heartbeat, "failed", event)
        if self._logger.isEnabledFor(log.DEBUG):
            extra = {"awaited": awaited, "durationMS": log.milliseconds(duration), "failure": repr(error)}
            self._log_heartbeat("Server heartbeat failed", address, connection, f", failure: {error}", **extra)

    def _log_heartbeat(
        self, message: str, address: Address, connection: Connection | None, detail: str = "", **extra: object
    ) -> None:
        self._log(message, detail, **extra, **_connection_ids(connection), **log.address_fields(address))

    def _log(self, message: str, detail: str = "", **extra: object) -> None:
        if self._logger.isEnabledFor(log.DEBUG):
            server = f" for {extra['serverHost']}:{extra.get('serverPort')}" if "serverHost" in extra else ""
            text = f"{message}{server} (topology {self._id}){detail}"
            log.log(self._logger, text, {"message": message, "topologyId": self._id, **extra})


def _connection_ids(connection: Connection | None) -> DocumentDict:
    """Return the known IDs of a monitor connection as fields of a structured log message."""
    if connection is None:
        return {}
    ids = {"driverConnectionId": connection.id}
    if connection.handshake_done and connection.hello.connection_id is not None:
        ids["serverConnectionId"] = connection.hello.connection_id
    return ids


_SELECTION_TEMPLATE = "{message} for operation {operation}. Selector: {selector}, topology: {topologyDescription}"


class NamedOperation(NamedTuple):
    """Operation or internal task that needs a server, with the name and ID for log messages."""

    name: str
    operation_id: int | None = None


class SelectionRequest(NamedTuple):
    """Server selection in progress: the selector, and the operation that needs a server."""

    selector: Selector
    operation_name: str
    operation_id: int | None


class SelectionEvents:
    """Publisher of log messages about server selection, for which the specification has no events."""

    def __init__(self, *, silent: bool) -> None:
        self._logger = log.silent_log if silent else log.server_selection_log
        self.is_enabled = log.enabled_check(self._logger)

    def started(self, request: SelectionRequest, topology: TopologyDescription) -> None:
        self._log("Server selection started", request, topology)

    def succeeded(self, request: SelectionRequest, topology: TopologyDescription, address: Address) -> None:
        self._log("Server selection succeeded", request, topology, **log.address_fields(address))

    def failed(self, request: SelectionRequest, topology: TopologyDescription, error: BaseException) -> None:
        self._log("Server selection failed", request, topology, failure=repr(error))

    def waiting(self, request: SelectionRequest, topology: TopologyDescription, remaining: float) -> None:
        message = "Waiting for suitable server to become available"
        self._log(message, request, topology, log.INFO, remainingTimeMS=log.milliseconds(remaining))

    def _log(
        self,
        message: str,
        request: SelectionRequest,
        topology: TopologyDescription,
        level: int = log.DEBUG,
        **extra: object,
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        selector, operation_name, operation_id = request
        if operation_id is not None:
            extra["operationId"] = operation_id
        fields = {"message": message, "operation": operation_name, **extra}
        # The log record may contain the selector and the topology description, because these objects
        # are immutable.
        structured = log.Structured(fields, {"selector": (repr, selector), "topologyDescription": (repr, topology)})
        log.log(self._logger, log.MessageText(structured, _SELECTION_TEMPLATE, ", "), structured, level)
