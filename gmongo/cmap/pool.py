"""The connection pool of one server.

The bookkeeping is in `inventory`, the queue in `wait_queue`, the background run in `upkeep`; here is what switches
greenlets and tells others: connecting, closing, events, callbacks. It comes after the bookkeeping is true, and since a
listener may be interrupted too, whatever was taken out of the inventory by then is given back or closed on the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple, Protocol
from weakref import ref

from gevent import getcurrent

from gmongo.background import Alarm, spawn_for
from gmongo.cmap.checkout import Checkout
from gmongo.cmap.connection import Connection
from gmongo.cmap.generation import Generations
from gmongo.cmap.handshake import establish
from gmongo.cmap.holders import holders
from gmongo.cmap.inventory import Inventory, Perished, PoolState
from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.cmap.overload import label_overload
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
from gmongo.wire.address import Address, address_text
from gmongo.wire.limit import interrupt_after

# A thousand waiters may time out at once, so each is told of the longest holders only.
_HOLDERS_TOLD = 5
# So long does the background rest after a first failure to connect, in seconds, and then twice as long each time.
_FIRST_REST = 1.0


class PoolOwner(Protocol):
    """Who is told what the pool finds out about its server. Neither call may switch for long or raise."""

    def connection_established(self, connection: Connection) -> None:
        """A handshake succeeded."""

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        """Connecting, the handshake or authentication failed; called before the connection is closed (CMAP-A13). Limits
        of the application's are not failures: they say nothing of the server.
        """


class Cleared(NamedTuple):
    """A clear that has been made, but not told of: what it ended, and who is to be evicted."""

    generation: int
    service_id: Any
    told: bool  # whether others know the pool as ready, so that they are to hear of the clear
    evicted: list[Any]


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
        self.inventory = Inventory(options, _maker(address, connection_options))
        self._connection_options = connection_options
        self._events = events
        self._owner = owner
        self._queue: WaitQueue[Connection] = WaitQueue()
        self._last_id = 0
        self._cause: BaseException | None = None  # why the pool is paused, or was last
        self._told_ready = False  # whether others have heard that the pool is ready
        self._announced = False  # whether the background may act on it, because all have heard it (CMAP-81)
        self._populating = False
        self._rest = 0.0  # for how long the background rests after a failure to connect, in seconds
        self._rest_ends = 0.0  # when that is over, on the clock of monotonic()
        self._alarm = Alarm()
        self._told_created = False
        self._upkeep = spawn_for(self, self._alarm, upkeep)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.stats().items() if name != "address")
        return f"<Pool {address_text(self.address)} {shown}>"

    # The state

    @property
    def state(self) -> PoolState:
        """Paused, ready or closed."""
        return self.inventory.state

    @property
    def generations(self) -> Generations:
        """What tells a connection made before a clear from one made after it."""
        return self.inventory.generations

    @property
    def generation(self) -> int:
        """How often the pool has been cleared."""
        return self.inventory.generations.current

    @property
    def operation_count(self) -> int:
        """Operations that this server is busy with, for the choice between servers."""
        return len(self.inventory.in_use) + len(self.inventory.pending) + len(self._queue.waiters)

    def stats(self) -> dict[str, Any]:
        """The state of the pool now."""
        inventory = self.inventory
        return {
            "address": self.address,
            "state": inventory.state.value,
            "generation": self.generation,
            "total": inventory.total,
            "available": len(inventory.available),
            "pending": len(inventory.pending),
            "in_use": len(inventory.in_use),
            "in_use_by": inventory.in_use_by(),
            "held": holders(inventory.in_use),
            "waiting": len(self._queue.waiters),
            "oldest_wait": self._queue.oldest(),
        }

    # Checking out

    def checkout(self, deadline: float | None = None) -> Checkout:
        """A context manager for a check-out and its check-in.

        :param deadline: on the clock of :func:`time.monotonic`, beside ``waitQueueTimeoutMS``.
        """
        return Checkout(self, deadline)

    def check_out(self, deadline: float | None = None) -> Connection:
        """Check a connection out; :meth:`check_in` must follow.

        :raises PoolClosedError: the pool is closed.
        :raises PoolClearedError: the pool is paused, or was cleared while this check-out waited.
        :raises WaitQueueTimeoutError: no connection came free in time.
        :raises AutoReconnect: a new connection could not be established.
        """
        events = self._events
        if not events.wanted():
            return self._check_out(deadline)
        started = monotonic()
        try:
            events.check_out_started()
            connection = self._check_out(deadline)
        except BaseException as error:
            events.check_out_failed(_failed_reason(error), error, monotonic() - started)
            raise
        try:
            events.checked_out(connection.id, monotonic() - started)
        except BaseException:
            self.check_in(connection)
            raise
        return connection

    def _check_out(self, deadline: float | None) -> Connection:
        connection = self._acquire(deadline)
        if connection in self.inventory.pending:
            self._establish(connection, deadline)
            if not self.inventory.use_pending(connection):
                self._close(connection, ClosedReason.POOL_CLOSED)
                raise self._refusal()
            self._serve()
        connection.holder = ref(getcurrent())
        connection.checked_out_at = monotonic()
        return connection

    def _acquire(self, deadline: float | None) -> Connection:
        """A connection in use, or a pending one that the caller must establish."""
        while self.inventory.state is PoolState.READY:
            if self._queue.waiters:  # nobody is overtaken
                return self._wait(deadline)
            perished: Perished = []
            connection = self.inventory.take(perished)
            if not perished:
                return connection or self._wait(deadline)
            self._close_all(perished, connection)
            if connection is not None:
                return connection
            # A listener may have switched while the perished ones were closed, so look again before waiting.
        raise self._refusal()

    def _wait(self, deadline: float | None) -> Connection:
        """Queue up for a connection."""
        limit = self.options.wait_queue_timeout
        if deadline is not None:
            remaining = deadline - monotonic()
            limit = remaining if limit is None else min(limit, remaining)
        connection = self._queue.wait(limit, self._wait_error, self._take_back)
        inventory = self.inventory
        if inventory.state is PoolState.READY and (
            connection in inventory.pending or inventory.why_perished(connection) is None
        ):
            return connection
        # The pool has been cleared or closed since the hand-over. To queue up again would be to be overtaken.
        self._take_back(connection)
        raise self._refusal()

    def _serve(self) -> None:
        """Hand on what there is to the waiters, in order. Call it after every change that could let one go on."""
        perished: Perished = []
        # Critical section.
        while self._queue.waiters and self.inventory.state is PoolState.READY:
            connection = self.inventory.take(perished)
            if connection is None:
                break
            self._queue.hand(connection)
        # End of the critical section.
        if perished:
            self._close_all(perished)

    def _take_back(self, connection: Connection) -> None:
        """Take back what was handed to a waiter that has gone. It was not used, so no event tells of it."""
        if connection in self.inventory.pending:
            self.inventory.pending.remove(connection)
            self._serve()
        else:
            self.inventory.in_use.remove(connection)
            self._put_back(connection)

    def _put_back(self, connection: Connection) -> None:
        """Do what is right with a connection that has just left one of the sets: close it if it has perished, hand it
        to the first waiter, or keep it available.
        """
        inventory = self.inventory
        reason = inventory.why_perished(connection)
        if reason is None:
            if self._queue.waiters and inventory.state is PoolState.READY:
                inventory.in_use.add(connection)
                self._queue.hand(connection)
            else:
                inventory.make_available(connection)
            return
        try:
            self._serve()  # there is room for another one
        finally:
            self._close(connection, reason)

    # Establishing

    def _establish(self, connection: Connection, deadline: float | None = None, ref: bool = True) -> None:
        """Take a pending connection through connect, handshake and authentication; it stays pending."""
        # No switch between giving an ID and telling of it, so that the events show the IDs in order.
        self._last_id += 1
        connection.id = self._last_id
        connection.generation = self.generation
        started = monotonic()
        seconds = None if deadline is None else deadline - started
        expired = connection._timeout_error(seconds or 0)
        try:
            if self._events.wanted():
                self._events.connection_created(connection.id)
            with interrupt_after(seconds, expired):
                establish(connection, self._connection_options, ref, lambda: self._join_service(connection))
            ready = monotonic()
            self._owner.connection_established(connection)
            if self._events.wanted():
                self._events.connection_ready(connection.id, ready - started)
            if self._rest:
                self._rest = self._rest_ends = 0.0
                self._alarm.ring()
        except BaseException as error:
            # A kill, a time-out of somebody else and the operation's own limit say nothing of the server.
            by_server = isinstance(error, Exception) and error is not expired
            del expired  # it refers to this frame, and must not live on in a cycle with it
            self._establishment_failed(connection, error, by_server)
            raise

    def _join_service(self, connection: Connection) -> None:
        """From its hello on, a connection behind a load balancer has the generation of its service (LB-63)."""
        if connection.service_id is not None:
            connection.generation = self.generations.join(connection.service_id)

    def _establishment_failed(self, connection: Connection, error: BaseException, by_server: bool) -> None:
        connection.spoil(error)
        if by_server and connection.has_socket and not connection.handshake_done:
            label_overload(error)
        try:
            if by_server:
                self._owner.establishment_failed(connection, error)  # type: ignore[arg-type]
        finally:
            self.inventory.pending.discard(connection)
            try:
                self._close(connection, self.inventory.why_perished(connection) or ClosedReason.ERROR)
            finally:
                self._serve()

    # Checking in and closing

    def check_in(self, connection: Connection) -> None:
        """Give a connection back. It is closed if it has perished or the pool is closed.

        :raises InvalidOperation: the connection is of another pool, or not checked out (CMAP-133).
        """
        if connection not in self.inventory.in_use:
            if connection.inherited:  # the child's pool has forgotten it
                return connection.close()
            raise InvalidOperation(f"{connection!r} is not checked out of {self!r}")
        try:
            if self._events.wanted():
                self._events.checked_in(connection.id)
        finally:
            in_use = self.inventory.in_use  # not before: a listener may have switched, and a fork begins a new set
            if connection in in_use:
                in_use.remove(connection)
                connection.holder = None
                self._put_back(connection)

    def _close_all(self, perished: Perished, taken: Connection | None = None) -> None:
        """Close connections; if a listener is interrupted meanwhile, give `taken` back, and close the others."""
        try:
            while perished:
                self._close(*perished.pop(0))
        except BaseException:
            for connection, _reason in perished:
                self._discard(connection)
            if taken is not None:
                self._take_back(taken)
            raise

    def _close(self, connection: Connection, reason: str) -> None:
        """Close a connection that is in none of the sets any more."""
        try:
            if self._events.wanted():
                self._events.connection_closed(connection.id, reason, connection.error)
        finally:
            self._discard(connection)

    def _discard(self, connection: Connection) -> None:
        """Close the socket, and have the background make up for the loss."""
        if connection.service_id is not None:
            self.generations.leave(connection.service_id)
        connection.close()
        if self.is_short():
            self._alarm.ring()

    # Ready, clear, close. What changes the state does not switch; telling of it comes after.

    def announce_created(self) -> None:
        """Tell everybody that the pool exists, if that has not been done yet. It comes before all its other events."""
        if not self._told_created:
            self._told_created = True
            if self._events.wanted():
                self._events.pool_created(self.options.specified)

    def ready(self) -> None:
        """Let connections be checked out and made. Does nothing unless the pool is paused."""
        if self.mark_ready():
            self.announce_ready()

    def mark_ready(self) -> bool:
        """The first half of :meth:`ready`, which does not switch; False if the pool was not paused."""
        if self.inventory.state is not PoolState.PAUSED:
            return False
        self.inventory.state = PoolState.READY
        return True

    def announce_ready(self) -> None:
        """The other half: tell everybody, and only then let the background make connections (CMAP-81)."""
        if self.inventory.state is not PoolState.READY:
            return  # it has been cleared meanwhile, and nobody needs to hear of either
        self.announce_created()
        self._told_ready = True
        if self._events.wanted():
            self._events.pool_ready()
        self._announced = self._told_ready
        self._alarm.ring()

    def clear(self, cause: BaseException | None = None, service_id: Any = None, interrupt: bool = False) -> None:
        """Make all connections stale, or those of one service; without a service, also pause the pool.

        :param cause: the error that is the reason, for :class:`PoolClearedError`.
        :param service_id: of the service to clear; needed behind a load balancer, and only there.
        :param interrupt: also end what is being done on the connections (``interruptInUseConnections``).
        """
        cleared = self.mark_cleared(cause, service_id)
        if cleared is not None:
            self.announce_cleared(cleared, interrupt)

    def mark_cleared(self, cause: BaseException | None = None, service_id: Any = None) -> Cleared | None:
        """The first half of :meth:`clear`, which does not switch; None if the pool is closed."""
        if self.inventory.state is PoolState.CLOSED:
            return None
        if self._connection_options.load_balanced is not (service_id is not None):
            raise InvalidOperation("a pool is cleared by service exactly when it is load balanced")
        generation = self.generations.advance(service_id)
        told = service_id is not None or self._told_ready
        evicted = self._pause(cause) if service_id is None else []
        return Cleared(generation, service_id, told, evicted)

    def announce_cleared(self, cleared: Cleared, interrupt: bool = False) -> None:
        """The other half: tell everybody, and only then let the clear have its effects (CMAP-A07)."""
        try:
            if cleared.told and self._events.wanted():
                self._events.pool_cleared(cleared.service_id, interrupt)
        finally:
            self._queue.evict(cleared.evicted, self._refusal)
            if interrupt:
                self._interrupt(cleared.generation, cleared.service_id)
            self._alarm.ring()

    def _pause(self, cause: BaseException | None) -> list[Any]:
        """Stop handing out and making connections; returns the waiters, who are to be told."""
        if self.inventory.state is PoolState.READY:
            self._cause = cause
        else:  # the first cause is the one that paused the pool
            self._cause = self._cause or cause
        self.inventory.state = PoolState.PAUSED
        self._told_ready = self._announced = False
        return self._queue.detach()

    def _interrupt(self, generation: int, service_id: Any) -> None:
        message = f"Connection to {address_text(self.address)} interrupted due to server monitor timeout"
        for connection in self.inventory.as_old_as(generation, service_id):
            connection.interrupt(PoolClearedError(message, self.address))

    def close(self) -> None:
        """Close the pool for good. Connections in use are closed as they are checked in."""
        if self.inventory.state is PoolState.CLOSED:
            return
        self.announce_created()
        # Critical section.
        available = self.inventory.close()
        evicted = self._queue.detach()
        # End of the critical section.
        try:
            self._close_all(available)
            if self._events.wanted():
                self._events.pool_closed()
        finally:
            self._queue.evict(evicted, self._refusal)
            self._alarm.ring()

    # The background

    def remove_perished(self) -> None:
        """Close the available connections that have perished (CMAP-173)."""
        self._close_all(self.inventory.remove_unfit())
        self._serve()

    def is_short(self) -> bool:
        """Whether the background should establish a connection now. It does one at a time, which leaves room under
        ``maxConnecting`` for operations.
        """
        inventory = self.inventory
        return (
            inventory.state is PoolState.READY
            and self._announced
            and not self._populating
            and inventory.total < self.options.min_pool_size
            and inventory.has_room()
            and self.rest() == 0
        )

    def rest(self) -> float:
        """Seconds for which the background still rests after a failure to connect, so as not to storm a server."""
        return max(0.0, self._rest_ends - monotonic())

    def populate(self) -> None:
        """Establish a connection and make it available (CMAP-103). Runs in a greenlet of its own."""
        # Critical section: what was true when the greenlet was spawned need not be true now.
        if not self.is_short():
            return
        self._populating = True
        connection = self.inventory.add_pending()
        # End of the critical section.
        connection.hold_hub(False)
        try:
            self._establish(connection, ref=False)
        except BaseException:
            self._rest = min(2 * self._rest or _FIRST_REST, self.options.upkeep_interval)
            self._rest_ends = monotonic() + self._rest
            raise
        finally:
            self._populating = False
            self._alarm.ring()  # a run since a clear has found this one still under way, and a rest has to be timed
        connection.hold_hub(True)
        # In one run without a switch, so that a waiter for leave to make a connection gets this one (CMAP-102).
        self.inventory.pending.remove(connection)
        self._put_back(connection)

    # Errors

    def _refusal(self) -> Exception:
        """Why nothing can be checked out now."""
        if self.inventory.state is PoolState.CLOSED:
            return PoolClosedError(self.address)
        where = address_text(self.address)
        return PoolClearedError(
            f"Connection pool for {where} was cleared because another operation failed with: {self._cause}",
            self.address,
        )

    def _wait_error(self) -> WaitQueueTimeoutError:
        message = "Timed out while checking out a Connection from connection pool"
        if self._connection_options.load_balanced:
            users = self.inventory.in_use_by().items()
            used = ", ".join(f"connections in use by {what}: {count}" for what, count in users)
            limit = self.options.max_pool_size
            message = f"Timeout waiting for connection from the connection pool. maxPoolSize: {limit}, {used}"
        return WaitQueueTimeoutError(message, self.address, holders(self.inventory.in_use, _HOLDERS_TOLD))

    # Forking

    def mark_forked(self, error: BaseException) -> None:
        """In a forked child, before anything runs: mark the connections as the parent's. No I/O, no switch."""
        inventory = self.inventory
        for connection in (*inventory.pending, *inventory.available, *inventory.in_use):
            connection.mark_forked(error)

    def reset_after_fork(self, error: Callable[[], Exception]) -> None:
        """In a forked child: leave the connections to the parent, and begin again, paused (CMAP-45, CMAP-A26)."""
        # Critical section.
        inherited = self.inventory.remove_all()
        self.generations.advance()
        evicted = self._pause(error())
        self._populating = False
        self._rest = self._rest_ends = 0.0
        self._alarm = Alarm()
        # End of the critical section.
        for connection in inherited:
            connection.close()
        self._queue.evict(evicted, error)
        self._upkeep = spawn_for(self, self._alarm, upkeep)


def _maker(address: Address, options: ConnectionOptions) -> Callable[[], Connection]:
    def make() -> Connection:
        return Connection(address, options.socket_timeout)

    return make


def _failed_reason(error: BaseException) -> str:
    if isinstance(error, PoolClosedError):
        return FailedReason.POOL_CLOSED
    if isinstance(error, WaitQueueTimeoutError):
        return FailedReason.TIMEOUT
    return FailedReason.CONN_ERROR
