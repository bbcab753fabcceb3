"""The scope of a check-out."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.pin import PinnedConnection

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool


class Checkout:
    """``with pool.checkout() as connection:`` checks a connection out and in again, whatever happens (CMAP-178).

    :param deadline: on the clock of ``gmongo._clock``; None is without limit.
    """

    __slots__ = ("_connection", "_deadline", "_kept", "_pool")

    def __init__(self, pool: Pool, deadline: float | None) -> None:
        self._pool = pool
        self._deadline = deadline
        self._kept = False

    def __enter__(self) -> Connection:
        self._connection = self._pool.check_out(self._deadline)
        return self._connection

    def keep(self, purpose: Purpose) -> PinnedConnection:
        """Leave the connection checked out at the end of the scope; who calls this releases it (LB-46)."""
        self._kept = True
        self._connection.purpose = purpose
        return PinnedConnection(self._pool, self._connection)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._kept:
            self._pool.check_in(self._connection, error)
        elif error is not None:
            self._connection.record_failure(error)
