"""Connection pool of one server.

The module `pool_state` contains all state of the pool, and never waits. `Pool` waits, connects,
closes connections and delivers events. These actions may switch greenlets, and start only when the
state of the pool is consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Protocol
from weakref import ref

from bson.objectid import ObjectId
from gevent import Greenlet, getcurrent, spawn

from gmongo import _clock
from gmongo._background import spawn_for
from gmongo._documents import DocumentDict
from gmongo._truncated_repr import format_decimal, format_milliseconds
from gmongo.cmap.checked_out_report import checked_out_report
from gmongo.cmap.connecting import label_connect_error
from gmongo.cmap.connection import Connection
from gmongo.cmap.handshake import establish
from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.cmap.pool_state import PoolState, StateMachine
from gmongo.cmap.wait_queue import Waiter
from gmongo.errors import InvalidOperation, NetworkTimeout, PoolClearedError, PoolClosedError, WaitQueueTimeoutError
from gmongo.events.pool import PoolEvents
from gmongo.monitoring import ConnectionCheckOutFailedReason as FailedReason
from gmongo.wire.address import Address, address_text
from gmongo.wire.timeout import TimeLimit, TimeoutBlock, limit_text, remaining

# Maximum number of connections in the error of a check-out timeout. The number is small, because many
# check-outs may time out at once.
_MAX_CHECK_OUTS_SHOWN = 5
# Seconds that the pool waits for the server error MaxTimeMSExpired after the timeout of an operation.
_TIME_FOR_DUE_REPLY = 0.25
_SHORTEST_PAUSE = 0.1  # Minimum seconds between background runs that close idle connections.
_END = -1.0  # Return value of `background_run` that ends the background runs.


class PoolOwner(Protocol):
    """Callbacks from a pool to the topology. The callbacks never switch greenlets."""

    def connection_established(self, connection: Connection) -> None: ...
    # Before closing a connection, the pool reports a failure that the server may have caused (CMAP-A13).
    def establishment_failed(self, connection: Connection, error: Exception) -> None: ...


class Pool:
    """Connection pool of one server. `owner` receives the results of establishments."""

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
        self.generations = self.machine.generations
        self._connection_options = connection_options
        self._owner = owner
        self._events = events
        self._delivery = events.delivery
        self._start_background_runs()

    def _start_background_runs(self) -> None:
        wakeup = self.machine.background_wakeup
        # A forked child creates a new wakeup, so the inherited background greenlet ends at its next run. The child
        # does not kill the inherited greenlet, because closing its timer may crash libuv.
        self._background = spawn_for(
            self, wakeup, lambda pool: pool.background_run() if pool.machine.background_wakeup is wakeup else _END
        )

    def __repr__(self) -> str:
        stats_text = ", ".join(f"{name}={value}" for name, value in self.stats().items() if name != "address")
        return f"<Pool {address_text(self.address)} {stats_text}>"

    @property
    def generation(self) -> int:
        return self.generations.current

    @property
    def operation_count(self) -> int:
        """Number of connections in use, draining or pending, plus the number of waiting greenlets."""
        machine = self.machine
        return len(machine.in_use) + len(machine.draining) + len(machine.pending) + len(machine.queue.waiters)

    def stats(self) -> DocumentDict:
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
            "held": checked_out_report(machine.in_use),
            "waiting": len(machine.queue.waiters),
            "oldest_wait": machine.queue.oldest_wait(),
        }

    def check_out(self, deadline: float | None = None) -> Connection:
        """Check out a connection. After the use, the caller must call :meth:`check_in`.

        `deadline` is the end of the operation. ``waitQueueTimeoutMS`` also limits the wait for a connection.

        :raises PoolClosedError: the pool is closed.
        :raises AutoReconnect: the pool is paused or cleared, or a new connection could not be
            established.
        :raises WaitQueueTimeoutError: no connection became available in time.
        """
        if self._events.is_enabled():
            return self._check_out_with_events(deadline)
        connection = self.machine.check_out_available() or self._obtain_connection(deadline)
        connection.checked_out_by = ref(getcurrent())
        connection.checked_out_at = _clock.monotonic()
        return connection

    def _check_out_with_events(self, deadline: float | None) -> Connection:
        events, delivery, started = self._events, self._delivery, _clock.monotonic()
        delivery.record(events.check_out_started)
        try:
            delivery.deliver()
            connection = self.machine.check_out_available() or self._obtain_connection(deadline)
        except BaseException as error:
            delivery.record(events.check_out_failed, _get_failure_reason(error), error, _clock.monotonic() - started)
            self.finish(error)
            raise
        connection.checked_out_by = ref(getcurrent())
        connection.checked_out_at = _clock.monotonic()
        delivery.record(events.checked_out, connection.id, connection.checked_out_at - started)
        try:
            delivery.deliver()
        except BaseException as error:  # the caller does not receive the connection
            self.check_in(connection, error)
            raise
        return connection

    def _obtain_connection(self, deadline: float | None) -> Connection:
        """Return a connection: take an available connection, wait in the queue, or establish a new connection."""
        machine = self.machine
        offer = machine.request_connection()
        # After an exception, return the offer (a connection or a place in the wait queue) to the
        # pool. The next waiter then receives the connection.
        try:
            self.finish()
            connection = self._wait_for_connection(offer, deadline) if isinstance(offer, Waiter) else offer
            if connection in machine.pending:
                connection.checked_out_by, connection.checked_out_at = ref(getcurrent()), _clock.monotonic()
                self._establish(connection, deadline)
                machine.check_out_established(connection)
                self.finish()
        except BaseException as error:
            machine.return_offer(offer)
            self.finish(error)
            raise
        return connection

    def _wait_for_connection(self, waiter: Waiter[Connection], deadline: float | None) -> Connection:
        limit, seconds_left = self.options.wait_queue_timeout, remaining(deadline)
        if seconds_left is not None:
            limit = seconds_left if limit is None else min(limit, seconds_left)
        connection = waiter.sleep(limit, partial(self._make_wait_error, limit))
        self.machine.confirm_connection(connection)
        return connection

    def _make_wait_error(self, limit: float | None) -> WaitQueueTimeoutError:
        options, machine = self.options, self.machine
        usage = ", ".join(f"connections in use by {purpose}: {count}" for purpose, count in machine.in_use_by().items())
        limits_text = f". maxPoolSize: {options.max_pool_size or 'without limit'}, {usage}"
        option = "waitQueueTimeoutMS" if limit == options.wait_queue_timeout else f"rest of {limit_text(limit)}"
        longest_check_outs = checked_out_report(machine.in_use, _MAX_CHECK_OUTS_SHOWN)
        held_text = ""
        if longest_check_outs:
            seconds = format_decimal(longest_check_outs[0]["seconds"])
            held_text = ", longest held for {} s by {greenlet}: {operation}".format(seconds, **longest_check_outs[0])
        details = (
            f", being established: {len(machine.pending)} (maxConnecting: {options.max_connecting}), "
            f"{option}: {format_milliseconds(max(limit or 0, 0))}{held_text}"
        )
        if self._connection_options.load_balanced:
            message = f"Timeout waiting for connection from the connection pool{limits_text}"
        else:
            message, details = "Timed out while checking out a Connection from connection pool", limits_text + details
        return WaitQueueTimeoutError(message, self.address, longest_check_outs, details)

    def _establish(self, connection: Connection, deadline: float | None = None, ref: bool = True) -> None:
        """Connect to the server, perform the handshake and authenticate, before the `deadline` of the operation.

        After a success, the connection is still pending. After a failure, the state machine has
        dropped the connection.
        """
        machine, started = self.machine, _clock.monotonic()
        seconds = remaining(deadline)
        timeout_error: NetworkTimeout | None = None

        # The timer calls `expire` after the timeout, so that the error names the current stage.
        def expire(_seconds: float) -> NetworkTimeout:
            nonlocal timeout_error
            timeout_error = connection.make_timeout_error(seconds)
            return timeout_error

        limit = nullcontext() if seconds is None else TimeoutBlock(TimeLimit(expire, ref=True), seconds)
        machine.begin_establishing(connection)
        try:
            self._delivery.deliver()
            with limit:
                establish(connection, self._connection_options, ref, lambda: machine.join_service(connection), deadline)
            duration = _clock.monotonic() - started
            with self._delivery:
                self._owner.connection_established(connection)
                machine.record_established(connection, duration)
            self._delivery.deliver()
        except BaseException as error:
            # GreenletExit and gevent.Timeout are not subclasses of Exception.
            is_server_failure = isinstance(error, Exception) and error is not timeout_error
            del timeout_error  # prevent a reference cycle between this frame and the error
            self._handle_failure(connection, error, is_server_failure)
            raise

    def _handle_failure(self, connection: Connection, error: BaseException, is_server_failure: bool) -> None:
        connection.mark_unusable(error)
        if is_server_failure and connection.has_socket and not connection.handshake_done:
            label_connect_error(error)
        with self._delivery:
            if is_server_failure:
                self._owner.establishment_failed(connection, error)  # type: ignore[arg-type]
            self.machine.fail_establishing(connection)

    def check_in(self, connection: Connection, error: BaseException | None = None) -> None:
        """Check in a connection after its use, or close a connection that is unusable after `error`.

        :raises InvalidOperation: the connection belongs to another pool, or is not checked out
            (CMAP-133).
        """
        machine = self.machine
        if connection not in machine.in_use:
            if connection.inherited:  # after a fork, the child's pool does not contain the connection
                return connection.close()
            raise InvalidOperation(f"{connection!r} is not checked out of {self!r}")
        connection.record_failure(error)
        if machine.check_in(connection):
            if connection in machine.draining:
                self._start_reading_late_reply(connection)
            self.finish(error)

    def _start_reading_late_reply(self, connection: Connection) -> None:
        options, pool = self.options, ref(self)
        seconds = options.drain_time if options.drains else _TIME_FOR_DUE_REPLY
        reader = Greenlet(_read_late_reply, connection, seconds, options.drain_bytes)
        # the linked function runs even if the greenlet is killed before its start
        reader.link(lambda _reader: _end_draining(pool, connection))
        reader.start()

    def finish(self, error: BaseException | None = None) -> None:
        """Finish a step of the state machine: deliver the events of the step, and close the dropped connections.

        If `error` is a kill or a timeout of the application, the delivery does not wait for other greenlets.
        """
        # First remove the dropped connections, because a listener may switch to a greenlet that
        # calls `finish`. Close the connections even if the delivery raises an exception.
        dropped_connections = self.machine.take_dropped()
        try:
            self._delivery.deliver_after(error)
        finally:
            for connection in dropped_connections:
                connection.close()

    def ready(self) -> None:
        self.machine.ready()
        self.finish()

    def clear(
        self, cause: BaseException | None = None, service_id: ObjectId | None = None, interrupt: bool = False
    ) -> None:
        """Clear and pause the pool. Behind a load balancer, clear only one service's connections.

        `cause` is the error that caused the clear. `interrupt` means ``interruptInUseConnections``.
        """
        is_closed = self.machine.state is PoolState.CLOSED
        if not is_closed and self._connection_options.load_balanced is (service_id is None):
            raise InvalidOperation("clear requires a service_id behind a load balancer, and otherwise refuses it")
        message = f"Connection to {address_text(self.address)} interrupted due to server monitor timeout"
        for connection in self.machine.clear(cause, service_id, interrupt):
            connection.interrupt(PoolClearedError(message, self.address))
        self.finish()

    def close(self) -> None:
        """Close the pool, and interrupt pending connections. Connections in use stay open until their check-in."""
        for connection in self.machine.close():
            connection.interrupt(PoolClosedError(self.address))
        self.finish()

    def interrupt(self, error: BaseException) -> None:
        """Raise `error` in all operations on connections in use, without a switch of greenlets."""
        for connection in list(self.machine.in_use):
            connection.interrupt(error)

    def background_run(self) -> float:
        """Close perished connections. If a new connection is necessary, spawn a greenlet for its establishment.

        Return the seconds until the next run, or a negative number if no run follows (CMAP-172 to CMAP-177).
        """
        interval = self.options.background_interval
        if self.machine.state is PoolState.CLOSED or interval < 0:
            return _END
        self.remove_perished()
        if self.machine.needs_connection():
            spawn(_populate, ref(self))
        pauses = [interval]
        if self.options.max_idle_time is not None:
            pauses.append(max(self.options.max_idle_time, _SHORTEST_PAUSE))
        if (backoff := self.machine.remaining_backoff()) > 0:
            pauses.append(backoff)
        return min(pauses)

    def remove_perished(self) -> None:
        self.machine.remove_perished()
        self.finish()

    def populate(self) -> None:
        """Make a new connection available, if necessary (CMAP-94 to CMAP-103)."""
        connection = self.machine.begin_populating()
        if connection is None:
            return
        connection.set_ref(False)
        try:
            self._establish(connection, ref=False)
            connection.set_ref(True)  # `make_available` may hand the connection to a waiter, so set `ref` first
            self.machine.make_available(connection)
        finally:
            self.finish()

    def mark_forked(self, make_error: Callable[[], Exception]) -> None:
        """Pause a forked child's pool. `make_error` returns the error for inherited greenlets."""
        self.machine.mark_forked(make_error)
        self._delivery.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Drop the connections of the parent process in a forked child (CMAP-45, CMAP-A26)."""
        self.machine.reset_after_fork()
        self.finish()
        self._start_background_runs()


def _populate(reference: ref[Pool]) -> None:
    try:
        if (pool := reference()) is not None:
            pool.populate()
    except Exception:
        pass  # the topology has already handled the error


def _read_late_reply(connection: Connection, seconds: float, max_bytes: int) -> None:
    try:
        connection.read_late_reply(seconds, max_bytes)
    except Exception:  # the connection keeps its earlier error, so `_end_draining` closes the connection
        pass


def _end_draining(reference: ref[Pool], connection: Connection) -> None:
    """Make a connection available after its late reply, or close an unusable connection."""
    pool = reference()
    if pool is None or connection.inherited:  # a forked child must not use the connection
        connection.close()
    else:
        pool.machine.end_draining(connection)
        pool.finish()


def _get_failure_reason(error: BaseException) -> str:
    if isinstance(error, PoolClosedError):
        return FailedReason.POOL_CLOSED
    if isinstance(error, WaitQueueTimeoutError):
        return FailedReason.TIMEOUT
    return FailedReason.CONN_ERROR
