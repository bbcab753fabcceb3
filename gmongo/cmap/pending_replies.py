"""Reader of late replies. After its late reply, the connection of an interrupted operation is usable again.

A background greenlet reads the reply, with limits on seconds and bytes. During this time, the connection is neither
available nor in use. A clear, a close or a fork ends the wait and closes the connection.
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
    """Attributes and methods of a pool that the reader of a late reply uses."""

    options: PoolSettings

    def end_draining(self, connection: Connection) -> None:
        """Make a connection available after its late reply, or drop the connection if the reply did not come."""


def start_reading_late_reply(pool: DrainingPool, connection: Connection) -> None:
    """Start a greenlet that reads the late reply of a connection. Does not switch greenlets.

    A link notifies the pool when the greenlet ends. A `finally` clause would not run after a kill before the start.
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
