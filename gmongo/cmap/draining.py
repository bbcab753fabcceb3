"""Reading replies that come after their operation was interrupted, so that it does not cost its connection.

The reply is read in a greenlet of its own, within limits of time and bytes. The connection is neither available nor in
use meanwhile. A clear, a close or a fork ends the wait by closing the connection.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from gevent import Greenlet

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool_settings import PoolSettings

# Seconds for the error of a server that ends a command by its `maxTimeMS`, as the client has done just before.
_TIME_FOR_DUE_REPLY = 0.25


class PoolOfConnection(Protocol):
    """The part of a pool that the reader of a late reply uses."""

    options: PoolSettings

    def drained(self, connection: Connection) -> None:
        """The wait for the late reply is over."""


def drain_soon(pool: PoolOfConnection, connection: Connection) -> None:
    """Begin to read the late reply of a connection. Does not switch.

    A link tells the pool of the end, since a greenlet that is killed before it begins runs none of its own cleanup.
    """
    options, reference = pool.options, weakref.ref(pool)
    seconds = options.drain_time if options.drains else _TIME_FOR_DUE_REPLY
    reader = Greenlet(_read, connection, seconds, options.drain_bytes)
    reader.link(lambda _reader: _ended(reference, connection))
    reader.start()


def _read(connection: Connection, seconds: float, most: int) -> None:
    try:
        connection.read_late_reply(seconds, most)
    except BaseException:  # whatever was thrown in here: the connection keeps its error, and this greenlet ends
        pass


def _ended(reference: weakref.ref[PoolOfConnection], connection: Connection) -> None:
    pool = reference()
    if pool is None or connection.inherited:  # the child's pool has forgotten it, or will
        connection.close()
    else:
        pool.drained(connection)
