"""Events and log messages of server discovery and monitoring.

A publisher first calls the listeners and then logs a message, because an exception may interrupt a log handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bson.objectid import ObjectId

from gmongo import monitoring
from gmongo._documents import DocumentDict
from gmongo.events.delivery import Delivery
from gmongo.events.log import DEBUG, address_fields, document_text, log, milliseconds, silence, topology_log
from gmongo.monitoring import EventListeners, publish
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.cmap.connection import Connection
    from gmongo.sdam.hello_reply import HelloReply
    from gmongo.sdam.server_description import ServerDescription
    from gmongo.sdam.topology_description import TopologyDescription


class TopologyEvents:
    """Publisher of the events of one topology. A silent publisher logs nothing."""

    def __init__(self, topology_id: ObjectId, listeners: EventListeners, delivery: Delivery, *, silent: bool) -> None:
        self._logger = silence if silent else topology_log
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
        if self._listeners.topology:
            event = monitoring.TopologyDescriptionChangedEvent(previous, new, self._id)
            publish(self._listeners.topology, "description_changed", event)
        if self._logger.isEnabledFor(DEBUG):
            old, now = repr(previous), repr(new)
            self._log(
                "Topology description changed",
                f". Previous description: {old}. New description: {now}",
                previousDescription=old,
                newDescription=now,
            )

    def server_opened(self, address: Address) -> None:
        publish(self._listeners.server, "opened", monitoring.ServerOpeningEvent(address, self._id))
        self._log("Starting server monitoring", **address_fields(address))

    def server_closed(self, address: Address) -> None:
        publish(self._listeners.server, "closed", monitoring.ServerClosedEvent(address, self._id))
        self._log("Stopped server monitoring", **address_fields(address))

    def server_changed(self, previous: ServerDescription, new: ServerDescription) -> None:
        if self._listeners.server:
            event = monitoring.ServerDescriptionChangedEvent(previous, new, new.address, self._id)
            publish(self._listeners.server, "description_changed", event)

    def heartbeat_started(self, address: Address, connection: Connection | None, awaited: bool) -> None:
        if self._listeners.heartbeat:
            event = monitoring.ServerHeartbeatStartedEvent(address, awaited)
            publish(self._listeners.heartbeat, "started", event)
        self._log_heartbeat("Server heartbeat started", address, connection, awaited=awaited)

    def heartbeat_succeeded(
        self, address: Address, connection: Connection | None, duration: float, reply: HelloReply, awaited: bool
    ) -> None:
        if self._listeners.heartbeat:
            event = monitoring.ServerHeartbeatSucceededEvent(duration, reply, address, awaited)
            publish(self._listeners.heartbeat, "succeeded", event)
        if self._logger.isEnabledFor(DEBUG):
            text = document_text(reply)
            extra = {"awaited": awaited, "durationMS": milliseconds(duration), "reply": text}
            self._log_heartbeat("Server heartbeat succeeded", address, connection, f", reply: {text}", **extra)

    def heartbeat_failed(
        self, address: Address, connection: Connection | None, duration: float, error: Exception, awaited: bool
    ) -> None:
        if self._listeners.heartbeat:
            event = monitoring.ServerHeartbeatFailedEvent(duration, error, address, awaited)
            publish(self._listeners.heartbeat, "failed", event)
        if self._logger.isEnabledFor(DEBUG):
            extra = {"awaited": awaited, "durationMS": milliseconds(duration), "failure": repr(error)}
            self._log_heartbeat("Server heartbeat failed", address, connection, f", failure: {error}", **extra)

    def _log_heartbeat(
        self, message: str, address: Address, connection: Connection | None, detail: str = "", **extra: object
    ) -> None:
        if self._logger.isEnabledFor(DEBUG):
            self._log(message, detail, **extra, **_connection_ids(connection), **address_fields(address))

    def _log(self, message: str, detail: str = "", **extra: object) -> None:
        if self._logger.isEnabledFor(DEBUG):
            place = f" for {extra['serverHost']}:{extra.get('serverPort')}" if "serverHost" in extra else ""
            text = f"{message}{place} (topology {self._id}){detail}"
            log(self._logger, text, {"message": message, "topologyId": self._id, **extra})


def _connection_ids(connection: Connection | None) -> DocumentDict:
    """Return the fields of a structured log message that contain the known IDs of a monitor connection."""
    if connection is None:
        return {}
    ids = {"driverConnectionId": connection.id}
    if connection.handshake_done and connection.hello.connection_id is not None:
        ids["serverConnectionId"] = connection.hello.connection_id
    return ids
