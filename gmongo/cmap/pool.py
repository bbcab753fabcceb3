"""The connection pool of one server: a state machine, its connections in three sets, and a fair queue.

The bookkeeping is only ever changed in runs of code that do not switch greenlets ("critical sections"), so it needs no
lock and is true whenever anybody else can look. Events, logging, sockets and callbacks come after it. The counts of
the specification are not kept; they are the sizes of the sets.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from time import monotonic
from types import TracebackType
from typing import Any, Protocol

from gmongo.background import Alarm, spawn_for
from gmongo.cmap.connection import Connection, Purpose, address_text
from gmongo.cmap.generation import Generations
from gmongo.cmap.handshake import establish
from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.cmap.upkeep import upkeep
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.errors import (
    InvalidOperation,
    PoolClearedError,
    PoolClosedError,
    WaitQueueTimeoutError,
)
from gmongo.events.pool import PoolEvents
from gmongo.monitoring import ConnectionCheckOutFailedReason as FailedReason
from gmongo.monitoring import ConnectionClosedReason as ClosedReason
from gmongo.wire.connect import Address


class PoolState(Enum):
    """The states of a pool (CMAP-60 to CMAP-62)."""

    PAUSED = "paused"
    READY = "ready"
    CLOSED = "closed"


class PoolOwner(Protocol):
    """Who is told what the pool finds out about its server. Neither call may switch for long or raise."""

    def connection_established(self, connection: Connection) -> None:
        """A handshake succeeded."""

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        """Connecting or the handshake failed; called before the connection is closed (CMAP-A13)."""


class Checkout:
    """``with pool.checkout() as connection:`` checks a connection out and in again, whatever happens (CMAP-178)."""

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
        if error is not None and self._connection.mid_message and self._connection.error is None:
            self._connection.error = error  # a kill or somebody's time-out left the stream out of step
        self._pool.check_in(self._connection)


class Pool:
    """The connections to one server.

    :param address: of the server.
    :param options: sizes and times.
    :param connection_options: how connections are made.
    :param events: the publisher.
    :param owner: is told of handshakes and failures.
    """

    def __init__(
        self,
        address: Address,
        options: PoolOptions,
        connection_options: ConnectionOptions,
        events: PoolEvents,
        owner: PoolOwner,
    ) -> None:
        self.address = address
        self.options = options
        self.state = PoolState.PAUSED
        self.generations = Generations()
        self._connection_options = connection_options
        self._events = events
        self._owner = owner
        self._pending: set[Connection] = set()  # created, not yet established
        self._available: deque[Connection] = deque()  # the one used last is at the right
        self._in_use: set[Connection] = set()  # checked out
        self._waiters: WaitQueue[Connection] = WaitQueue()
        self._last_id = 0
        self._cause: BaseException | None = None  # why the pool is paused
        self._announced = False  # whether the background may act on being ready (CMAP-81)
        self._populating = False
        self._alarm = Alarm()
        if events.wanted():
            events.pool_created(options.specified)
        self._upkeep = spawn_for(self, self._alarm, upkeep)

    def __repr__(self) -> str:
        return (
            f"<Pool {address_text(self.address)} {self.state.value} generation={self.generation} "
            f"in_use={self.in_use_count} available={self.available_connection_count} "
            f"pending={self.pending_connection_count} waiting={len(self._waiters)}>"
        )

    # Counts

    @property
    def closed(self) -> bool:
        """Whether the pool is closed, for good."""
        return self.state is PoolState.CLOSED

    @property
    def generation(self) -> int:
        """How often the pool has been cleared."""
        return self.generations.current

    @property
    def pending_connection_count(self) -> int:
        """Connections being established."""
        return len(self._pending)

    @property
    def available_connection_count(self) -> int:
        """Connections waiting to be checked out."""
        return len(self._available)

    @property
    def in_use_count(self) -> int:
        """Connections checked out."""
        return len(self._in_use)

    @property
    def total_connection_count(self) -> int:
        """All of them (CMAP-63)."""
        return len(self._pending) + len(self._available) + len(self._in_use)

    @property
    def operation_count(self) -> int:
        """Operations that this server is busy with, for the choice between servers."""
        return len(self._in_use) + len(self._pending) + len(self._waiters)

    def stats(self) -> dict[str, Any]:
        """The state of the pool now."""
        return {
            "address": self.address,
            "state": self.state.value,
            "generation": self.generation,
            "total": self.total_connection_count,
            "available": len(self._available),
            "pending": len(self._pending),
            "in_use": len(self._in_use),
            "waiting": len(self._waiters),
            "in_use_by": self._in_use_by(),
            "oldest_wait": self._waiters.oldest(),
        }

    def _in_use_by(self) -> dict[str, int]:
        """How many connections are in use, by purpose."""
        counts = Counter(connection.purpose for connection in self._in_use)
        return {purpose.value: counts[purpose] for purpose in Purpose}

    # Checking out

    def checkout(self, deadline: float | None = None) -> Checkout:
        """A context manager for a check-out and its check-in.

        :param deadline: on the clock of :func:`time.monotonic`; None is without limit.
        """
        return Checkout(self, deadline)

    def check_out(self, deadline: float | None = None) -> Connection:
        """Check a connection out; :meth:`check_in` must follow.

        :raises PoolClosedError: the pool is closed.
        :raises PoolClearedError: the pool is paused, or was cleared while this check-out waited.
        :raises WaitQueueTimeoutError: no connection came free in time.
        :raises AutoReconnect: a new connection could not be established.
        """
        events = self._events if self._events.wanted() else None
        started = monotonic() if events else 0.0
        if events:
            events.check_out_started()
        try:
            connection = self._acquire(deadline)
            if connection in self._pending:
                self._establish(connection)
                self._put_in_use(connection)
        except BaseException as error:
            if events:
                events.check_out_failed(_failed_reason(error), error, monotonic() - started)
            raise
        if events:
            events.checked_out(connection.id, monotonic() - started)
        return connection

    def _acquire(self, deadline: float | None) -> Connection:
        """A connection in use, or a pending one that the caller must establish."""
        if self.state is not PoolState.READY:
            raise self._refusal()
        if not self._waiters:
            perished: list[tuple[Connection, str]] = []
            connection = self._take(perished)
            if perished:
                self._close_all(perished)
            if connection is not None:
                return connection
        return self._wait(deadline)

    def _wait(self, deadline: float | None) -> Connection:
        """Queue up for a connection."""
        timed_out = WaitQueueTimeoutError("")
        try:
            connection = self._waiters.wait(self._wait_limit(deadline), timed_out, self._take_back)
        except WaitQueueTimeoutError as error:
            raise (self._wait_error() if error is timed_out else error) from None
        if self.closed:
            self._take_back(connection)  # the pool has been closed since the hand-over
            raise self._refusal()
        return connection

    def _take(self, perished: list[tuple[Connection, str]]) -> Connection | None:
        """What the check-out at the head may have now: an available connection, now in use; leave to make one, as a
        pending connection; or None. Perished connections met on the way are for the caller to close.

        Critical section: no switch.
        """
        available = self._available
        while available:
            connection = available.pop()
            reason = self._unfit(connection)
            if reason is None:
                self._in_use.add(connection)
                return connection
            perished.append((connection, reason))
        if self._has_room():
            return self._new_pending()
        return None

    def _has_room(self) -> bool:
        """Whether another connection may be established now."""
        limit = self.options.max_pool_size
        return len(self._pending) < self.options.max_connecting and (limit == 0 or self.total_connection_count < limit)

    def _new_pending(self, ref: bool = True) -> Connection:
        connection = Connection(self.address, self._connection_options.socket_timeout, ref)
        if not self._connection_options.load_balanced:
            connection.generation = self.generation
        self._pending.add(connection)
        return connection

    def _serve(self) -> None:
        """Hand on what there is to the waiters, in order. Call it after every change that could let one go on."""
        perished: list[tuple[Connection, str]] = []
        # Critical section.
        while self._waiters and self.state is PoolState.READY:
            connection = self._take(perished)
            if connection is None:
                break
            self._waiters.hand(connection)
        # End of the critical section.
        self._close_all(perished)

    def _take_back(self, connection: Connection) -> None:
        """Take back what was handed to a waiter that has gone. It was not used, so no event tells of it."""
        if connection in self._pending:
            self._pending.remove(connection)
            self._serve()
        else:
            self._in_use.remove(connection)
            self._put_back(connection)

    def _put_back(self, connection: Connection) -> None:
        """Make a connection that has just left one of the other sets available, or close it if it has perished."""
        # Critical section.
        reason = self._perished(connection)
        if reason is None:
            if self.options.max_idle_time is not None:
                connection.idle_since = monotonic()
            self._available.append(connection)
        # End of the critical section.
        if self._waiters:
            self._serve()
        if reason is not None:
            self._close(connection, reason)

    # Establishing

    def _establish(self, connection: Connection, ref: bool = True) -> None:
        """Take a pending connection through connect, handshake and authentication; it stays pending."""
        # Critical section: IDs are given in the order in which the events show them.
        self._last_id += 1
        connection.id = self._last_id
        # End of the critical section.
        started = monotonic()
        try:
            if self._events.wanted():
                self._events.connection_created(connection.id)
            establish(connection, self._connection_options, ref)
            self._joined(connection)
            self._owner.connection_established(connection)
        except BaseException as error:
            self._establishment_failed(connection, error)
            raise
        if self._events.wanted():
            self._events.connection_ready(connection.id, monotonic() - started)

    def _joined(self, connection: Connection) -> None:
        if connection.service_id is not None:
            connection.generation = self.generations.join(connection.service_id)

    def _establishment_failed(self, connection: Connection, error: BaseException) -> None:
        connection.error = connection.error or error
        if isinstance(error, Exception):  # neither a kill nor a time-out of somebody else says anything of the server
            self._owner.establishment_failed(connection, error)
        self._pending.discard(connection)
        self._close(connection, self._perished(connection) or ClosedReason.ERROR)
        self._serve()

    def _put_in_use(self, connection: Connection) -> None:
        """Make a pending connection one that is in use, unless the pool was closed meanwhile (CMAP-A20)."""
        # Critical section.
        self._pending.remove(connection)
        closed = self.state is PoolState.CLOSED
        if not closed:
            self._in_use.add(connection)
        # End of the critical section.
        if closed:
            self._close(connection, ClosedReason.POOL_CLOSED)
            raise PoolClosedError(self.address)
        self._serve()

    # Checking in

    def check_in(self, connection: Connection) -> None:
        """Give a connection back. It is closed if it has perished or the pool is closed.

        :raises InvalidOperation: the connection is of another pool, or not checked out (CMAP-133).
        """
        if connection not in self._in_use:
            raise InvalidOperation(f"{connection!r} is not checked out of {self!r}")
        if self._events.wanted():
            self._events.checked_in(connection.id)
        self._in_use.remove(connection)
        self._put_back(connection)

    def _perished(self, connection: Connection) -> str | None:
        """Why a connection may not be used again, or None. The order is that of CMAP-A21."""
        if self.state is PoolState.CLOSED:
            return ClosedReason.POOL_CLOSED
        service_id = connection.service_id
        current = self.generations.current if service_id is None else self.generations.of(service_id)
        stale = connection.generation != current
        if connection.mid_message or connection.error is not None:
            interrupted = stale and isinstance(connection.error, PoolClearedError)
            return ClosedReason.STALE if interrupted else ClosedReason.ERROR
        if stale:
            return ClosedReason.STALE
        return None

    def _unfit(self, connection: Connection) -> str | None:
        """Why an available connection may not be used again, or None: being idle too long comes last."""
        reason = self._perished(connection)
        limit = self.options.max_idle_time
        if reason is None and limit is not None and monotonic() - connection.idle_since > limit:
            return ClosedReason.IDLE
        return reason

    def _close_all(self, perished: list[tuple[Connection, str]]) -> None:
        for connection, reason in perished:
            self._close(connection, reason)

    def _close(self, connection: Connection, reason: str) -> None:
        """Close a connection that is in none of the sets any more."""
        if connection.service_id is not None:
            self.generations.leave(connection.service_id)
        try:
            if self._events.wanted():
                self._events.connection_closed(connection.id, reason, connection.error)
        finally:
            connection.close()
        if self.is_short():
            self._alarm.ring()

    # Ready, clear, close

    def ready(self) -> None:
        """Let connections be checked out and made. Does nothing unless the pool is paused."""
        if self.mark_ready():
            self.announce_ready()

    def mark_ready(self) -> bool:
        """The first half of :meth:`ready`, which does not switch; False if the pool was not paused."""
        if self.state is not PoolState.PAUSED:
            return False
        self.state = PoolState.READY
        self._cause = None
        return True

    def announce_ready(self) -> None:
        """The other half: tell everybody, and only then let the background make connections (CMAP-81)."""
        if self._events.wanted():
            self._events.pool_ready()
        self._announced = self.state is PoolState.READY
        self._alarm.ring()

    def clear(self, cause: BaseException | None = None, service_id: Any = None, interrupt: bool = False) -> None:
        """Make all connections stale, or those of one service; without a service, also pause the pool.

        :param cause: the error that is the reason, for :class:`PoolClearedError`.
        :param interrupt: also end what is being done on the connections (``interruptInUseConnections``).
        """
        if self.state is PoolState.CLOSED:
            return
        if self._connection_options.load_balanced is not (service_id is not None):
            raise InvalidOperation("a pool is cleared by service exactly when it is load balanced")
        # Critical section.
        generation = self.generations.advance(service_id)
        announce = service_id is not None or self.state is PoolState.READY
        evicted = []
        if service_id is None:
            self.state = PoolState.PAUSED
            self._announced = False
            self._cause = cause or self._cause
            evicted = self._waiters.detach()
        # End of the critical section.
        if announce and self._events.wanted():
            self._events.pool_cleared(service_id, interrupt)
        self._waiters.evict(evicted, self._refusal)
        if interrupt:
            self._interrupt(generation, service_id)
        self._alarm.ring()

    def _interrupt(self, generation: int, service_id: Any) -> None:
        """Interrupt connections as old as the clear or older (CMAP-157), also those being established (CMAP-A09)."""
        where = address_text(self.address)
        for connection in [*self._pending, *self._in_use]:
            if connection.service_id == service_id and connection.generation <= generation:
                message = f"Connection to {where} interrupted due to server monitor timeout"
                connection.interrupt(PoolClearedError(message, self.address))

    def close(self) -> None:
        """Close the pool for good. Connections in use are closed as they are checked in."""
        if self.state is PoolState.CLOSED:
            return
        # Critical section.
        self.state = PoolState.CLOSED
        available = [(connection, ClosedReason.POOL_CLOSED) for connection in self._available]
        self._available.clear()
        evicted = self._waiters.detach()
        # End of the critical section.
        self._close_all(available)
        if self._events.wanted():
            self._events.pool_closed()
        self._waiters.evict(evicted, self._refusal)
        self._alarm.ring()

    # The background

    def remove_perished(self) -> None:
        """Close the available connections that have perished (CMAP-173)."""
        # Critical section.
        checked = [(connection, self._unfit(connection)) for connection in self._available]
        self._available = deque(connection for connection, reason in checked if reason is None)
        # End of the critical section.
        self._close_all([(connection, reason) for connection, reason in checked if reason is not None])
        self._serve()

    def is_short(self) -> bool:
        """Whether the background should establish a connection now. It does one at a time, which leaves room under
        ``maxConnecting`` for operations.
        """
        return (
            self.state is PoolState.READY
            and self._announced
            and not self._populating
            and self.total_connection_count < self.options.min_pool_size
            and self._has_room()
        )

    def populate(self) -> None:
        """Establish a connection and make it available (CMAP-103). Runs in a greenlet of its own."""
        # Critical section: what was true when the greenlet was spawned need not be true now.
        if not self.is_short():
            return
        self._populating = True
        connection = self._new_pending(ref=False)
        # End of the critical section.
        try:
            self._establish(connection, ref=False)
        finally:
            self._populating = False
        connection.keep_hub_running()
        # In one run without a switch, so that a waiter for leave to make a connection gets this one (CMAP-102).
        self._pending.remove(connection)
        self._put_back(connection)
        self._alarm.ring()

    # Errors

    def _refusal(self) -> Exception:
        """Why nothing can be checked out now."""
        if self.state is PoolState.CLOSED:
            return PoolClosedError(self.address)
        where = address_text(self.address)
        return PoolClearedError(
            f"Connection pool for {where} was cleared because another operation failed with: {self._cause}",
            self.address,
        )

    def _wait_limit(self, deadline: float | None) -> float | None:
        limit = self.options.wait_queue_timeout
        if deadline is None:
            return limit
        remaining = deadline - monotonic()
        return remaining if limit is None else min(limit, remaining)

    def _wait_error(self) -> WaitQueueTimeoutError:
        message = "Timed out while checking out a Connection from connection pool"
        if self._connection_options.load_balanced:
            used = ", ".join(f"connections in use by {what}: {count}" for what, count in self._in_use_by().items())
            message = (
                "Timeout waiting for connection from the connection pool. "
                f"maxPoolSize: {self.options.max_pool_size}, {used}"
            )
        return WaitQueueTimeoutError(message, self.address)

    # Forking

    def abandon(self, error: BaseException) -> None:
        """In a forked child, before anything runs: mark the connections as the parent's. No I/O, no switch."""
        for connection in [*self._pending, *self._available, *self._in_use]:
            connection.abandon(error)

    def forget(self, error: Callable[[], Exception]) -> None:
        """In a forked child: leave the connections to the parent, and begin again, paused (CMAP-45, CMAP-A26)."""
        # Critical section.
        inherited = [*self._pending, *self._available, *self._in_use]
        self._pending, self._available, self._in_use = set(), deque(), set()
        self.generations.advance()
        self.state, self._announced = PoolState.PAUSED, False
        evicted = self._waiters.detach()
        self._populating = False
        self._alarm = Alarm()
        # End of the critical section.
        for connection in inherited:
            connection.close()
        self._waiters.evict(evicted, error)
        self._upkeep = spawn_for(self, self._alarm, upkeep)


def _failed_reason(error: BaseException) -> str:
    if isinstance(error, PoolClosedError):
        return FailedReason.POOL_CLOSED
    if isinstance(error, WaitQueueTimeoutError):
        return FailedReason.TIMEOUT
    return FailedReason.CONN_ERROR
