"""What a deployment holds: collections, their indexes and their records."""

from __future__ import annotations

import itertools
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bson.binary import Binary
from bson.timestamp import Timestamp

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.paths import leaves_at
from gmongo.testing.store.values import MISSING, Key, key_of

Document = dict[str, Any]
BEGINNING = Timestamp(0, 0)
# How many changes of a collection can be undone to read it as it was.
HISTORY = 20_000


class Record(NamedTuple):
    """A stored document. It is never changed in place: an update stores another one.

    :param number: its place in natural order.
    """

    number: int
    document: Document


class Change(NamedTuple):
    """What a record was before it changed."""

    time: Timestamp
    key: Key
    before: Record | None


@dataclass
class Index:
    """An index. Only the entries of unique ones are kept: nothing else needs them.

    :param keys: the fields, with their directions or kinds.
    :param options: all other fields of its description, such as ``unique``.
    """

    name: str
    keys: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    owners: dict[Key, Key] = field(default_factory=dict)

    @property
    def unique(self) -> bool:
        """Whether no two documents may have the same values."""
        return self.is_identity or bool(self.options.get("unique") or self.options.get("prepareUnique"))

    @property
    def is_identity(self) -> bool:
        """Whether it is the index of ``_id`` that every collection has."""
        return self.name == "_id_"

    @property
    def guards(self) -> bool:
        """Whether entries are kept to find duplicates; those of ``_id`` are the keys of the records."""
        return self.unique and not self.is_identity

    def description(self) -> Document:
        """As ``listIndexes`` shows it."""
        return {"v": 2, "key": dict(self.keys), "name": self.name, **self.options}

    def entries(self, document: Document) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """The document's entries: a key to compare by, and the values."""
        partial = self.options.get("partialFilterExpression")
        if partial is not None and not compile_filter(partial)(document):
            return
        fold = Collation.of(self.options.get("collation")).folded
        values = [list(leaves_at(document, path)) for path in self.keys]
        if self.options.get("sparse") and all(value is MISSING for part in values for value in part):
            return
        for combination in itertools.product(*values):
            yield tuple(key_of(fold(value)) for value in combination), combination


def identity_index() -> Index:
    """The index that every collection has."""
    return Index("_id_", {"_id": 1})


@dataclass(eq=False)
class Collection:
    """A collection or a view.

    :param writers: who holds a document until its transaction ends.
    :param changed: when documents last changed.
    """

    database: str
    name: str
    options: Document
    created: Timestamp = BEGINNING
    uuid: Binary = field(default_factory=lambda: Binary(uuid.uuid4().bytes, 4))
    indexes: dict[str, Index] = field(default_factory=dict)
    records: dict[Key, Record] = field(default_factory=dict)
    writers: dict[Key, object] = field(default_factory=dict)
    changed: dict[Key, Timestamp] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=lambda: deque(maxlen=HISTORY))
    horizon: Timestamp = BEGINNING
    last_number: int = 0

    @property
    def namespace(self) -> str:
        """``database.name``."""
        return f"{self.database}.{self.name}"

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return "viewOn" in self.options

    @property
    def kind(self) -> str:
        """The type that ``listCollections`` shows."""
        if self.is_view:
            return "view"
        return "timeseries" if "timeseries" in self.options else "collection"

    @property
    def is_capped(self) -> bool:
        """Whether it is capped."""
        return bool(self.options.get("capped"))

    def next_number(self) -> int:
        """The place of the next record in natural order."""
        self.last_number += 1
        return self.last_number

    def put(self, key: Key, record: Record, time: Timestamp) -> None:
        """Store a record, in place of the one with the same key."""
        self._remember(key, time)
        self._forget_entries(key)
        self.records[key] = record
        for index in self.indexes.values():
            if index.guards:
                index.owners.update((entry, key) for entry, _ in index.entries(record.document))

    def remove(self, key: Key, time: Timestamp) -> None:
        """Remove a record."""
        self._remember(key, time)
        self._forget_entries(key)
        del self.records[key]

    def as_of(self, time: Timestamp) -> dict[Key, Record]:
        """The records as they were at a time."""
        records = dict(self.records)
        for change in reversed(self.history):
            if change.time <= time:
                break
            if change.before is None:
                records.pop(change.key, None)
            else:
                records[change.key] = change.before
        return dict(sorted(records.items(), key=lambda item: item[1].number))

    def _remember(self, key: Key, time: Timestamp) -> None:
        if len(self.history) == HISTORY:
            self.horizon = self.history[0].time
        self.history.append(Change(time, key, self.records.get(key)))
        self.changed[key] = time

    def _forget_entries(self, key: Key) -> None:
        if key not in self.records:
            return
        for index in self.indexes.values():
            if index.guards:
                for entry, _ in index.entries(self.records[key].document):
                    index.owners.pop(entry, None)
