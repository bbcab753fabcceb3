"""Executor, which runs the operations of a client, and retries operations after errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from itertools import count

from gevent import getcurrent, sleep
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import timer_delay
from gmongo._fork import register_after_fork
from gmongo.cmap.connection import Connection
from gmongo.errors import PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.attempt import Attempt
from gmongo.execution.command import CommandRunner
from gmongo.execution.deadline import checked_timeout, current_deadline, deadline_after
from gmongo.execution.operation import Operation, OperationContext, Result
from gmongo.execution.operation_trace import Observers, OperationTrace
from gmongo.execution.retry import ExecutionSettings, Retry, RetryPolicy
from gmongo.execution.server_session import ServerSessionPool
from gmongo.execution.sessions import (
    ImplicitSession,
    SessionHandle,
    bound_session,
    current_binding,
    refuse_limit_in_with_transaction,
    state_of,
)
from gmongo.execution.transaction import Transaction
from gmongo.sdam.topology import Topology

_client_numbers = count(1)
_UNOBSERVED: AbstractContextManager[None] = nullcontext()


class Executor:
    """Executor of the operations of one client. `TracedExecutor` also notifies observers."""

    observers: Observers | None = None

    def __init__(self, topology: Topology, options: ExecutionSettings, events: CommandEvents) -> None:
        self.topology = topology
        self.sessions = ServerSessionPool(topology)
        self.commands = CommandRunner(topology, events, self.sessions)
        self.run_command: Callable[[Attempt, Connection], Result] = self.commands.run
        self.policy = RetryPolicy(options, topology)
        self._timeout = options.timeout
        self._limit_option = "timeoutMS"  # the option that sets `_timeout`, for error messages
        self._is_for_operation = False  # True if the executor runs one operation with a `timeout_ms`
        self.overload = self.policy.overload
        self._bucket = self.overload.bucket
        # greenlets that wait for a backoff -> operation name and start time of the backoff
        self.backoffs: dict[greenlet, tuple[str, float]] = {}
        self.number = next(_client_numbers)  # the client's number in the process, for log messages
        register_after_fork(self)

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        """Run an operation with retries, and return its result.

        :param session: the session, or None for the bound session or an implicit session.
        :param deadline: the deadline; None uses :func:`gmongo.timeout`, or ``timeoutMS`` from now.
        """
        if deadline is None:
            deadline = current_deadline()
            if deadline is None and self._timeout is not None:
                deadline = deadline_after(self._timeout, self._limit_option)
        attempt = Attempt(operation, deadline)
        if session is None and current_binding() is not None:
            session = bound_session(self)
        if session is not None:
            attempt.session = state_of(session)
            attempt.session.begin(self, operation)
        try:
            while True:
                try:
                    result = attempt.run(self)
                except PyMongoError as error:
                    if self.epoch != attempt.epoch and attempt.belongs_to_parent():
                        raise
                    retry = attempt.retry = attempt.retry or Retry(self.policy, deadline)
                    retry.record_failure(error, attempt)
                else:
                    # A cleanup command deposits no token: its success says nothing about the load.
                    if self._bucket.missing_tenths and operation.retries_overload:
                        self._bucket.deposit(1 if attempt.retry is None else 11)
                    return result
                # Inside the `except` block, the error would become the context of exceptions of this
                # call.
                attempt = self._next_attempt(attempt, retry)
        finally:
            if attempt.retry is not None:
                attempt.retry.forget_errors()
            if attempt.server_session is not None:
                self.sessions.release(attempt.server_session)
            elif attempt.session is not None:
                attempt.session.end_use()

    def _next_attempt(self, attempt: Attempt, retry: Retry) -> Attempt:
        """Wait for the backoff, and return the next attempt. Without a retry, raise the error."""
        operation = attempt.operation
        if retry.delay is None:
            raise retry.error
        self._will_retry(operation, retry.latest)
        self._wait(retry.delay, operation)
        if self.epoch != attempt.epoch and attempt.belongs_to_parent():
            raise retry.latest
        return attempt.next_attempt(retry)

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        """Notify the observers that the executor will retry an operation after `error`."""

    def _wait(self, seconds: float, operation: Operation) -> None:
        """Wait for a backoff, without a connection. A kill or a timeout interrupts the wait."""
        if seconds > 0:
            self.overload.slept_seconds += seconds
            current = getcurrent()
            self.backoffs[current] = operation.name, _clock.monotonic()
            try:
                sleep(timer_delay(seconds))
            finally:
                del self.backoffs[current], current  # a thrown exception refers to this frame

    def reap(self, operation: Operation, result: Result) -> None:
        """Kill the cursor in `result`, if any, because the caller does not receive `result`."""
        if operation.opens_cursor and result is not None and operation.keeps_cursor_open(result):
            self.commands.reap(result)

    def operation_scope(
        self, name: str, context: OperationContext, session: SessionHandle | None
    ) -> AbstractContextManager[OperationTrace | None]:
        """Return the context manager for a bulk write. Its ``with`` target is a trace or None."""
        return _UNOBSERVED

    def transaction_started(self, transaction: Transaction) -> None:
        """Notify the observers of the start of a transaction."""

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        """Notify the observers of the commit, abort or failure of a transaction."""

    def deadline(self) -> float | None:
        """Return the deadline of an operation that starts now, or None if no limit is set."""
        deadline = current_deadline()
        if self._timeout is None or (deadline is not None and not self._is_for_operation):
            return deadline
        own_deadline = deadline_after(self._timeout, self._limit_option)
        return own_deadline if own_deadline is None or deadline is None else min(own_deadline, deadline)

    @property
    def has_limit(self) -> bool:
        """True if ``timeoutMS`` or :func:`gmongo.timeout` is set, even to 0 (no limit)."""
        return self._timeout is not None or current_deadline() is not None

    @property
    def own_limit_text(self) -> str:
        """Name and value, if set, of the limit for operations outside of `gmongo.timeout` blocks."""
        return self._limit_option if self._timeout is None else f"{self._limit_option} ({self._timeout * 1000:.10g} ms)"

    def with_timeout(self, timeout: float | None, option: str = "timeout_ms") -> Executor:
        """Return an executor with a timeout in seconds. 0 disables and None keeps the timeout."""
        if timeout is None or timeout == self._timeout:
            return self
        executor = copy(self)
        executor._timeout, executor._limit_option = timeout, option
        return executor

    def for_operation(self, timeout_ms: object, session: SessionHandle | None) -> Executor:
        """Return an executor for one operation. 0 means no timeout, and None keeps the timeout."""
        timeout = checked_timeout("timeout_ms", timeout_ms)
        if timeout is None:
            return self
        refuse_limit_in_with_transaction(bound_session(self) if session is None else session)
        executor = copy(self)
        executor._timeout, executor._limit_option = timeout, "timeout_ms"
        executor._is_for_operation = True
        return executor

    def fresh_deadline(self) -> float | None:
        """Return the deadline ``timeoutMS`` from now, for a cleanup command after an operation."""
        return deadline_after(self._timeout, self._limit_option)

    @property
    def epoch(self) -> int:
        """Number of forks since the creation of the client."""
        return self.topology.epoch

    def implicit_session(self) -> SessionHandle:
        """Return the session that `bind()` set for the current context, or a new implicit session."""
        return bound_session(self) or ImplicitSession(self.sessions)

    def mark_forked(self) -> None:
        """Forget all server sessions, because the parent process uses these sessions."""
        self.sessions.forget()
