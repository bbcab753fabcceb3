"""One server of the topology: its pool and its monitor."""

from __future__ import annotations

from gmongo.cmap.pool import Pool
from gmongo.sdam.monitor import Monitor
from gmongo.wire.address import Address


class Server:
    """One server of the topology.

    :param monitor: None behind a load balancer, which is not monitored.

    `supports_retryable_writes` is that of its description, which the topology keeps up to date.
    """

    __slots__ = ("address", "monitor", "pool", "supports_retryable_writes")

    def __init__(self, address: Address, pool: Pool, monitor: Monitor | None) -> None:
        self.address = address
        self.pool = pool
        self.monitor = monitor
        self.supports_retryable_writes = monitor is None

    def request_check(self) -> None:
        """Have the server checked soon."""
        if self.monitor is not None:
            self.monitor.request_check()

    def end_checks(self) -> None:
        """Stop watching the server. Does not switch; the event of a check in progress is noted."""
        if self.monitor is not None:
            self.monitor.close()

    def close(self) -> None:
        """Stop watching the server and close its pool."""
        self.end_checks()
        self.pool.close()

    def __repr__(self) -> str:
        return f"<Server {self.pool!r}>"
