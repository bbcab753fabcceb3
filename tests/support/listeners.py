"""Listeners that hear all events of a kind with one method, ``hear``."""

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
        """Called with each event; subclasses say what to do with it."""


class HearsCommands(_Hears, CommandListener):
    """Hears what becomes of commands."""

    def started(self, event: Any) -> None:
        self.hear(event)

    succeeded = failed = started


class HearsPools(_Hears, ConnectionPoolListener):
    """Hears what pools and their connections do."""

    def pool_created(self, event: Any) -> None:
        self.hear(event)

    pool_ready = pool_cleared = pool_closed = pool_created
    connection_created = connection_ready = connection_closed = pool_created
    connection_check_out_started = connection_check_out_failed = pool_created
    connection_checked_out = connection_checked_in = pool_created


class HearsHeartbeats(_Hears, ServerHeartbeatListener):
    """Hears the checks of servers."""

    def started(self, event: Any) -> None:
        self.hear(event)

    succeeded = failed = started


class HearsServers(_Hears, ServerListener):
    """Hears how servers come, change and go."""

    def opened(self, event: Any) -> None:
        self.hear(event)

    description_changed = closed = opened


class HearsTopology(_Hears, TopologyListener):
    """Hears how the topology opens, changes and closes."""

    def opened(self, event: Any) -> None:
        self.hear(event)

    description_changed = closed = opened


class HearsAll(HearsCommands, HearsPools, HearsHeartbeats, HearsServers, HearsTopology):
    """Hears everything."""
