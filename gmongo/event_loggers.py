"""Listeners that log most events at level INFO, and problems with servers at level WARNING.

The listeners are ready for use, as in ``MongoClient(event_listeners=[CommandLogger()])``. The name
of the logger is ``gmongo.event_loggers``.
"""

from __future__ import annotations

import logging

from gmongo import monitoring
from gmongo._documents import Value

__all__ = ["CommandLogger", "ConnectionPoolLogger", "HeartbeatLogger", "ServerLogger", "TopologyLogger"]

_log = logging.getLogger(__name__)


def _make_method(message: str, *attributes: str, level: int = logging.INFO) -> Value:
    """Return a listener method, which logs `message` with the given attributes of its event."""

    def log(self: object, event: object) -> None:
        """Log the event.

        :param event: the event.
        """
        _log.log(level, message, *(getattr(event, each) for each in attributes))

    return log


class CommandLogger(monitoring.CommandListener):
    """Listener that logs the start, success and failure of each command."""

    _ATTRIBUTES = ("command_name", "request_id", "connection_id")
    _RESULT_MESSAGE = "Command %s with request id %s on server %s {} in %s microseconds"
    started = _make_method("Command %s with request id %s started on server %s", *_ATTRIBUTES)
    succeeded = _make_method(_RESULT_MESSAGE.format("succeeded"), *_ATTRIBUTES, "duration_micros")
    failed = _make_method(_RESULT_MESSAGE.format("failed"), *_ATTRIBUTES, "duration_micros")


class ConnectionPoolLogger(monitoring.ConnectionPoolListener):
    """Listener that logs the events of connection pools and of their connections."""

    _POOL_PREFIX, _CONNECTION_PREFIX = "[pool %s] ", "[pool %s][connection %s] "
    _ATTRIBUTES = ("address", "connection_id")
    pool_created = _make_method(_POOL_PREFIX + "pool created", "address")
    pool_ready = _make_method(_POOL_PREFIX + "pool ready", "address")
    pool_cleared = _make_method(_POOL_PREFIX + "pool cleared", "address")
    pool_closed = _make_method(_POOL_PREFIX + "pool closed", "address")
    connection_created = _make_method(_CONNECTION_PREFIX + "connection created", *_ATTRIBUTES)
    connection_ready = _make_method(_CONNECTION_PREFIX + "connection setup succeeded", *_ATTRIBUTES)
    connection_closed = _make_method(_CONNECTION_PREFIX + "connection closed: %s", *_ATTRIBUTES, "reason")
    connection_check_out_started = _make_method(_POOL_PREFIX + "connection check out started", "address")
    connection_check_out_failed = _make_method(_POOL_PREFIX + "connection check out failed: %s", "address", "reason")
    connection_checked_out = _make_method(_CONNECTION_PREFIX + "connection checked out", *_ATTRIBUTES)
    connection_checked_in = _make_method(_CONNECTION_PREFIX + "connection checked into the pool", *_ATTRIBUTES)


class HeartbeatLogger(monitoring.ServerHeartbeatListener):
    """Listener that logs the start, success and failure of each heartbeat."""

    _SUCCESS_MESSAGE = "Heartbeat to server %s succeeded in %.3f seconds: %s"
    started = _make_method("Heartbeat to server %s started", "connection_id")
    succeeded = _make_method(_SUCCESS_MESSAGE, "connection_id", "duration", "reply")
    failed = _make_method("Heartbeat to server %s failed: %s", "connection_id", "reply", level=logging.WARNING)


class ServerLogger(monitoring.ServerListener):
    """Listener that logs added and removed servers, and changes of server types."""

    opened = _make_method("Server %s added to topology %s", "server_address", "topology_id")

    def description_changed(self, event: monitoring.ServerDescriptionChangedEvent) -> None:
        old, new = event.previous_description, event.new_description
        if new.server_type != old.server_type:
            _log.info(
                "Server %s changed from %s to %s", event.server_address, old.server_type_name, new.server_type_name
            )

    closed = _make_method("Server %s removed from topology %s", "server_address", "topology_id", level=logging.WARNING)


class TopologyLogger(monitoring.TopologyListener):
    """Listener that logs changes of the topology, and warns if no server is writable, or if no server is readable."""

    opened = _make_method("Topology %s opened", "topology_id")

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

    closed = _make_method("Topology %s closed", "topology_id")
