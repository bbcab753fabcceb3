"""Event listeners that pass each event to their method ``handle``."""

from __future__ import annotations

from typing import Any

from gmongo.monitoring import (
    CommandListener,
    ConnectionPoolListener,
    ServerHeartbeatListener,
    ServerListener,
    TopologyListener,
)


class _ForwardingListener:
    def handle(self, event: Any) -> None:
        """Receive an event. Subclasses override this method."""


class ForwardingCommandListener(_ForwardingListener, CommandListener):
    """Listener that passes command events to ``handle``."""

    def started(self, event: Any) -> None:
        self.handle(event)

    succeeded = failed = started


class ForwardingPoolListener(_ForwardingListener, ConnectionPoolListener):
    """Listener that passes pool and connection events to ``handle``."""

    def pool_created(self, event: Any) -> None:
        self.handle(event)

    pool_ready = pool_cleared = pool_closed = pool_created
    connection_created = connection_ready = connection_closed = pool_created
    connection_check_out_started = connection_check_out_failed = pool_created
    connection_checked_out = connection_checked_in = pool_created


class ForwardingHeartbeatListener(_ForwardingListener, ServerHeartbeatListener):
    """Listener that passes heartbeat events to ``handle``."""

    def started(self, event: Any) -> None:
        self.handle(event)

    succeeded = failed = started


class ForwardingServerListener(_ForwardingListener, ServerListener):
    """Listener that passes server events to ``handle``."""

    def opened(self, event: Any) -> None:
        self.handle(event)

    description_changed = closed = opened


class ForwardingTopologyListener(_ForwardingListener, TopologyListener):
    """Listener that passes topology events to ``handle``."""

    def opened(self, event: Any) -> None:
        self.handle(event)

    description_changed = closed = opened


class ForwardingListener(
    ForwardingCommandListener,
    ForwardingPoolListener,
    ForwardingHeartbeatListener,
    ForwardingServerListener,
    ForwardingTopologyListener,
):
    """Listener that passes all events to ``handle``."""
