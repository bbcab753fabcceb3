"""The retries of whole transactions (Convenient API for Transactions)."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from gevent import sleep, spawn

from gmongo import _chance, _clock
from gmongo._background import timer_delay
from gmongo._server_facts import codes
from gmongo._server_facts.labels import TRANSIENT, UNKNOWN_RESULT
from gmongo.errors import ExecutionTimeout, InvalidOperation, NetworkTimeout, PyMongoError
from gmongo.execution.deadline import deadline_after, until
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation
from gmongo.execution.session_state import SessionState
from gmongo.operations.transaction import AbortAgain, AbortTransaction, CommitTransaction
from gmongo.wire.limit import interrupt_after

T = TypeVar("T")

_TIME_LIMIT = 120.0  # seconds
_FIRST_BACKOFF = 0.005  # seconds
_BACKOFF_GROWTH = 1.5
_MAX_BACKOFF = 0.5  # seconds
# How long a greenlet that is interrupted is kept by the abort of its transaction.
_INTERRUPTED_ABORT_TIMEOUT = 1.0  # seconds


class _TooLongError(BaseException):
    """Ends an abort that holds up an interrupted greenlet for too long."""


class TransactionEnd:
    """Ends the transactions of one session.

    :param executor: runs the commands.
    :param state: of the session.
    :param in_background: whether it runs in a background greenlet.
    """

    __slots__ = ("_executor", "_in_background", "_state")

    def __init__(self, executor: Executor, state: SessionState, in_background: bool = False) -> None:
        self._executor = executor
        self._state = state
        self._in_background = in_background

    @property
    def is_due(self) -> bool:
        """Whether a transaction is in progress."""
        return self._state.transaction.active

    def commit(self, deadline: float | None = None) -> None:
        """Commit the transaction by `deadline`; None is the usual one.

        :raises InvalidOperation: there is no transaction, or it has been aborted, or the session has ended, or another
            greenlet runs an operation in it.
        """
        _ = self._state.server_session
        self._state.check_free()
        transaction = self._state.transaction
        if transaction.begin_commit():
            self._run(CommitTransaction(transaction), deadline)
        else:
            self._executor.transaction_ended(transaction, None)

    def abort(self, deadline: float | None = None) -> None:
        """Abort the transaction by `deadline`; None is the usual one. Errors of the server are ignored.

        :raises InvalidOperation: there is no transaction in progress, or the session has ended, or another greenlet
            runs an operation in it.
        """
        self._state.check_free()
        self._abort(deadline, None)

    def _abort(self, deadline: float | None, reason: BaseException | None) -> None:
        """Abort by `deadline`, because of an error if there is one."""
        session = self._state.server_session
        transaction = self._state.transaction
        again = AbortAgain(transaction, session) if transaction.begin_abort() else None
        try:
            if again is not None:
                self._run(AbortTransaction(transaction, self._in_background), deadline)
                again = None
        except PyMongoError as error:
            if not error.timeout and not session.unanswered:
                again = None
        except BaseException as error:
            reason = error
            raise
        finally:
            if again is not None and not transaction.active:
                self._executor.sessions.leave(session, again)
            transaction.unpin(reason)
            reason = None  # it refers to this frame
            self._executor.transaction_ended(transaction, None)

    def give_up(self, error: BaseException | None, deadline: float | None) -> None:
        """Abort because of `error`. A kill or a time-out of the application is held up for a moment at most.

        If another greenlet runs an operation in the session, the abort follows that operation in the background.
        """
        if self._state.is_used_elsewhere:
            self._state.after_use = self.abandon
            return None
        if error is None or isinstance(error, Exception):
            return self._abort(deadline, error)
        hurry, too_long = _INTERRUPTED_ABORT_TIMEOUT, _TooLongError()
        try:
            with interrupt_after(hurry, too_long):  # a deadline alone does not end the wait for others' listeners
                self._abort(_clock.monotonic() + hurry, error)
        except _TooLongError as interruption:
            if interruption is not too_long:
                raise
        finally:
            del too_long  # it refers to this frame

    def abandon(self) -> None:
        """Leave the transaction to the background. Does not switch."""
        self.leave()
        self._executor.transaction_ended(self._state.transaction, None)

    def leave(self) -> None:
        """Leave the transaction to the background, unobserved. Does not switch. A finaliser may call it."""
        transaction, session = self._state.transaction, self._state.server_session
        pin, again = transaction.pin, AbortAgain(transaction, session)
        if transaction.active and transaction.begin_abort():
            session.dirty = True
            if pin is None:
                self._executor.sessions.leave(session, again)
            else:
                pin.connection.mark_unusable(InvalidOperation("the transaction was left open"))  # which ends it
        transaction.pin = transaction.pinned_address = None
        if pin is not None:
            pin.release_soon()

    def give_up_by(self, error: BaseException, end: float | None, seconds: float | None) -> None:
        """Abort because of `error` by `end`. After `end` the abort takes place in the background.

        :param seconds: limit of the abort in the background.
        """
        if not isinstance(error, Exception) or end is None or _clock.monotonic() < end:
            return self.give_up(error, end)
        background = TransactionEnd(self._executor, self._state.hand_over_transaction(), True)
        # A new greenlet has an empty context, but listeners may read context variables.
        spawn(copy_context().run, background.abort, deadline_after(seconds, "with_transaction"))

    def _run(self, operation: Operation, deadline: float | None) -> None:
        transaction = self._state.transaction
        try:
            self._executor.run(operation, self._state, deadline)
        except PyMongoError as error:
            self._executor.transaction_ended(transaction, error)
            raise
        except BaseException as error:
            transaction.end_interrupted()
            if not transaction.active:
                self._executor.transaction_ended(transaction, error)
            raise
        self._executor.transaction_ended(transaction, None)


def with_transaction(
    ending: TransactionEnd,
    callback: Callable[[], T],
    start: Callable[[], object],
    deadline: float | None,
    jitter: Callable[[], float] = lambda: _chance.random(),
) -> T:
    """Run `callback` in a transaction and commit it, again and again if need be.

    :param ending: ends the transactions of the session.
    :param callback: what the application does in the transaction.
    :param start: starts the transaction.
    :param deadline: when all has to be over; None is in 120 seconds, and binds the retries only.
    :param jitter: where the random numbers from 0 to 1 come from.
    """
    begin = _clock.monotonic()
    loop = _Loop(ending, begin + _TIME_LIMIT if deadline is None else deadline, deadline is not None, jitter)
    limit = None if deadline is None else deadline - begin
    try:
        with until(deadline):
            while True:
                start()
                try:
                    result = callback()
                except BaseException as error:
                    if ending.is_due:
                        ending.give_up_by(error, deadline, limit)
                    if not isinstance(error, Exception) or not loop.goes_on_after(error):
                        raise
                else:
                    if not ending.is_due or loop.commit():
                        return result
                loop.back_off()
    finally:
        loop.error = PyMongoError()  # it refers to this frame


class _Loop:
    """One call, its time, and the error that made it try again last."""

    def __init__(self, ending: TransactionEnd, end: float, end_is_deadline: bool, jitter: Callable[[], float]) -> None:
        self._ending = ending
        self._end = end
        self._end_is_deadline = end_is_deadline
        self._jitter = jitter
        self._tries = 0
        self.error: Exception = PyMongoError()

    def goes_on_after(self, error: Exception) -> bool:
        """Whether the whole transaction may be tried again after `error`.

        :raises PyMongoError: it may, but there is no time left.
        """
        if not isinstance(error, PyMongoError) or not error.has_error_label(TRANSIENT):
            if self._tries and getattr(error, "timeout", False) and error.__cause__ is None:
                error.__cause__ = self.error  # which tells why it took so long
            return False
        if _clock.monotonic() >= self._end:
            raise self._timeout(error)
        self.error = error
        return True

    def commit(self) -> bool:
        """Commit; False if the whole transaction has to be tried again."""
        tries = 0
        while True:
            try:
                self._ending.commit()
            except PyMongoError as error:
                if not error.has_error_label(UNKNOWN_RESULT) or _is_max_time_expired(error):
                    if not self.goes_on_after(error):
                        raise
                    return False
                if _clock.monotonic() >= self._end:
                    raise self._timeout(error)
                if tries:
                    # The first time it is tried again at once, as specified. But behind a load balancer no try waits
                    # for a server: one that closes every connection would be called thousands of times a second.
                    self._wait(tries - 1, error)
                tries += 1
            else:
                return True

    def back_off(self) -> None:
        """Wait before the whole transaction is tried again, unless there is no time left for that."""
        self._tries += 1
        self._wait(self._tries - 1, self.error)

    def _wait(self, tries: int, error: Exception) -> None:
        delay = self._jitter() * min(_MAX_BACKOFF, _FIRST_BACKOFF * _BACKOFF_GROWTH**tries)
        if _clock.monotonic() + delay >= self._end:
            raise self._timeout(error)
        sleep(timer_delay(delay))

    def _timeout(self, error: Exception) -> PyMongoError:
        """The error that says that time has run out, with the labels of the one that would have been tried again."""
        timeout: PyMongoError
        if self._end_is_deadline:
            timeout = ExecutionTimeout(f"with_transaction ran out of time: {error}", codes.MAX_TIME_MS_EXPIRED)
        else:
            timeout = NetworkTimeout(f"with_transaction ran out of time after {_TIME_LIMIT:g} s: {error}")
        for label in getattr(error, "_error_labels", ()):
            timeout._add_error_label(label)
        timeout.__cause__ = error
        return timeout


def _is_max_time_expired(error: PyMongoError) -> bool:
    return getattr(error, "code", None) == codes.MAX_TIME_MS_EXPIRED
