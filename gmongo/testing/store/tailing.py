"""The tailable cursors of capped collections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter

from gmongo.testing.command import error
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.matching import Match
from gmongo.testing.store.pacing import Pace

_number = attrgetter("number")


class TailingCursor(Cursor):
    """A tailable cursor, which also returns documents that are inserted after the ``find``.

    :param collection: the capped collection.
    :param match: a function that returns True if a document matches the filter.
    :param project: a function that applies the projection to a document.
    :param awaits: True if a ``getMore`` without results waits for documents (``awaitData``).
    :param limit: the maximum number of documents; 0 means all documents. The cursor remains open after the last
        document.
    """

    capped = True

    def __init__(
        self,
        collection: Collection,
        match: Match,
        project: Callable[[Document], Document],
        awaits: bool,
        limit: int = 0,
    ) -> None:
        super().__init__(collection.namespace, [])
        self.awaits = awaits
        self._collection = collection
        self._match = match
        self._project = project
        self._last = 0
        self._left = limit or None

    def batch(self, limit: int | None, pace: Pace) -> list[Document]:
        records = list(self._collection.records.values())
        if self._last and (not records or records[0].number > self._last):
            raise error(136, "CollectionScan died due to position in capped collection being deleted.")
        if self._left is not None:
            limit = self._left if limit is None else min(limit, self._left)
        found: list[Document] = []
        for record in pace.through(records[bisect_right(records, self._last, key=_number) :]):
            if limit is not None and len(found) >= limit:
                break
            self._last = record.number
            if self._match(record.document):
                found.append(self._project(record.document))
        if self._left is not None:
            self._left -= len(found)
        self.finished = not records and not self._last
        return found
