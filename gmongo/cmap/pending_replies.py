"""Reader of late replies, which keeps the connection of an interrupted operation usable.

A background greenlet reads the reply, with limits on seconds and bytes. Meanwhile the connection is neither available
nor in use. A clear, a close or a fork ends the wait and closes the connection.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from gevent import Greenlet

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool_settings import PoolSettings

# Seconds to wait for the MaxTimeMSExpired error after the timeout of the client.
_TIME_FOR_DUE_REPLY = 0.25


class DrainingPool(Protocol):
    """Part of a pool that the reader of a late reply uses."""

    options: PoolSettings

    def end_draining(self, connection: Connection) -> None:
        """Make the connection available or drop it, after the wait for its late reply."""


def start_reading_late_reply(pool: DrainingPool, connection: Connection) -> None:
    """Begin to read the late reply of a connection. Does not switch greenlets.

    A link notifies the pool of the end, because a greenlet that is killed before it starts runs no `finally`.
    """
    options, reference = pool.options, weakref.ref(pool)
    seconds = options.drain_time if options.drains else _TIME_FOR_DUE_REPLY
    reader = Greenlet(_read, connection, seconds, options.drain_bytes)
    reader.link(lambda _reader: _end_draining(reference, connection))
    reader.start()


def _read(connection: Connection, seconds: float, most: int) -> None:
    try:
        connection.read_late_reply(seconds, most)
    except BaseException:  # also GreenletExit: the connection keeps its error, and the link notifies the pool
        pass


def _end_draining(reference: weakref.ref[DrainingPool], connection: Connection) -> None:
    pool = reference()
    if pool is None or connection.inherited:  # the pool of a forked child does not use the connection
        connection.close()
    else:
        pool.end_draining(connection)
