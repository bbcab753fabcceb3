"""Public options of connection pools: ``client.options.pool_options``."""

from __future__ import annotations

from typing import NamedTuple

from gmongo._documents import Document, DocumentDict
from gmongo.driver_info import DriverInfo
from gmongo.server_api import ServerApi

__all__ = ["PoolOptions"]


class PoolOptions(NamedTuple):
    """Options of each connection pool. Times are in seconds, and None means no limit.

    :param max_pool_size: the maximum number of connections to one server; 0 also means no limit. 100 by default.
    :param min_pool_size: the minimum number of open connections; 0 by default.
    :param max_idle_time_seconds: the maximum idle time of a connection.
    :param max_connecting: the maximum number of connections being established concurrently; 2 by default.
    :param wait_queue_timeout: the time limit of the wait queue.
    :param connect_timeout: the time limit of connecting with the handshake; 20 by default.
    :param socket_timeout: the time limit of a request with its reply.
    :param tls_allow_invalid_hostnames: True allows a server certificate for another host.
    :param appname: the application's name, which the server logs.
    :param driver: the wrapping library, or None.
    :param server_api: the declared Stable API, or None.
    :param load_balanced: True if the host is a load balancer; None if not specified.
    :param metadata: the client metadata of the handshake.
    :param non_default_options: the specified options, by the names of the specification; times in milliseconds.
    """

    max_pool_size: int | None
    min_pool_size: int
    max_idle_time_seconds: float | None
    max_connecting: int
    wait_queue_timeout: float | None
    connect_timeout: float | None
    socket_timeout: float | None
    tls_allow_invalid_hostnames: bool
    appname: str | None
    driver: DriverInfo | None
    server_api: ServerApi | None
    load_balanced: bool | None
    metadata: DocumentDict
    non_default_options: Document

    @property
    def pause_enabled(self) -> bool:
        """True: the pool is paused until its server is available."""
        return True
