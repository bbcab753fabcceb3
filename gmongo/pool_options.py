"""Public options of connection pools: ``client.options.pool_options``."""

from __future__ import annotations

from typing import NamedTuple

from gmongo._documents import Document, DocumentDict
from gmongo.driver_info import DriverInfo
from gmongo.server_api import ServerApi

__all__ = ["PoolOptions"]


class PoolOptions(NamedTuple):
    """Options of a connection pool. MongoClient sets the defaults. None means no size or time limit.

    :param max_pool_size: the maximum number of connections to one server; 0 also means no limit. 100 by default.
    :param min_pool_size: the minimum number of open connections; 0 by default.
    :param max_idle_time_seconds: the maximum idle time of a connection, in seconds; None (the default) means no limit.
    :param max_connecting: the maximum number of connections that the pool establishes concurrently; 2 by default.
    :param wait_queue_timeout: the time limit of the wait queue, in seconds; None (the default) means no limit.
    :param connect_timeout: the time limit of a connection attempt including the handshake, in seconds; 20 by default.
    :param socket_timeout: the time limit of a request and its reply, in seconds; None (the default) means no limit.
    :param tls_allow_invalid_hostnames: True accepts a certificate for another host; False by default.
    :param appname: the name of the application, which the server logs; None by default.
    :param driver: the metadata of a library that wraps the driver, or None (the default).
    :param server_api: the declared version of the Stable API, or None (the default).
    :param load_balanced: True if the host is a load balancer. None (the default) if unset.
    :param metadata: the client metadata that the handshake sends.
    :param non_default_options: the options that the application set, with the names of the
        specification, and with times in milliseconds.
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
        """True, because a pool is paused until its server is available."""
        return True
