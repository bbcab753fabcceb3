"""Server of a topology, with its pool and its monitor."""

from __future__ import annotations

from gmongo.cmap.pool import Pool
from gmongo.sdam.monitor import Monitor
from gmongo.wire.address import Address


class Server:
    """Server of a topology. Behind a load balancer, the server has no monitor."""

    def __init__(self, address: Address, pool: Pool, monitor: Monitor | None) -> None:
        self.address = address
        self.pool = pool
        self.monitor = monitor
        self.supports_retryable_writes = monitor is None  # each new description updates the attribute

    def request_check(self) -> None:
        if self.monitor is not None:
            self.monitor.request_check()

    def end_checks(self) -> None:
        """Close the monitor, which publishes the failure of a heartbeat in progress."""
        if self.monitor is not None:
            self.monitor.close()

    def close(self) -> None:
        self.end_checks()
        self.pool.close()
