"""Collections, views and databases: made, changed, renamed, listed and dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bson

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import BUILT_IN, Context, check_name, check_writable
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import (
    bad_value,
    invalid_namespace,
    invalid_options,
    namespace_not_found,
)
from gmongo.testing.store.fields import FIELDS
from gmongo.testing.store.index import identity_index
from gmongo.testing.store.index_specs import check_identity_spec
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.namespaces import drop_collection, move_collection
from gmongo.testing.store.output import OUTPUTS
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.replies import batch_size, first_reply
from gmongo.testing.store.stages import compile_pipeline
from gmongo.testing.store.surroundings import Surroundings
from gmongo.testing.store.values import is_number, whole
from gmongo.testing.store.views import check_view

_NOT_OPTIONS = frozenset({"create", "flags", "idIndex"})
_ACTIONS = frozenset({"error", "warn", "errorAndLog"})
_LEVELS = frozenset({"off", "strict", "moderate"})


def create(context: Context) -> Document:
    """``create``."""
    options = {
        name: value
        for name, value in context.body.items()
        if name in FIELDS["create"] and name not in _NOT_OPTIONS and value is not None
    }
    _check_options(options)
    options.update({name: whole(options[name]) for name in ("size", "max") if is_number(options.get(name))})
    if "collation" in options:
        options["collation"] = Collation.of(options["collation"]).description()
        if not options["collation"]:
            del options["collation"]
    if context.body.get("idIndex") is not None:
        _check_identity(context.body["idIndex"], options)
    check_view(context.access, context.database, context.collection_name, options)
    existing = context.collection()
    if existing is not None:
        if existing.options == options and not context.access.in_transaction:
            return {}
        raise CommandError(48, "NamespaceExists", f"Collection {context.namespace} already exists.")
    context.access.create(context.database, context.collection_name, options)
    return {}


def _check_options(options: Mapping[str, Any]) -> None:
    if options.get("capped") and not options.get("size"):
        raise invalid_options("the 'size' field is required when 'capped' is true")
    if "size" in options and not options.get("capped"):
        raise invalid_options("the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
    if "pipeline" in options and "viewOn" not in options:
        raise invalid_options("'pipeline' requires 'viewOn' to also be specified")
    check_contents(options)
    Collation.of(options.get("collation"))
    _check_clustered(options)


def _check_identity(spec: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    if "viewOn" in options:
        raise invalid_options("'idIndex' is not allowed with 'viewOn'")
    check_identity_spec(spec, options.get("collation", {}))


def check_contents(options: Mapping[str, Any]) -> None:
    """Check the validator and the pipeline that ``create`` or ``collMod`` sets.

    :raises CommandError: if a collection cannot have them.
    """
    for name, choices in (("validationAction", _ACTIONS), ("validationLevel", _LEVELS)):
        if options.get(name, next(iter(choices))) not in choices:
            raise bad_value(f"Enumeration value '{options[name]}' for field '{name}' is not a valid value.")
    if "pipeline" in options:
        for stage in options["pipeline"]:
            if isinstance(stage, dict) and OUTPUTS & set(stage):
                raise CommandError(167, "OptionNotSupportedOnView", "a view cannot write, as $out and $merge do")
        compile_pipeline(options["pipeline"], Surroundings.of(BUILT_IN))
    if options.get("validator"):
        compile_filter(options["validator"])


def _check_clustered(options: Mapping[str, Any]) -> None:
    clustered = options.get("clusteredIndex")
    if clustered is None:
        return
    if not isinstance(clustered, dict) or clustered.get("key") != {"_id": 1} or not clustered.get("unique"):
        raise invalid_options("a clusteredIndex must have the key {_id: 1} and be unique")


def drop(context: Context) -> Document:
    """``drop``. A collection that does not exist is an error before 7.0."""
    collection = context.collection()
    if collection is None:
        if context.state.version < (7, 0):
            raise namespace_not_found("ns not found")
        return {}
    drop_collection(context.state, collection)
    collection.clear(context.pace)
    count = {} if collection.is_view else {"nIndexesWas": len(collection.indexes)}
    return {**count, "ns": collection.namespace}


def drop_database(context: Context) -> Document:
    """``dropDatabase``."""
    collections = context.state.collections_of(context.database)
    for collection in collections:
        drop_collection(context.state, collection)
    if collections:
        context.state.tick()
        context.state.publish("dropDatabase", context.database, None)
    for collection in collections:
        collection.clear(context.pace)
    return {"dropped": context.database}


def rename_collection(context: Context) -> Document:
    """``renameCollection``, of the ``admin`` database."""
    source, target = (_namespace(context.body[name]) for name in ("renameCollection", "to"))
    state = context.state
    collection = state.catalog.get(source)
    if collection is None:
        raise namespace_not_found(f"Source collection {'.'.join(source)} does not exist")
    check_writable(collection)
    if source == target:
        raise CommandError(20, "IllegalOperation", "Can't rename a collection to itself")
    present = state.catalog.get(target)
    if present is not None and not context.body.get("dropTarget"):
        raise CommandError(48, "NamespaceExists", "target namespace exists")
    if source[0] != target[0]:
        raise not_supported("renaming a collection to another database")
    replaced = move_collection(state, collection, target[1])
    if replaced is not None:
        replaced.clear(context.pace)
    return {}


def _namespace(value: Any) -> tuple[str, str]:
    if not isinstance(value, str) or "." not in value:
        raise invalid_namespace(f"Invalid namespace specified '{value}'")
    database, _, name = value.partition(".")
    check_name(database, name)
    return database, name


def list_collections(context: Context) -> Document:
    """``listCollections``."""
    body = context.body
    match = compile_filter(body.get("filter") or {})
    found = [_description(one) for one in context.state.collections_of(context.database)]
    found = [one for one in found if match(one)]
    if body.get("nameOnly"):
        found = [{"name": one["name"], "type": one["type"]} for one in found]
    cursor = Cursor(f"{context.database}.$cmd.listCollections", found)
    return first_reply(context, cursor, batch_size((body.get("cursor") or {}).get("batchSize")))


def _description(collection: Collection) -> Document:
    described: Document = {"name": collection.name, "type": collection.kind, "options": collection.options}
    if "clusteredIndex" in collection.options:
        clustered = {"v": 2, "name": "_id_", **collection.options["clusteredIndex"]}
        described["options"] = {**collection.options, "clusteredIndex": clustered}
    if collection.is_view:
        return {**described, "info": {"readOnly": True}}
    described["info"] = {"readOnly": False, "uuid": collection.uuid}
    return {**described, "idIndex": identity_index(collection.collation).description()}


def list_databases(context: Context) -> Document:
    """``listDatabases``."""
    match = compile_filter(context.body.get("filter") or {})
    names = sorted({database for database, _ in context.state.catalog} | {"admin", "config", "local"})
    found = [one for one in (_database(context, name) for name in names) if match(one)]
    if context.body.get("nameOnly"):
        return {"databases": [{"name": one["name"]} for one in found]}
    total = sum(one["sizeOnDisk"] for one in found)
    return {"databases": found, "totalSize": total, "totalSizeMb": total // 2**20}


def _database(context: Context, name: str) -> Document:
    collections = context.state.collections_of(name)
    size = sum(size_of(one, context.pace) for one in collections)
    return {"name": name, "sizeOnDisk": size + 4096, "empty": not collections}


def size_of(collection: Collection, pace: Pace) -> int:
    """The bytes of its documents."""
    return sum(len(bson.encode(record.document)) for record in pace.through(list(collection.records.values())))
