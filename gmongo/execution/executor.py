"""The executor: the one path from an operation to a server and back.

The loop is here; :mod:`~gmongo.execution.retry` decides whether it goes round again, :mod:`~gmongo.execution.attempt`
is one try, and :mod:`~gmongo.execution.command` one command on one connection.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from itertools import count
from typing import TYPE_CHECKING

from gevent import getcurrent, sleep
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import timer_delay
from gmongo._fork import register_after_fork
from gmongo.errors import PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.attempt import Attempt
from gmongo.execution.command import CommandRunner
from gmongo.execution.deadline import checked_timeout, current_deadline, deadline_after
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import ExecutionSettings, Retry, RetryPolicy
from gmongo.execution.server_session import ServerSessionPool
from gmongo.execution.sessions import (
    ImplicitSession,
    SessionHandle,
    binding,
    bound_session,
    refuse_other_limit,
    state_of,
)
from gmongo.sdam.topology import Topology

if TYPE_CHECKING:
    from gmongo.execution.account import Account, Observers
    from gmongo.execution.context import OperationContext
    from gmongo.execution.transaction import Transaction

_numbers = count(1)
_UNOBSERVED: AbstractContextManager[None] = nullcontext()


class Executor:
    """Runs the operations of one client.

    :param topology: of the client.
    :param options: what to retry, and for how long.
    :param events: the publisher of command events.
    """

    observers: Observers | None = None
    """The observers of the client; None if it has none."""

    def __init__(self, topology: Topology, options: ExecutionSettings, events: CommandEvents) -> None:
        self.topology = topology
        self.sessions = ServerSessionPool(topology)
        self.commands = CommandRunner(topology, events, self.sessions)
        self.policy = RetryPolicy(options, topology)
        self._timeout = options.timeout
        self._limit_option = "timeoutMS"  # which sets `_timeout`, for errors
        self._is_for_operation = False  # whether the limit is that of a single operation
        self.overload = self.policy.overload
        self._bucket = self.overload.bucket
        self.backing_off: dict[greenlet, tuple[str, float]] = {}  # what each that waits will try again, and since when
        self.number = next(_numbers)  # which client of the process it is of, for people
        register_after_fork(self)

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        """Run an operation to its end, trying again where that is allowed, and return its result.

        :param session: a client session, or the session of a cursor; None takes a server session for this run.
        :param deadline: when it must have ended; None is that of :func:`gmongo.timeout`, or ``timeoutMS`` from now on.
        :raises PyMongoError: whatever went wrong.
        """
        if deadline is None:
            deadline = current_deadline()
            if deadline is None and self._timeout is not None:
                deadline = deadline_after(self._timeout, self._limit_option)
        attempt = Attempt(operation, deadline)
        if session is None and binding() is not None:
            session = bound_session(self)
        if session is not None:
            attempt.session = state_of(session)
            attempt.session.begin(self, operation)
        try:
            while True:
                try:
                    result = attempt.run(self)
                except PyMongoError as error:
                    if self.epoch != attempt.epoch and attempt.is_the_parents():
                        raise
                    retry = attempt.retry = attempt.retry or Retry(self.policy, deadline)
                    retry.failed(error, attempt)
                else:
                    if self._bucket.missing:
                        self._deposit(operation, attempt.retry)
                    return result
                # Not in the handler: what is thrown while it waits would have the error as its context.
                attempt = self._next_attempt(attempt, retry)
        finally:
            if attempt.retry is not None:
                attempt.retry.forget_errors()
            if attempt.server_session is not None:
                self.sessions.release(attempt.server_session)
            elif attempt.session is not None:
                attempt.session.end_use()

    def _next_attempt(self, attempt: Attempt, retry: Retry) -> Attempt:
        """The try after one that has failed, when it is time for it.

        :raises PyMongoError: there is none: what the user sees of the tries so far.
        """
        operation = attempt.operation
        if retry.delay is None:
            raise retry.error
        self._will_retry(operation, retry.latest)
        self._wait(retry.delay, operation)
        if self.epoch != attempt.epoch and attempt.is_the_parents():
            raise retry.latest
        return attempt.following(retry)

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        """There will be another try, because of `error`."""

    def _wait(self, seconds: float, operation: Operation) -> None:
        """Wait before the next try. Nothing is held meanwhile, and a kill or a time-out ends it at once."""
        if seconds > 0:
            self.overload.slept += seconds
            me = getcurrent()
            self.backing_off[me] = operation.name, _clock.monotonic()
            try:
                sleep(timer_delay(seconds))
            finally:
                del self.backing_off[me]
                del me  # what ends a greenlet refers to this frame

    def _deposit(self, operation: Operation, retry: Retry | None) -> None:
        """Give tokens back for an operation that has succeeded."""
        bucket = self._bucket
        if bucket.missing and operation.retries_overload:  # housekeeping commands do not measure the load
            bucket.deposit(1 if retry is None else 11)

    def reap(self, operation: Operation, result: Result) -> None:
        """An interruption came after the result: see that a cursor which it opened is ended."""
        if operation.opens_cursor and result is not None and operation.keeps_cursor_open(result):
            self.commands.reap(result)

    # Observing: a client that is observed has another executor

    def operation_scope(
        self, name: str, context: OperationContext, session: SessionHandle | None
    ) -> AbstractContextManager[Account | None]:
        """The scope of one operation of the API that takes several commands.

        :param name: of the operation.
        :param context: of its commands.
        :param session: of the application's, if any.
        :returns: a context manager of the account that its commands go into; of None if the client is not observed.
        """
        return _UNOBSERVED

    def transaction_started(self, transaction: Transaction) -> None:
        """A transaction of the application's begins."""

    def transaction_ended(self, transaction: Transaction, error: BaseException | None) -> None:
        """A transaction was committed or aborted, or `error` says why not."""

    # Time limits

    def deadline(self) -> float | None:
        """When an operation that begins now must have ended; None is without limit."""
        deadline = current_deadline()
        if self._timeout is None or (deadline is not None and not self._is_for_operation):
            return deadline
        own = deadline_after(self._timeout, self._limit_option)
        return own if own is None or deadline is None else min(own, deadline)

    @property
    def has_limit(self) -> bool:
        """Whether an operation that begins now has a limit of time, be it that of 0, which is without end."""
        return self._timeout is not None or current_deadline() is not None

    @property
    def own_limit(self) -> str:
        """The option that limits an operation where no :func:`gmongo.timeout` does, and its value."""
        return self._limit_option if self._timeout is None else f"{self._limit_option} ({self._timeout * 1000:.10g} ms)"

    def limited(self, timeout: float | None, option: str = "timeout_ms") -> Executor:
        """The same executor with another limit, for a database, a collection or a session; itself if there is none.

        An object asks for it when it is made, and keeps it: its operations need not look for a limit.

        :param timeout: for each operation, in seconds; 0 is without limit, None is the same as here.
        :param option: that sets it, for errors.
        """
        if timeout is None or timeout == self._timeout:
            return self
        limited = copy(self)
        limited._timeout, limited._limit_option = timeout, option
        return limited

    def for_operation(self, timeout_ms: object, session: SessionHandle | None) -> Executor:
        """The same executor with the limit that a single operation is given; :meth:`deadline` says when that ends.

        :param timeout_ms: in milliseconds; 0 is without limit, None is the same as here.
        :param session: that the operation is given.
        :raises TypeError: the limit is not a number; :class:`ValueError`: it is negative.
        :raises InvalidOperation: `with_transaction` has set the limit of all operations in the session.
        """
        timeout = checked_timeout("timeout_ms", timeout_ms)
        if timeout is None:
            return self
        refuse_other_limit(bound_session(self) if session is None else session)
        limited = copy(self)
        limited._timeout, limited._limit_option = timeout, "timeout_ms"
        limited._is_for_operation = True
        return limited

    def fresh_deadline(self) -> float | None:
        """``timeoutMS`` from now on, whatever limit is in force: for what has to be done after it has passed."""
        return deadline_after(self._timeout, self._limit_option)

    # Sessions

    @property
    def epoch(self) -> int:
        """How many forks lie behind this process, as far as the client has seen them."""
        return self.topology.epoch

    def implicit_session(self) -> SessionHandle:
        """A session for one operation or one cursor: the one that is bound here, or an implicit one."""
        return bound_session(self) or ImplicitSession(self.sessions)

    def mark_forked(self) -> None:
        """In a forked child: sessions and cursors are the parent's, which goes on using them."""
        self.sessions.forget()
