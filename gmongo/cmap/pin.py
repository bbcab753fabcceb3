"""A connection that stays checked out between commands: behind a load balancer, for a cursor or a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gevent import get_hub, getcurrent, spawn

from gmongo.cmap.connection import Connection, Purpose
from gmongo.errors import InvalidOperation

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool


class PinnedConnection:
    """A connection and its pool, and its holders: a cursor, a transaction, or a transaction's cursors (LB-43).

    :param pool: it is checked out of.
    :param connection: checked out.
    :param purpose: what holds it, for the statistics of the pool.
    """

    __slots__ = ("_holders", "_hub", "_user", "connection", "pool")

    def __init__(self, pool: Pool, connection: Connection, purpose: Purpose) -> None:
        connection.purpose = purpose
        self.pool = pool
        self.connection = connection
        self._holders = 1
        self._hub = get_hub()
        self._user: object = None

    def share(self) -> PinnedConnection:
        """One more holder, which must release it too."""
        self._holders += 1
        return self

    def release(self, error: BaseException | None = None) -> None:
        """One holder less; the last one checks the connection in.

        :param error: what has ended its use; None is a good end.
        """
        self._holders -= 1
        if self._holders == 0:
            self.connection.purpose = Purpose.OTHER
            self.pool.check_in(self.connection, error)

    def release_soon(self) -> None:
        """The same from a finaliser, which must not switch; any thread may call it."""
        self._hub.loop.run_callback_threadsafe(spawn, self.release)

    def check_free(self) -> None:
        """Refuse to go on while another greenlet uses the connection (LB-51).

        :raises InvalidOperation: one does.
        """
        if self._user is not None and self._user is not getcurrent():
            raise InvalidOperation(
                "the connection that is pinned to this cursor or transaction is in use by another greenlet; "
                "one greenlet at a time may use it"
            )

    def __enter__(self) -> Connection:
        self.check_free()
        self._user = getcurrent()
        return self.connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._user = None
        self.connection.record_failure(error)
