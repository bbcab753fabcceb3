"""The command ``bulkWrite``, which writes to several collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.context import CommandContext, check_name, check_writable
from gmongo.testing.store.cursors import Cursor
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import bad_value, invalid_namespace, type_mismatch
from gmongo.testing.store.fields import check_body
from gmongo.testing.store.replies import open_cursor, parse_batch_size
from gmongo.testing.store.values import MISSING, is_integral, is_number, to_long, type_name
from gmongo.testing.store.writes import FATAL_CODES, Outcome, Target, delete_matching, insert_one, update_matching
from gmongo.testing.unsupported import not_supported


def bulk_write(context: CommandContext) -> Document:
    """Execute ``bulkWrite``, a command of the database ``admin``."""
    body = context.body
    _check_operations(context, body)
    targets = [_create_target(context, namespace_spec) for namespace_spec in body["nsInfo"]]
    counts: Counter[str] = Counter()
    results: list[Document] = []
    for index, operation in enumerate(context.pace.iterate(body["ops"])):
        result = _run_operation(operation, index, targets, counts)
        if not result["ok"] or not body.get("errorsOnly"):
            results.append(result)
        if not result["ok"] and (body.get("ordered", True) or context.access.in_transaction):
            break
    size = parse_batch_size(body)
    # If the command has no batch size, the first batch contains all results that fit into a message.
    reply = open_cursor(context, Cursor("admin.$cmd.bulkWrite", results), len(results) + 1 if size is None else size)
    return {**reply, **{name: counts[name] for name in _COUNT_FIELDS}}


_COUNT_FIELDS = ("nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted")
_COUNT_FIELDS_BY_KIND = {"insert": "nInserted", "update": "nMatched", "delete": "nDeleted"}


def _check_operations(context: CommandContext, body: Document) -> None:
    for operation in context.pace.iterate(body["ops"]):
        kind = _find_kind(operation)
        check_body(f"bulkWrite-{kind}", operation, context.state.version)
        if not is_number(operation[kind]):
            raise type_mismatch(f"BSON field 'bulkWrite.{kind}' is the wrong type '{type_name(operation[kind])}'")
        if not is_integral(operation[kind]) or not 0 <= operation[kind] < len(body["nsInfo"]):
            raise bad_value(f"BulkWrite ops entry {operation!r} has an invalid nsInfo index.")


def _find_kind(operation: Any) -> str:
    kind = next(iter(operation), "") if isinstance(operation, dict) else ""
    if kind not in _EXECUTORS:
        raise bad_value(f"an entry of ops must begin with insert, update or delete, not {kind!r}")
    return kind


def _create_target(context: CommandContext, namespace_spec: Any) -> Target:
    namespace = namespace_spec.get("ns") if isinstance(namespace_spec, dict) else None
    if not isinstance(namespace, str) or "." not in namespace:
        raise invalid_namespace(f"Invalid namespace specified for bulkWrite: '{namespace}'")
    database, _, name = namespace.partition(".")
    check_name(database, name, for_write=True)
    collection = context.access.find_collection(database, name)
    if collection is not None:
        if collection.kind == "timeseries":
            raise not_supported("a time series", "bulkWrite")
        check_writable(collection)

    def find_or_create() -> Collection:
        current = context.access.find_collection(database, name)
        return current if current is not None else context.access.create(database, name, {})

    bypasses_validation = bool(context.body.get("bypassDocumentValidation"))
    return Target(context.access, collection, find_or_create, bypasses_validation, context.variables, context.pace)


def _run_operation(operation: Document, index: int, targets: list[Target], counts: Counter[str]) -> Document:
    kind = _find_kind(operation)
    try:
        outcome = _EXECUTORS[kind](targets[to_long(operation[kind])], operation)
    except CommandError as error:
        if error.code in FATAL_CODES or error.name == "CommandNotSupported":
            raise
        counts["nErrors"] += 1
        failure = {"ok": 0.0, "idx": index, "code": error.code, "errmsg": error.message, "n": 0, **error.fields}
        return {**failure, "nModified": 0} if kind == "update" else failure
    result: Document = {"ok": 1.0, "idx": index, "n": outcome.matched_count}
    is_upsert = outcome.upserted_id is not MISSING
    counts["nUpserted" if is_upsert else _COUNT_FIELDS_BY_KIND[kind]] += outcome.matched_count
    counts["nModified"] += outcome.modified_count
    if kind == "update":
        result["nModified"] = outcome.modified_count
        if is_upsert:
            result["upserted"] = {"_id": outcome.upserted_id}
    return result


_EXECUTORS: Mapping[str, Callable[[Target, Document], Outcome]] = {
    "insert": lambda target, operation: insert_one(target, operation["document"]),
    "update": lambda target, operation: update_matching(
        target, {**operation, "q": operation["filter"], "u": operation["updateMods"]}
    ),
    "delete": lambda target, operation: delete_matching(
        target, {**operation, "q": operation["filter"], "limit": not operation.get("multi")}
    ),
}
