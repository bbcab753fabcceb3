"""The scope of a check-out."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from gmongo.cmap.connection import Connection

if TYPE_CHECKING:
    from gmongo.cmap.pool import Pool


class Checkout:
    """``with pool.checkout() as connection:`` checks a connection out and in again, whatever happens (CMAP-178).

    :param deadline: on the clock of :func:`time.monotonic`; None is without limit.
    """

    __slots__ = ("_connection", "_deadline", "_pool")

    def __init__(self, pool: Pool, deadline: float | None) -> None:
        self._pool = pool
        self._deadline = deadline

    def __enter__(self) -> Connection:
        self._connection = self._pool.check_out(self._deadline)
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = self._connection
        if error is not None and connection.mid_message and connection.error is None:
            connection.error = error  # a kill or somebody's time-out left the stream out of step
        self._pool.check_in(connection)
