"""The stored state of a deployment: the catalog, the logical time, the oplog, the cursors and the sessions."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bson.timestamp import Timestamp
from gevent.event import Event as Signal

from gmongo.testing import clock
from gmongo.testing.store.cursors import Cursors
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.index import create_id_index
from gmongo.testing.store.oplog import Event, Oplog, Position
from gmongo.testing.store.sessions import Sessions

VIEWS_COLLECTION = "system.views"
"""The name of the collection that each database with views contains."""


class State:
    """The stored state that all members of a deployment share."""

    def __init__(self, version: tuple[int, int], replicated: bool, sharded: bool) -> None:
        self.version = version
        self.replicated = replicated
        self.sharded = sharded
        self.catalog: dict[tuple[str, str], Collection] = {}
        self.oplog = Oplog()
        self.cursors = Cursors()
        self.sessions = Sessions()
        self.transaction_lifetime: float = 60
        self.last_expiry_time = clock.monotonic()
        self.loss_counts: Counter[str] = Counter()
        self._time = Timestamp(int(clock.seconds()), 1)
        self._signal = Signal()

    @property
    def has_oplog(self) -> bool:
        """True if the deployment supports transactions, retryable writes, snapshots and change streams."""
        return self.replicated or self.sharded

    def now(self) -> Timestamp:
        """Return the current logical time, which each write advances."""
        return self._time

    def tick(self) -> Timestamp:
        seconds = int(clock.seconds())
        if seconds > self._time.time:
            self._time = Timestamp(seconds, 1)
        else:
            self._time = Timestamp(self._time.time, self._time.inc + 1)
        return self._time

    def publish(self, kind: str, database: str, collection: str | None, order: int = 0, **fields: Any) -> None:
        """Wake all waiting commands. If the deployment has an oplog, first add an event at the current logical time."""
        if self.has_oplog:
            self.oplog.append(Event(Position(self._time, order), kind, database, collection, **fields))
        self.wake()

    def wake(self) -> None:
        signal, self._signal = self._signal, Signal()
        signal.set()

    def wait(self, seconds: float) -> None:
        self._signal.wait(seconds)

    def add(self, collection: Collection) -> None:
        self.catalog[collection.database, collection.name] = collection
        if not collection.is_view and not collection.indexes:
            index = create_id_index(collection.collation)
            collection.indexes[index.name] = index

    def find_collections(self, database: str) -> list[Collection]:
        return [item for (name, _), item in sorted(self.catalog.items()) if name == database]

    def create(self, database: str, name: str, options: Document) -> Collection:
        collection = Collection(database, name, options, creation_time=self.tick())
        self.add(collection)
        if collection.is_view and (database, VIEWS_COLLECTION) not in self.catalog:
            self.add(Collection(database, VIEWS_COLLECTION, {}, creation_time=self.tick()))
        id_index = create_id_index(collection.collation)
        self.publish(
            "create",
            database,
            name,
            uuid=collection.uuid,
            extra={"operationDescription": {**options, "idIndex": id_index.describe()}, "nsType": collection.kind},
        )
        return collection


def drop_collection(state: State, collection: Collection) -> None:
    """Drop a collection. Abort the transactions that used the collection, and close the cursors of the collection."""
    for session in state.sessions:
        if session.transaction is not None and session.transaction.has_used(collection):
            session.transaction.abort()
    del state.catalog[collection.database, collection.name]
    state.cursors.kill_for_collection(collection.namespace)
    state.tick()
    if not collection.is_view and collection.name != VIEWS_COLLECTION:
        state.publish("drop", collection.database, collection.name, uuid=collection.uuid)


def move_collection(state: State, collection: Collection, name: str) -> None:
    """Rename a collection within its database. Drop any collection or view that has the new name."""
    database, old_name = collection.database, collection.name
    target_collection = state.catalog.get((database, name))
    if target_collection is not None:
        drop_collection(state, target_collection)
    del state.catalog[database, old_name]
    state.cursors.kill_for_collection(collection.namespace)
    collection.name = name
    state.catalog[database, name] = collection
    collection.creation_time = state.tick()
    event_fields: Document = {"to": {"db": database, "coll": name}}
    if target_collection is not None:
        event_fields["dropTarget"] = target_collection.uuid
    state.publish("rename", database, old_name, uuid=collection.uuid, extra=event_fields)
