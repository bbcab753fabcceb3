"""The command ``findAndModify``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.apply_update import Update
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.context import Context, check_writable
from gmongo.testing.store.data import Document, Record
from gmongo.testing.store.errors import failed_to_parse, malformed
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.projection import compile_projection
from gmongo.testing.store.values import Key, is_true
from gmongo.testing.store.writes import Target, records_to_write, replace_one, target_of, update_of, upsert


def find_and_modify(context: Context) -> Document:
    """Execute ``findAndModify``."""
    body, target = context.body, target_of(context)
    if target.collection is not None:
        check_writable(target.collection)
    _check(body)
    query = body.get("query") or {}
    statement = {**body, "q": query}
    if list(query) == ["_id"] and not is_operators(query["_id"]) and not is_pattern(query["_id"]):
        statement.pop("sort", None)  # a server ignores the sort if the query contains only an _id
    update = None
    if not is_true(body.get("remove")):
        update = update_of(body, body["update"], query, context.variables, target.collection)
    if is_true(body.get("new")) and any(name.endswith(".$") for name in body.get("fields") or {}):
        raise malformed("a positional projection of the new document")
    project = compile_projection(body.get("fields"), query, context.variables)
    if body.get("fields"):
        compile_sort(body.get("sort") or {}, Collation())
    found = next(iter(records_to_write(target, statement, context.variables)), None)
    if update is None:
        return _remove(target, found, project)
    return _update(context, target, update, found, project)


def _check(body: Document) -> None:
    others = [name for name in ("update", "arrayFilters") if body.get(name) is not None]
    others += [name for name in ("upsert", "new") if is_true(body.get(name))]
    if others if is_true(body.get("remove")) else "update" not in body:
        raise failed_to_parse("Specify either remove=true, or an update and its options")


def _remove(target: Target, found: tuple[Key, Record] | None, project: Any) -> Document:
    if found is None:
        return {"lastErrorObject": {"n": 0}, "value": None}
    key, record = found
    target.access.remove(target.existing(), key)
    return {"lastErrorObject": {"n": 1}, "value": project(record.document)}


def _update(
    context: Context, target: Target, update: Update, found: tuple[Key, Record] | None, project: Any
) -> Document:
    body = context.body
    if found is not None:
        key, record = found
        changed = replace_one(target, update, key, record.document)
        value = project(changed if is_true(body.get("new")) else record.document)
        return {"lastErrorObject": {"n": 1, "updatedExisting": True}, "value": value}
    if not is_true(body.get("upsert")):
        return {"lastErrorObject": {"n": 0, "updatedExisting": False}, "value": None}
    document = upsert(target, update)
    error = {"n": 1, "updatedExisting": False, "upserted": document["_id"]}
    return {"lastErrorObject": error, "value": project(document) if is_true(body.get("new")) else None}
