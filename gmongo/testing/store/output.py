"""The output stages ``$out`` and ``$merge``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gmongo import _random
from gmongo._object_ids import new_object_id
from gmongo.testing.command import CommandError, error
from gmongo.testing.store.apply_update import path_order
from gmongo.testing.store.context import Context, check_name, check_writable
from gmongo.testing.store.data import Collection, Document, Record
from gmongo.testing.store.errors import immutable_field, malformed, write_conflict
from gmongo.testing.store.index import Index
from gmongo.testing.store.selection import select
from gmongo.testing.store.state import drop_collection, move_collection
from gmongo.testing.store.validation import check_document, check_storable
from gmongo.testing.store.values import Key, identical
from gmongo.testing.unsupported import not_supported

OUTPUTS = frozenset({"$out", "$merge"})
# The error codes after which `$merge` continues with the next document. At the end, the command raises the first error.
_CONTINUED = frozenset({121, 11000})


def write_output(context: Context, stage: Document, documents: list[Document]) -> None:
    """Write the results of a pipeline to the target collection of the last stage."""
    ((name, spec),) = stage.items()
    write = _out if name == "$out" else _merge
    write(context, spec, context.pace.through(documents))


def check_output(name: str, spec: Any) -> None:
    """Check the specification of ``$out`` or ``$merge``. A server checks these two stages before the other stages."""
    into = _merge_options(spec)["into"] if name == "$merge" else spec
    names = into.values() if isinstance(into, dict) else [into]
    least = {"db", "coll"} if name == "$out" else {"coll"}
    if (isinstance(into, dict) and not {"db", "coll"} >= set(into) >= least) or not all(
        type(name) is str and name for name in names
    ):
        raise malformed(name)


def _with_identity(document: Document) -> Document:
    return document if "_id" in document else {"_id": new_object_id(), **document}


def _target(context: Context, stage: str, spec: Any) -> tuple[str, str]:
    database, name = (spec.get("db", context.database), spec["coll"]) if isinstance(spec, dict) else (
        context.database, spec)  # fmt: skip
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
        raise error(17152, f"namespace '{before.namespace}' is capped so it can't be used for $out")
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
    move_collection(context.state, fresh, name)


def _check(context: Context, collection: Collection, document: Document) -> None:
    check_storable(document, context.state.version)
    check_document(collection, document, bool(context.body.get("bypassDocumentValidation")))


def _merge(context: Context, spec: Any, documents: Iterable[Document]) -> None:
    options = _merge_options(spec)
    database, name = _target(context, "$merge", options["into"])
    collection = context.access.find(database, name) or context.access.create(database, name, {})
    failure: CommandError | None = None
    for document in map(_with_identity, documents):
        found = _find_match(context, collection, document)
        try:
            _merge_one(context, collection, found, document, options)
        except CommandError as error:
            if error.code not in _CONTINUED:
                raise
            failure = failure or error
    if failure is not None:
        raise failure


def _merge_options(spec: Any) -> Document:
    """Check the specification of ``$merge``. Return the options, completed with the defaults."""
    given = {"into": spec} if isinstance(spec, str) else spec
    if not isinstance(given, dict) or "into" not in given:
        raise malformed("$merge")
    options = {"on": "_id", "whenMatched": "merge", "whenNotMatched": "insert", **given}
    is_known = options["whenMatched"] in ("merge", "replace", "fail") and options["whenNotMatched"] == "insert"
    if len(options) > 4 or options["on"] not in ("_id", ["_id"]) or not is_known:
        raise not_supported("other options of $merge")
    return options


def _merge_one(
    context: Context, collection: Collection, found: tuple[Key, Record] | None, document: Document, spec: Document
) -> None:
    if found is not None:
        return _merge_into(context, collection, found, document, spec["whenMatched"])
    if spec["whenMatched"] == "merge":
        document = _with_fields({"_id": document["_id"]}, document)
    _check(context, collection, document)
    context.access.insert(collection, document)


def _find_match(context: Context, collection: Collection, document: Document) -> tuple[Key, Record] | None:
    if document["_id"] is None or isinstance(document["_id"], list):
        raise malformed("$merge of a document without usable _id")
    collation = context.collation(None if context.body["aggregate"] == 1 else context.collection())
    query = {"_id": {"$eq": document["_id"]}}
    return next(select(context.access, collection, query, collation, {}, pace=context.pace), None)


def _merge_into(
    context: Context, collection: Collection, found: tuple[Key, Record], document: Document, mode: str
) -> None:
    key, record = found
    if mode == "fail":
        raise error(11000, "$merge failed due to a DuplicateKey error", keyPattern={"_id": 1},
                           keyValue={"_id": record.document["_id"]})  # fmt: skip
    stored = record.document
    changed = {"_id": stored["_id"], **document} if mode == "replace" else _with_fields(stored, document)
    if not identical(changed.get("_id"), record.document["_id"]):
        raise immutable_field("$merge failed to update the matching document, did you attempt to modify the _id or the "
                              "shard key?")  # fmt: skip
    if not identical(changed, record.document):
        _check(context, collection, changed)
        context.access.replace(collection, key, changed, "replace" if mode == "replace" else "update")


def _with_fields(stored: Document, new: Document) -> Document:
    """Return a copy of `stored` with the fields of `new`. New fields are in the order of names, as after a ``$set``."""
    return {**stored, **{name: new[name] for name in sorted(new, key=path_order)}}
