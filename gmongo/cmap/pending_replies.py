"""Reader of late replies. After the late reply to an interrupted request, the pool can use the connection again.

A background greenlet reads the reply, within a time limit and a size limit. During this time, the connection is neither
available nor in use. A clear or close of the pool, or a fork, closes the connection.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from gevent import Greenlet

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool_settings import PoolSettings

# Seconds that the pool waits for the error MaxTimeMSExpired of the server after the operation timed out in the client.
_TIME_FOR_DUE_REPLY = 0.25


class DrainingPool(Protocol):
    """The attributes and methods of a pool that the reader of a late reply uses."""

    options: PoolSettings

    def end_draining(self, connection: Connection) -> None: ...


def start_reading_late_reply(pool: DrainingPool, connection: Connection) -> None:
    """Start a greenlet that reads the late reply of a connection, without a switch.

    A link notifies the pool when the greenlet ends, even if the greenlet is killed before its start.
    """
    options, reference = pool.options, weakref.ref(pool)
    seconds = options.drain_time if options.drains else _TIME_FOR_DUE_REPLY
    reader = Greenlet(_read, connection, seconds, options.drain_bytes)
    reader.link(lambda _reader: _end_draining(reference, connection))
    reader.start()


def _read(connection: Connection, seconds: float, max_bytes: int) -> None:
    try:
        connection.read_late_reply(seconds, max_bytes)
    except BaseException:  # the connection stores its error, and the link notifies the pool
        pass


def _end_draining(reference: weakref.ref[DrainingPool], connection: Connection) -> None:
    pool = reference()
    if pool is None or connection.inherited:  # a forked child must not use the connection
        connection.close()
    else:
        pool.end_draining(connection)
