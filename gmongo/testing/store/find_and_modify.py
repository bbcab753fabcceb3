"""The command ``findAndModify``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.apply_update import Update
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import CommandContext, check_writable
from gmongo.testing.store.data import Document, Record
from gmongo.testing.store.errors import failed_to_parse, malformed
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.projection import compile_projection
from gmongo.testing.store.values import Key, is_true
from gmongo.testing.store.writes import Target, compile_update, create_target, find_records_to_write, update_one, upsert


def find_and_modify(context: CommandContext) -> Document:
    """Execute ``findAndModify``."""
    body, target = context.body, create_target(context)
    if target.collection is not None:
        check_writable(target.collection)
    _check_options(body)
    query = body.get("query") or {}
    statement = {**body, "q": query}
    if list(query) == ["_id"] and not has_operators(query["_id"]) and not is_pattern(query["_id"]):
        statement.pop("sort", None)  # a server ignores the sort if the query only selects one _id
    update = None
    if not is_true(body.get("remove")):
        update = compile_update(body, body["update"], query, context.variables, target.collection)
    if is_true(body.get("new")) and any(name.endswith(".$") for name in body.get("fields") or {}):
        raise malformed("a positional projection of the new document")
    project = compile_projection(body.get("fields"), query, context.variables)
    if body.get("fields"):
        compile_sort(body.get("sort") or {}, Collation())
    match = next(iter(find_records_to_write(target, statement, context.variables)), None)
    if update is None:
        return _remove_record(target, match, project)
    return _update_record(context, target, update, match, project)


def _check_options(body: Document) -> None:
    update_options = [name for name in ("update", "arrayFilters") if body.get(name) is not None]
    update_options += [name for name in ("upsert", "new") if is_true(body.get(name))]
    if update_options if is_true(body.get("remove")) else "update" not in body:
        raise failed_to_parse("Specify either remove=true, or an update and its options")


def _remove_record(target: Target, match: tuple[Key, Record] | None, project: Any) -> Document:
    if match is None:
        return {"lastErrorObject": {"n": 0}, "value": None}
    key, record = match
    target.access.remove(target.ensure_collection(), key)
    return {"lastErrorObject": {"n": 1}, "value": project(record.document)}


def _update_record(
    context: CommandContext, target: Target, update: Update, match: tuple[Key, Record] | None, project: Any
) -> Document:
    body = context.body
    if match is not None:
        key, record = match
        updated = update_one(target, update, key, record.document)
        value = project(updated if is_true(body.get("new")) else record.document)
        return {"lastErrorObject": {"n": 1, "updatedExisting": True}, "value": value}
    if not is_true(body.get("upsert")):
        return {"lastErrorObject": {"n": 0, "updatedExisting": False}, "value": None}
    document = upsert(target, update)
    last_error = {"n": 1, "updatedExisting": False, "upserted": document["_id"]}
    return {"lastErrorObject": last_error, "value": project(document) if is_true(body.get("new")) else None}
