"""The connection pool of one server.

All of its state is in `state`, which does no I/O. Here is what may switch greenlets: waiting, connecting, closing, and
delivering events. It comes after the state is true.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import ref

from bson.objectid import ObjectId
from gevent import getcurrent

from gmongo import _clock
from gmongo._background import spawn_for
from gmongo._documents import DocumentDict
from gmongo._short_text import decimal, milliseconds
from gmongo.cmap.connection import Connection
from gmongo.cmap.draining import drain_soon
from gmongo.cmap.establishing import Establisher, PoolOwner
from gmongo.cmap.generation import Generations
from gmongo.cmap.holders import holders
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.state import PoolState, StateMachine
from gmongo.cmap.upkeep import END, upkeep
from gmongo.cmap.wait_queue import Waiter
from gmongo.errors import InvalidOperation, PoolClearedError, PoolClosedError, WaitQueueTimeoutError
from gmongo.events.pool import PoolEvents
from gmongo.monitoring import ConnectionCheckOutFailedReason as FailedReason
from gmongo.wire.address import Address, address_text
from gmongo.wire.limit import limit_text, remaining

# A thousand waiters may time out at once, so each error shows the longest holders only.
_HOLDERS_SHOWN = 5


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
        options: PoolSettings,
        connection_options: ConnectionSettings,
        events: PoolEvents,
        owner: PoolOwner,
    ) -> None:
        self.address = address
        self.options = options
        self.machine = StateMachine(address, options, connection_options, events)
        self.establisher = Establisher(self.machine, connection_options, events.delivery, owner)
        self._load_balanced = connection_options.load_balanced
        self._events = events
        self._delivery = events.delivery
        self._begin_upkeep()

    def _begin_upkeep(self) -> None:
        wakeup = self.machine.upkeep_wakeup
        # A forked child has another one. The copy of its parent's background ends when it wakes; it is not killed, as
        # closing its timer may crash libuv.
        self._upkeep = spawn_for(
            self, wakeup, lambda pool: upkeep(pool) if pool.machine.upkeep_wakeup is wakeup else END
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.stats().items() if name != "address")
        return f"<Pool {address_text(self.address)} {shown}>"

    # The state

    @property
    def state(self) -> PoolState:
        """Paused, ready or closed."""
        return self.machine.state

    @property
    def generations(self) -> Generations:
        """What distinguishes a connection made before a clear from one made after it."""
        return self.machine.generations

    @property
    def generation(self) -> int:
        """How often the pool has been cleared."""
        return self.machine.generations.current

    @property
    def operation_count(self) -> int:
        """Operations that this server is busy with, for the choice between servers."""
        machine = self.machine
        return len(machine.in_use) + len(machine.draining) + len(machine.pending) + len(machine.queue.waiters)

    def stats(self) -> DocumentDict:
        """The state of the pool now."""
        machine = self.machine
        return {
            "address": self.address,
            "state": machine.state.value,
            "generation": self.generation,
            "total": machine.total,
            "available": len(machine.available),
            "pending": len(machine.pending),
            "in_use": len(machine.in_use),
            "draining": len(machine.draining),
            "in_use_by": machine.in_use_by(),
            "held": holders(machine.in_use),
            "waiting": len(machine.queue.waiters),
            "oldest_wait": machine.queue.oldest(),
        }

    # Checking out

    def check_out(self, deadline: float | None = None) -> Connection:
        """Check a connection out; :meth:`check_in` must follow.

        :param deadline: on the clock of :mod:`gmongo._clock`, beside ``waitQueueTimeoutMS``.
        :raises PoolClosedError: the pool is closed.
        :raises PoolClearedError: the pool is paused, or was cleared while this check-out waited.
        :raises WaitQueueTimeoutError: no connection came free in time.
        :raises AutoReconnect: a new connection could not be established.
        """
        if self._events.wanted():
            return self._check_out_observed(deadline)
        connection = self.machine.take_fit() or self._obtain(deadline)
        connection.holder = ref(getcurrent())
        connection.checked_out_at = _clock.monotonic()
        return connection

    def _check_out_observed(self, deadline: float | None) -> Connection:
        events, delivery, started = self._events, self._delivery, _clock.monotonic()
        delivery.note(events.check_out_started)
        try:
            delivery.deliver()
            connection = self.machine.take_fit() or self._obtain(deadline)
        except BaseException as error:
            delivery.note(events.check_out_failed, _failed_reason(error), error, _clock.monotonic() - started)
            self.finish(error)
            raise
        connection.holder = ref(getcurrent())
        connection.checked_out_at = _clock.monotonic()
        delivery.note(events.checked_out, connection.id, connection.checked_out_at - started)
        try:
            delivery.deliver()
        except BaseException as error:  # the caller does not get the connection
            self.check_in(connection, error)
            raise
        return connection

    def _obtain(self, deadline: float | None) -> Connection:
        """A connection in use, whether that takes to close others, to wait, or to establish one."""
        machine = self.machine
        found = machine.request()
        # From here on what was found is this check-out's, be it a place in the queue. Whatever is thrown at a switch
        # below, it is given up, so that the next waiter gets it.
        try:
            self.finish()
            connection = self._wait(found, deadline) if isinstance(found, Waiter) else found
            if connection in machine.pending:
                connection.holder, connection.checked_out_at = ref(getcurrent()), _clock.monotonic()
                self.establisher.establish(connection, deadline)
                machine.use(connection)
                self.finish()
        except BaseException as error:
            machine.give_up(found)
            self.finish(error)
            raise
        return connection

    def _wait(self, waiter: Waiter[Connection], deadline: float | None) -> Connection:
        """Wait for what is handed over."""
        limit, left = self.options.wait_queue_timeout, remaining(deadline)
        if left is not None:
            limit = left if limit is None else min(limit, left)
        connection = waiter.sleep(limit, partial(self._wait_error, limit))
        self.machine.confirm(connection)
        return connection

    def _wait_error(self, limit: float | None) -> WaitQueueTimeoutError:
        """The error for a wait of `limit` seconds. Its text alone says what to change: loggers show no more."""
        options, machine = self.options, self.machine
        users = ", ".join(f"connections in use by {what}: {count}" for what, count in machine.in_use_by().items())
        sizes = f". maxPoolSize: {options.max_pool_size or 'without limit'}, {users}"
        option = "waitQueueTimeoutMS" if limit == options.wait_queue_timeout else f"left of {limit_text(limit)}"
        longest = holders(machine.in_use, _HOLDERS_SHOWN)
        held = ""
        if longest:
            seconds = decimal(longest[0]["seconds"])
            held = ", longest held for {} s by {greenlet}: {operation}".format(seconds, **longest[0])
        details = (
            f", being established: {len(machine.pending)} (maxConnecting: {options.max_connecting}), "
            f"{option}: {milliseconds(max(limit or 0, 0))}{held}"
        )
        if self._load_balanced:
            message = f"Timeout waiting for connection from the connection pool{sizes}"
        else:
            message, details = "Timed out while checking out a Connection from connection pool", sizes + details
        return WaitQueueTimeoutError(message, self.address, longest, details)

    # Checking in and closing

    def check_in(self, connection: Connection, error: BaseException | None = None) -> None:
        """Give a connection back, however its use has ended. It is closed if it has perished or the pool is closed.

        :param error: what has ended the use; None is a good end.
        :raises InvalidOperation: the connection is of another pool, or not checked out (CMAP-133).
        """
        machine = self.machine
        if connection not in machine.in_use:
            if connection.inherited:  # the child's pool has forgotten it
                return connection.close()
            raise InvalidOperation(f"{connection!r} is not checked out of {self!r}")
        connection.record_failure(error)
        if machine.check_in(connection):
            if connection in machine.draining:
                drain_soon(self, connection)
            self.finish(error)

    def finish(self, error: BaseException | None = None) -> None:
        """Do what a step of the state machine has left to do: deliver its events, and close what it has dropped.

        :param error: what the step was the end of; after an interruption, the events do not wait for their turn.
        """
        # Taken before events are delivered: listeners switch there, and other greenlets finish steps of their own.
        # Closed after it, whatever is thrown there.
        dropped = self.machine.take_dropped()
        try:
            self._delivery.deliver_after(error)
        finally:
            for connection in dropped:
                connection.close()

    def drained(self, connection: Connection) -> None:
        """The wait for a late reply is over: the connection is available again, or dropped."""
        self.machine.drained(connection)
        self.finish()

    # Ready, clear, close

    def ready(self) -> None:
        """Let connections be checked out and made. Does nothing unless the pool is paused."""
        self.machine.ready()
        self.finish()

    def clear(
        self, cause: BaseException | None = None, service_id: ObjectId | None = None, interrupt: bool = False
    ) -> None:
        """Make all connections stale, or those of one service; without a service, also pause the pool.

        :param cause: the error that is the reason, for :class:`PoolClearedError`.
        :param service_id: of the service to clear; needed behind a load balancer, and only there.
        :param interrupt: also end what is being done on the connections (``interruptInUseConnections``).
        """
        if self.state is not PoolState.CLOSED and self._load_balanced is (service_id is None):
            raise InvalidOperation("a pool is cleared by service exactly when it is load balanced")
        message = f"Connection to {address_text(self.address)} interrupted due to server monitor timeout"
        for connection in self.machine.clear(cause, service_id, interrupt):
            connection.interrupt(PoolClearedError(message, self.address))
        self.finish()

    def close(self) -> None:
        """Close the pool for good: interrupt pending connections, close the ones in use as they are checked in."""
        for connection in self.machine.close():
            connection.interrupt(PoolClosedError(self.address))
        self.finish()

    def interrupt(self, error: BaseException) -> None:
        """End what the connections in use are doing with `error`. Does not switch."""
        for connection in list(self.machine.in_use):
            connection.interrupt(error)

    def remove_perished(self) -> None:
        """Close the available connections that have perished (CMAP-173)."""
        self.machine.remove_perished()
        self.finish()

    # Forking

    def mark_forked(self, make_error: Callable[[], Exception]) -> None:
        """In a forked child, before anything runs: the connections are the parent's, and the pool is paused. No I/O, no
        switch.

        :param make_error: makes the errors of the greenlets that have inherited a connection or a place in the queue.
        """
        self.machine.mark_forked(make_error)
        self._delivery.reset_after_fork()

    def reset_after_fork(self) -> None:
        """In a forked child, on first use: forget the connections, and begin again, paused (CMAP-45, CMAP-A26)."""
        self.machine.reset_after_fork()
        self.finish()
        self._begin_upkeep()


def _failed_reason(error: BaseException) -> str:
    if isinstance(error, PoolClosedError):
        return FailedReason.POOL_CLOSED
    if isinstance(error, WaitQueueTimeoutError):
        return FailedReason.TIMEOUT
    return FailedReason.CONN_ERROR
