"""The open cursors, with their remaining results and their members, sessions and transactions."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter

import bson
from bson.int64 import Int64
from bson.timestamp import Timestamp

from gmongo import _random
from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import create_cursor_error
from gmongo.testing.store.matching import Match
from gmongo.testing.store.pacing import Pace

MAX_BATCH_BYTES = 16 * 1024 * 1024
DEFAULT_BATCH_SIZE = 101
IDLE_SECONDS = 600.0


class Cursor:
    """A cursor whose results are known when the cursor is opened."""

    capped = False
    awaits = False

    def __init__(self, namespace: str, documents: list[Document], query_limit_reached: bool = False) -> None:
        self.id = 0
        self.namespace = namespace
        self.member = ""
        self.session: bytes | None = None
        self.transaction: int | None = None
        self.no_timeout = False
        self.last_used = clock.monotonic()
        self.finished = False
        self.in_use = False
        self.command: Document = {}
        self.snapshot: Timestamp | None = None
        self._documents = documents
        self._next_index = 0
        self._query_limit_reached = query_limit_reached
        self.is_lost = False

    def read_batch(self, limit: int | None, pace: Pace) -> list[Document]:
        """Return the next results: at most `limit` documents that together fit into a message."""
        end = len(self._documents) if limit is None else min(len(self._documents), self._next_index + limit)
        batch = limit_to_one_message(pace.iterate(itertools.islice(self._documents, self._next_index, end)))
        self._next_index += len(batch)
        if self._next_index == len(self._documents):
            is_below_limit = limit is None or len(batch) < limit
            self.finished = is_below_limit or self._query_limit_reached
        return batch

    def matches_namespace(self, namespace: str) -> bool:
        """Return True if `killCursors` may use `namespace`. Cursors of lists accept any namespace."""
        return self.namespace == namespace or not {"listCollections", "listIndexes"}.isdisjoint(self.command)

    def list_extras(self) -> Document:
        return {}


_get_number = attrgetter("number")


class TailingCursor(Cursor):
    """A tailable cursor, which also returns documents that are inserted after the ``find``."""

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
        self._last_number = 0
        self._remaining_count = limit or None

    def read_batch(self, limit: int | None, pace: Pace) -> list[Document]:
        records = list(self._collection.records.values())
        if self._last_number and (not records or records[0].number > self._last_number):
            raise error(136, "CollectionScan died due to position in capped collection being deleted.")
        if self._remaining_count is not None:
            limit = self._remaining_count if limit is None else min(limit, self._remaining_count)
        documents: list[Document] = []
        for record in pace.iterate(records[bisect_right(records, self._last_number, key=_get_number) :]):
            if limit is not None and len(documents) >= limit:
                break
            self._last_number = record.number
            if self._match(record.document):
                documents.append(self._project(record.document))
        if self._remaining_count is not None:
            self._remaining_count -= len(documents)
        self.finished = not records and not self._last_number
        return documents


def limit_to_one_message(documents: Iterator[Document]) -> list[Document]:
    """Return the first documents that fit into one message, or a single larger document."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        size += len(bson.encode(document))
        if batch and size > MAX_BATCH_BYTES:
            break
        batch.append(document)
    return batch


class Cursors:
    """The open cursors of a deployment."""

    def __init__(self) -> None:
        self._open: dict[int, Cursor] = {}

    def open(self, cursor: Cursor, member: str) -> None:
        """Assign an ID to the cursor, and keep the cursor until the cursor is closed, killed or idle for too long."""
        self._kill_idle()
        cursor.id = (int.from_bytes(_random.urandom(8), "big") >> 2) + 1
        cursor.member = member
        self._open[cursor.id] = cursor

    def get(self, cursor_id: int, member: str) -> Cursor:
        self._kill_idle()
        cursor = self._open.get(cursor_id)
        if cursor is None or cursor.member != member:
            raise create_cursor_error(cursor_id)
        cursor.last_used = clock.monotonic()
        return cursor

    def is_open(self, cursor: Cursor) -> bool:
        return cursor.id in self._open

    def close(self, cursor_id: int) -> None:
        self._open.pop(cursor_id, None)

    def kill(self, cursor_ids: list[int], namespace: str, member: str) -> Document:
        """Kill cursors. Return the reply to ``killCursors``, which lists the killed and the missing cursors."""
        killed, missing = [], []
        for cursor_id in cursor_ids:
            cursor = self._open.get(cursor_id)
            if cursor is None or cursor.member != member or not cursor.matches_namespace(namespace):
                missing.append(Int64(cursor_id))
            else:
                del self._open[cursor_id]
                killed.append(Int64(cursor_id))
        return {"cursorsKilled": killed, "cursorsNotFound": missing, "cursorsAlive": [], "cursorsUnknown": []}

    def kill_for_collection(self, namespace: str) -> None:
        """After a drop or rename, kill tailable cursors. Other `find` cursors fail at `getMore`."""
        self.kill_where(lambda cursor: cursor.namespace == namespace and cursor.capped)
        for cursor in self._open.values():
            cursor.is_lost = cursor.is_lost or (cursor.namespace == namespace and "find" in cursor.command)

    def expire(self) -> None:
        """Immediately kill all cursors that have an idle timeout."""
        self.kill_where(lambda cursor: not cursor.no_timeout)

    def count(self) -> int:
        return len(self._open)

    def _kill_idle(self) -> None:
        oldest_use = clock.monotonic() - IDLE_SECONDS
        self.kill_where(lambda cursor: cursor.last_used < oldest_use and not cursor.no_timeout)

    def kill_where(self, condition: Callable[[Cursor], bool]) -> None:
        for cursor in [candidate for candidate in self._open.values() if condition(candidate)]:
            del self._open[cursor.id]


def check_owner(cursor: Cursor, namespace: str, session_id: bytes | None, transaction_number: int | None) -> None:
    """Check that a cursor is not in use, and has the namespace, session and transaction of a ``getMore``."""
    if cursor.in_use:
        raise error(12051, f"cursor id {cursor.id} is already in use")
    if cursor.namespace != namespace:
        raise error(13, f"Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace "
                    f"{cursor.namespace}")  # fmt: skip
    if cursor.session != session_id:
        raise error(50738, f"Cannot run getMore on cursor {cursor.id}, which belongs to another session")
    if cursor.transaction != transaction_number:
        raise error(50740, f"Cannot run getMore on cursor {cursor.id}, which belongs to another transaction")
