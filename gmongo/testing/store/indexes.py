"""``createIndexes``, ``dropIndexes`` and ``listIndexes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import Context, check_writable
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.duplicates import duplicate_key
from gmongo.testing.store.errors import bad_value, index_not_found, invalid_options, namespace_not_found
from gmongo.testing.store.index import Index
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators, is_wanted
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.replies import batch_size, first_reply

_OPTIONS = frozenset(
    {
        "2dsphereIndexVersion",
        "background",
        "bits",
        "bucketSize",
        "clustered",
        "collation",
        "default_language",
        "dropDups",
        "expireAfterSeconds",
        "hidden",
        "key",
        "language_override",
        "max",
        "min",
        "name",
        "ns",
        "partialFilterExpression",
        "prepareUnique",
        "sparse",
        "storageEngine",
        "textIndexVersion",
        "unique",
        "v",
        "weights",
        "wildcardProjection",
    }
)
_KINDS = frozenset({"2d", "2dsphere", "hashed", "text", "wildcard"})
_NOT_SHOWN = frozenset({"key", "name", "v", "ns", "dropDups"})
_OF_IDENTITY = frozenset({"collation", "key", "name", "ns", "v"})
# What distinguishes two indexes of the same keys, and what makes no difference.
_SIGNATURE = ("collation", "partialFilterExpression", "sparse", "unique", "wildcardProjection")
_NO_DIFFERENCE = frozenset({"2dsphereIndexVersion", "background", "hidden", "textIndexVersion"})
# What a partial index may know of a field; `$in` since 6.0.
_OF_PARTIAL_INDEXES = frozenset({"$all", "$eq", "$exists", "$gt", "$gte", "$in", "$lt", "$lte", "$type"})


def create_indexes(context: Context) -> Document:
    """``createIndexes``."""
    specs = context.body["indexes"]
    if not specs:
        raise bad_value("Must specify at least one index to create")
    collection = context.collection()
    default = {} if collection is None else collection.collation.description()
    wanted = [_index(spec, default, context.state.version) for spec in specs]
    created = collection is None
    collection = context.writable_collection()
    if context.access.in_transaction and context.access.records(collection):
        raise CommandError(263, "OperationNotSupportedInTransaction", "Cannot create new indexes on existing "
                           f"collection {collection.namespace} in a multi-document transaction.")  # fmt: skip
    before = len(collection.indexes)
    for index in wanted:
        if not _exists(collection, index):
            _build(context, collection, index)
    reply: Document = {"numIndexesBefore": before, "numIndexesAfter": len(collection.indexes)}
    reply["createdCollectionAutomatically"] = created
    if len(collection.indexes) == before:
        reply["note"] = "all indexes already exist"
    return reply


def _index(spec: Any, default: Document, version: tuple[int, int]) -> Index:
    """The index that the specification describes.

    :param default: the collation of the collection.
    """
    if not isinstance(spec, dict) or not isinstance(spec.get("key"), dict) or not spec["key"]:
        raise CommandError(67, "CannotCreateIndex", f"Index keys cannot be empty: {spec!r}")
    unknown = set(spec) - _OPTIONS
    if unknown:
        name = sorted(unknown)[0]
        raise CommandError(197, "InvalidIndexSpecificationOption", "Error in specification: The field "
                           f"'{name}' is not valid for an index specification.")  # fmt: skip
    for path, direction in spec["key"].items():
        if isinstance(direction, str) and direction not in _KINDS:
            raise CommandError(67, "CannotCreateIndex", f"Unknown index plugin '{direction}' for '{path}'")
        if not isinstance(direction, str) and (not isinstance(direction, (int, float)) or not direction):
            raise CommandError(67, "CannotCreateIndex", f"Values in the index key pattern cannot be {direction!r}")
    _check_options(spec, version)
    if not isinstance(spec.get("name"), str) or not spec["name"]:
        raise CommandError(9, "FailedToParse", "The 'name' field is a required property of an index specification")
    options = {name: value for name, value in spec.items() if name not in _NOT_SHOWN}
    collation = Collation.of(spec["collation"]).description() if spec.get("collation") else default
    options.pop("collation", None)
    if collation:
        if {"2d", "text"} & {kind for kind in spec["key"].values() if isinstance(kind, str)}:
            raise CommandError(67, "CannotCreateIndex", "text and 2d indexes know the simple collation only; ask for "
                               "it with collation: {locale: 'simple'}")  # fmt: skip
        options["collation"] = collation
    if "text" in spec["key"].values():
        return Index(spec["name"], _text_keys(spec["key"]), {**options, **_text_options(spec)})
    return Index(spec["name"], spec["key"], options)


def _text_keys(keys: Mapping[str, Any]) -> Document:
    """The fields of a text index as a server keeps them: two that stand for all that are text."""
    found: Document = {}
    for path, kind in keys.items():
        found.update({"_fts": "text", "_ftsx": 1} if kind == "text" else {path: kind})
    return found


def _text_options(spec: Mapping[str, Any]) -> Document:
    weights = {path: 1 for path, kind in spec["key"].items() if kind == "text"}
    return {
        "weights": dict(sorted({**weights, **spec.get("weights", {})}.items())),
        "default_language": spec.get("default_language", "english"),
        "language_override": spec.get("language_override", "language"),
        "textIndexVersion": spec.get("textIndexVersion", 3),
    }


def _check_options(spec: Mapping[str, Any], version: tuple[int, int]) -> None:
    if _same(spec["key"], {"_id": 1}) and not set(spec) <= _OF_IDENTITY:
        name = sorted(set(spec) - _OF_IDENTITY)[0]
        raise CommandError(197, "InvalidIndexSpecificationOption", f"The field '{name}' is not valid for an _id index "
                           "specification.")  # fmt: skip
    if "partialFilterExpression" in spec:
        compile_filter(spec["partialFilterExpression"])
        _check_partial(spec["partialFilterExpression"], version)
        if spec.get("sparse"):
            raise CommandError(67, "CannotCreateIndex", "cannot mix 'partialFilterExpression' and 'sparse' options")
    if any("$**" in path for path in spec["key"]):
        for name in ("expireAfterSeconds", "unique"):
            if spec.get(name):
                raise CommandError(67, "CannotCreateIndex", f"Index type 'wildcard' does not support the {name} option")
    if spec.get("unique") and any(isinstance(kind, str) for kind in spec["key"].values()):
        raise not_supported("unique indexes that are not of ascending or descending fields")
    expiry = spec.get("expireAfterSeconds", 0)
    if isinstance(expiry, bool) or not isinstance(expiry, (int, float)) or expiry < 0:
        raise CommandError(67, "CannotCreateIndex", "TTL index 'expireAfterSeconds' option must be numeric and not "
                           "negative")  # fmt: skip


def _check_partial(condition: Mapping[str, Any], version: tuple[int, int], depth: int = 0) -> None:
    """Check that a partial index may have the condition.

    :raises CommandError: 67, if it may not.
    """
    for name, operand in condition.items():
        if name in ("$and", "$or") and (version >= (6, 0) or (name == "$and" and not depth)):
            for part in operand:
                _check_partial(part, version, depth + 1)
        elif name.startswith("$"):
            raise _not_in_partial(name)
        elif is_operators(operand):
            for one, wanted in operand.items():
                if one not in _OF_PARTIAL_INDEXES or (one == "$in" and version < (6, 0)):
                    raise _not_in_partial(one)
                if (one == "$exists" and not is_wanted(wanted)) or _has_patterns(one, wanted):
                    raise _not_in_partial(f"{one} of {wanted!r}")
        elif is_pattern(operand):
            raise _not_in_partial("a regular expression")


def _has_patterns(name: str, operand: Any) -> bool:
    return name in ("$all", "$in") and any(is_pattern(one) or is_operators(one) for one in operand)


def _not_in_partial(what: str) -> CommandError:
    return CommandError(67, "CannotCreateIndex", f"unsupported expression in partial index: {what}")


def _same(left: Any, right: Any) -> bool:
    return list(left.items()) == list(right.items())


def _exists(collection: Collection, index: Index) -> bool:
    """Whether the collection has this very index.

    :raises CommandError: 85 or 86, if it has one that conflicts with it.
    """
    if _same(index.keys, {"_id": 1}):
        return True
    named = collection.indexes.get(index.name)
    if named is not None:
        if _same(named.keys, index.keys) and _alike(named, index):
            if _remaining(named) == _remaining(index):
                return True
            raise CommandError(85, "IndexOptionsConflict", "An equivalent index already exists with the same name but "
                               f"different options. Requested index: {index.description()}, existing index: "
                               f"{named.description()}")  # fmt: skip
        raise CommandError(
            86,
            "IndexKeySpecsConflict",
            f"An existing index has the same name as the requested index. Requested index: {index.description()}, "
            f"existing index: {named.description()}",
        )
    for other in collection.indexes.values():
        if _same(other.keys, index.keys) and _alike(other, index):
            raise CommandError(85, "IndexOptionsConflict", f"Index already exists with a different name: {other.name}")
    return False


def _alike(left: Index, right: Index) -> bool:
    return all((left.options.get(name) or None) == (right.options.get(name) or None) for name in _SIGNATURE)


def _remaining(index: Index) -> Document:
    ignored = {*_SIGNATURE, *_NO_DIFFERENCE}
    return {name: value for name, value in index.options.items() if name not in ignored}


def _build(context: Context, collection: Collection, index: Index) -> None:
    """Build an index while others go on to write."""
    collection.building.append(index)
    try:
        for key in context.pace.through(list(context.access.records(collection))):
            record = context.access.records(collection).get(key)
            if record is not None:
                index.add(key, record.document)
    finally:
        collection.building.remove(index)
    state = context.state
    if context.collection() is not collection:
        raise CommandError(276, "IndexBuildAborted", f"Index build failed: {collection.namespace} was dropped")
    if index.unique:
        _check_unique(context, collection, index)
    collection.indexes[index.name] = index
    state.tick()
    extra = {"operationDescription": {"indexes": [index.description()]}}
    state.publish("createIndexes", collection.database, collection.name, uuid=collection.uuid, extra=extra)


def _check_unique(context: Context, collection: Collection, index: Index) -> None:
    for holders in dict.values(index.tree):
        if len(holders) > 1:
            document = context.access.records(collection)[next(iter(holders))].document
            entries = index.entries(document)
            raise duplicate_key(
                collection, index, next(values for entry, values in entries if len(index.tree[entry]) > 1)
            )


def drop_indexes(context: Context) -> Document:
    """``dropIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns not found {context.namespace}")
    check_writable(collection)
    before = len(collection.indexes)
    for name in _named(collection, context.body["index"]):
        index = collection.indexes.pop(name)
        context.state.tick()
        extra = {"operationDescription": {"indexes": [index.description()]}}
        context.state.publish("dropIndexes", collection.database, collection.name, uuid=collection.uuid, extra=extra)
    reply: Document = {"nIndexesWas": before}
    if context.body["index"] == "*":
        reply["msg"] = "non-_id indexes dropped for collection"
    return reply


def _named(collection: Collection, wanted: Any) -> list[str]:
    if wanted == "*":
        return [name for name in collection.indexes if name != "_id_"]
    if isinstance(wanted, list):
        return [name for one in wanted for name in _named(collection, one)]
    for index in collection.indexes.values():
        if index.name == wanted or (isinstance(wanted, dict) and _same(index.keys, wanted)):
            if index.name == "_id_":
                raise invalid_options("cannot drop _id index")
            return [index.name]
    raise index_not_found(f"index not found with name [{wanted}]")


def list_indexes(context: Context) -> Document:
    """``listIndexes``."""
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"ns does not exist: {context.namespace}")
    check_writable(collection)
    cursor = Cursor(context.namespace, [_description(collection, index) for index in collection.indexes.values()])
    return first_reply(context, cursor, batch_size((context.body.get("cursor") or {}).get("batchSize")))


def _description(collection: Collection, index: Index) -> Document:
    clustered = collection.options.get("clusteredIndex")
    if index.name == "_id_" and clustered:
        name = clustered.get("name", "_id_")
        return {"v": 2, "key": {"_id": 1}, "name": name, "unique": True, "clustered": True}
    return index.description()
