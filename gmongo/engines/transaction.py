"""Commit, abort and retries of transactions (Convenient API for Transactions)."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from gevent import sleep, spawn

from gmongo import _clock, _random
from gmongo._background import timer_delay
from gmongo._server_facts import codes
from gmongo._server_facts.labels import TRANSIENT, UNKNOWN_RESULT
from gmongo.errors import ExecutionTimeout, InvalidOperation, NetworkTimeout, PyMongoError
from gmongo.execution.deadline import deadline_after, until
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation
from gmongo.execution.sessions import SessionState
from gmongo.operations.end_sessions import AbortAgain, AbortTransaction, CommitTransaction
from gmongo.wire.timeout import interrupt_after

T = TypeVar("T")
_NO_ERROR = PyMongoError()  # placeholder until an attempt fails

_TIME_LIMIT = 120.0  # seconds
_FIRST_BACKOFF = 0.005  # seconds
_BACKOFF_GROWTH = 1.5
_MAX_BACKOFF = 0.5  # seconds
_INTERRUPTED_ABORT_TIMEOUT = 1.0  # seconds for an abort after a kill or a timeout


class _TooLongError(BaseException):
    """Exception that interrupts a slow abort, for which a kill or a timeout waits."""


class TransactionEnd:
    """Commit and abort of the transactions of one session, possibly in a background greenlet."""

    def __init__(self, executor: Executor, state: SessionState, in_background: bool = False) -> None:
        self._executor = executor
        self._state = state
        self._in_background = in_background

    @property
    def is_needed(self) -> bool:
        return self._state.transaction.active

    def describe_missing_primary(self) -> str:
        """Return the end of an error text if no server accepts writes, otherwise an empty text."""
        topology = self._executor.topology.description
        return "" if topology.has_writable_server() else f" (no server accepts writes: {topology.topology_type_name})"

    def commit(self, deadline: float | None = None) -> None:
        """Commit the transaction before `deadline`. None means the default deadline."""
        session, transaction = self._state.server_session, self._state.transaction
        self._state.check_free()
        if transaction.begin_commit():
            # If the result of the commit is unknown, the session reaper sends this abort after the end of the session.
            # A transaction with a pinned connection ends with its connection.
            transaction.possible_abort = None if transaction.pin else AbortAgain(transaction, session)
            self._run(CommitTransaction(transaction), deadline)
            transaction.possible_abort = None
        else:
            self._executor.transaction_ended(transaction, None)

    def abort(self, deadline: float | None = None) -> None:
        """Abort before `deadline` (None means the default deadline), and ignore driver errors."""
        self._state.check_free()
        self._abort(deadline, None)

    def _abort(self, deadline: float | None, reason: BaseException | None) -> None:
        session = self._state.server_session
        transaction = self._state.transaction
        second_abort = AbortAgain(transaction, session) if transaction.begin_abort() else None
        try:
            if second_abort is not None:
                self._run(AbortTransaction(transaction, self._in_background), deadline)
                second_abort = None
        except PyMongoError as error:
            if not error.timeout and not session.unanswered_counts:
                second_abort = None
        except BaseException as error:
            reason = error
            raise
        finally:
            if second_abort is not None and not transaction.active:
                self._executor.sessions.hand_to_reaper(session, second_abort)
            transaction.unpin(reason)
            reason = None  # prevent a reference cycle between this frame and the error
            self._executor.transaction_ended(transaction, None)

    def give_up(self, error: BaseException | None, deadline: float | None) -> None:
        """Abort the transaction in progress, if any, because of `error`. A kill or a timeout waits at most one second.

        If another greenlet runs an operation in the session, a background greenlet later aborts the transaction.
        """
        if not self.is_needed:
            return
        if self._state.is_used_elsewhere:
            self._state.after_use = self.abandon
            return
        try:
            self._abort_because_of(error, deadline)
        finally:
            if self.is_needed:  # an exception or the limit of one second prevented the abort
                self.end_in_background()

    def _abort_because_of(self, error: BaseException | None, deadline: float | None) -> None:
        if error is None or isinstance(error, Exception):
            return self._abort(deadline, error)
        too_long = _TooLongError()
        try:
            # Unlike the deadline, this timeout also limits the time of event listeners.
            with interrupt_after(_INTERRUPTED_ABORT_TIMEOUT, too_long):
                self._abort(_clock.monotonic() + _INTERRUPTED_ABORT_TIMEOUT, error)
        except _TooLongError as interruption:
            if interruption is not too_long:
                raise
        finally:
            del too_long  # prevent a reference cycle between this frame and the error

    def abandon(self) -> None:
        """Start a background abort, and notify the observers, without a switch of greenlets."""
        self.end_in_background()
        self._executor.transaction_ended(self._state.transaction, None)

    def end_in_background(self) -> None:
        """Start a background abort without notifying observers. Finalisers call this method."""
        transaction, session = self._state.transaction, self._state.server_session
        pin, second_abort = transaction.pin, AbortAgain(transaction, session)
        if transaction.active and transaction.begin_abort():
            session.dirty = True
            if pin is None:
                self._executor.sessions.hand_to_reaper(session, second_abort)
            else:
                # The server aborts the transaction when the pinned connection is closed.
                pin.connection.mark_unusable(InvalidOperation("the transaction was left open"))
        transaction.pin = transaction.pinned_address = None
        if pin is not None:
            pin.release_soon()

    def abort_on_server(self) -> None:
        """Let a background greenlet send `abortTransaction` while the application closes the client.

        The transaction state does not change, and a later commit fails because the client is closed. If the
        transaction is pinned to a connection, the end of the connection aborts the transaction.
        """
        if self._state.transaction.pin is None:
            session = self._state.server_session
            self._executor.sessions.hand_to_reaper(session, AbortAgain(self._state.transaction, session))

    def give_up_by_deadline(self, error: BaseException, deadline: float | None, seconds: float | None) -> None:
        """Abort because of `error`. After `deadline`, start a background abort limited to `seconds`.

        Do nothing if no transaction is in progress.
        """
        if not self.is_needed:
            return
        if not isinstance(error, Exception) or deadline is None or _clock.monotonic() < deadline:
            self.give_up(error, deadline)
            return
        background_end = TransactionEnd(self._executor, self._state.hand_over_transaction(), True)
        # Unlike abandon(), the greenlet publishes command events, as the CSOT specification requires.
        # A copy of the current context contains the context variables for event listeners.
        spawn(copy_context().run, background_end.abort, deadline_after(seconds, "with_transaction"))

    def _run(self, operation: Operation, deadline: float | None) -> None:
        transaction = self._state.transaction
        try:
            self._executor.run(operation, self._state, deadline)
        except PyMongoError as error:
            self._executor.transaction_ended(transaction, error)
            raise
        except BaseException as error:
            transaction.record_interrupted_end()
            if not transaction.active:
                self._executor.transaction_ended(transaction, error)
            raise
        self._executor.transaction_ended(transaction, None)


def with_transaction(
    ending: TransactionEnd, callback: Callable[[], T], start: Callable[[], object], deadline: float | None
) -> T:
    """Run and commit a transaction, with retries until `deadline` (None means 120 seconds)."""
    start_time = _clock.monotonic()
    loop = _RetryLoop(ending, start_time + _TIME_LIMIT if deadline is None else deadline, deadline is not None)
    limit = None if deadline is None else deadline - start_time
    try:
        with until(deadline):
            while True:
                start()
                try:
                    result = callback()
                except BaseException as error:
                    ending.give_up_by_deadline(error, deadline, limit)
                    if not isinstance(error, Exception) or not loop.permits_retry(error):
                        raise
                else:
                    try:
                        done = not ending.is_needed or loop.commit()
                    except BaseException as error:
                        ending.give_up_by_deadline(error, deadline, limit)
                        raise
                    if done:
                        return result
                loop.back_off()
    finally:
        loop.error = _NO_ERROR  # prevent a reference cycle between this frame and the error


@dataclass(eq=False, repr=False)
class _RetryLoop:
    """State of the retries of one :func:`with_transaction` call. No retry begins after `_end`."""

    _ending: TransactionEnd
    _end: float
    _end_is_deadline: bool  # False for the default limit of 120 seconds
    _retry_count: int = 0
    error: Exception = _NO_ERROR  # the cause of the last retry

    def permits_retry(self, error: Exception) -> bool:
        """Return True if `error` permits a retry. Raise an error after the time limit."""
        if not isinstance(error, PyMongoError) or not error.has_error_label(TRANSIENT):
            if self._retry_count and getattr(error, "timeout", False) and error.__cause__ is None:
                error.__cause__ = self.error  # the cause of the last retry
            return False
        if _clock.monotonic() >= self._end:
            raise self._create_timeout_error(error)
        self.error = error
        return True

    def commit(self) -> bool:
        """Commit with retries. Return False if the whole transaction needs a retry."""
        retry_count = 0
        while True:
            try:
                self._ending.commit()
            except PyMongoError as error:
                code = getattr(error, "code", None)
                if not error.has_error_label(UNKNOWN_RESULT) or code == codes.MAX_TIME_MS_EXPIRED:
                    if not self.permits_retry(error):
                        raise
                    return False
                if _clock.monotonic() >= self._end:
                    raise self._create_timeout_error(error)
                if retry_count:
                    # The specification forbids a backoff only before the first retry. Without a backoff, a load
                    # balancer that closes all connections would get thousands of retries per second.
                    self._wait(retry_count - 1, error)
                retry_count += 1
            else:
                return True

    def back_off(self) -> None:
        """Wait before a retry of the transaction, or raise an error at the time limit."""
        self._retry_count += 1
        self._wait(self._retry_count - 1, self.error)

    def _wait(self, retry_count: int, error: Exception) -> None:
        delay = _random.random() * min(_MAX_BACKOFF, _FIRST_BACKOFF * _BACKOFF_GROWTH**retry_count)
        if _clock.monotonic() + delay >= self._end:
            raise self._create_timeout_error(error)
        sleep(timer_delay(delay))

    def _create_timeout_error(self, error: Exception) -> PyMongoError:
        """Return the timeout error that replaces `error`, with the labels of `error`."""
        timeout: PyMongoError
        reason = f"{error}{self._ending.describe_missing_primary()}"
        if self._end_is_deadline:
            timeout = ExecutionTimeout(f"with_transaction ran out of time: {reason}", codes.MAX_TIME_MS_EXPIRED)
        else:
            timeout = NetworkTimeout(f"with_transaction ran out of time after {_TIME_LIMIT:g} s: {reason}")
        for label in getattr(error, "_error_labels", ()):
            timeout._add_error_label(label)
        timeout.__cause__ = error
        return timeout
