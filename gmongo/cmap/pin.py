"""Pinned connections, which cursors and transactions keep checked out between commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gevent import get_hub, getcurrent, spawn

from gmongo.cmap.connection import Connection, Purpose
from gmongo.errors import InvalidOperation

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool


class PinnedConnection:
    """Connection that is pinned to a cursor, or to a transaction and its cursors (LB-43)."""

    __slots__ = ("_hub", "_owner_count", "_user", "connection", "pool")

    def __init__(self, pool: Pool, connection: Connection, purpose: Purpose) -> None:
        connection.purpose = purpose
        self.pool = pool
        self.connection = connection
        self._owner_count = 1
        self._hub = get_hub()
        self._user: object = None

    def share(self) -> PinnedConnection:
        """Add an owner, which must call :meth:`release`."""
        self._owner_count += 1
        return self

    def release(self, error: BaseException | None = None) -> None:
        """Remove an owner after success or failure. Check in the connection if no owner remains."""
        self._owner_count -= 1
        if self._owner_count == 0:
            self.connection.purpose = Purpose.OTHER
            self.pool.check_in(self.connection, error)

    def release_soon(self) -> None:
        """Let a new greenlet call :meth:`release`. Any thread or finalizer may call this method."""
        self._hub.loop.run_callback_threadsafe(spawn, self.release)

    def check_free(self) -> None:
        """Raise InvalidOperation if another greenlet uses the connection (LB-51)."""
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
