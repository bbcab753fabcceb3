"""Turns: one greenlet at a time reads a cursor or a stream, and the others wait for the end of its step."""

from __future__ import annotations

from typing import Protocol

from bson.errors import BSONError
from gevent import getcurrent
from gevent.event import AsyncResult

from gmongo.errors import InvalidOperation, NetworkTimeout, PyMongoError
from gmongo.wire.timeout import interrupt_after, remaining
from gmongo.wire.transport import without_frames


class Shared(Protocol):
    """Object that several greenlets may read."""

    _turn: Turn | None
    """The turn of the greenlet that reads now."""


class Turn:
    """Step of one greenlet, as a context manager. Other greenlets call :meth:`wait` during the step.

    :param owner: the cursor or the stream. Its turn must be free.
    :ivar has_found: False if the step has found no document; also the result of :meth:`wait` in other greenlets.
    """

    __slots__ = ("_greenlet", "_outcome", "_owner", "has_found")

    def __init__(self, owner: Shared) -> None:
        self._owner = owner
        self._greenlet = getcurrent()
        self._outcome: AsyncResult[bool | Exception] | None = None  # created by the first waiting greenlet
        self.has_found = True

    def wait(self, deadline: float | None) -> bool:
        """Wait until the step has ended.

        :param deadline: the deadline of the waiting operation; None means no limit.
        :returns: False if the step has found no document. After True the caller must check again: other greenlets may
            have taken the documents, or an exception may have interrupted the step.
        :raises InvalidOperation: this greenlet has the turn: a decoder or a listener in its step reads the same object.
        :raises NetworkTimeout: the deadline passed.
        :raises PyMongoError: a copy of the error of the step.
        :raises BSONError: a copy of the error of the step.
        """
        if self._greenlet is getcurrent():
            raise InvalidOperation(
                "a type decoder or a listener cannot read the cursor or the stream that has called it"
            )
        if self._outcome is None:
            self._outcome = AsyncResult()
        error = NetworkTimeout("timed out (timeoutMS) while another greenlet waited for documents of the same cursor")
        with interrupt_after(remaining(deadline), error):
            outcome: bool | Exception = self._outcome.get()
        if isinstance(outcome, Exception):
            raise without_frames(outcome)
        return outcome

    def __enter__(self) -> Turn:
        self._owner._turn = self
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._owner._turn = None
        if self._outcome is not None:  # other exceptions interrupt this greenlet alone
            self._outcome.set(without_frames(error) if isinstance(error, (PyMongoError, BSONError)) else self.has_found)
