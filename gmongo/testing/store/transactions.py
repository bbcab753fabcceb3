"""Transactions. Each transaction reads a snapshot of the data together with its own writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bson.timestamp import Timestamp

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.store.access import Access, create_snapshot_error, store_insert, store_remove, store_replace
from gmongo.testing.store.data import BEGINNING, Collection, Document, Record
from gmongo.testing.store.duplicates import check_unique, create_duplicate_error, find_new_entries
from gmongo.testing.store.errors import create_write_conflict, no_such_transaction
from gmongo.testing.store.index import create_id_index
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.state import State
from gmongo.testing.store.values import Key
from gmongo.testing.unsupported import not_supported


@dataclass(frozen=True)
class Write:
    """A write of a transaction."""

    collection: Collection  # the collection to which the transaction writes
    key: Key  # the key of the record
    kind: str  # the type of the oplog event: `insert`, `update`, `replace` or `delete`
    document: Document | None = None  # the new document, or None if the write removes the document
    # The result of `Update.find_whole_paths`, or an empty set.
    whole_paths: frozenset[str] | None = frozenset()


class Transaction(Access):
    """A transaction. Its statements read and write through the methods of this class."""

    in_transaction = True

    def __init__(
        self, state: State, lsid: Document, number: int, member: str, connection: int, snapshot_time: Timestamp
    ) -> None:
        super().__init__(state)
        self.lsid = lsid
        self.number = number
        self.member = member
        self.connection = connection
        self.snapshot_time = snapshot_time
        self.status = "in progress"
        self._deadline = clock.monotonic() + state.transaction_lifetime
        self._writes: list[Write] = []
        self._working_records: dict[Collection, dict[Key, Record]] = {}
        self._new_collections: dict[tuple[str, str], Collection] = {}

    def find_collection(self, database: str, name: str) -> Collection | None:
        if (database, name) in self._new_collections:
            return self._new_collections[database, name]
        collection = super().find_collection(database, name)
        if collection is not None and collection.creation_time > self.snapshot_time:
            raise create_snapshot_error(collection)
        return collection

    def find_unindexed_keys(self, collection: Collection) -> Iterable[Key]:
        """Return the keys of records that other commands changed after the snapshot, or that the transaction wrote."""
        written_keys = {write.key for write in self._writes if write.collection is collection}
        return collection.find_changed_keys(self.snapshot_time) | written_keys

    def await_unlocked(self, collection: Collection, key: Key, pace: Pace) -> bool:
        """Return False without a wait. A write raises a write conflict if another transaction has locked the record."""
        return False

    def await_unlocked_entries(
        self, collection: Collection, document: Document, old: Document | None, pace: Pace
    ) -> bool:
        return False

    def seconds_left(self) -> float:
        """Return the remaining lifetime in seconds."""
        return self._deadline - clock.monotonic()

    def records(self, collection: Collection) -> dict[Key, Record]:
        """Return the records of the snapshot, changed by the writes of the transaction."""
        if collection not in self._working_records:
            self._working_records[collection] = collection.read_at(self.snapshot_time)
        return self._working_records[collection]

    def create(self, database: str, name: str, options: Document) -> Collection:
        if (database, name) in self.state.catalog:
            raise create_write_conflict()
        if "viewOn" in options:
            raise not_supported("a view made in a transaction")
        collection = Collection(database, name, options, creation_time=BEGINNING)
        collection.indexes["_id_"] = create_id_index(collection.collation)
        self._new_collections[database, name] = collection
        return collection

    def insert(self, collection: Collection, document: Document) -> None:
        key = collection.key(document["_id"])
        records = self.records(collection)
        if key in records:
            raise create_duplicate_error(collection, collection.indexes["_id_"], (document["_id"],))
        self._lock(collection, key)
        self._lock_entries(collection, key, document, None)
        records[key] = Record(collection.next_number(), document)
        self._writes.append(Write(collection, key, "insert", document))

    def replace(
        self,
        collection: Collection,
        key: Key,
        document: Document,
        kind: str,
        whole_paths: frozenset[str] | None = frozenset(),
    ) -> None:
        records = self.records(collection)
        self._lock(collection, key)
        self._lock_entries(collection, key, document, records[key].document)
        records[key] = Record(records[key].number, document)
        self._writes.append(Write(collection, key, kind, document, whole_paths))

    def remove(self, collection: Collection, key: Key) -> None:
        self._lock(collection, key)
        del self.records(collection)[key]
        self._writes.append(Write(collection, key, "delete"))

    def _lock(self, collection: Collection, key: Key) -> None:
        if collection.is_capped:
            raise error(263, f"Collection '{collection.namespace}' is a capped collection. Writes in transactions "
                               "are not allowed on capped collections.")  # fmt: skip
        if self.status != "in progress":  # another greenlet aborted the transaction meanwhile
            raise no_such_transaction(f"Transaction with {{ txnNumber: {self.number} }} has been aborted.")
        owner = collection.record_locks.get(key, self)
        if owner is not self or collection.change_times.get(key, BEGINNING) > self.snapshot_time:
            raise create_write_conflict()
        collection.record_locks[key] = self

    def _lock_entries(self, collection: Collection, key: Key, document: Document, old: Document | None) -> None:
        """Lock the entries that a write of `document` adds to unique indexes.

        :raises CommandError: code 11000 if :meth:`records` returns a duplicate value; code 112
            if a duplicate value is newer than the snapshot, or another transaction locked an entry.
        """
        if not any(index.needs_duplicate_check for index in collection.indexes.values()):
            return
        records = self.records(collection)
        check_unique(collection, key, document, records, self.find_unindexed_keys(collection))
        entries = list(find_new_entries(collection, document, old))
        for name, entry in entries:
            if collection.entry_locks.get((name, entry), self) is not self:
                raise create_write_conflict()
            for other_key in collection.indexes[name].find_record_keys(entry):
                if other_key != key and collection.change_times.get(other_key, BEGINNING) > self.snapshot_time:
                    raise create_write_conflict()
        collection.entry_locks.update(dict.fromkeys(entries, self))

    def has_used(self, collection: Collection) -> bool:
        return collection in self._working_records

    def commit(self) -> None:
        """Apply all writes of the transaction at the same logical time."""
        if self.status == "committed":
            return
        if not self._new_collections.keys().isdisjoint(self.state.catalog):
            self.abort()
            raise create_write_conflict()
        self.status = "committed"
        self._apply()
        self._release()

    def _apply(self) -> None:
        if not self._writes and not self._new_collections:
            return
        for collection in self._new_collections.values():
            collection.creation_time = self.state.tick()
            self.state.add(collection)
            self.state.publish("create", collection.database, collection.name, uuid=collection.uuid)
        now = self.state.tick()
        session = {"lsid": self.lsid, "txnNumber": self.number}
        for order, write in enumerate(self._writes):
            self._apply_one(write, now, order, session)

    def _apply_one(self, write: Write, now: Timestamp, order: int, session: Document) -> None:
        collection, key = write.collection, write.key
        if write.document is None:
            store_remove(self.state, collection, key, now, order, session=session)
        elif write.kind == "insert":
            store_insert(self.state, collection, key, write.document, now, order, session=session)
        else:
            store_replace(
                self.state,
                collection,
                key,
                write.document,
                write.kind,
                now,
                order,
                session=session,
                whole_paths=write.whole_paths,
            )

    def abort(self) -> None:
        if self.status == "in progress":
            self._release()
            self.status = "aborted"

    def _release(self) -> None:
        for collection in self._working_records:
            for locks in (collection.record_locks, collection.entry_locks):
                for key in [key for key, owner in locks.items() if owner is self]:
                    del locks[key]
        self._writes = []
        self._working_records = {}
        self._new_collections = {}
        self.state.wake()
