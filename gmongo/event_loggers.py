"""Listeners that log every event at level INFO, and important events at level WARNING.

The listeners are ready for use, as in ``MongoClient(event_listeners=[CommandLogger()])``, and are examples for other
listeners. The name of the logger is ``gmongo.event_loggers``.
"""

from __future__ import annotations

import logging

from gmongo import monitoring

__all__ = ["CommandLogger", "ConnectionPoolLogger", "HeartbeatLogger", "ServerLogger", "TopologyLogger"]

_log = logging.getLogger(__name__)


class CommandLogger(monitoring.CommandListener):
    """Listener that logs the start, success and failure of each command."""

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        name, request, server = event.command_name, event.request_id, event.connection_id
        _log.info("Command %s with request id %s started on server %s", name, request, server)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        message = "Command %s with request id %s on server %s succeeded in %s microseconds"
        _log.info(message, event.command_name, event.request_id, event.connection_id, event.duration_micros)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        message = "Command %s with request id %s on server %s failed in %s microseconds"
        _log.info(message, event.command_name, event.request_id, event.connection_id, event.duration_micros)


class ConnectionPoolLogger(monitoring.ConnectionPoolListener):
    """Listener that logs the events of connection pools and of their connections."""

    def pool_created(self, event: monitoring.PoolCreatedEvent) -> None:
        _log.info("[pool %s] pool created", event.address)

    def pool_ready(self, event: monitoring.PoolReadyEvent) -> None:
        _log.info("[pool %s] pool ready", event.address)

    def pool_cleared(self, event: monitoring.PoolClearedEvent) -> None:
        _log.info("[pool %s] pool cleared", event.address)

    def pool_closed(self, event: monitoring.PoolClosedEvent) -> None:
        _log.info("[pool %s] pool closed", event.address)

    def connection_created(self, event: monitoring.ConnectionCreatedEvent) -> None:
        _log.info("[pool %s][connection %s] connection created", event.address, event.connection_id)

    def connection_ready(self, event: monitoring.ConnectionReadyEvent) -> None:
        _log.info("[pool %s][connection %s] connection setup succeeded", event.address, event.connection_id)

    def connection_closed(self, event: monitoring.ConnectionClosedEvent) -> None:
        _log.info("[pool %s][connection %s] connection closed: %s", event.address, event.connection_id, event.reason)

    def connection_check_out_started(self, event: monitoring.ConnectionCheckOutStartedEvent) -> None:
        _log.info("[pool %s] connection check out started", event.address)

    def connection_check_out_failed(self, event: monitoring.ConnectionCheckOutFailedEvent) -> None:
        _log.info("[pool %s] connection check out failed: %s", event.address, event.reason)

    def connection_checked_out(self, event: monitoring.ConnectionCheckedOutEvent) -> None:
        _log.info("[pool %s][connection %s] connection checked out", event.address, event.connection_id)

    def connection_checked_in(self, event: monitoring.ConnectionCheckedInEvent) -> None:
        _log.info("[pool %s][connection %s] connection checked into the pool", event.address, event.connection_id)


class HeartbeatLogger(monitoring.ServerHeartbeatListener):
    """Listener that logs the start, success and failure of each heartbeat."""

    def started(self, event: monitoring.ServerHeartbeatStartedEvent) -> None:
        _log.info("Heartbeat to server %s started", event.connection_id)

    def succeeded(self, event: monitoring.ServerHeartbeatSucceededEvent) -> None:
        _log.info(
            "Heartbeat to server %s succeeded in %.3f seconds: %s", event.connection_id, event.duration, event.reply
        )

    def failed(self, event: monitoring.ServerHeartbeatFailedEvent) -> None:
        _log.warning("Heartbeat to server %s failed: %s", event.connection_id, event.reply)


class ServerLogger(monitoring.ServerListener):
    """Listener that logs added and removed servers, and changes of server types."""

    def opened(self, event: monitoring.ServerOpeningEvent) -> None:
        _log.info("Server %s added to topology %s", event.server_address, event.topology_id)

    def description_changed(self, event: monitoring.ServerDescriptionChangedEvent) -> None:
        old, new = event.previous_description, event.new_description
        if new.server_type != old.server_type:
            _log.info(
                "Server %s changed from %s to %s", event.server_address, old.server_type_name, new.server_type_name
            )

    def closed(self, event: monitoring.ServerClosedEvent) -> None:
        _log.warning("Server %s removed from topology %s", event.server_address, event.topology_id)


class TopologyLogger(monitoring.TopologyListener):
    """Listener that logs changes of the topology, with a warning if no server is readable or writable."""

    def opened(self, event: monitoring.TopologyOpenedEvent) -> None:
        _log.info("Topology %s opened", event.topology_id)

    def description_changed(self, event: monitoring.TopologyDescriptionChangedEvent) -> None:
        old, new = event.previous_description, event.new_description
        _log.info("Topology %s updated", event.topology_id)
        if new.topology_type != old.topology_type:
            message = "Topology %s changed from %s to %s"
            _log.info(message, event.topology_id, old.topology_type_name, new.topology_type_name)
        if not new.has_writable_server():
            _log.warning("Topology %s has no writable server", event.topology_id)
        if not new.has_readable_server():
            _log.warning("Topology %s has no readable server", event.topology_id)

    def closed(self, event: monitoring.TopologyClosedEvent) -> None:
        _log.info("Topology %s closed", event.topology_id)
