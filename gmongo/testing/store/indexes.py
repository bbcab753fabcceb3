"""The commands ``createIndexes``, ``dropIndexes`` and ``listIndexes``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.context import CommandContext, check_writable
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.duplicates import create_duplicate_error
from gmongo.testing.store.errors import (
    bad_value,
    cannot_create,
    index_not_found,
    invalid_options,
    malformed,
    namespace_not_found,
)
from gmongo.testing.store.index import Index
from gmongo.testing.store.index_specs import compile_index, keys_match
from gmongo.testing.store.replies import create_list_reply
from gmongo.testing.unsupported import not_supported

_MAX_INDEXES = 64
# The options that distinguish two indexes with equal keys.
_SIGNATURE_OPTIONS = ("collation", "partialFilterExpression", "sparse", "unique", "wildcardProjection")
# The options whose values may differ between equal indexes.
_IGNORED_OPTIONS = frozenset({"2dsphereIndexVersion", "background", "hidden", "textIndexVersion"})


def create_indexes(context: CommandContext) -> Document:
    """Execute ``createIndexes``."""
    specs = context.body["indexes"]
    if not specs:
        raise bad_value("Must specify at least one index to create")
    collection = context.collection()
    default_collation = {} if collection is None else collection.collation.describe()
    ignores_unknown = bool(context.body.get("ignoreUnknownIndexOptions"))
    requested_indexes = [compile_index(spec, default_collation, ignores_unknown) for spec in specs]
    if len({(index.name, str(index.describe())) for index in requested_indexes}) < len(requested_indexes):
        raise malformed("createIndexes with equal indexes")
    is_new_collection = collection is None
    collection = context.ensure_collection()
    if context.access.in_transaction and context.access.records(collection):
        raise error(263, "Cannot create new indexes on existing "
                           f"collection {collection.namespace} in a multi-document transaction.")  # fmt: skip
    initial_count = len(collection.indexes)
    if initial_count + sum(not _has_equal_index(collection, index) for index in requested_indexes) > _MAX_INDEXES:
        raise cannot_create(f"add index fails, too many indexes for {collection.namespace}: the maximum "
                            f"is {_MAX_INDEXES}")  # fmt: skip
    quorum = context.body.get("commitQuorum")
    if isinstance(quorum, str) and quorum not in ("majority", "votingMembers"):
        raise error(79, f"No write concern mode named '{quorum}' found in replica set configuration")
    _build_indexes(context, collection, requested_indexes)
    reply: Document = {"numIndexesBefore": initial_count, "numIndexesAfter": len(collection.indexes)}
    if len(collection.indexes) == initial_count:
        return {**reply, "note": "all indexes already exist"}
    reply["createdCollectionAutomatically"] = is_new_collection
    if context.state.replicated and not context.access.in_transaction:
        reply["commitQuorum"] = "votingMembers"
    if len(collection.indexes) < initial_count + len(requested_indexes):
        reply["note"] = "index already exists"
    return reply


def _build_indexes(context: CommandContext, collection: Collection, requested_indexes: list[Index]) -> None:
    """Build indexes. After an error, remove the indexes that the function has built."""
    initial_names = set(collection.indexes)
    try:
        for index in requested_indexes:
            if not _has_equal_index(collection, index):
                _build_index(context, collection, index)
    except CommandError:
        for name in set(collection.indexes) - initial_names:
            del collection.indexes[name]
        raise


def _has_equal_index(collection: Collection, index: Index) -> bool:
    if keys_match(index.keys, {"_id": 1}):
        return True
    namesake = collection.indexes.get(index.name)
    if namesake is not None:
        if keys_match(namesake.keys, index.keys) and _have_equal_signatures(namesake, index):
            if _select_compared_options(namesake) == _select_compared_options(index):
                return True
            raise error(85, "An equivalent index already exists with the same name but different options. Requested "
                        f"index: {index.describe()}, existing index: {namesake.describe()}")  # fmt: skip
        raise error(86, "An existing index has the same name as the requested index. Requested index: "
                    f"{index.describe()}, existing index: {namesake.describe()}")  # fmt: skip
    for other_index in collection.indexes.values():
        if keys_match(other_index.keys, index.keys) and _have_equal_signatures(other_index, index):
            raise error(85, f"Index already exists with a different name: {other_index.name}")
        if _is_text_index(other_index) and _is_text_index(index):
            raise cannot_create(
                f"only one text index per collection allowed, found existing text index '{other_index.name}'"
            )
    return False


def _is_text_index(index: Index) -> bool:
    return "text" in index.keys.values()


def _have_equal_signatures(first: Index, second: Index) -> bool:
    return all((first.options.get(name) or None) == (second.options.get(name) or None) for name in _SIGNATURE_OPTIONS)


def _select_compared_options(index: Index) -> Document:
    ignored_names = {*_SIGNATURE_OPTIONS, *_IGNORED_OPTIONS}
    return {name: value for name, value in index.options.items() if name not in ignored_names}


def _build_index(context: CommandContext, collection: Collection, index: Index) -> None:
    if index.unique and "hashed" in index.keys.values():
        raise error(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
    transactions = [session.transaction for session in context.state.sessions if session.transaction]
    is_used = any(transaction.has_used(collection) for transaction in transactions)
    if is_used and not context.access.in_transaction:
        raise not_supported("an index build during a transaction on the collection")
    for key, record in context.access.records(collection).items():
        index.add(key, record.document)
    state = context.state
    if index.options.get("unique"):
        _check_values_unique(context, collection, index)
    collection.indexes[index.name] = index
    state.tick()
    fields = {"operationDescription": {"indexes": [index.describe()]}}
    state.publish("createIndexes", collection.database, collection.name, uuid=collection.uuid, extra=fields)


def _check_values_unique(context: CommandContext, collection: Collection, index: Index) -> None:
    for keys in dict.values(index.tree):
        if len(keys) > 1:
            document = context.access.records(collection)[next(iter(keys))].document
            entries = index.entries(document)
            raise create_duplicate_error(
                collection, index, next(values for entry, values in entries if len(index.tree[entry]) > 1)
            )


def drop_indexes(context: CommandContext) -> Document:
    """Execute ``dropIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns not found {context.namespace}")
    check_writable(collection)
    initial_count = len(collection.indexes)
    for name in _find_names_to_drop(collection, context.body["index"]):
        index = collection.indexes.pop(name)
        context.state.tick()
        fields = {"operationDescription": {"indexes": [index.describe()]}}
        context.state.publish("dropIndexes", collection.database, collection.name, uuid=collection.uuid, extra=fields)
    reply: Document = {"nIndexesWas": initial_count}
    if context.body["index"] == "*":
        reply["msg"] = "non-_id indexes dropped for collection"
    return reply


def _find_names_to_drop(collection: Collection, requested: Any) -> list[str]:
    if requested == "*":
        return [name for name in collection.indexes if name != "_id_"]
    if isinstance(requested, list):
        return [name for item in requested for name in _find_names_to_drop(collection, item)]
    indexes = find_indexes(collection, requested)
    if not indexes:
        raise index_not_found(f"index not found with name [{requested}]")
    if indexes[0].is_id_index:
        raise invalid_options("cannot drop _id index")
    return [indexes[0].name]


def find_indexes(collection: Collection, name_or_keys: Any) -> list[Index]:
    """Return the indexes with the requested name or the requested keys."""
    if type(name_or_keys) is str:
        return [index for index in collection.indexes.values() if index.name == name_or_keys]
    matches = [index for index in collection.indexes.values() if keys_match(index.keys, name_or_keys)]
    if len(matches) > 1:
        raise error(181, f"{len(matches)} indexes found for key: {name_or_keys}, identify by name instead.")
    return matches


def list_indexes(context: CommandContext) -> Document:
    """Execute ``listIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns does not exist: {context.namespace}")
    check_writable(collection)
    cursor = Cursor(context.namespace, [_describe_index(collection, index) for index in collection.indexes.values()])
    return create_list_reply(context, cursor)


def _describe_index(collection: Collection, index: Index) -> Document:
    clustered = collection.options.get("clusteredIndex")
    if index.name == "_id_" and clustered:
        name = clustered.get("name", "_id_")
        return {"v": 2, "key": {"_id": 1}, "name": name, "unique": True, "clustered": True}
    return index.describe()
