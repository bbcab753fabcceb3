"""Read and write the current data, and read the data of a past time.

Transactions have their own class in :mod:`gmongo.testing.store.transactions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bson.timestamp import Timestamp

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.duplicates import check_unique, create_duplicate_error, find_new_entries
from gmongo.testing.store.errors import create_write_conflict
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.state import State
from gmongo.testing.store.values import Key


class Access:
    """Access to the current data. Each write takes effect immediately."""

    in_transaction = False

    def __init__(self, state: State) -> None:
        self.state = state

    def find_collection(self, database: str, name: str) -> Collection | None:
        """Return the collection or view with this name, or None if the name is unknown."""
        return self.state.catalog.get((database, name))

    def records(self, collection: Collection) -> Mapping[Key, Record]:
        return collection.records

    def find_unindexed_keys(self, collection: Collection) -> Iterable[Key]:
        """Return the keys of the records whose version in the indexes is not the version that this access reads."""
        return ()

    def await_unlocked(self, collection: Collection, key: Key, pace: Pace) -> bool:
        """Wait until no transaction has locked the record. Return True if the method waited."""
        has_waited = False
        while (transaction := collection.record_locks.get(key)) is not None:
            has_waited = True
            self._await_transaction(transaction, pace)
        return has_waited

    def await_unlocked_entries(
        self, collection: Collection, document: Document, old: Document | None, pace: Pace
    ) -> bool:
        """Wait until no transaction has locked an entry that `document` would add to a unique index.

        Return True if the method waited.
        """
        has_waited = False
        while (transaction := self._find_lock_owner(collection, document, old)) is not None:
            has_waited = True
            self._await_transaction(transaction, pace)
        return has_waited

    def _find_lock_owner(self, collection: Collection, document: Document, old: Document | None) -> object | None:
        if not collection.entry_locks:
            return None
        entries = find_new_entries(collection, document, old)
        return next((collection.entry_locks[entry] for entry in entries if entry in collection.entry_locks), None)

    def _await_transaction(self, transaction: Any, pace: Pace) -> None:
        lifetime, time_limit = transaction.seconds_left(), pace.check_wait()
        if lifetime <= 0:
            transaction.abort()
        else:
            self.state.wait(min(time_limit, lifetime))

    def create(self, database: str, name: str, options: Document) -> Collection:
        return self.state.create(database, name, options)

    def insert(self, collection: Collection, document: Document) -> None:
        key = collection.key(document["_id"])
        if key in collection.records and collection.kind == "timeseries":
            key = (*key, collection.last_number + 1)  # several measurements of a time series may have the same _id
        self._check_unlocked(collection, key)
        if key in collection.records:
            raise create_duplicate_error(collection, collection.indexes["_id_"], (document["_id"],))
        self._check_entries_unlocked(collection, document, None)
        check_unique(collection, key, document, collection.records)
        store_insert(self.state, collection, key, document, self.state.tick())

    def replace(
        self,
        collection: Collection,
        key: Key,
        document: Document,
        kind: str,
        whole_paths: frozenset[str] | None = frozenset(),
    ) -> None:
        self._check_unlocked(collection, key)
        self._check_entries_unlocked(collection, document, collection.records[key].document)
        check_unique(collection, key, document, collection.records)
        time = self.state.tick()
        store_replace(self.state, collection, key, document, kind, time, whole_paths=whole_paths)

    def remove(self, collection: Collection, key: Key) -> None:
        self._check_unlocked(collection, key)
        store_remove(self.state, collection, key, self.state.tick())

    def _check_unlocked(self, collection: Collection, key: Key) -> None:
        if key in collection.record_locks:
            raise create_write_conflict()

    def _check_entries_unlocked(self, collection: Collection, document: Document, old: Document | None) -> None:
        if self._find_lock_owner(collection, document, old) is not None:
            raise create_write_conflict()


class PastAccess(Access):
    """Read-only access to the data of a past logical time."""

    def __init__(self, state: State, time: Timestamp) -> None:
        super().__init__(state)
        self.time = time

    def find_collection(self, database: str, name: str) -> Collection | None:
        collection = super().find_collection(database, name)
        if collection is not None and collection.creation_time > self.time:
            raise create_snapshot_error(collection)
        return collection

    def records(self, collection: Collection) -> Mapping[Key, Record]:
        if self.time < collection.oldest_time:
            raise error(239, "Read timestamp is older than the oldest available timestamp.")
        return collection.read_at(self.time)

    def find_unindexed_keys(self, collection: Collection) -> Iterable[Key]:
        return collection.find_changed_keys(self.time)


def create_snapshot_error(collection: Collection) -> CommandError:
    """Return the error of a read at a time before the creation of the collection."""
    return error(246, "Unable to read from a snapshot due to pending collection catalog changes; please retry the "
                 f"operation. Collection: {collection.namespace}")  # fmt: skip


def store_insert(
    state: State, collection: Collection, key: Key, document: Document, time: Timestamp, order: int = 0, **fields: Any
) -> None:
    """Store a new document that the caller has checked, and publish the change."""
    collection.put(key, Record(collection.next_number(), document), time)
    _publish(state, collection, "insert", order, after=document, **fields)
    if collection.is_capped:
        collection.shrink(time)


def store_replace(
    state: State, collection: Collection, key: Key, document: Document, kind: str, time: Timestamp, order: int = 0,
    **fields: Any
) -> None:  # fmt: skip
    """Replace a document by a document that the caller has checked, and publish the change."""
    record = collection.records[key]
    collection.put(key, Record(record.number, document), time)
    _publish(state, collection, kind, order, before=record.document, after=document, **fields)


def store_remove(
    state: State, collection: Collection, key: Key, time: Timestamp, order: int = 0, **fields: Any
) -> None:
    """Remove a document, and publish the change."""
    old = collection.records[key].document
    collection.remove(key, time)
    _publish(state, collection, "delete", order, before=old, **fields)


def _publish(state: State, collection: Collection, kind: str, order: int, **fields: Any) -> None:
    has_pre_images = bool(collection.options.get("changeStreamPreAndPostImages", {}).get("enabled"))
    state.publish(
        kind, collection.database, collection.name, order, uuid=collection.uuid, has_pre_images=has_pre_images, **fields
    )
