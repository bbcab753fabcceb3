"""Functions that create pools with real sockets, use the pools, and read the state of the pools."""

from __future__ import annotations

from typing import Any

import bson
import gevent

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from gmongo.wire.connect import Address
from gmongo.wire.message import encode_op_msg, next_request_id
from tests.support.recorder import PoolRecorder

NO_BACKGROUND_RUNS = -1.0


class PoolOwner:
    """A pool owner that clears the pool after a failed handshake if `clears_on_failure` is True."""

    def __init__(self, clears_on_failure: bool = True) -> None:
        self.pool: Pool
        self.clears_on_failure = clears_on_failure
        self.established: list[Connection] = []
        self.failures: list[Exception] = []

    def connection_established(self, connection: Connection) -> None:
        self.established.append(connection)

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        self.failures.append(error)
        if self.clears_on_failure:
            self.pool.clear(error)


def make_pool(
    address: Address,
    recorder: PoolRecorder | None,
    *,
    ready: bool = True,
    clears_on_failure: bool = True,
    load_balanced: bool = False,
    connect_timeout: float | None = 5.0,
    **options: Any,
) -> Pool:
    """Create a pool with the listener `recorder`, by default ready and without background runs."""
    options = {"background_interval": NO_BACKGROUND_RUNS, **options}
    owner = PoolOwner(clears_on_failure)
    connection_options = ConnectionSettings(
        connect_timeout, metadata={"driver": {"name": "tests"}}, load_balanced=load_balanced
    )
    events = PoolEvents(address, () if recorder is None else (recorder,), Delivery(), None, silent=False)
    pool = Pool(address, PoolSettings(**options), connection_options, events, owner)
    owner.pool = pool
    pool.finish()
    if ready:
        pool.ready()
    return pool


def owner_of(pool: Pool) -> PoolOwner:
    """Return the owner of a pool that :func:`make_pool` has created."""
    owner = pool._owner
    assert isinstance(owner, PoolOwner)
    return owner


def run_other_greenlets(round_count: int = 5) -> None:
    """Let all other greenlets run for the given number of event loop iterations."""
    for _ in range(round_count):
        gevent.sleep(0)


def ping(connection: Connection, timeout: float | None = 5.0, name: str = "ping") -> dict[str, Any]:
    """Send a command without arguments on a connection, and return the reply."""
    request_id = next_request_id()
    body = bson.encode({name: 1, "$db": "admin"})
    return connection.exchange(request_id, encode_op_msg(request_id, 0, body), timeout, bson.decode)


def connection_counts(pool: Pool) -> tuple[int, int, int, int]:
    """Return the numbers of all, pending, available and checked-out connections of a pool."""
    stats = pool.stats()
    return stats["total"], stats["pending"], stats["available"], stats["in_use"]


def fill_pool(pool: Pool, count: int) -> list[Connection]:
    """Check out and check in `count` connections. Return the connections in check-out order."""
    connections = [pool.check_out() for _ in range(count)]
    for connection in connections:
        pool.check_in(connection)
    return connections
