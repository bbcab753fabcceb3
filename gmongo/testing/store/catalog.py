"""The commands that create, rename, list and drop collections, and list and drop databases."""

from __future__ import annotations

import bson
from bson import Int64

from gmongo.testing.command import error
from gmongo.testing.store.context import CommandContext, check_name, check_writable
from gmongo.testing.store.creation import check_view, parse_options
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import illegal_operation, invalid_namespace, invalid_options, namespace_not_found
from gmongo.testing.store.index import create_id_index
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.replies import create_list_reply
from gmongo.testing.store.state import drop_collection, move_collection
from gmongo.testing.unsupported import not_supported


def create(context: CommandContext) -> Document:
    """Execute ``create``."""
    options = parse_options(context.body)
    if "validator" in options and context.database in ("admin", "config", "local"):
        raise invalid_options(f"Document validators are not allowed on collections of the database {context.database}")
    views = [item for item in context.state.find_collections(context.database) if item.is_view]
    check_view(views, context.collection_name, options)
    existing = context.collection()
    if existing is not None:
        if context.state.version >= (7, 0) and existing.options == options and not context.access.in_transaction:
            return {}
        raise error(48, f"Collection {context.namespace} already exists.")
    context.access.create(context.database, context.collection_name, options)
    return {}


def drop(context: CommandContext) -> Document:
    """Execute ``drop``. Before server version 7.0, the drop of a missing collection fails."""
    collection = context.collection()
    if collection is None:
        if context.state.version < (7, 0):
            raise namespace_not_found("ns not found")
        return {}
    drop_collection(context.state, collection)
    index_fields = {} if collection.is_view else {"nIndexesWas": len(collection.indexes)}
    return {**index_fields, "ns": collection.namespace}


def drop_database(context: CommandContext) -> Document:
    """Execute ``dropDatabase``."""
    if context.database == "admin":
        raise illegal_operation("Dropping the 'admin' database is prohibited.")
    collections = context.state.find_collections(context.database)
    for collection in collections:
        drop_collection(context.state, collection)
    if collections:
        context.state.tick()
        context.state.publish("dropDatabase", context.database, None)
    return {}


def rename_collection(context: CommandContext) -> Document:
    """Execute ``renameCollection``, a command of the database ``admin``."""
    source, target = (_parse_namespace(context.body[name]) for name in ("renameCollection", "to"))
    state = context.state
    collection = state.catalog.get(source)
    if source == target:
        raise error(20, "Can't rename a collection to itself")
    if collection is None:
        raise namespace_not_found(f"Source collection {'.'.join(source)} does not exist")
    check_writable(collection)
    if collection.kind == "timeseries":
        raise not_supported("a time series", "renameCollection")
    target_collection = state.catalog.get(target)
    if target_collection is not None and not context.body.get("dropTarget"):
        raise error(48, "target namespace exists")
    if source[0] != target[0]:
        raise not_supported("renameCollection to another database")
    move_collection(state, collection, target[1])
    return {}


def _parse_namespace(value: str) -> tuple[str, str]:
    if "." not in value:
        raise invalid_namespace(f"Invalid namespace specified '{value}'")
    database, _, name = value.partition(".")
    check_name(database, name)
    return database, name


def list_collections(context: CommandContext) -> Document:
    """Execute ``listCollections``."""
    body = context.body
    match = compile_filter(body.get("filter") or {})
    items = list(map(_describe_collection, context.state.find_collections(context.database)))
    items = [item for item in items if match(item)]
    if body.get("nameOnly"):
        items = [{"name": item["name"], "type": item["type"]} for item in items]
    cursor = Cursor(f"{context.database}.$cmd.listCollections", items)
    return create_list_reply(context, cursor)


def _describe_collection(collection: Collection) -> Document:
    description: Document = {"name": collection.name, "type": collection.kind, "options": collection.options}
    info: Document = {"readOnly": False, "uuid": collection.uuid}
    if "clusteredIndex" in collection.options:
        clustered_fields = {"v": 2, "name": "_id_", **collection.options["clusteredIndex"]}
        clustered_index = {name: clustered_fields[name] for name in ("v", "key", "name", "unique")}
        return {**description, "options": {**collection.options, "clusteredIndex": clustered_index}, "info": info}
    if collection.is_view:
        return {**description, "info": {"readOnly": True}}
    if collection.kind == "timeseries":
        return {**description, "info": {"readOnly": False}}
    return {**description, "info": info, "idIndex": create_id_index(collection.collation).describe()}


def list_databases(context: CommandContext) -> Document:
    """Execute ``listDatabases``."""
    match = compile_filter(context.body.get("filter") or {})
    names = sorted({database for database, _ in context.state.catalog} | {"admin", "config", "local"})
    items = [item for item in (_describe_database(context, name) for name in names) if match(item)]
    if context.body.get("nameOnly"):
        return {"databases": [{"name": item["name"]} for item in items]}
    total = sum(item["sizeOnDisk"] for item in items)
    return {"databases": items, "totalSize": Int64(total), "totalSizeMb": Int64(total // 2**20)}


def _describe_database(context: CommandContext, name: str) -> Document:
    collections = context.state.find_collections(name)
    size = sum(compute_size(collection, context.pace) for collection in collections)
    return {"name": name, "sizeOnDisk": Int64(size + 4096), "empty": not collections}


def compute_size(collection: Collection, pace: Pace) -> int:
    """Return the size in bytes of all documents of a collection."""
    return sum(len(bson.encode(record.document)) for record in pace.iterate(list(collection.records.values())))
