"""Entities of cursors and change streams."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import gmongo
from gmongo.errors import PyMongoError

_NOTHING = object()


class CursorEntity:
    """Cursor or change stream.

    :param cursor: Object of the driver.
    :param first: Document for the first iteration, which an earlier iteration has read.
    """

    def __init__(self, cursor: Any, first: Any = _NOTHING) -> None:
        self._cursor = cursor
        self._first = first
        self.timeout_ms: float | None = None  # timeout of one iteration in milliseconds

    @classmethod
    def opened(cls, cursor: Any) -> CursorEntity:
        """Send the query of a cursor with a first iteration."""
        return cls(cursor, next(cursor, _NOTHING))

    def iterate_until_document(self) -> Any:
        """Iterate until a document arrives, because an iteration of a tailable cursor can return no document."""
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

    def iterate_once(self) -> Any:
        """Iterate once and return the next document, or None."""
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
        """Close the cursor and suppress errors of the server."""
        try:
            self._cursor.close()
        except PyMongoError:
            pass
