"""``$out`` and ``$merge``: the stages that write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson.objectid import ObjectId

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.access import Access
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import Context, check_name, check_writable
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.errors import bad_value, failed_to_parse, location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.paths import value_at
from gmongo.testing.store.selection import select
from gmongo.testing.store.stages import compile_update_pipeline
from gmongo.testing.store.validation import check_document, check_storable
from gmongo.testing.store.values import MISSING, Key, identical

OUTPUTS = frozenset({"$out", "$merge"})
_MATCHED = frozenset({"replace", "keepExisting", "merge", "fail"})
_UNMATCHED = frozenset({"insert", "discard", "fail"})


def write_output(context: Context, stage: Document, documents: list[Document]) -> None:
    """Write the results of a pipeline where its last stage says."""
    ((name, spec),) = stage.items()
    (_out if name == "$out" else _merge)(context, spec, [_with_identity(document) for document in documents])


def _with_identity(document: Document) -> Document:
    return document if "_id" in document else {"_id": ObjectId(), **document}


def _target(context: Context, spec: Any) -> Collection:
    """The collection to write to; it is made if it does not exist."""
    if isinstance(spec, str):
        spec = {"db": context.database, "coll": spec}
    if not isinstance(spec, dict) or not isinstance(spec.get("coll"), str):
        raise location(16990, f"an output must be a string or an object with 'coll', not {spec!r}")
    if "timeseries" in spec:
        raise not_supported("$out into a time series")
    database, name = spec.get("db", context.database), spec["coll"]
    check_name(database, name)
    collection = context.access.find(database, name)
    if collection is None:
        return context.access.create(database, name, {})
    check_writable(collection)
    return collection


def _out(context: Context, spec: Any, documents: list[Document]) -> None:
    collection = _target(context, spec)
    if collection.is_capped:
        raise location(17152, f"namespace '{collection.namespace}' is capped so it can't be used for $out")
    seen: list[Document] = []
    for document in documents:
        _check(context, collection, document)
        seen.append(document)
    for key in list(collection.records):
        context.access.remove(collection, key)
    for document in seen:
        context.access.insert(collection, document)


def _check(context: Context, collection: Collection, document: Document) -> None:
    check_storable(document, context.state.version)
    check_document(collection, document, bool(context.body.get("bypassDocumentValidation")))


def _merge(context: Context, spec: Any, documents: list[Document]) -> None:
    if isinstance(spec, str):
        spec = {"into": spec}
    unknown = set(spec) - {"into", "on", "let", "whenMatched", "whenNotMatched"}
    if unknown or "into" not in spec:
        raise failed_to_parse(f"$merge needs 'into', and does not know {sorted(unknown)}")
    matched, unmatched = spec.get("whenMatched", "merge"), spec.get("whenNotMatched", "insert")
    if (not isinstance(matched, list) and matched not in _MATCHED) or unmatched not in _UNMATCHED:
        raise bad_value(f"Unknown $merge modes: whenMatched {matched!r}, whenNotMatched {unmatched!r}")
    on = _fields(spec.get("on", "_id"))
    collection = _target(context, spec["into"])
    collation = context.collation(None if context.body["aggregate"] == 1 else context.collection())
    _check_unique(collection, on, collation)
    for document in documents:
        found = _find(context.access, collection, document, on, collation)
        if found is not None:
            _merge_into(context, collection, found, document, spec)
        elif unmatched == "fail":
            raise CommandError(13113, "MergeStageNoMatchingDocument", "$merge could not find a matching document in "
                               "the target collection for at least one document in the source collection")  # fmt: skip
        elif unmatched == "insert":
            _check(context, collection, document)
            context.access.insert(collection, document)


def _fields(on: Any) -> list[str]:
    fields = on if isinstance(on, list) else [on]
    if not fields or not all(type(path) is str for path in fields):
        raise location(51186, "$merge 'on' field must be either a string or an array of strings")
    return fields


def _check_unique(collection: Collection, on: list[str], collation: Collation) -> None:
    for index in collection.indexes.values():
        if (
            index.collation == collation
            and index.unique
            and set(index.keys) == set(on)
            and "partialFilterExpression" not in index.options
        ):
            return
    raise location(51183, "Cannot find index to verify that join fields will be unique")


def _find(
    access: Access, collection: Collection, document: Document, on: list[str], collation: Collation
) -> tuple[Key, Record] | None:
    values = {path: value_at(document, path) for path in on}
    if any(value is MISSING or value is None or isinstance(value, list) for value in values.values()):
        raise location(51132, "$merge write error: 'on' field cannot be missing, null, undefined or an array")
    query = {path: {"$eq": value} for path, value in values.items()}
    return next(select(access, collection, query, collation, {}), None)


def _merge_into(
    context: Context, collection: Collection, found: tuple[Key, Record], document: Document, spec: Mapping[str, Any]
) -> None:
    key, record = found
    mode = spec.get("whenMatched", "merge")
    if mode == "fail":
        raise CommandError(11000, "DuplicateKey", "$merge failed due to a DuplicateKey error", keyPattern={"_id": 1},
                           keyValue={"_id": document["_id"]})  # fmt: skip
    if isinstance(mode, list):
        changed = _by_pipeline(context, record.document, document, spec)
    else:
        changed = _MODES[mode](record.document, document)
    if not identical(changed, record.document):
        _check(context, collection, changed)
        context.access.replace(collection, key, changed, "replace" if mode == "replace" else "update")


def _by_pipeline(context: Context, stored: Document, document: Document, spec: Mapping[str, Any]) -> Document:
    let = spec.get("let", {"new": "$$ROOT"})
    variables = {name: evaluate(expression, document, context.variables) for name, expression in let.items()}
    return compile_update_pipeline(spec["whenMatched"], {**context.variables, **variables})(stored)


_MODES: Mapping[str, Callable[[Document, Document], Document]] = {
    "replace": lambda stored, new: {**new, "_id": stored["_id"]},
    "merge": lambda stored, new: {**stored, **new},
    "keepExisting": lambda stored, new: stored,
}
