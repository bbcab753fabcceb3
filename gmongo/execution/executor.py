"""The executor: the one path from an operation to a server and back.

The loop is here; :mod:`~gmongo.execution.retry` decides whether it goes round again, :mod:`~gmongo.execution.attempt`
is one try, and :mod:`~gmongo.execution.command` one command on one connection.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from itertools import count
from typing import TYPE_CHECKING, Any

from gevent import getcurrent, sleep
from greenlet import greenlet

from gmongo import _clock
from gmongo._fork import register_after_fork
from gmongo.errors import PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.attempt import Attempt, time_to_connect
from gmongo.execution.command import CommandRunner
from gmongo.execution.deadline import checked_timeout, current_deadline, deadline_after
from gmongo.execution.operation import Operation
from gmongo.execution.options import ExecutionOptions
from gmongo.execution.retry import Retry, RetryPolicy
from gmongo.execution.sessions import (
    ImplicitSession,
    ServerSessionPool,
    Session,
    SessionHandle,
    binding,
    bound_session,
    refuse_other_limit,
    state_of,
)
from gmongo.sdam.topology import Topology, forked
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.execution.account import Account, Observers
    from gmongo.execution.context import OperationContext
    from gmongo.execution.transaction import Transaction

_NO_ADDRESSES: frozenset[Address] = frozenset()
_numbers = count(1)
_UNOBSERVED: AbstractContextManager[None] = nullcontext()


class Executor:
    """Runs the operations of one client.

    :param topology: of the client.
    :param options: what to retry, and for how long.
    :param events: the publisher of command events.
    """

    observers: Observers | None = None
    """Who observes the client, if anybody does."""
    attempts: type[Attempt] = Attempt
    """Of what class a try is."""

    def __init__(self, topology: Topology, options: ExecutionOptions, events: CommandEvents) -> None:
        self.topology = topology
        self.commands = CommandRunner(topology, events)
        self.sessions = ServerSessionPool(topology)
        self._policy = RetryPolicy(options, topology)
        self._timeout = options.timeout
        self._is_for_operation = False  # whether the limit is that of a single operation
        # Whether even a first try needs an `Attempt`: behind a load balancer, where it may keep its connection.
        self._all_are_special = topology.settings.load_balanced
        self.overload = self._policy.overload
        self.backing_off: dict[greenlet, tuple[str, float]] = {}  # what each that waits will try again, and since when
        self.number = next(_numbers)  # which client of the process it is of, for people
        register_after_fork(self)

    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Any:
        """Run an operation to its end, trying again where that is allowed, and return its result.

        A first try that has no session of the application's and no given server runs here, on local variables. All
        others are an :class:`Attempt`.

        :param session: a client session, or the session of a cursor; None takes an implicit one for this run.
        :param deadline: when it must have ended; None is that of :func:`gmongo.timeout`, or ``timeoutMS`` from now on.
        :raises PyMongoError: whatever went wrong.
        """
        if deadline is None:
            deadline = current_deadline()
            if deadline is None and self._timeout is not None:
                deadline = deadline_after(self._timeout)
        if session is None and binding() is not None:
            session = bound_session(self)
        if session is not None:
            return self._run_in_session(operation, state_of(session), deadline)
        takes_session = operation.takes_session and operation.acknowledged
        if operation.address is not None or self._all_are_special:
            return self._run_in_own_session(operation, takes_session, deadline)
        epoch = self.topology.epoch
        server_session = server = connection = result = None
        is_retryable_write = False
        try:
            limit = None if deadline is None else time_to_connect(deadline, self.topology)
            server = self.topology.select_server(
                operation.selector, operation.name, limit, _NO_ADDRESSES, operation.operation_id
            )
            if operation.is_write and takes_session:
                is_retryable_write = self._policy.is_retryable_write(operation, server)
            pool = server.pool
            connection = pool.check_out(limit)
            try:
                if self.topology.epoch != epoch:
                    raise forked()
                if takes_session and connection.hello.sessions_supported:
                    server_session = self.sessions.acquire()
                result = self.commands.run(operation, connection, server_session, is_retryable_write, deadline, None)
            except BaseException as error:
                pool.check_in(connection, error)
                raise
            pool.check_in(connection)
            if self.overload.bucket.missing:
                self._deposit(operation, None)
            return result
        except PyMongoError as failure:
            first_error: PyMongoError | None = failure
            implicit = ImplicitSession(self.sessions, server_session) if takes_session else None
            server_session = None
            first = Attempt(operation, implicit, deadline)
            first.is_retryable_write = is_retryable_write
            first.address = None if server is None else server.address
            first.hello = None if connection is None else connection.hello
        except BaseException:  # in a listener, perhaps
            self._reap(operation, result)
            raise
        finally:
            if server_session is not None:
                self.sessions.release(server_session)
        try:
            return self._run_with_retries(operation, implicit, deadline, epoch, first, first_error)
        finally:
            first_error = None  # it refers to this frame
            if implicit is not None:
                implicit.end_implicit()

    def _run_in_session(self, operation: Operation, session: Session, deadline: float | None) -> Any:
        session.begin(self, operation)
        try:
            return self._run_with_retries(operation, session, deadline, self.epoch)
        finally:
            session.end_use()

    def _run_in_own_session(self, operation: Operation, takes_session: bool, deadline: float | None) -> Any:
        if not takes_session:
            return self._run_with_retries(operation, None, deadline, self.epoch)
        implicit = ImplicitSession(self.sessions)
        try:
            return self._run_with_retries(operation, implicit, deadline, self.epoch)
        finally:
            implicit.end_implicit()

    # The loop

    def _run_with_retries(
        self,
        operation: Operation,
        session: Session | None,
        deadline: float | None,
        epoch: int,
        attempt: Attempt | None = None,
        error: PyMongoError | None = None,
    ) -> Any:
        """Try until there is a result, or no further try is allowed.

        :param epoch: in which the operation began.
        :param attempt: the first try, if it has failed already.
        :param error: which it failed with.
        """
        retry: Retry | None = None
        try:
            while True:
                if error is not None and attempt is not None:
                    if self.epoch != epoch and _is_the_parents(operation, session):
                        raise error
                    retry = retry or Retry(self._policy, deadline)
                    delay = retry.next_delay(error, attempt)
                    if delay is None:
                        raise retry.error
                    self._will_retry(operation, error)
                    self._wait(delay, operation)
                    if self.epoch != epoch and _is_the_parents(operation, session):
                        raise error
                    error, epoch = None, self.epoch
                attempt = self.attempts(operation, session, deadline)
                try:
                    result = attempt.run(self.topology, self._policy, self.commands, retry)
                except PyMongoError as failure:
                    error = failure
                except BaseException:  # in a listener, perhaps
                    self._reap(operation, attempt.result)
                    raise
                else:
                    self._deposit(operation, retry)
                    return result
        finally:
            # An error refers to the frames that it went through, and so to the callers' locals. If a frame referred to
            # the error as well, all of that would live on until the garbage collector runs.
            error = None
            if retry is not None:
                retry.forget_error()

    def _will_retry(self, operation: Operation, error: PyMongoError) -> None:
        """There will be another try, because of `error`."""

    def _wait(self, seconds: float, operation: Operation) -> None:
        """Wait before the next try. Nothing is held meanwhile, and a kill or a time-out ends it at once."""
        if seconds > 0:
            self.overload.slept += seconds
            me = getcurrent()
            self.backing_off[me] = operation.name, _clock.monotonic()
            try:
                sleep(seconds)
            finally:
                del self.backing_off[me]
                del me  # what ends a greenlet refers to this frame

    def _deposit(self, operation: Operation, retry: Retry | None) -> None:
        """Give tokens back for an operation that has succeeded."""
        bucket = self.overload.bucket
        if bucket.missing and operation.retries_overload:  # what is done in passing tells no load
            bucket.deposit(1 if retry is None else 11)

    def _reap(self, operation: Operation, result: Any) -> None:
        """An interruption came after the result: see that a cursor which it opened is ended."""
        if result is not None and operation.keeps_cursor_open(result):
            self.commands.reap(result)

    # Observing: a client that is observed has another executor

    def whole(
        self, name: str, context: OperationContext, session: SessionHandle | None
    ) -> AbstractContextManager[Account | None]:
        """The scope of one operation of the API that takes several commands.

        :param name: of the operation.
        :param context: of its commands.
        :param session: of the application's, if any.
        :returns: a context manager of the account that its commands go into; of None if nobody observes.
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
        own = deadline_after(self._timeout)
        return own if own is None or deadline is None else min(own, deadline)

    @property
    def has_limit(self) -> bool:
        """Whether an operation that begins now has a limit of time, be it that of 0, which is without end."""
        return self._timeout is not None or current_deadline() is not None

    def limited(self, timeout: float | None) -> Executor:
        """The same executor with another limit, for a database, a collection or a session; itself if there is none.

        What is inherited is so settled when an object is made: its operations find it where others find the client's.

        :param timeout: for each operation, in seconds; 0 is without limit, None is the same as here.
        """
        if timeout is None or timeout == self._timeout:
            return self
        limited = copy(self)
        limited._timeout = timeout
        return limited

    def for_operation(self, timeout_ms: Any, session: SessionHandle | None) -> Executor:
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
        limited._timeout = timeout
        limited._is_for_operation = True
        return limited

    def fresh_deadline(self) -> float | None:
        """``timeoutMS`` from now on, whatever limit is in force: for what has to be done after it has passed."""
        return deadline_after(self._timeout)

    # Sessions

    @property
    def epoch(self) -> int:
        """How many forks lie behind this process, as far as the client has seen them."""
        return self.topology.epoch

    def implicit_session(self) -> SessionHandle:
        """A session for one operation or one cursor: the one that is bound here, or an implicit one."""
        return bound_session(self) or ImplicitSession(self.sessions)

    def mark_forked(self) -> None:
        """In a forked child: sessions and cursors are the parent's, who goes on using them."""
        self.sessions.forget()


def _is_the_parents(operation: Operation, session: Session | None) -> bool:
    """Whether a forked child, whose greenlet is a copy of its parent's, leaves an operation to the parent: a write, the
    use of a cursor or of a session of the application's. Another read it tries again, in a session of its own.
    """
    if operation.is_write or operation.address is not None:
        return True
    if session is not None:
        session.end_implicit()
    return session is not None and session.explicit is not None
