"""The state of a pool: its connections in four sets, its queue of waiters, its generations, paused, ready or closed.

This is a state machine without I/O, and nothing else changes what it holds. Every method is a critical section: it does
not switch greenlets, and is true before and after. What happens is noted for listeners in the specification's order.
What is to be done outside is returned or kept for the pool, which does it next: connections to establish, to interrupt
and to close. The counts of the specification are not kept; they are the sizes of the sets.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from operator import attrgetter

from bson.objectid import ObjectId

from gmongo import _clock
from gmongo._background import Wakeup
from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.generation import Generations
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.errors import PoolClearedError, PoolClosedError
from gmongo.events.pool import PoolEvents
from gmongo.monitoring import ConnectionClosedReason as ClosedReason
from gmongo.wire.address import Address, address_text

# The first back-off after a failed background connect, in seconds; it doubles with each further failure.
_FIRST_BACKOFF = 1.0


class PoolState(Enum):
    """The states of a pool (CMAP-60 to CMAP-62)."""

    PAUSED = "paused"
    READY = "ready"
    CLOSED = "closed"


class StateMachine:
    """What a pool has, and what may happen to it.

    :param address: of the server.
    :param options: sizes and times.
    :param connection_options: of the connections that it makes.
    :param events: where what happens is noted.
    """

    __slots__ = (
        "_cause",
        "_connection_options",
        "_dropped",
        "_events",
        "_last_id",
        "_may_populate",
        "_options",
        "_populate_backoff",
        "_populate_backoff_ends",
        "_populating",
        "address",
        "available",
        "draining",
        "fit_generation",
        "generations",
        "in_use",
        "pending",
        "queue",
        "state",
        "upkeep_wakeup",
    )

    def __init__(
        self, address: Address, options: PoolSettings, connection_options: ConnectionSettings, events: PoolEvents
    ) -> None:
        self.address = address
        self.state = PoolState.PAUSED
        self.generations = Generations()
        # The generation whose connections may be used again without a further look; None if each has to be examined.
        self.fit_generation: int | None = None
        self.queue: WaitQueue[Connection] = WaitQueue()
        self.pending: set[Connection] = set()  # created, not yet established
        self.available: deque[Connection] = deque()  # the one used last is at the right
        self.in_use: set[Connection] = set()  # checked out
        self.draining: set[Connection] = set()  # checked in, and not available before a late reply has come
        self.upkeep_wakeup = Wakeup()  # wakes the background
        self._options = options
        self._connection_options = connection_options
        self._events = events
        self._last_id = 0
        self._cause: BaseException | None = None  # why the pool is paused, or was last
        self._dropped: list[Connection] = []  # to be closed by the pool
        self._may_populate = False  # whether all listeners have heard that the pool is ready (CMAP-81)
        self._populating: Connection | None = None
        self._populate_backoff = 0.0  # between attempts of the background to connect, after a failed one, in seconds
        self._populate_backoff_ends = 0.0  # when that is over, on the clock of _clock.monotonic()
        events.note(events.pool_created, options.specified)

    # Counts

    @property
    def total(self) -> int:
        """All connections (CMAP-63)."""
        return len(self.pending) + len(self.available) + len(self.in_use) + len(self.draining)

    def in_use_by(self) -> dict[str, int]:
        """How many connections are in use, by purpose."""
        counts = Counter(connection.purpose for connection in list(self.in_use))
        return {purpose.value: counts[purpose] for purpose in Purpose}

    def has_room(self) -> bool:
        """Whether another connection may be established now."""
        limit = self._options.max_pool_size
        return len(self.pending) < self._options.max_connecting and (limit == 0 or self.total < limit)

    # Checking out

    def take_fit(self) -> Connection | None:
        """The connection used last, now in use, if it needs no further look and the queue is empty. The hot path."""
        # Critical section: a connection moves from `available` to `in_use` before another greenlet runs. While one
        # waits, what becomes available is for it, and this one queues up behind it.
        available = self.available
        if available and available[-1].generation == self.fit_generation and not self.queue.waiters:
            connection = available.pop()
            self.in_use.add(connection)
            return connection
        return None

    def request(self) -> Connection | Waiter[Connection]:
        """For a check-out: a connection in use, a pending one that the caller must establish, or a place in the queue.

        :raises PoolClearedError: the pool is paused; :class:`PoolClosedError`: it is closed.
        """
        if self.state is not PoolState.READY:
            raise self._refusal()
        # Critical section: the look at what is available and the place in the queue. With a switch between them, a
        # check-in would see no waiter, and this one would wait beside an available connection.
        connection = None if self.queue.waiters else self._take()  # in order of arrival
        return connection or self.queue.join()

    def _take(self) -> Connection | None:
        while self.available:
            connection = self.available.pop()
            reason = self._perished_reason(connection)
            if reason is None:
                self.in_use.add(connection)
                return connection
            self._drop(connection, reason)
        return self._add_pending() if self.has_room() else None

    def _add_pending(self) -> Connection:
        connection = Connection(self.address, self._connection_options.socket_timeout)
        self.pending.add(connection)
        return connection

    def _serve(self) -> None:
        """Hand on what there is to the waiters, in order. It follows every change that could let one go on."""
        while self.queue.waiters and self.state is PoolState.READY:
            connection = self._take()
            if connection is None:
                return
            self.queue.hand(connection)

    def _leave_pending(self, connection: Connection) -> None:
        """A check-out has no pending connection any more: the place under ``maxConnecting`` is free for the next
        waiter, or else for the background (CMAP-97).
        """
        # Waiters before the background: it wakes in a later turn of the loop, and takes what they have left.
        self.pending.discard(connection)  # a forked child has forgotten it
        self._serve()
        self._wake_upkeep()

    def _wake_upkeep(self) -> None:
        """Wake the background if there is a connection for it to establish."""
        if self.is_short():
            self.upkeep_wakeup.set()

    def confirm(self, connection: Connection) -> None:
        """Check what was handed to a waiter, when the waiter runs.

        :raises PoolClearedError: the pool was cleared since the hand-over; :class:`PoolClosedError`: it was closed. The
            waiter does not queue up again, where waiters that came later are before it.
        """
        # The waiter has had the connection since the hand-over, but it runs only now: a clear or a close may have come
        # in between.
        if self.state is not PoolState.READY or (
            connection not in self.pending and self._broken_reason(connection) is not None
        ):
            raise self._refusal()

    def give_up(self, found: Connection | Waiter[Connection]) -> None:
        """A check-out ends early: what :meth:`request` found for it goes to the next one, and no event shows it."""
        # What ended the check-out may have been thrown after the hand-over and before the waiter ran. Then the
        # connection is the waiter's, and it is lost to the pool unless it goes on from here.
        connection = self.queue.leave(found) if isinstance(found, Waiter) else found
        if connection in self.pending:
            self._leave_pending(connection)
        elif connection in self.in_use:
            self.in_use.remove(connection)
            self._release(connection)

    # Establishing

    def begin(self, connection: Connection) -> None:
        """A pending connection is about to be established."""
        self._last_id += 1
        connection.id = self._last_id
        connection.generation = self.generations.current
        self._events.note(self._events.connection_created, connection.id)

    def join_service(self, connection: Connection) -> None:
        """From its hello on, a connection behind a load balancer has the generation of its service (LB-63)."""
        if connection.service_id is not None:
            connection.generation = self.generations.join(connection.service_id)

    def established(self, connection: Connection, duration: float) -> None:
        """A pending connection is ready, and pending still; :meth:`use` or :meth:`keep` follows.

        :param duration: of establishing, in seconds.
        """
        connection.established_in = duration
        self._events.note(self._events.connection_ready, connection.id, duration)
        self._events.note_made(duration)
        self._populate_backoff = self._populate_backoff_ends = 0.0

    def use(self, connection: Connection) -> None:
        """A pending connection is ready, for the check-out that established it.

        :raises PoolClosedError: the pool was closed meanwhile (CMAP-A20).
        """
        if self.state is PoolState.CLOSED:
            self.pending.discard(connection)
            self._drop(connection, ClosedReason.POOL_CLOSED)
            raise self._refusal()
        self.in_use.add(connection)
        self._leave_pending(connection)

    def keep(self, connection: Connection) -> None:
        """A connection that the background has established is ready (CMAP-103). It goes to a waiter for a
        ``maxConnecting`` slot if there is one, before the slot is seen to be free (CMAP-102).
        """
        self.pending.discard(connection)
        self._end_populating(connection)
        self._release(connection)

    def fail(self, connection: Connection) -> None:
        """A pending connection could not be established."""
        self.pending.discard(connection)
        if connection is self._populating:
            self._populate_backoff = min(2 * self._populate_backoff or _FIRST_BACKOFF, self._options.upkeep_interval)
            self._populate_backoff_ends = _clock.monotonic() + self._populate_backoff
        self._end_populating(connection)
        self._drop(connection, self._broken_reason(connection) or ClosedReason.ERROR)
        self._serve()

    # Checking in and closing

    def check_in(self, connection: Connection) -> bool:
        """Take back a connection that is in use. The hot path. If it is `draining` then, the caller is to read its late
        reply; :meth:`drained` follows.

        :returns: whether there may be events to deliver, connections to close, or a late reply to read.
        """
        observed = self._events.wanted()
        if observed:
            self._events.note(self._events.checked_in, connection.id)
        connection.holder = None
        if connection.generation != self.fit_generation or connection.mid_message or connection.error is not None:
            self.in_use.remove(connection)
            if self._may_drain(connection):
                self.draining.add(connection)
            else:
                self._release(connection)
            return True
        # Straight to the first waiter, which is as good as in use: were it available for a moment, the greenlet that
        # checks it in could check it out again before the waiter runs, and so each time.
        if self.queue.waiters:
            self.queue.hand(connection)
        else:
            self.in_use.remove(connection)
            self.available.append(connection)
        return observed

    def _release(self, connection: Connection) -> None:
        """Do what is right with a connection that has just left one of the sets: drop it if it has perished, hand it
        to the first waiter, or keep it available.
        """
        reason = self._broken_reason(connection)
        if reason is not None:
            self._drop(connection, reason)
            self._serve()  # there is room for another one
        elif self.queue.waiters and self.state is PoolState.READY:
            self.in_use.add(connection)
            self.queue.hand(connection)
        else:
            if self._options.max_idle_time is not None:
                connection.idle_since = _clock.monotonic()
            self.available.append(connection)

    def _drop(self, connection: Connection, reason: str) -> None:
        """Leave a connection that is in none of the sets any more to be closed; the background makes up for it."""
        self._events.note(self._events.connection_closed, connection.id, reason, connection.error)
        if connection.service_id is not None:
            self.generations.leave(connection.service_id)
        self._dropped.append(connection)
        self._wake_upkeep()

    # Late replies

    def _may_drain(self, connection: Connection) -> bool:
        """Whether all that a connection lacks is a reply that may still come, and is to be waited for."""
        wanted = connection.late_reply is not None and (self._options.drains or connection.reply_is_due)
        return wanted and self.state is PoolState.READY and not self._is_stale(connection)

    def drained(self, connection: Connection) -> None:
        """The wait for a late reply is over. If it has come, the connection is as good as before; else it has its error
        still, and is dropped. Does nothing if a clear, a close or a fork has ended the wait before.
        """
        if connection in self.draining:
            self.draining.remove(connection)
            self._release(connection)

    def _stop_draining(self, reason: str) -> None:
        """Drop the connections that are not to be waited for any more."""
        for connection in sorted(self.draining, key=attrgetter("id")):
            if reason == ClosedReason.STALE and not self._is_stale(connection):
                continue
            self.draining.remove(connection)
            self._drop(connection, reason)

    def take_dropped(self) -> list[Connection]:
        """The connections that have left the pool, for the caller to close."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def remove_perished(self) -> None:
        """Drop the available connections that have perished (CMAP-173)."""
        examined = [(connection, self._perished_reason(connection)) for connection in self.available]
        self.available = deque(connection for connection, reason in examined if reason is None)
        for connection, reason in examined:
            if reason is not None:
                self._drop(connection, reason)
        self._serve()

    # Ready, clear, close

    def ready(self) -> None:
        """Let connections be checked out and made; in the background, once all listeners know (CMAP-81)."""
        if self.state is PoolState.PAUSED:
            self._become(PoolState.READY)
            generation = self.generations.current
            if not self._events.delivery.note(self._publish_ready, generation):
                self._allow_populating(generation)

    def _publish_ready(self, generation: int) -> None:
        """Called by the delivery, when the event's turn has come."""
        try:
            self._events.pool_ready()
        finally:
            self._allow_populating(generation)

    def _allow_populating(self, generation: int) -> None:
        if self.state is PoolState.READY and self.generations.current == generation:
            self._may_populate = True
            self.upkeep_wakeup.set()

    def clear(self, cause: BaseException | None, service_id: ObjectId | None, interrupt: bool) -> list[Connection]:
        """Make all connections stale, or those of one service; without a service, also pause (CMAP-A07).

        :returns: the connections in use or pending to interrupt (CMAP-157, CMAP-A09).
        """
        if self.state is PoolState.CLOSED:
            return []
        # Critical section: the generation first, so that whatever is given back or established from now on is known as
        # stale; then the waiters, before any of them runs and asks again.
        self.generations.advance(service_id)
        if service_id is not None or self.state is PoolState.READY:
            self._events.note(self._events.pool_cleared, service_id, interrupt)
        if service_id is None:
            self._pause(cause)
        self._stop_draining(ClosedReason.STALE)
        self._serve()  # behind a load balancer others go on, and there may be room
        self.upkeep_wakeup.set()
        if not interrupt:
            return []
        # None can be younger than the clear: between its new generation and here nothing else runs.
        return [each for each in (*self.pending, *self.in_use) if each.service_id == service_id]

    def _pause(self, cause: BaseException | None) -> None:
        # While it stays paused, the first cause is the one that paused it.
        self._cause = cause if self.state is PoolState.READY else self._cause or cause
        self._become(PoolState.PAUSED)
        self.queue.evict(self.queue.detach(), self._refusal)

    def close(self) -> list[Connection]:
        """Close for good. Connections in use are closed as they are checked in.

        :returns: the pending connections to interrupt.
        """
        if self.state is PoolState.CLOSED:
            return []
        # Critical section: the state first, as waiters that are evicted, and connections that come back, look at it.
        self._become(PoolState.CLOSED)
        while self.available:
            self._drop(self.available.popleft(), ClosedReason.POOL_CLOSED)
        self._stop_draining(ClosedReason.POOL_CLOSED)
        self._events.note(self._events.pool_closed)
        self.queue.evict(self.queue.detach(), self._refusal)
        self.upkeep_wakeup.set()
        return sorted(self.pending, key=attrgetter("id"))

    def _become(self, state: PoolState) -> None:
        """Change the state, after the generation."""
        self.state = state
        self._may_populate = False
        examined = self._connection_options.load_balanced or self._options.max_idle_time is not None
        self.fit_generation = self.generations.current if state is PoolState.READY and not examined else None

    # Populating

    def is_short(self) -> bool:
        """Whether the background should establish a connection now. It does one at a time, which leaves room under
        ``maxConnecting`` for operations.
        """
        return (
            self.state is PoolState.READY
            and self._may_populate
            and self._populating is None
            and self.total < self._options.min_pool_size
            and self.has_room()
            and self.rest() == 0
        )

    def rest(self) -> float:
        """Seconds until the background may connect again after a failure, which keeps load from a server that fails."""
        return max(0.0, self._populate_backoff_ends - _clock.monotonic())

    def begin_populating(self) -> Connection | None:
        """A pending connection for the background to establish; None if it is not needed any more."""
        if not self.is_short():
            return None
        self._populating = self._add_pending()
        return self._populating

    def _end_populating(self, connection: Connection) -> None:
        if connection is self._populating:
            self._populating = None
            # A run after a clear may have found it under way and done nothing; and a back-off has to be timed.
            self.upkeep_wakeup.set()

    # Forking

    def mark_forked(self, make_error: Callable[[], Exception]) -> None:
        """In a forked child, before anything runs: all connections are the parent's.

        The pool is paused, so that what the child has inherited opens none: neither the background, which goes on until
        the first use, nor greenlets that are about to check out or wait in the queue.

        :param make_error: makes the errors of those that have inherited a connection or a place in the queue.
        """
        error = make_error()
        for connection in (*self.pending, *self.available, *self.in_use, *self.draining):
            connection.mark_forked(error)
        if self.state is not PoolState.CLOSED:
            self._cause = error
            self._become(PoolState.PAUSED)
        self.queue.evict(self.queue.detach(), make_error)

    def reset_after_fork(self) -> None:
        """In a forked child, on first use: forget the parent's connections, and begin again (CMAP-45, CMAP-A26)."""
        self._dropped += [*self.pending, *self.available, *self.in_use, *self.draining]
        self.pending, self.available, self.in_use, self.draining = set(), deque(), set(), set()
        self.generations.advance()
        self._populating = None
        self._populate_backoff = self._populate_backoff_ends = 0.0
        self.upkeep_wakeup = Wakeup()

    # Judgements

    def _refusal(self) -> Exception:
        """Why nothing can be checked out now."""
        if self.state is PoolState.CLOSED:
            return PoolClosedError(self.address)
        where = address_text(self.address)
        return PoolClearedError(
            f"Connection pool for {where} was cleared because another operation failed with: {self._cause}",
            self.address,
        )

    def _broken_reason(self, connection: Connection) -> str | None:
        """Why a connection may not be used again, or None. The order of reasons is that of CMAP-A21."""
        if self.state is PoolState.CLOSED:
            return ClosedReason.POOL_CLOSED
        stale = self._is_stale(connection)
        if connection.mid_message or connection.error is not None:
            interrupted = stale and isinstance(connection.error, PoolClearedError)
            return ClosedReason.STALE if interrupted else ClosedReason.ERROR
        return ClosedReason.STALE if stale else None

    def _is_stale(self, connection: Connection) -> bool:
        """Whether a connection is older than the last clear that concerns it."""
        service_id = connection.service_id
        current = self.generations.current if service_id is None else self.generations.of(service_id)
        return connection.generation != current

    def _perished_reason(self, connection: Connection) -> str | None:
        """Why an available connection has perished, or None: being idle for too long comes last."""
        reason = self._broken_reason(connection)
        limit = self._options.max_idle_time
        if reason is None and limit is not None and _clock.monotonic() - connection.idle_since > limit:
            return ClosedReason.IDLE
        return reason
