"""Listeners that log every event at level INFO, and important events at level WARNING.

The listeners are ready for use, as in ``MongoClient(event_listeners=[CommandLogger()])``. The name of the logger is
``gmongo.event_loggers``.
"""

from __future__ import annotations

import logging

from gmongo import monitoring
from gmongo._documents import Value

__all__ = ["CommandLogger", "ConnectionPoolLogger", "HeartbeatLogger", "ServerLogger", "TopologyLogger"]

_log = logging.getLogger(__name__)


def _logs(message: str, *attributes: str, level: int = logging.INFO) -> Value:
    """Return a method of a listener that logs `message` with the given attributes of the event."""

    def log(self: object, event: object) -> None:
        """Log the event.

        :param event: the event.
        """
        _log.log(level, message, *(getattr(event, each) for each in attributes))

    return log


class CommandLogger(monitoring.CommandListener):
    """Listener that logs the start, success and failure of each command."""

    _NAMES = ("command_name", "request_id", "connection_id")
    _END = "Command %s with request id %s on server %s {} in %s microseconds"
    started = _logs("Command %s with request id %s started on server %s", *_NAMES)
    succeeded = _logs(_END.format("succeeded"), *_NAMES, "duration_micros")
    failed = _logs(_END.format("failed"), *_NAMES, "duration_micros")


class ConnectionPoolLogger(monitoring.ConnectionPoolListener):
    """Listener that logs the events of connection pools and of their connections."""

    _POOL, _CONNECTION = "[pool %s] ", "[pool %s][connection %s] "
    _NAMES = ("address", "connection_id")
    pool_created = _logs(_POOL + "pool created", "address")
    pool_ready = _logs(_POOL + "pool ready", "address")
    pool_cleared = _logs(_POOL + "pool cleared", "address")
    pool_closed = _logs(_POOL + "pool closed", "address")
    connection_created = _logs(_CONNECTION + "connection created", *_NAMES)
    connection_ready = _logs(_CONNECTION + "connection setup succeeded", *_NAMES)
    connection_closed = _logs(_CONNECTION + "connection closed: %s", *_NAMES, "reason")
    connection_check_out_started = _logs(_POOL + "connection check out started", "address")
    connection_check_out_failed = _logs(_POOL + "connection check out failed: %s", "address", "reason")
    connection_checked_out = _logs(_CONNECTION + "connection checked out", *_NAMES)
    connection_checked_in = _logs(_CONNECTION + "connection checked into the pool", *_NAMES)


class HeartbeatLogger(monitoring.ServerHeartbeatListener):
    """Listener that logs the start, success and failure of each heartbeat."""

    _SUCCESS = "Heartbeat to server %s succeeded in %.3f seconds: %s"
    started = _logs("Heartbeat to server %s started", "connection_id")
    succeeded = _logs(_SUCCESS, "connection_id", "duration", "reply")
    failed = _logs("Heartbeat to server %s failed: %s", "connection_id", "reply", level=logging.WARNING)


class ServerLogger(monitoring.ServerListener):
    """Listener that logs added and removed servers, and changes of server types."""

    opened = _logs("Server %s added to topology %s", "server_address", "topology_id")

    def description_changed(self, event: monitoring.ServerDescriptionChangedEvent) -> None:
        old, new = event.previous_description, event.new_description
        if new.server_type != old.server_type:
            _log.info(
                "Server %s changed from %s to %s", event.server_address, old.server_type_name, new.server_type_name
            )

    closed = _logs("Server %s removed from topology %s", "server_address", "topology_id", level=logging.WARNING)


class TopologyLogger(monitoring.TopologyListener):
    """Listener that logs changes of the topology, with a warning if no server is readable or writable."""

    opened = _logs("Topology %s opened", "topology_id")

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

    closed = _logs("Topology %s closed", "topology_id")
