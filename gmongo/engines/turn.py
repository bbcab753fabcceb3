"""Turns of greenlets: only one greenlet at a time reads a cursor or a stream."""

from __future__ import annotations

from typing import Protocol

from bson.errors import BSONError
from gevent import getcurrent
from gevent.event import AsyncResult

from gmongo.errors import InvalidOperation, NetworkTimeout, PyMongoError
from gmongo.wire.timeout import interrupt_after, remaining
from gmongo.wire.transport import without_frames


class SharedSource(Protocol):
    """Cursor or stream that several greenlets may read."""

    _turn: Turn | None  # the turn of the greenlet that is reading the source, or None


class Turn:
    """Context manager for one read step of `source`. Meanwhile, other readers call :meth:`wait`."""

    def __init__(self, source: SharedSource) -> None:
        self._source = source
        self._greenlet = getcurrent()
        self._outcome: AsyncResult[bool | Exception] | None = None  # None until another greenlet waits
        self.has_documents = True  # the result of wait(): False if the step found no document

    def wait(self, deadline: float | None) -> bool:
        """Wait for the end of the step. Raise a copy of the step's error, or NetworkTimeout at the deadline.

        :returns: False if the step found no document. After True, the caller must check for
            documents, because other greenlets may have received the documents, or an exception may
            have interrupted the step.
        """
        if self._greenlet is getcurrent():
            raise InvalidOperation("a type decoder or a listener cannot read the cursor or the stream that called it")
        if self._outcome is None:
            self._outcome = AsyncResult()
        error = NetworkTimeout("timed out (timeoutMS) while another greenlet waited for documents of the same cursor")
        with interrupt_after(remaining(deadline), error):
            outcome: bool | Exception = self._outcome.get()
        if isinstance(outcome, Exception):
            raise without_frames(outcome)
        return outcome

    def __enter__(self) -> Turn:
        self._source._turn = self
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._source._turn = None
        if self._outcome is not None:  # pass only driver and BSON errors to waiting greenlets
            self._outcome.set(
                without_frames(error) if isinstance(error, (PyMongoError, BSONError)) else self.has_documents
            )
