"""State machine of a pool: four collections of connections, the wait queue, the generations, and a state such as READY.

The state machine does no I/O except for a peek at idle sockets, and only its methods change the
state. Every method except `_publish_ready` is a critical section: the method does not switch
greenlets, and the state is consistent before and after the method. Methods record events in the order
of the specification, and return or store the connections that the pool must establish, interrupt or
close. `total`, `len(pending)` and `len(available)` are the connection counts of the specification.
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

# Seconds of the first backoff after the background greenlet fails to establish a connection. Each
# further failure doubles the backoff, up to the interval of the background runs.
_FIRST_BACKOFF = 1.0
# Idle seconds after which the pool checks whether the server, or a firewall, has closed a connection.
_CHECK_AFTER_IDLE_SECONDS = 1.0


class PoolState(Enum):
    """States of a pool (CMAP-60 to CMAP-62)."""

    PAUSED = "paused"
    READY = "ready"
    CLOSED = "closed"


class StateMachine:
    """State of one pool, and its transitions."""

    def __init__(
        self, address: Address, options: PoolSettings, connection_options: ConnectionSettings, events: PoolEvents
    ) -> None:
        self.address = address
        self.generations = Generations()
        self.queue: WaitQueue[Connection] = WaitQueue()
        self.pending: set[Connection] = set()  # Connections that are not yet established.
        self.available: deque[Connection] = deque()  # The last connection is the most recently used.
        self.in_use: set[Connection] = set()  # Connections that are checked out.
        self.draining: set[Connection] = set()  # Connections with an outstanding late reply.
        self.background_wakeup = Wakeup()  # Wakes the background greenlet.
        self._options = options
        self._connection_options = connection_options
        self._events = events
        self._last_id = 0
        self._pause_cause: BaseException | None = None  # Error that caused the pool's last pause.
        self._dropped_connections: list[Connection] = []  # Connections that the pool must close.
        self._set_state(PoolState.PAUSED)
        self._populate_attempt: Connection | None = None
        self._populate_backoff = 0.0  # Backoff of the background greenlet in seconds.
        self._populate_backoff_end = 0.0  # End of the backoff, as measured by `_clock.monotonic()`.
        events.record(events.pool_created, options.specified)

    @property
    def total(self) -> int:
        """Number of all connections (CMAP-63)."""
        return len(self.pending) + len(self.available) + len(self.in_use) + len(self.draining)

    def in_use_by(self) -> dict[str, int]:
        counts = Counter(connection.purpose for connection in list(self.in_use))
        return {purpose.value: counts[purpose] for purpose in Purpose}

    def has_room(self) -> bool:
        """Return True if the limits of the pool allow one more pending connection now."""
        limit = self._options.max_pool_size
        return len(self.pending) < self._options.max_connecting and (limit == 0 or self.total < limit)

    def check_out_available(self) -> Connection | None:
        """Check out an available connection, or return None if `request_connection` is necessary."""
        # Hot path and critical section: a connection moves from `available` to `in_use` before
        # another greenlet runs. Greenlets in the queue receive available connections first.
        available = self.available
        if available and not self.queue.waiters:
            connection = available[-1]
            is_fit = connection.generation == self.fit_generation
            if is_fit and _clock.monotonic() - connection.idle_since < _CHECK_AFTER_IDLE_SECONDS:
                del available[-1]
                self.in_use.add(connection)
                return connection
        return None

    def request_connection(self) -> Connection | Waiter[Connection]:
        """Return a connection that is now in use, a pending connection for the caller to establish, or a new waiter."""
        if self.state is not PoolState.READY:
            raise self._make_check_out_error()
        # Critical section: a check-in between `_take_connection` and `join` would find no waiter.
        # The check-out would then wait although a connection is available.
        connection = None if self.queue.waiters else self._take_connection()
        return connection or self.queue.join()

    def _take_connection(self) -> Connection | None:
        while self.available:
            connection = self.available.pop()
            reason = self._get_perished_reason(connection)
            if reason is None:
                self.in_use.add(connection)
                return connection
            self._drop_connection(connection, reason)
        return self._add_pending() if self.has_room() else None

    def _add_pending(self) -> Connection:
        connection = Connection(self.address, self._connection_options.socket_timeout)
        self.pending.add(connection)
        return connection

    def _serve_waiters(self) -> None:
        """Hand available connections, or pending connections for free slots, to the waiters in order of arrival."""
        while self.queue.waiters and self.state is PoolState.READY:
            connection = self._take_connection()
            if connection is None:
                return
            self.queue.hand_over(connection)

    def _remove_pending(self, connection: Connection) -> None:
        """Remove a pending connection. A waiter or the background greenlet can use the free slot (CMAP-97)."""
        # Waiters receive the slot first, because the background greenlet wakes in a later iteration of the event loop.
        self.pending.discard(connection)  # After a fork, the child has removed the connection.
        self._serve_waiters()
        self._wake_background()

    def _wake_background(self) -> None:
        if self.needs_connection():
            self.background_wakeup.set()

    def confirm_connection(self, connection: Connection) -> None:
        """Check that a resumed waiter may still use the connection that the pool handed over."""
        # After a clear, the waiter does not rejoin the queue, because the waiter would be behind later waiters.
        if self.state is not PoolState.READY or (
            connection not in self.pending and self._get_broken_reason(connection) is not None
        ):
            raise self._make_check_out_error()

    def return_offer(self, offer: Connection | Waiter[Connection]) -> None:
        """Return an offer (connection or waiter) to the pool after a failed check-out, without a check-in event."""
        # If an exception interrupts a waiter after the hand-over, `leave` returns the connection of the waiter.
        connection = self.queue.leave(offer) if isinstance(offer, Waiter) else offer
        if connection in self.pending:
            self._remove_pending(connection)
        elif connection in self.in_use:
            self.in_use.remove(connection)
            self._release_connection(connection)

    def begin_establishing(self, connection: Connection) -> None:
        """Set the ID and generation of a pending connection that the pool is about to establish."""
        self._last_id += 1
        connection.id = self._last_id
        connection.generation = self.generations.current
        self._events.record(self._events.connection_created, connection.id)

    def join_service(self, connection: Connection) -> None:
        """Set the generation of a connection to the generation of its service (LB-63)."""
        if connection.service_id is not None:
            connection.generation = self.generations.add_connection(connection.service_id)

    def record_established(self, connection: Connection, duration: float) -> None:
        """Record a connection established in `duration` seconds. The connection stays pending."""
        connection.establishment_seconds = duration
        self._events.record(self._events.connection_ready, connection.id, duration)
        self._events.record_established(duration)
        self._populate_backoff = self._populate_backoff_end = 0.0

    def check_out_established(self, connection: Connection) -> None:
        """Move an established connection to the connections in use, or raise PoolClosedError (CMAP-A20)."""
        if self.state is PoolState.CLOSED:
            self.pending.discard(connection)
            self._drop_connection(connection, ClosedReason.POOL_CLOSED)
            raise self._make_check_out_error()
        self.in_use.add(connection)
        self._remove_pending(connection)

    def make_available(self, connection: Connection) -> None:
        """Make a connection available (CMAP-103), or hand the connection to a waiter (CMAP-102)."""
        self.pending.discard(connection)
        self._end_populating(connection)
        self._release_connection(connection)

    def fail_establishing(self, connection: Connection) -> None:
        self.pending.discard(connection)
        if connection is self._populate_attempt:
            backoff = 2 * self._populate_backoff or _FIRST_BACKOFF
            self._populate_backoff = min(backoff, self._options.background_interval)
            self._populate_backoff_end = _clock.monotonic() + self._populate_backoff
        self._end_populating(connection)
        self._drop_connection(connection, self._get_broken_reason(connection) or ClosedReason.ERROR)
        self._serve_waiters()

    def check_in(self, connection: Connection) -> bool:
        """Check in a connection in use. This method is a hot path.

        :returns: True if the caller may have to deliver events, close connections or read a late
            reply. If the connection is in `draining`, the caller reads its late reply and then calls
            :meth:`end_draining`.
        """
        publishes = self._events.is_enabled()
        if publishes:
            self._events.record(self._events.checked_in, connection.id)
        connection.checked_out_by = None
        if connection.generation != self.fit_generation or connection.mid_message or connection.error is not None:
            self.in_use.remove(connection)
            if self._may_drain(connection):
                self.draining.add(connection)
            else:
                self._release_connection(connection)
            return True
        # Hand the connection directly to the first waiter. Otherwise the current greenlet could
        # check out the connection again and again before the waiter runs.
        if self.queue.waiters:
            self.queue.hand_over(connection)
        else:
            self.in_use.remove(connection)
            connection.idle_since = _clock.monotonic()
            self.available.append(connection)
        return publishes

    def _release_connection(self, connection: Connection) -> None:
        """Drop a broken connection. Hand a usable connection to a waiter, or make the connection available."""
        reason = self._get_broken_reason(connection)
        if reason is not None:
            self._drop_connection(connection, reason)
            self._serve_waiters()  # a waiter may establish a connection in the free slot
        elif self.queue.waiters and self.state is PoolState.READY:
            self.in_use.add(connection)
            self.queue.hand_over(connection)
        else:
            connection.idle_since = _clock.monotonic()
            self.available.append(connection)

    def _drop_connection(self, connection: Connection, reason: str) -> None:
        """Mark a connection for closing by the pool. Wake the background greenlet if a new connection is necessary."""
        self._events.record(self._events.connection_closed, connection.id, reason, connection.error)
        if connection.service_id is not None:
            self.generations.remove_connection(connection.service_id)
        self._dropped_connections.append(connection)
        self._wake_background()

    def _may_drain(self, connection: Connection) -> bool:
        """Return True if the pool should wait for a late reply on the connection."""
        is_awaited = connection.late_reply_handler is not None and (self._options.drains or connection.reply_is_due)
        return is_awaited and self.state is PoolState.READY and not self._is_stale(connection)

    def end_draining(self, connection: Connection) -> None:
        """Make a usable connection available after a late reply, or drop an unusable connection."""
        if connection in self.draining:
            self.draining.remove(connection)
            self._release_connection(connection)

    def _stop_draining(self, reason: str) -> None:
        """Drop the connections that wait for a late reply. For the reason STALE, drop only stale connections."""
        for connection in sorted(self.draining, key=attrgetter("id")):
            if reason == ClosedReason.STALE and not self._is_stale(connection):
                continue
            self.draining.remove(connection)
            self._drop_connection(connection, reason)

    def take_dropped(self) -> list[Connection]:
        """Return the dropped connections, which the caller must close."""
        dropped, self._dropped_connections = self._dropped_connections, []
        return dropped

    def remove_perished(self) -> None:
        """Drop the available connections that have perished (CMAP-173)."""
        connection_reasons = [(connection, self._get_perished_reason(connection)) for connection in self.available]
        self.available = deque(connection for connection, reason in connection_reasons if reason is None)
        for connection, reason in connection_reasons:
            if reason is not None:
                self._drop_connection(connection, reason)
        self._serve_waiters()

    def ready(self) -> None:
        """Mark a paused pool as ready. The background greenlet connects only after the ready event (CMAP-81)."""
        if self.state is PoolState.PAUSED:
            self._set_state(PoolState.READY)
            generation = self.generations.current
            if not self._events.delivery.record(self._publish_ready, generation):
                self._allow_populating(generation)

    def _publish_ready(self, generation: int) -> None:
        """Publish the ready event, and then allow the background greenlet to connect."""
        try:
            self._events.pool_ready()
        finally:
            self._allow_populating(generation)

    def _allow_populating(self, generation: int) -> None:
        if self.state is PoolState.READY and self.generations.current == generation:
            self._may_populate = True
            self.background_wakeup.set()

    def clear(self, cause: BaseException | None, service_id: ObjectId | None, interrupt: bool) -> list[Connection]:
        """Clear the pool, or only one service (CMAP-A07). Return the connections to interrupt (CMAP-157, CMAP-A09)."""
        if self.state is PoolState.CLOSED:
            return []
        # Critical section: first advance the generation, so that connections become stale. Then
        # evict the waiters, before a waiter runs and requests a connection again.
        self.generations.advance(service_id)
        if service_id is not None or self.state is PoolState.READY:
            self._events.record(self._events.pool_cleared, service_id, interrupt)
        if service_id is None:
            self._pause(cause)
        self._stop_draining(ClosedReason.STALE)
        self._serve_waiters()  # after the clear of one service, waiters may use the freed slots
        self.background_wakeup.set()
        if not interrupt:
            return []
        # No other greenlet has run since the start of the clear. Therefore the clear is newer than these connections.
        return [each for each in (*self.pending, *self.in_use) if each.service_id == service_id]

    def _pause(self, cause: BaseException | None) -> None:
        # A pool that is already paused keeps the error that caused its pause.
        self._pause_cause = cause if self.state is PoolState.READY else self._pause_cause or cause
        self._set_state(PoolState.PAUSED)
        self.queue.evict(self._make_check_out_error)

    def close(self) -> list[Connection]:
        """Close the pool, and return the pending connections, which the caller must interrupt."""
        if self.state is PoolState.CLOSED:
            return []
        # Critical section: change the state first, because evicted waiters and later check-ins read the state.
        self._set_state(PoolState.CLOSED)
        while self.available:
            self._drop_connection(self.available.popleft(), ClosedReason.POOL_CLOSED)
        self._stop_draining(ClosedReason.POOL_CLOSED)
        self._events.record(self._events.pool_closed)
        self.queue.evict(self._make_check_out_error)
        self.background_wakeup.set()
        return sorted(self.pending, key=attrgetter("id"))

    def _set_state(self, state: PoolState) -> None:
        """Change the state of the pool, and update `fit_generation`."""
        self.state = state
        self._may_populate = False  # True after the delivery of the ready event (CMAP-81).
        needs_check = self._connection_options.load_balanced or self._options.max_idle_time is not None
        # Recently used connections of this generation need no check. None means that all connections need a check.
        self.fit_generation = self.generations.current if state is PoolState.READY and not needs_check else None

    def needs_connection(self) -> bool:
        """Return True if the background greenlet should now establish a connection. Its attempts do not overlap."""
        return (
            self.state is PoolState.READY
            and self._may_populate
            and self._populate_attempt is None
            and self.total < self._options.min_pool_size
            and self.has_room()
            and self.remaining_backoff() == 0
        )

    def remaining_backoff(self) -> float:
        return max(0.0, self._populate_backoff_end - _clock.monotonic())

    def begin_populating(self) -> Connection | None:
        """Return a pending connection for the background greenlet to establish, or None."""
        if not self.needs_connection():
            return None
        self._populate_attempt = self._add_pending()
        return self._populate_attempt

    def _end_populating(self, connection: Connection) -> None:
        if connection is self._populate_attempt:
            self._populate_attempt = None
            # The background run starts the next attempt, or waits until the end of the backoff.
            self.background_wakeup.set()

    def mark_forked(self, make_error: Callable[[], Exception]) -> None:
        # While the pool is paused, inherited greenlets cannot open connections.
        error = make_error()
        for connection in (*self.pending, *self.available, *self.in_use, *self.draining):
            connection.mark_forked(error)
        if self.state is not PoolState.CLOSED:
            self._pause_cause = error
            self._set_state(PoolState.PAUSED)
        self.queue.evict(make_error)

    def reset_after_fork(self) -> None:
        self._dropped_connections += [*self.pending, *self.available, *self.in_use, *self.draining]
        self.pending, self.available, self.in_use, self.draining = set(), deque(), set(), set()
        self.generations.advance()
        self._populate_attempt = None
        self._populate_backoff = self._populate_backoff_end = 0.0
        self.background_wakeup = Wakeup()

    def _make_check_out_error(self) -> Exception:
        if self.state is PoolState.CLOSED:
            return PoolClosedError(self.address)
        where = address_text(self.address)
        return PoolClearedError(
            f"Connection pool for {where} was cleared because another operation failed with: {self._pause_cause}",
            self.address,
        )

    def _get_broken_reason(self, connection: Connection) -> str | None:
        """Return the first reason (in the order of CMAP-A21) to close a connection, or None if no reason applies."""
        if self.state is PoolState.CLOSED:
            return ClosedReason.POOL_CLOSED
        is_stale = self._is_stale(connection)
        if connection.mid_message or connection.error is not None:
            is_interrupted = is_stale and isinstance(connection.error, PoolClearedError)
            return ClosedReason.STALE if is_interrupted else ClosedReason.ERROR
        return ClosedReason.STALE if is_stale else None

    def _is_stale(self, connection: Connection) -> bool:
        """Return True if a connection is older than the last clear of the pool or of its service."""
        service_id = connection.service_id
        current = self.generations.current if service_id is None else self.generations.generation_of(service_id)
        return connection.generation != current

    def _get_perished_reason(self, connection: Connection) -> str | None:
        """Return the reason to close an available connection, or None. Check the idle time last."""
        reason = self._get_broken_reason(connection)
        if reason is not None:
            return reason
        idle_seconds, limit = _clock.monotonic() - connection.idle_since, self._options.max_idle_time
        if idle_seconds >= _CHECK_AFTER_IDLE_SECONDS and connection.may_be_closed():
            return ClosedReason.ERROR
        return ClosedReason.IDLE if limit is not None and idle_seconds > limit else None
