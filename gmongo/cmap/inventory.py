"""The bookkeeping of a pool: its state, its connections in three sets, and what may be handed out.

Nothing here switches greenlets, touches a socket, or tells anybody: every method is a critical section, true before and
after. What has to be closed is returned to the pool, which does it afterwards. The counts of the specification are not
kept; they are the sizes of the sets.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import Enum
from time import monotonic
from typing import Any

from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.generation import Generations
from gmongo.cmap.options import PoolOptions
from gmongo.errors import PoolClearedError
from gmongo.monitoring import ConnectionClosedReason as ClosedReason

Perished = list[tuple[Connection, str]]  # connections to close, and why


class PoolState(Enum):
    """The states of a pool (CMAP-60 to CMAP-62)."""

    PAUSED = "paused"
    READY = "ready"
    CLOSED = "closed"


class Inventory:
    """What a pool has.

    :param options: sizes and times.
    :param make_connection: makes a connection, without any I/O.
    """

    __slots__ = ("_make_connection", "_options", "available", "generations", "in_use", "pending", "state")

    def __init__(self, options: PoolOptions, make_connection: Callable[[], Connection]) -> None:
        self._options = options
        self._make_connection = make_connection
        self.state = PoolState.PAUSED
        self.generations = Generations()
        self.pending: set[Connection] = set()  # created, not yet established
        self.available: deque[Connection] = deque()  # the one used last is at the right
        self.in_use: set[Connection] = set()  # checked out

    # Counts

    @property
    def total(self) -> int:
        """All connections (CMAP-63)."""
        return len(self.pending) + len(self.available) + len(self.in_use)

    def in_use_by(self) -> dict[str, int]:
        """How many connections are in use, by purpose."""
        counts = Counter(connection.purpose for connection in self.in_use)
        return {purpose.value: counts[purpose] for purpose in Purpose}

    def has_room(self) -> bool:
        """Whether another connection may be established now."""
        limit = self._options.max_pool_size
        return len(self.pending) < self._options.max_connecting and (limit == 0 or self.total < limit)

    # Moves

    def take(self, perished: Perished) -> Connection | None:
        """What the check-out at the head may have now: an available connection, now in use; leave to make one, as a
        pending connection; or None.

        :param perished: takes the perished connections met on the way.
        """
        available = self.available
        why = self.why_perished if self._options.max_idle_time is None else self.why_unfit
        while available:
            connection = available.pop()
            reason = why(connection)
            if reason is None:
                self.in_use.add(connection)
                return connection
            perished.append((connection, reason))
        return self.add_pending() if self.has_room() else None

    def add_pending(self) -> Connection:
        """A new connection, to be established by the caller."""
        connection = self._make_connection()
        connection.generation = self.generations.current
        self.pending.add(connection)
        return connection

    def use_pending(self, connection: Connection) -> bool:
        """Make a pending connection one that is in use; False if the pool was closed meanwhile (CMAP-A20)."""
        self.pending.remove(connection)
        if self.state is PoolState.CLOSED:
            return False
        self.in_use.add(connection)
        return True

    def make_available(self, connection: Connection) -> None:
        """Keep a connection that is in none of the sets and has not perished."""
        if self._options.max_idle_time is not None:
            connection.idle_since = monotonic()
        self.available.append(connection)

    def remove_unfit(self) -> Perished:
        """Take the perished connections out of the available ones."""
        checked = [(connection, self.why_unfit(connection)) for connection in self.available]
        self.available = deque(connection for connection, reason in checked if reason is None)
        return [(connection, reason) for connection, reason in checked if reason is not None]

    def remove_all(self) -> list[Connection]:
        """Take everything out."""
        everything = [*self.pending, *self.available, *self.in_use]
        self.pending, self.available, self.in_use = set(), deque(), set()
        return everything

    def close(self) -> Perished:
        """Close for good, and take the available connections out."""
        self.state = PoolState.CLOSED
        perished = [(connection, ClosedReason.POOL_CLOSED) for connection in self.available]
        self.available.clear()
        return perished

    def as_old_as(self, generation: int, service_id: Any) -> Iterable[Connection]:
        """The connections in use or pending that a clear at the end of `generation` concerns (CMAP-157, CMAP-A09)."""
        return [
            connection
            for connection in (*self.pending, *self.in_use)
            if connection.service_id == service_id and connection.generation <= generation
        ]

    # Judgements

    def why_perished(self, connection: Connection) -> str | None:
        """Why a connection may not be used again, or None. The order of reasons is that of CMAP-A21."""
        if self.state is PoolState.CLOSED:
            return ClosedReason.POOL_CLOSED
        service_id = connection.service_id
        current = self.generations.current if service_id is None else self.generations.of(service_id)
        stale = connection.generation != current
        if connection.mid_message or connection.error is not None:
            interrupted = stale and isinstance(connection.error, PoolClearedError)
            return ClosedReason.STALE if interrupted else ClosedReason.ERROR
        return ClosedReason.STALE if stale else None

    def why_unfit(self, connection: Connection) -> str | None:
        """Why an available connection may not be used again, or None: being idle too long comes last."""
        reason = self.why_perished(connection)
        limit = self._options.max_idle_time
        if reason is None and limit is not None and monotonic() - connection.idle_since > limit:
            return ClosedReason.IDLE
        return reason
