"""The pool's options as an application sees them: ``client.options.pool_options``."""

from __future__ import annotations

from typing import NamedTuple

from gmongo._documents import Document, DocumentDict
from gmongo.driver_info import DriverInfo
from gmongo.server_api import ServerApi

__all__ = ["PoolOptions"]


class PoolOptions(NamedTuple):
    """The options of each connection pool. Times are in seconds, and None is without limit.

    :param max_pool_size: the most connections to one server at a time; 0 is without limit, too. 100 by default.
    :param min_pool_size: how many connections a pool keeps at least; 0 by default.
    :param max_idle_time_seconds: how long a connection may be unused.
    :param max_connecting: the most connections that are established at a time; 2 by default.
    :param wait_queue_timeout: how long an operation may wait for a connection.
    :param connect_timeout: how long connecting and the handshake may take together; 20 by default.
    :param socket_timeout: how long a request and its reply may take.
    :param tls_allow_invalid_hostnames: whether a server's certificate may be for another host.
    :param appname: the application's name, which the server logs.
    :param driver: the library on top of this one, if it has named itself.
    :param server_api: the Stable API, if one was declared.
    :param load_balanced: whether the client connects to a load balancer; None if that was not said.
    :param metadata: what connections say of the client in their handshake.
    :param non_default_options: what was given, by the names of the specification; times in milliseconds.
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
        """Whether the pool waits for its server to be found: always."""
        return True
