"""Options of pools and connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gmongo._documents import Document
from gmongo.wire.race import AddressOrder
from gmongo.wire.socks5 import Proxy
from gmongo.wire.tls import Tls

if TYPE_CHECKING:
    from gmongo.auth.authenticator import Authenticator


@dataclass(frozen=True)
class ConnectionSettings:
    """Connection settings. Times are in seconds, and a time of None means no limit."""

    connect_timeout: float | None = 20.0  # Limit of the name lookup and of each connection attempt.
    socket_timeout: float | None = None  # Limit of one request and its reply.
    metadata: Document = field(default_factory=dict)
    compressors: tuple[str, ...] = ()  # Names in the order of preference.
    server_api: Document = field(default_factory=dict)  # Stable API fields of every command.
    load_balanced: bool = False
    zlib_level: int = -1
    tls: Tls | None = None
    proxy: Proxy | None = None
    authenticator: Authenticator | None = None  # Monitors do not authenticate.
    address_order: AddressOrder = field(default_factory=AddressOrder, compare=False, repr=False)


@dataclass(frozen=True)
class PoolSettings:
    """Connection pool options (CMAP-07 to CMAP-13). Times are in seconds."""

    max_pool_size: int = 100  # 0 means no limit
    min_pool_size: int = 0
    max_idle_time: float | None = None  # None means no limit
    max_connecting: int = 2
    wait_queue_timeout: float | None = None  # None means no limit.
    background_interval: float = 10.0  # Maximum pause between background runs. A negative number disables the runs.
    drains: bool = False  # True if the pool waits for late replies to interrupted operations.
    drain_time: float = 1.0  # Maximum time that the pool waits for a late reply.
    drain_bytes: int = 1 << 20  # Maximum size of a late reply.
    specified: Document = field(default_factory=dict)  # Options that the application has set.
