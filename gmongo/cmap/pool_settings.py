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
    """How connections are made. Times are in seconds, None is without limit.

    :param connect_timeout: limit for one attempt to connect, with its handshake.
    :param socket_timeout: limit for one request and its reply.
    :param metadata: the client metadata of the handshake.
    :param compressors: names offered to the server, most wanted first.
    :param zlib_level: how thoroughly zlib compresses.
    :param server_api: the Stable API fields of every command, empty without one.
    :param load_balanced: whether the peer is a load balancer.
    :param tls: how to encrypt; None is not at all.
    :param proxy: the proxy to connect through, if not directly.
    :param authenticator: how the connections of pools authenticate, if they do.
    :param order: the addresses that failed; it belongs to the client.
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
    """The connection pool options (CMAP-07 to CMAP-13). Times are in seconds.

    :param max_pool_size: most connections at a time; 0 is without limit.
    :param min_pool_size: connections that a ready pool keeps at least.
    :param max_idle_time: how long a connection may be available; None is without limit.
    :param max_connecting: most connections being established at a time.
    :param wait_queue_timeout: how long a check-out may wait; None is without limit.
    :param drains: whether a connection is kept whose operation was interrupted with the reply still out.
    :param drain_time: how long such a reply is waited for.
    :param drain_bytes: how long it may be, in bytes.
    :param upkeep_interval: pause between two background runs; negative for none at all.
    :param specified: what the user gave, by the specification's names, for events and logs.
    """

    max_pool_size: int = 100
    min_pool_size: int = 0
    max_idle_time: float | None = None
    max_connecting: int = 2
    wait_queue_timeout: float | None = None
    upkeep_interval: float = 10.0
    drains: bool = False
    drain_time: float = 1.0
    drain_bytes: int = 1 << 20
    specified: Document = field(default_factory=dict)
