"""The output stages ``$out`` and ``$merge``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gmongo import _random
from gmongo._object_ids import new_object_id
from gmongo.testing.command import CommandError, error
from gmongo.testing.store.apply_update import create_path_key
from gmongo.testing.store.context import CommandContext, check_name, check_writable
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.errors import create_write_conflict, immutable_field, malformed
from gmongo.testing.store.index import Index
from gmongo.testing.store.selection import select
from gmongo.testing.store.state import drop_collection, move_collection
from gmongo.testing.store.validation import check_document, check_document_rules
from gmongo.testing.store.values import Key, are_identical
from gmongo.testing.unsupported import not_supported

OUTPUT_STAGES = frozenset({"$out", "$merge"})
# The error codes after which `$merge` continues with the next document. At the end, the command raises the first error.
_SKIPPED_ERROR_CODES = frozenset({121, 11000})


def write_output(context: CommandContext, stage: Document, documents: list[Document]) -> None:
    """Write the results of a pipeline to the target collection of the last stage."""
    ((name, spec),) = stage.items()
    write = _write_out if name == "$out" else _write_merge
    write(context, spec, context.pace.iterate(documents))


def check_output(name: str, spec: Any) -> None:
    """Check the specification of ``$out`` or ``$merge``. A server checks other stages later."""
    target = _parse_merge_options(spec)["into"] if name == "$merge" else spec
    names = target.values() if isinstance(target, dict) else [target]
    required = {"db", "coll"} if name == "$out" else {"coll"}
    if (isinstance(target, dict) and not {"db", "coll"} >= set(target) >= required) or not all(
        type(name) is str and name for name in names
    ):
        raise malformed(name)


def _add_id(document: Document) -> Document:
    return document if "_id" in document else {"_id": new_object_id(), **document}


def _parse_target(context: CommandContext, stage: str, spec: Any) -> tuple[str, str]:
    database, name = (spec.get("db", context.database), spec["coll"]) if isinstance(spec, dict) else (
        context.database, spec)  # fmt: skip
    check_name(database, name)
    collection = context.access.find_collection(database, name)
    if collection is not None:
        if collection.kind == "timeseries":
            raise not_supported("a time series", stage)
        check_writable(collection)
    return database, name


def _write_out(context: CommandContext, spec: Any, documents: Iterable[Document]) -> None:
    """Write the documents to a temporary collection, which then replaces the target collection."""
    access, (database, name) = context.access, _parse_target(context, "$out", spec)
    target = access.find_collection(database, name)
    if target is not None and target.is_capped:
        raise error(17152, f"namespace '{target.namespace}' is capped so it can't be used for $out")
    temporary = access.create(database, f"tmp.agg_out.{_random.uuid4()}", {} if target is None else target.options)
    try:
        for index in () if target is None else target.indexes.values():
            temporary.indexes[index.name] = Index(index.name, index.keys, index.options)
        for document in documents:
            document = _add_id(document)
            _check_result(context, temporary, document)
            access.insert(temporary, document)
        if target is not None and target.record_locks:
            raise create_write_conflict()
    except BaseException:
        drop_collection(context.state, temporary)
        raise
    move_collection(context.state, temporary, name)


def _check_result(context: CommandContext, collection: Collection, document: Document) -> None:
    check_document_rules(document, context.state.version)
    check_document(collection, document, bool(context.body.get("bypassDocumentValidation")))


def _write_merge(context: CommandContext, spec: Any, documents: Iterable[Document]) -> None:
    options = _parse_merge_options(spec)
    database, name = _parse_target(context, "$merge", options["into"])
    collection = context.access.find_collection(database, name) or context.access.create(database, name, {})
    first_error: CommandError | None = None
    for document in map(_add_id, documents):
        match = _find_match(context, collection, document)
        try:
            _merge_result(context, collection, match, document, options)
        except CommandError as error:
            if error.code not in _SKIPPED_ERROR_CODES:
                raise
            first_error = first_error or error
    if first_error is not None:
        raise first_error


def _parse_merge_options(spec: Any) -> Document:
    """Check the specification of ``$merge``. Return the options, completed with the defaults."""
    fields = {"into": spec} if isinstance(spec, str) else spec
    if not isinstance(fields, dict) or "into" not in fields:
        raise malformed("$merge")
    options = {"on": "_id", "whenMatched": "merge", "whenNotMatched": "insert", **fields}
    is_supported = options["whenMatched"] in ("merge", "replace", "fail") and options["whenNotMatched"] == "insert"
    if len(options) > 4 or options["on"] not in ("_id", ["_id"]) or not is_supported:
        raise not_supported("an unsupported option of $merge")
    return options


def _merge_result(
    context: CommandContext,
    collection: Collection,
    match: tuple[Key, Record] | None,
    document: Document,
    options: Document,
) -> None:
    if match is not None:
        return _merge_into_match(context, collection, match, document, options["whenMatched"])
    if options["whenMatched"] == "merge":
        document = _merge_fields({"_id": document["_id"]}, document)
    _check_result(context, collection, document)
    context.access.insert(collection, document)


def _find_match(context: CommandContext, collection: Collection, document: Document) -> tuple[Key, Record] | None:
    if document["_id"] is None or isinstance(document["_id"], list):
        raise malformed("$merge of a document whose _id is null or an array")
    collation = context.collation(None if context.body["aggregate"] == 1 else context.collection())
    query = {"_id": {"$eq": document["_id"]}}
    return next(select(context.access, collection, query, collation, {}, pace=context.pace), None)


def _merge_into_match(
    context: CommandContext, collection: Collection, match: tuple[Key, Record], document: Document, mode: str
) -> None:
    key, record = match
    if mode == "fail":
        raise error(11000, "$merge failed due to a DuplicateKey error", keyPattern={"_id": 1},
                           keyValue={"_id": record.document["_id"]})  # fmt: skip
    stored = record.document
    merged = {"_id": stored["_id"], **document} if mode == "replace" else _merge_fields(stored, document)
    if not are_identical(merged.get("_id"), record.document["_id"]):
        raise immutable_field("$merge failed to update the matching document, did you attempt to modify the _id or the "
                              "shard key?")  # fmt: skip
    if not are_identical(merged, record.document):
        _check_result(context, collection, merged)
        context.access.replace(collection, key, merged, "replace" if mode == "replace" else "update")


def _merge_fields(stored: Document, result: Document) -> Document:
    """Return a copy of `stored` with the fields of `result`. New fields are sorted by name, as after a ``$set``."""
    return {**stored, **{name: result[name] for name in sorted(result, key=create_path_key)}}
