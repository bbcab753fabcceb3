"""The output stages ``$out`` and ``$merge``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo import _random
from gmongo._object_ids import new_object_id
from gmongo.testing.command import CommandError
from gmongo.testing.store.apply_update import path_order
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import Context, check_name, check_writable
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.errors import (
    bad_value,
    immutable_field,
    invalid_namespace,
    location,
    type_mismatch,
    write_conflict,
)
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.index import Index
from gmongo.testing.store.namespaces import drop_collection, move_collection
from gmongo.testing.store.paths import value_at
from gmongo.testing.store.selection import select
from gmongo.testing.store.stages import compile_update_pipeline
from gmongo.testing.store.validation import check_document, check_storable
from gmongo.testing.store.values import MISSING, Key, identical, type_name
from gmongo.testing.unsupported import not_supported

OUTPUTS = frozenset({"$out", "$merge"})
_MATCHED = frozenset({"replace", "keepExisting", "merge", "fail"})
# The error codes after which `$merge` continues with the next document. At the end, the command raises the first error.
_CONTINUED = frozenset({121, 11000, 13113})
_OF_MERGE = frozenset({"into", "on", "let", "whenMatched", "whenNotMatched"})
_NO_COMBINATIONS = [("fail", "discard"), ("fail", "fail"), ("keepExisting", "discard"), ("keepExisting", "fail")]
_UNMATCHED = frozenset({"insert", "discard", "fail"})


def write_output(context: Context, stage: Document, documents: list[Document]) -> None:
    """Write the results of a pipeline to the target collection of the last stage.

    :param context: the context of the command.
    :param stage: the last stage, which is ``$out`` or ``$merge``.
    :param documents: the results of the other stages.
    """
    ((name, spec),) = stage.items()
    write = _out if name == "$out" else _merge
    write(context, spec, context.pace.through(documents))


def check_output(name: str, spec: Any) -> None:
    """Check the specification of ``$out`` or ``$merge``.

    A server checks these two stages before the other stages.
    """
    if name == "$merge":
        _checked_merge_spec(spec)
    else:
        _check_out_spec(spec)


def _check_out_spec(spec: Any) -> None:
    if not isinstance(spec, (str, dict)):
        raise location(16990, f"$out only supports a string or object argument, not {type_name(spec)}")
    if isinstance(spec, dict) and not {"db", "coll"} <= set(spec):
        raise location(16994, "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'")
    if spec == "":
        raise invalid_namespace("Invalid $out target namespace")


def _with_identity(document: Document) -> Document:
    return document if "_id" in document else {"_id": new_object_id(), **document}


def _target(context: Context, stage: str, spec: Any) -> tuple[str, str]:
    if isinstance(spec, str):
        spec = {"db": context.database, "coll": spec}
    if not isinstance(spec, dict) or not isinstance(spec.get("coll"), str):
        raise location(16990, f"an output must be a string or an object with 'coll', not {spec!r}")
    if "timeseries" in spec:
        raise not_supported("a time series", "$out")
    database, name = spec.get("db", context.database), spec["coll"]
    check_name(database, name)
    collection = context.access.find(database, name)
    if collection is not None:
        if collection.kind == "timeseries":
            raise not_supported("a time series", stage)
        check_writable(collection)
    return database, name


def _out(context: Context, spec: Any, documents: Iterable[Document]) -> None:
    """Write the documents to a temporary collection, and replace the target collection by the temporary collection."""
    access, (database, name) = context.access, _target(context, "$out", spec)
    before = access.find(database, name)
    if before is not None and before.is_capped:
        raise location(17152, f"namespace '{before.namespace}' is capped so it can't be used for $out")
    fresh = access.create(database, f"tmp.agg_out.{_random.uuid4()}", {} if before is None else before.options)
    try:
        for index in () if before is None else before.indexes.values():
            fresh.indexes[index.name] = Index(index.name, index.keys, index.options)
        for document in documents:
            document = _with_identity(document)
            _check(context, fresh, document)
            access.insert(fresh, document)
        if before is not None and before.record_locks:
            raise write_conflict()
    except BaseException:
        drop_collection(context.state, fresh)
        raise
    replaced = move_collection(context.state, fresh, name)
    if replaced is not None:
        replaced.clear(context.pace)


def _check(context: Context, collection: Collection, document: Document) -> None:
    check_storable(document, context.state.version)
    check_document(collection, document, bool(context.body.get("bypassDocumentValidation")))


def _merge(context: Context, spec: Any, documents: Iterable[Document]) -> None:
    spec = _checked_merge_spec(spec)
    on = _join_fields(spec.get("on", "_id"))
    database, name = _target(context, "$merge", spec["into"])
    existing = context.access.find(database, name)
    collation = context.collation(None if context.body["aggregate"] == 1 else context.collection())
    if "on" in spec:
        _check_unique(existing, on, collation)
    _check_let(spec)
    collection = existing or context.access.create(database, name, {})
    failure: CommandError | None = None
    for document in documents:
        document = _with_identity(document) if "_id" in on else document
        found = _find_match(context, collection, document, on, collation)
        try:
            _merge_one(context, collection, found, document, spec)
        except CommandError as error:
            if error.code not in _CONTINUED:
                raise
            failure = failure or error
    if failure is not None:
        raise failure


def _checked_merge_spec(spec: Any) -> Document:
    if not isinstance(spec, (str, dict)):
        raise location(51182, f"$merge only supports a string or object argument, not {type_name(spec)}")
    options: Document = {"into": spec} if isinstance(spec, str) else spec
    for name in options:
        if name not in _OF_MERGE:
            raise location(40415, f"BSON field '$merge.{name}' is an unknown field.")
    on = _join_fields(options.get("on", "_id"))
    _check_enumerations(options)
    if "into" not in options:
        raise location(40414, "BSON field '$merge.into' is missing but a required field")
    if not isinstance(options["into"], (str, dict)):
        raise location(51178, f"$merge 'into' field must be either a string or an object, but found "
                       f"{type_name(options['into'])}")  # fmt: skip
    if options["into"] == "":
        raise invalid_namespace("Invalid $merge target namespace")
    modes = options.get("whenMatched"), options.get("whenNotMatched")
    if modes in _NO_COMBINATIONS:
        raise location(51181, f"Combination of $merge modes {modes} is not supported")
    if len(set(on)) < len(on):
        raise location(31465, "$merge 'on' has a field twice")
    if "on" not in options:
        _check_let(options)
    return options


def _check_let(options: Document) -> None:
    """Check the field ``let``, which a server checks after the index of the field ``on``."""
    if isinstance(options.get("whenMatched"), list):
        if options.get("let", {}).get("new", "$$ROOT") != "$$ROOT":
            raise location(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
    elif "let" in options:
        raise location(51199, "Cannot use 'let' variables with this 'whenMatched' mode")


def _check_enumerations(options: Document) -> None:
    matched, unmatched = options.get("whenMatched", "merge"), options.get("whenNotMatched", "insert")
    if not isinstance(matched, (str, list)):
        raise location(51191, f"$merge 'whenMatched' field must be either a string or an array, but found "
                       f"{type_name(matched)}")  # fmt: skip
    if type(unmatched) is not str or not isinstance(options.get("let", {}), dict):
        raise type_mismatch("BSON field '$merge.whenNotMatched' must be a string, and '$merge.let' an object")
    if (isinstance(matched, str) and matched not in _MATCHED) or unmatched not in _UNMATCHED:
        raise bad_value(f"Enumeration value '{matched}' or '{unmatched}' of $merge is not a valid value.")


def _merge_one(
    context: Context, collection: Collection, found: tuple[Key, Record] | None, document: Document, spec: Document
) -> None:
    unmatched = spec.get("whenNotMatched", "insert")
    if found is not None:
        _merge_into(context, collection, found, document, spec)
    elif unmatched == "fail":
        raise CommandError(13113, "MergeStageNoMatchingDocument", "$merge could not find a matching document in "
                           "the target collection for at least one document in the source collection")  # fmt: skip
    elif unmatched == "insert":
        document = _with_identity(document)
        if spec.get("whenMatched", "merge") in ("merge", "keepExisting"):
            document = _with_fields({"_id": document["_id"]}, document)
        _check(context, collection, document)
        context.access.insert(collection, document)


def _join_fields(on: Any) -> list[str]:
    if not isinstance(on, (list, str)):
        raise location(51186, "$merge 'on' field must be either a string or an array of strings")
    fields = on if isinstance(on, list) else [on]
    if not fields:
        raise location(51187, "If explicitly specifying $merge 'on', must include at least one field")
    if not all(type(path) is str for path in fields):
        raise location(51134, "$merge 'on' array elements must be strings")
    return fields


def _check_unique(collection: Collection | None, on: list[str], collation: Collation) -> None:
    if collection is None and on == ["_id"]:
        return
    for index in collection.indexes.values() if collection is not None else ():
        if (
            index.collation == collation
            and index.unique
            and set(index.keys) == set(on)
            and "partialFilterExpression" not in index.options
        ):
            return
    raise location(51183, "Cannot find index to verify that join fields will be unique")


def _find_match(
    context: Context, collection: Collection, document: Document, on: list[str], collation: Collation
) -> tuple[Key, Record] | None:
    values = {path: value_at(document, path) for path in on}
    if any(value is MISSING or value is None for value in values.values()):
        raise location(51132, "$merge write error: 'on' field cannot be missing, null or undefined")
    if any(isinstance(value, list) for value in values.values()):
        raise location(51185, "$merge write error: 'on' field cannot be an array")
    query = {path: {"$eq": value} for path, value in values.items()}
    return next(select(context.access, collection, query, collation, {}, pace=context.pace), None)


def _merge_into(
    context: Context, collection: Collection, found: tuple[Key, Record], document: Document, spec: Mapping[str, Any]
) -> None:
    key, record = found
    mode = spec.get("whenMatched", "merge")
    if mode == "fail":
        raise CommandError(11000, "DuplicateKey", "$merge failed due to a DuplicateKey error", keyPattern={"_id": 1},
                           keyValue={"_id": record.document["_id"]})  # fmt: skip
    if isinstance(mode, list):
        changed = _by_pipeline(context, record.document, document, spec)
    else:
        changed = _MODES[mode](record.document, document)
    if not identical(changed.get("_id"), record.document["_id"]):
        raise immutable_field("$merge failed to update the matching document, did you attempt to modify the _id or the "
                              "shard key?")  # fmt: skip
    if not identical(changed, record.document):
        _check(context, collection, changed)
        context.access.replace(collection, key, changed, "replace" if mode == "replace" else "update")


def _by_pipeline(context: Context, stored: Document, document: Document, spec: Mapping[str, Any]) -> Document:
    let = spec.get("let", {"new": "$$ROOT"})
    if spec.get("whenNotMatched", "insert") == "insert":
        let = {"new": "$$ROOT", **let}
    variables = {name: evaluate(expression, document, context.variables) for name, expression in let.items()}
    return compile_update_pipeline(spec["whenMatched"], {**context.variables, **variables})(stored)


def _with_fields(stored: Document, new: Document) -> Document:
    """Return a copy of `stored` with the fields of `new`. New fields are in the order of names, as after a ``$set``."""
    return {**stored, **{name: new[name] for name in sorted(new, key=path_order)}}


_MODES: Mapping[str, Callable[[Document, Document], Document]] = {
    "replace": lambda stored, new: {"_id": stored["_id"], **new},
    "merge": _with_fields,
    "keepExisting": lambda stored, new: stored,
}
