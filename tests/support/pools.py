"""Check out a connection of a pool, and read the counters of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool


@contextmanager
def checked_out(pool: Pool, deadline: float | None = None) -> Iterator[Connection]:
    """Check out a connection, and check the connection in at the end of the block (CMAP-178)."""
    connection = pool.check_out(deadline)
    try:
        yield connection
    except BaseException as error:
        pool.check_in(connection, error)
        raise
    pool.check_in(connection)


def service_counts(pool: Pool) -> dict[Any, tuple[int, int]]:
    """Return the pool generation and the number of connections of each service, keyed by the service
    ID.
    """
    return {service: (entry[0], entry[1]) for service, entry in pool.generations._services.items()}
