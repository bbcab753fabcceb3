"""The commands that create, rename, list and drop collections, views and databases."""

from __future__ import annotations

import bson
from bson import Int64

from gmongo.testing.command import error
from gmongo.testing.store.context import Context, check_name, check_writable
from gmongo.testing.store.creation import check_view, created_options
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import illegal_operation, invalid_namespace, invalid_options, namespace_not_found
from gmongo.testing.store.index import identity_index
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.replies import listing_reply
from gmongo.testing.store.state import drop_collection, move_collection
from gmongo.testing.unsupported import not_supported


def create(context: Context) -> Document:
    """Execute ``create``."""
    options = created_options(context.body)
    if "validator" in options and context.database in ("admin", "config", "local"):
        raise invalid_options(f"Document validators are not allowed on collections of the database {context.database}")
    views = [one for one in context.state.collections_of(context.database) if one.is_view]
    check_view(views, context.collection_name, options)
    existing = context.collection()
    if existing is not None:
        if context.state.version >= (7, 0) and existing.options == options and not context.access.in_transaction:
            return {}
        raise error(48, f"Collection {context.namespace} already exists.")
    context.access.create(context.database, context.collection_name, options)
    return {}


def drop(context: Context) -> Document:
    """Execute ``drop``. Before version 7.0, the drop of a missing collection fails."""
    collection = context.collection()
    if collection is None:
        if context.state.version < (7, 0):
            raise namespace_not_found("ns not found")
        return {}
    drop_collection(context.state, collection)
    count = {} if collection.is_view else {"nIndexesWas": len(collection.indexes)}
    return {**count, "ns": collection.namespace}


def drop_database(context: Context) -> Document:
    """Execute ``dropDatabase``."""
    if context.database == "admin":
        raise illegal_operation("Dropping the 'admin' database is prohibited.")
    collections = context.state.collections_of(context.database)
    for collection in collections:
        drop_collection(context.state, collection)
    if collections:
        context.state.tick()
        context.state.publish("dropDatabase", context.database, None)
    return {}


def rename_collection(context: Context) -> Document:
    """Execute ``renameCollection``, which only the ``admin`` database has."""
    source, target = (_namespace(context.body[name]) for name in ("renameCollection", "to"))
    state = context.state
    collection = state.catalog.get(source)
    if source == target:
        raise error(20, "Can't rename a collection to itself")
    if collection is None:
        raise namespace_not_found(f"Source collection {'.'.join(source)} does not exist")
    check_writable(collection)
    if collection.kind == "timeseries":
        raise not_supported("a time series", "renameCollection")
    present = state.catalog.get(target)
    if present is not None and not context.body.get("dropTarget"):
        raise error(48, "target namespace exists")
    if source[0] != target[0]:
        raise not_supported("renameCollection to another database")
    move_collection(state, collection, target[1])
    return {}


def _namespace(value: str) -> tuple[str, str]:
    if "." not in value:
        raise invalid_namespace(f"Invalid namespace specified '{value}'")
    database, _, name = value.partition(".")
    check_name(database, name)
    return database, name


def list_collections(context: Context) -> Document:
    """Execute ``listCollections``."""
    body = context.body
    match = compile_filter(body.get("filter") or {})
    found = [_description(one) for one in context.state.collections_of(context.database)]
    found = [one for one in found if match(one)]
    if body.get("nameOnly"):
        found = [{"name": one["name"], "type": one["type"]} for one in found]
    cursor = Cursor(f"{context.database}.$cmd.listCollections", found)
    return listing_reply(context, cursor)


def _description(collection: Collection) -> Document:
    described: Document = {"name": collection.name, "type": collection.kind, "options": collection.options}
    info: Document = {"readOnly": False, "uuid": collection.uuid}
    if "clusteredIndex" in collection.options:
        clustered = {"v": 2, "name": "_id_", **collection.options["clusteredIndex"]}
        in_order = {name: clustered[name] for name in ("v", "key", "name", "unique")}
        return {**described, "options": {**collection.options, "clusteredIndex": in_order}, "info": info}
    if collection.is_view:
        return {**described, "info": {"readOnly": True}}
    if collection.kind == "timeseries":
        return {**described, "info": {"readOnly": False}}
    return {**described, "info": info, "idIndex": identity_index(collection.collation).description()}


def list_databases(context: Context) -> Document:
    """Execute ``listDatabases``."""
    match = compile_filter(context.body.get("filter") or {})
    names = sorted({database for database, _ in context.state.catalog} | {"admin", "config", "local"})
    found = [one for one in (_database_description(context, name) for name in names) if match(one)]
    if context.body.get("nameOnly"):
        return {"databases": [{"name": one["name"]} for one in found]}
    total = sum(one["sizeOnDisk"] for one in found)
    return {"databases": found, "totalSize": Int64(total), "totalSizeMb": Int64(total // 2**20)}


def _database_description(context: Context, name: str) -> Document:
    collections = context.state.collections_of(name)
    size = sum(size_of(one, context.pace) for one in collections)
    return {"name": name, "sizeOnDisk": Int64(size + 4096), "empty": not collections}


def size_of(collection: Collection, pace: Pace) -> int:
    """Return the size in bytes of all documents of a collection."""
    return sum(len(bson.encode(record.document)) for record in pace.through(list(collection.records.values())))
