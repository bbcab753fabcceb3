"""The pool's options as an application sees them: ``client.options.pool_options``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gmongo.driver_info import DriverInfo
from gmongo.server_api import ServerApi

__all__ = ["PoolOptions"]


class PoolOptions(NamedTuple):
    """The options of each connection pool. Times are in seconds, and None is without limit."""

    max_pool_size: int
    """The most connections to one server at a time; 0 is without limit. 100 by default."""
    min_pool_size: int
    """How many connections a pool keeps at least; 0 by default."""
    max_idle_time_seconds: float | None
    """How long a connection may be unused."""
    max_connecting: int
    """The most connections that are established at a time; 2 by default."""
    wait_queue_timeout: float | None
    """How long an operation may wait for a connection."""
    connect_timeout: float | None
    """How long connecting and the handshake may take together; 20 by default."""
    socket_timeout: float | None
    """How long a request and its reply may take."""
    tls_allow_invalid_hostnames: bool
    """Whether a server's certificate may be for another host."""
    appname: str | None
    """The application's name, which the server logs."""
    driver: DriverInfo | None
    """The library on top of this one, if it has named itself."""
    server_api: ServerApi | None
    """The Stable API, if one was declared."""
    load_balanced: bool | None
    """Whether the client connects to a load balancer; None if that was not said."""
    metadata: dict[str, Any]
    """What connections say of the client in their handshake."""
    non_default_options: Mapping[str, Any]
    """What was given, by the names of the specification; times in milliseconds."""

    @property
    def pause_enabled(self) -> bool:
        """Whether the pool waits for its server to be found: always."""
        return True
