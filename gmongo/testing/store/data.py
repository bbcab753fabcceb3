"""The stored data of a deployment: collections, indexes and records."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import bson
from bson.binary import Binary
from bson.timestamp import Timestamp

from gmongo import _random
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.index import Index
from gmongo.testing.store.values import Key, make_key

Document = dict[str, Any]
BEGINNING = Timestamp(0, 0)
# The number of last changes that each collection keeps, for reads at a past time.
MAX_HISTORY = 20_000


class Record(NamedTuple):
    """A stored document. Records are immutable: an update stores a new record."""

    number: int  # the position of the document in natural order
    document: Document  # the stored document


class Change(NamedTuple):
    """A change in the history of a collection."""

    time: Timestamp  # the logical time of the change
    key: Key  # the key of the changed record
    before: Record | None  # the record before the change, or None if the change inserted the record


@dataclass(eq=False)
class Collection:
    """A collection or a view."""

    database: str  # the name of the database
    name: str  # the name of the collection
    options: Document  # the options in the form of `listCollections`
    creation_time: Timestamp = BEGINNING  # the logical time of the creation or of the last rename
    uuid: Binary = field(default_factory=lambda: Binary(_random.uuid4().bytes, 4))  # the UUID of the collection
    indexes: dict[str, Index] = field(default_factory=dict)  # the indexes by name
    records: dict[Key, Record] = field(default_factory=dict)  # the records by key, in natural order
    # The transactions that have locked records, by the key of the record.
    record_locks: dict[Key, object] = field(default_factory=dict)
    # The transactions that have locked entries of unique indexes, by index name and entry.
    entry_locks: dict[tuple[str, Key], object] = field(default_factory=dict)
    # The logical time of the last change, by the key of the record.
    change_times: dict[Key, Timestamp] = field(default_factory=dict)
    # The last changes, for reads at a past time.
    history: deque[Change] = field(default_factory=lambda: deque(maxlen=MAX_HISTORY))
    oldest_time: Timestamp = BEGINNING  # the oldest logical time at which the records can be read
    last_number: int = 0  # the highest record number
    stored_bytes: int = 0  # the size in bytes of all documents of a capped collection

    @property
    def namespace(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def collation(self) -> Collation:
        """The default collation, which commands without a collation use."""
        return Collation.from_spec(self.options.get("collation"))

    def key(self, id_value: Any) -> Key:
        return make_key(self.collation.apply(id_value))

    @property
    def is_view(self) -> bool:
        return "viewOn" in self.options

    @property
    def kind(self) -> str:
        """The type of the collection in the reply to ``listCollections``."""
        if self.is_view:
            return "view"
        return "timeseries" if "timeseries" in self.options else "collection"

    @property
    def is_capped(self) -> bool:
        return bool(self.options.get("capped"))

    def next_number(self) -> int:
        self.last_number += 1
        return self.last_number

    def put(self, key: Key, record: Record, time: Timestamp) -> None:
        """Store a record, and replace the record that has the same key."""
        self._add_to_history(key, time)
        self._remove_from_indexes(key)
        self.records[key] = record
        if self.is_capped:
            self.stored_bytes += len(bson.encode(record.document))
        for index in self.indexes.values():
            index.add(key, record.document)

    def remove(self, key: Key, time: Timestamp) -> None:
        self._add_to_history(key, time)
        self._remove_from_indexes(key)
        del self.records[key]

    def shrink(self, time: Timestamp) -> None:
        """Remove the oldest documents of a capped collection while the collection exceeds a limit."""
        max_count, size = self.options.get("max"), self.options.get("size")
        while max_count and len(self.records) > max_count:
            self.remove(next(iter(self.records)), time)
        while size and self.stored_bytes > size and len(self.records) > 1:
            self.remove(next(iter(self.records)), time)

    def read_at(self, time: Timestamp) -> dict[Key, Record]:
        """Return the records at a past logical time, in natural order."""
        records, is_in_order = dict(self.records), True
        for change in reversed(self.history):
            if change.time <= time:
                break
            if change.before is None:
                records.pop(change.key, None)
            else:
                is_in_order = is_in_order and change.key in records
                records[change.key] = change.before
        return records if is_in_order else dict(sorted(records.items(), key=lambda item: item[1].number))

    def _add_to_history(self, key: Key, time: Timestamp) -> None:
        if len(self.history) == MAX_HISTORY:
            self.oldest_time = self.history[0].time
        self.history.append(Change(time, key, self.records.get(key)))
        self.change_times[key] = time

    def _remove_from_indexes(self, key: Key) -> None:
        if key not in self.records:
            return
        document = self.records[key].document
        if self.is_capped:
            self.stored_bytes -= len(bson.encode(document))
        for index in self.indexes.values():
            index.discard(key, document)

    def find_changed_keys(self, time: Timestamp) -> set[Key]:
        keys = set()
        for change in reversed(self.history):
            if change.time <= time:
                break
            keys.add(change.key)
        return keys
