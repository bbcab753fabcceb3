"""The retries of whole transactions (Convenient API for Transactions)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gevent import sleep

from gmongo import _clock
from gmongo._server_facts import codes
from gmongo._server_facts.labels import TRANSIENT, UNKNOWN_RESULT
from gmongo.errors import ExecutionTimeout, NetworkTimeout, PyMongoError, WriteConcernError
from gmongo.execution.deadline import until

if TYPE_CHECKING:
    from gmongo.client_session import ClientSession

T = TypeVar("T")

_TIME_LIMIT = 120.0  # seconds
_FIRST_BACKOFF = 0.005  # seconds
_BACKOFF_GROWTH = 1.5
_MAX_BACKOFF = 0.5  # seconds


def with_transaction(
    session: ClientSession,
    callback: Callable[[ClientSession], T],
    start: Callable[[], Any],
    deadline: float | None,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Run `callback` in a transaction of `session` and commit it, again and again if need be.

    :param start: starts the transaction.
    :param deadline: when all has to be over; None is in 120 seconds, and binds the retries only.
    :param jitter: where the random numbers from 0 to 1 come from.
    """
    begin = _clock.monotonic()
    loop = _Loop(session, begin + _TIME_LIMIT if deadline is None else deadline, deadline is not None)
    limit = None if deadline is None else deadline - begin
    try:
        with until(deadline):
            while True:
                start()
                try:
                    result = callback(session)
                except BaseException as error:
                    if session.in_transaction:
                        session._give_up(error, None if limit is None else _clock.monotonic() + limit)
                    if not isinstance(error, Exception) or not loop.goes_on_after(error):
                        raise
                else:
                    if not session.in_transaction or loop.commit():
                        return result
                loop.back_off(jitter())
    finally:
        loop.error = PyMongoError()  # it refers to this frame


class _Loop:
    """One call, its time, and the error that made it try again last."""

    def __init__(self, session: ClientSession, end: float, end_is_deadline: bool) -> None:
        self._session = session
        self._end = end
        self._end_is_deadline = end_is_deadline
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
        while True:
            try:
                self._session.commit_transaction()
            except PyMongoError as error:
                if not error.has_error_label(UNKNOWN_RESULT) or _is_max_time_expired(error):
                    if not self.goes_on_after(error):
                        raise
                    return False
                if _clock.monotonic() >= self._end:
                    raise self._timeout(error)
            else:
                return True

    def back_off(self, jitter: float) -> None:
        """Wait before the whole transaction is tried again, unless there is no time left for that."""
        delay = jitter * min(_MAX_BACKOFF, _FIRST_BACKOFF * _BACKOFF_GROWTH**self._tries)
        self._tries += 1
        if _clock.monotonic() + delay >= self._end:
            raise self._timeout(self.error)
        sleep(delay)

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
    if isinstance(error, WriteConcernError):
        return error.code == codes.MAX_TIME_MS_EXPIRED
    return getattr(error, "code", None) == codes.MAX_TIME_MS_EXPIRED
