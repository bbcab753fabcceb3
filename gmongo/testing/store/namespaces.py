"""Drop and rename collections."""

from __future__ import annotations

from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.state import VIEWS, State


def drop_collection(state: State, collection: Collection) -> None:
    """Drop a collection. Abort the transactions that used the collection, and close the cursors of the collection."""
    for session in state.sessions:
        if session.transaction is not None and session.transaction.touches(collection):
            session.transaction.abort()
    del state.catalog[collection.database, collection.name]
    views = state.catalog.get((collection.database, VIEWS))
    if collection.is_view and views is not None:
        views.remove(views.key(collection.namespace), state.tick())
    state.cursors.kill_of_collection(collection.namespace)
    state.tick()
    if not collection.is_view and collection.name != VIEWS:
        state.publish("drop", collection.database, collection.name, uuid=collection.uuid)


def move_collection(state: State, collection: Collection, name: str) -> None:
    """Rename a collection within its database. Drop the collection or view that has the new name."""
    database, source = collection.database, collection.name
    replaced = state.catalog.get((database, name))
    if replaced is not None:
        drop_collection(state, replaced)
    del state.catalog[database, source]
    state.cursors.kill_of_collection(collection.namespace)
    collection.name = name
    state.catalog[database, name] = collection
    collection.created = state.tick()
    extra: Document = {"to": {"db": database, "coll": name}}
    if replaced is not None:
        extra["dropTarget"] = replaced.uuid
    state.publish("rename", database, source, uuid=collection.uuid, extra=extra)
