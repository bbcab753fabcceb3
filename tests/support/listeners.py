"""Listeners that pass all events of a kind to the method ``hear``."""

from __future__ import annotations

from typing import Any

from gmongo.monitoring import (
    CommandListener,
    ConnectionPoolListener,
    ServerHeartbeatListener,
    ServerListener,
    TopologyListener,
)


class _Hears:
    def hear(self, event: Any) -> None:
        """Handle an event. Subclasses override this method."""


class HearsCommands(_Hears, CommandListener):
    """Listener for command events."""

    def started(self, event: Any) -> None:
        self.hear(event)

    succeeded = failed = started


class HearsPools(_Hears, ConnectionPoolListener):
    """Listener for events of pools and connections."""

    def pool_created(self, event: Any) -> None:
        self.hear(event)

    pool_ready = pool_cleared = pool_closed = pool_created
    connection_created = connection_ready = connection_closed = pool_created
    connection_check_out_started = connection_check_out_failed = pool_created
    connection_checked_out = connection_checked_in = pool_created


class HearsHeartbeats(_Hears, ServerHeartbeatListener):
    """Listener for heartbeat events."""

    def started(self, event: Any) -> None:
        self.hear(event)

    succeeded = failed = started


class HearsServers(_Hears, ServerListener):
    """Listener for server events."""

    def opened(self, event: Any) -> None:
        self.hear(event)

    description_changed = closed = opened


class HearsTopology(_Hears, TopologyListener):
    """Listener for topology events."""

    def opened(self, event: Any) -> None:
        self.hear(event)

    description_changed = closed = opened


class HearsAll(HearsCommands, HearsPools, HearsHeartbeats, HearsServers, HearsTopology):
    """Listener for all events."""
