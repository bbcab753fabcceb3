"""Cursor and change stream entities of the unified test format."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import gmongo
from gmongo.errors import PyMongoError

_NOTHING = object()


class CursorEntity:
    """A cursor or change stream of a case."""

    def __init__(self, cursor: Any, first: Any = _NOTHING) -> None:
        self._cursor = cursor
        self._first = first
        # Time limit of `iterate_until_document` in milliseconds, or None.
        self.timeout_ms: float | None = None

    @classmethod
    def with_first_document(cls, cursor: Any) -> CursorEntity:
        """Read the first document, so that the cursor sends its query. Return the entity of the
        cursor.
        """
        return cls(cursor, next(cursor, _NOTHING))

    def iterate_until_document(self) -> Any:
        """Iterate until the cursor returns a document, because an iteration of a tailable cursor may
        return no document.
        """
        first = self._take_first()
        if first is not _NOTHING:
            return first
        with self._time_limit():
            while True:
                document = next(self._cursor, _NOTHING)
                if document is not _NOTHING:
                    return document
                if not self._cursor.alive:
                    raise EOFError("the cursor is at its end")

    def iterate_once(self) -> Any:
        """Iterate once, and return the document, or None if the iteration returns no document."""
        first = self._take_first()
        if first is not _NOTHING:
            return first
        if hasattr(self._cursor, "try_next"):
            return self._cursor.try_next()
        return next(self._cursor, None)

    def _time_limit(self) -> AbstractContextManager[None]:
        return gmongo.timeout(None if self.timeout_ms is None else self.timeout_ms / 1000)

    def _take_first(self) -> Any:
        first, self._first = self._first, _NOTHING
        return first

    def close(self) -> None:
        """Close the cursor. Ignore errors of the driver."""
        try:
            self._cursor.close()
        except PyMongoError:
            pass
