"""The command ``collMod``, which changes the options of a collection or an index."""

from __future__ import annotations

from typing import Any

from bson import Int64

from gmongo.testing.command import error
from gmongo.testing.store.context import CommandContext
from gmongo.testing.store.creation import OPTION_ORDER, check_contents, is_default
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import index_not_found, invalid_options, malformed
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.index import Index
from gmongo.testing.store.indexes import find_indexes
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import to_long
from gmongo.testing.unsupported import not_supported

_INDEX_OPTIONS = ("expireAfterSeconds", "hidden", "unique", "prepareUnique")
_MAX_SECONDS = 2**31 - 1
# The defaults of the validation options. `collMod` with a validator or an option stores both options.
_DEFAULTS = {"validationLevel": "strict", "validationAction": "error"}


def modify_collection(context: CommandContext) -> Document:
    """Execute ``collMod``."""
    collection = context.require_collection()
    changes = {
        name: value for name, value in context.body.items() if name in TABLE["collMod"].fields and value is not None
    }
    del changes["collMod"]
    refused_options = {"cappedSize", "cappedMax", "dryRun", "expireAfterSeconds", "pipeline", "timeseries", "viewOn"}
    if collection.is_view or not refused_options.isdisjoint(changes):
        raise not_supported("an unsupported option of collMod")
    index = changes.pop("index", None)
    options = _complete_options(collection, changes)
    check_contents(changes)
    reply = _modify_index(collection, index, context.pace) if index is not None else {}
    result = {name: value for name, value in {**collection.options, **options}.items() if not is_default(name, value)}
    collection.options = {name: result[name] for name in sorted(result, key=OPTION_ORDER.split().index)}
    context.state.tick()
    fields = {"operationDescription": dict(changes) if index is None else {"index": index}}
    context.state.publish("modify", collection.database, collection.name, uuid=collection.uuid, extra=fields)
    return reply


def _complete_options(collection: Collection, changes: Document) -> Document:
    """Return the changes. If the changes concern validation, add the missing validation options."""
    if not {"validator", *_DEFAULTS} & set(changes):
        return changes
    defaults = {name: changes.get(name) or collection.options.get(name, value) for name, value in _DEFAULTS.items()}
    return {**changes, **defaults}


def _modify_index(collection: Collection, spec: Document, pace: Pace) -> Document:
    names = {name for name, value in spec.items() if value is not None} & set(_INDEX_OPTIONS)
    if len(names) != 1 or ("name" in spec) == ("keyPattern" in spec):
        raise malformed("the index of collMod")
    name_or_keys = spec.get("name", spec.get("keyPattern"))
    index = next(iter(find_indexes(collection, name_or_keys)), None)
    if index is None:
        raise index_not_found(f"cannot find index {name_or_keys} for ns {collection.namespace}")
    (name,) = names
    value, old_value = spec[name], index.options.get(name)
    reply: Document = {}
    if name == "expireAfterSeconds":
        value = to_long(value)
        if not 0 <= value <= _MAX_SECONDS or (old_value is None and (index.is_id_index or len(index.keys) > 1)):
            raise malformed("the expiry of an index")
        reply = {} if old_value is None else {"expireAfterSeconds_old": Int64(old_value)}
        reply["expireAfterSeconds_new"] = Int64(value)
    elif name == "unique" and value and not old_value:
        if not index.options.get("prepareUnique"):
            raise invalid_options("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
        _check_values_unique(collection, index, pace)
        reply = {"unique_new": True}
        index.options = {**index.options, "prepareUnique": False}
    elif bool(old_value) != bool(value):
        value = bool(value)
        if name == "unique" or index.is_id_index or (name == "prepareUnique" and index.unique and not old_value):
            raise malformed("the index of collMod")
        reply = {f"{name}_old": not value, f"{name}_new": value}
    options = {**index.options, name: value}
    index.options = {name: value for name, value in options.items() if name not in ("hidden", "prepareUnique") or value}
    return reply


def _check_values_unique(collection: Collection, index: Index, pace: Pace) -> None:
    ids_by_entry: dict[Any, list[Any]] = {}
    for record in pace.iterate(list(collection.records.values())):
        for entry, _ in index.entries(record.document):
            ids_by_entry.setdefault(entry, []).append(record.document["_id"])
    violations = [{"ids": ids} for ids in pace.iterate(ids_by_entry.values()) if len(ids) > 1]
    if violations:
        raise error(359, "Cannot convert the index to unique. Please resolve conflicting documents before running "
                    "collMod again.", violations=violations)  # fmt: skip
