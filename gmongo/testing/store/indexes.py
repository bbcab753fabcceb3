"""The commands ``createIndexes``, ``dropIndexes`` and ``listIndexes``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.context import Context, check_writable
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.duplicates import duplicate_key
from gmongo.testing.store.errors import (
    bad_value,
    cannot_create,
    index_not_found,
    invalid_options,
    malformed,
    namespace_not_found,
)
from gmongo.testing.store.index import Index
from gmongo.testing.store.index_specs import compile_index, same_keys
from gmongo.testing.store.replies import listing_reply
from gmongo.testing.unsupported import not_supported

_MOST_INDEXES = 64
# Two indexes with equal keys are different indexes if one of these options differs.
_SIGNATURE = ("collation", "partialFilterExpression", "sparse", "unique", "wildcardProjection")
# A new index is equal to an existing index even if one of these options differs.
_NO_DIFFERENCE = frozenset({"2dsphereIndexVersion", "background", "hidden", "textIndexVersion"})


def create_indexes(context: Context) -> Document:
    """Execute ``createIndexes``."""
    specs = context.body["indexes"]
    if not specs:
        raise bad_value("Must specify at least one index to create")
    collection = context.collection()
    default = {} if collection is None else collection.collation.description()
    ignore = bool(context.body.get("ignoreUnknownIndexOptions"))
    requested = [compile_index(spec, default, ignore) for spec in specs]
    if len({(index.name, str(index.description())) for index in requested}) < len(requested):
        raise malformed("createIndexes with equal indexes")
    created = collection is None
    collection = context.writable_collection()
    if context.access.in_transaction and context.access.records(collection):
        raise error(263, "Cannot create new indexes on existing "
                           f"collection {collection.namespace} in a multi-document transaction.")  # fmt: skip
    before = len(collection.indexes)
    if before + sum(not _exists(collection, index) for index in requested) > _MOST_INDEXES:
        raise cannot_create(f"add index fails, too many indexes for {collection.namespace}: there may be "
                            f"{_MOST_INDEXES}")  # fmt: skip
    quorum = context.body.get("commitQuorum")
    if isinstance(quorum, str) and quorum not in ("majority", "votingMembers"):
        raise error(79, f"No write concern mode named '{quorum}' found in replica set configuration")
    _build_all(context, collection, requested)
    reply: Document = {"numIndexesBefore": before, "numIndexesAfter": len(collection.indexes)}
    if len(collection.indexes) == before:
        return {**reply, "note": "all indexes already exist"}
    reply["createdCollectionAutomatically"] = created
    if context.state.replicated and not context.access.in_transaction:
        reply["commitQuorum"] = "votingMembers"
    if len(collection.indexes) < before + len(requested):
        reply["note"] = "index already exists"
    return reply


def _build_all(context: Context, collection: Collection, requested: list[Index]) -> None:
    """Build all indexes. After an error, remove all indexes that the function has built."""
    names = set(collection.indexes)
    try:
        for index in requested:
            if not _exists(collection, index):
                _build(context, collection, index)
    except CommandError:
        for name in set(collection.indexes) - names:
            del collection.indexes[name]
        raise


def _exists(collection: Collection, index: Index) -> bool:
    """Return True if the collection has an equal index."""
    if same_keys(index.keys, {"_id": 1}):
        return True
    named = collection.indexes.get(index.name)
    if named is not None:
        if same_keys(named.keys, index.keys) and _have_equal_signatures(named, index):
            if _other_options(named) == _other_options(index):
                return True
            raise error(85, "An equivalent index already exists with the same name but different options. Requested "
                        f"index: {index.description()}, existing index: {named.description()}")  # fmt: skip
        raise error(86, "An existing index has the same name as the requested index. Requested index: "
                    f"{index.description()}, existing index: {named.description()}")  # fmt: skip
    for other in collection.indexes.values():
        if same_keys(other.keys, index.keys) and _have_equal_signatures(other, index):
            raise error(85, f"Index already exists with a different name: {other.name}")
        if _is_text(other) and _is_text(index):
            raise cannot_create(f"only one text index per collection allowed, found existing text index '{other.name}'")
    return False


def _is_text(index: Index) -> bool:
    return "text" in index.keys.values()


def _have_equal_signatures(left: Index, right: Index) -> bool:
    return all((left.options.get(name) or None) == (right.options.get(name) or None) for name in _SIGNATURE)


def _other_options(index: Index) -> Document:
    ignored = {*_SIGNATURE, *_NO_DIFFERENCE}
    return {name: value for name, value in index.options.items() if name not in ignored}


def _build(context: Context, collection: Collection, index: Index) -> None:
    if index.unique and "hashed" in index.keys.values():
        raise error(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
    if not context.access.in_transaction and any(one.transaction and one.transaction.touches(collection)
                                                 for one in context.state.sessions):  # fmt: skip
        raise not_supported("an index build beside a transaction")
    for key, record in context.access.records(collection).items():
        index.add(key, record.document)
    state = context.state
    if index.options.get("unique"):
        _check_unique(context, collection, index)
    collection.indexes[index.name] = index
    state.tick()
    extra = {"operationDescription": {"indexes": [index.description()]}}
    state.publish("createIndexes", collection.database, collection.name, uuid=collection.uuid, extra=extra)


def _check_unique(context: Context, collection: Collection, index: Index) -> None:
    for keys in dict.values(index.tree):
        if len(keys) > 1:
            document = context.access.records(collection)[next(iter(keys))].document
            entries = index.entries(document)
            raise duplicate_key(
                collection, index, next(values for entry, values in entries if len(index.tree[entry]) > 1)
            )


def drop_indexes(context: Context) -> Document:
    """Execute ``dropIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns not found {context.namespace}")
    check_writable(collection)
    before = len(collection.indexes)
    for name in _names_to_drop(collection, context.body["index"]):
        index = collection.indexes.pop(name)
        context.state.tick()
        extra = {"operationDescription": {"indexes": [index.description()]}}
        context.state.publish("dropIndexes", collection.database, collection.name, uuid=collection.uuid, extra=extra)
    reply: Document = {"nIndexesWas": before}
    if context.body["index"] == "*":
        reply["msg"] = "non-_id indexes dropped for collection"
    return reply


def _names_to_drop(collection: Collection, requested: Any) -> list[str]:
    if requested == "*":
        return [name for name in collection.indexes if name != "_id_"]
    if isinstance(requested, list):
        return [name for each in requested for name in _names_to_drop(collection, each)]
    found = indexes_of(collection, requested)
    if not found:
        raise index_not_found(f"index not found with name [{requested}]")
    if found[0].is_identity:
        raise invalid_options("cannot drop _id index")
    return [found[0].name]


def indexes_of(collection: Collection, requested: Any) -> list[Index]:
    """Return the indexes with the requested name or the requested keys."""
    if type(requested) is str:
        return [index for index in collection.indexes.values() if index.name == requested]
    found = [index for index in collection.indexes.values() if same_keys(index.keys, requested)]
    if len(found) > 1:
        raise error(181, f"{len(found)} indexes found for key: {requested}, identify by name instead.")
    return found


def list_indexes(context: Context) -> Document:
    """Execute ``listIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns does not exist: {context.namespace}")
    check_writable(collection)
    cursor = Cursor(context.namespace, [_description(collection, index) for index in collection.indexes.values()])
    return listing_reply(context, cursor)


def _description(collection: Collection, index: Index) -> Document:
    clustered = collection.options.get("clusteredIndex")
    if index.name == "_id_" and clustered:
        name = clustered.get("name", "_id_")
        return {"v": 2, "key": {"_id": 1}, "name": name, "unique": True, "clustered": True}
    return index.description()
