"""Cursors and change streams that a test keeps as entities."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import gmongo
from gmongo.errors import PyMongoError

_NOTHING = object()


class CursorEntity:
    """A cursor or a change stream.

    :param cursor: the driver's object.
    :param first: the document that was read to send the query, for the first iteration.
    """

    def __init__(self, cursor: Any, first: Any = _NOTHING) -> None:
        self._cursor = cursor
        self._first = first
        self.timeout_ms: float | None = None  # of one iteration that goes on until there is a document

    @classmethod
    def opened(cls, cursor: Any) -> CursorEntity:
        """A cursor that sends its query with the first iteration, which is done now."""
        return cls(cursor, next(cursor, _NOTHING))

    def until_document(self) -> Any:
        """Iterate until there is a document. A change stream waits for one by itself; a tailable cursor does not."""
        first = self._take_first()
        if first is not _NOTHING:
            return first
        with self._limited():
            while True:
                document = next(self._cursor, _NOTHING)
                if document is not _NOTHING:
                    return document
                if not self._cursor.alive:
                    raise EOFError("the cursor is at its end")

    def once(self) -> Any:
        """Iterate once: the next document, or None."""
        first = self._take_first()
        if first is not _NOTHING:
            return first
        if hasattr(self._cursor, "try_next"):
            return self._cursor.try_next()
        return next(self._cursor, None)

    def _limited(self) -> AbstractContextManager[None]:
        return gmongo.timeout(None if self.timeout_ms is None else self.timeout_ms / 1000)

    def _take_first(self) -> Any:
        first, self._first = self._first, _NOTHING
        return first

    def close(self) -> None:
        """Close it; errors of the server do not count."""
        try:
            self._cursor.close()
        except PyMongoError:
            pass
