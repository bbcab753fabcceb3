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
    """Connection settings. Times are in seconds, and None means no limit.

    :param connect_timeout: limit for the name lookup, and then for each attempt to connect and authenticate.
    :param socket_timeout: limit for one request and its reply.
    :param compressors: names of compressors in the order of preference.
    :param server_api: the Stable API fields of every command; empty without the Stable API.
    :param tls: TLS settings; None disables TLS.
    :param proxy: SOCKS5 proxy; None means that the client connects directly.
    :param authenticator: credential and mechanism of pool connections; None disables authentication.
    :param order: order in which the connections of the client try the addresses of a host. Failed addresses come last.
    """

    connect_timeout: float | None = 20.0
    socket_timeout: float | None = None
    metadata: Document = field(default_factory=dict)
    compressors: tuple[str, ...] = ()
    server_api: Document = field(default_factory=dict)
    load_balanced: bool = False
    zlib_level: int = -1
    tls: Tls | None = None
    proxy: Proxy | None = None
    authenticator: Authenticator | None = None
    order: AddressOrder = field(default_factory=AddressOrder, compare=False, repr=False)


@dataclass(frozen=True)
class PoolSettings:
    """Connection pool options (CMAP-07 to CMAP-13). Times are in seconds.

    :param max_pool_size: maximum number of connections of the pool; 0 means no limit.
    :param min_pool_size: minimum number of connections that the background runs of a ready pool maintain.
    :param max_idle_time: maximum idle time of an available connection; None means no limit.
    :param max_connecting: maximum number of connections that the pool establishes at the same time.
    :param wait_queue_timeout: maximum time that a check-out waits; None means no limit.
    :param drains: True if the pool waits for late replies to interrupted operations.
    :param drain_time: maximum time that the pool waits for a late reply.
    :param drain_bytes: maximum size of a late reply in bytes.
    :param background_interval: pause between two background runs; a negative number disables background runs.
    :param specified: pool options that the application has set, for events: CMAP names, and times in milliseconds.
    """

    max_pool_size: int = 100
    min_pool_size: int = 0
    max_idle_time: float | None = None
    max_connecting: int = 2
    wait_queue_timeout: float | None = None
    background_interval: float = 10.0
    drains: bool = False
    drain_time: float = 1.0
    drain_bytes: int = 1 << 20
    specified: Document = field(default_factory=dict)
