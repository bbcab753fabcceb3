"""``collMod``: what is changed of a collection, a view or an index."""

from __future__ import annotations

from typing import Any

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.catalog import check_contents
from gmongo.testing.store.context import Context
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import bad_value, index_not_found, invalid_options, type_mismatch
from gmongo.testing.store.fields import FIELDS
from gmongo.testing.store.index import Index
from gmongo.testing.store.indexes import indexes_of
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import is_number, type_name
from gmongo.testing.store.views import check_view

_CHANGES = ("expireAfterSeconds", "hidden", "prepareUnique", "unique")
_OF_INDEX = frozenset({"keyPattern", "name", *_CHANGES})


def collection_modify(context: Context) -> Document:
    """``collMod``."""
    collection = context.existing_collection()
    options = {name: value for name, value in context.body.items() if name in FIELDS["collMod"] and value is not None}
    del options["collMod"]
    index = options.pop("index", None)
    refused = set(options) & {"timeseries", "dryRun", "cappedSize", "cappedMax"}
    if refused:
        raise not_supported(f"collMod with {refused.pop()}")
    check_contents(options)
    if collection.is_view:
        check_view(context.access, collection.database, collection.name, {**collection.options, **options})
    elif {"viewOn", "pipeline"} & set(options):
        raise invalid_options("'viewOn' and 'pipeline' are of views, and not of collections")
    reply = _modify_index(collection, index, context.pace) if index is not None else {}
    collection.options = {**collection.options, **options}
    context.state.tick()
    extra = {"operationDescription": dict(options) if index is None else {"index": index}}
    context.state.publish("modify", collection.database, collection.name, uuid=collection.uuid, extra=extra)
    return reply


def _modify_index(collection: Collection, spec: Any, pace: Pace) -> Document:
    _check_change(spec)
    index = _index_of(collection, spec)
    reply: Document = {}
    if "expireAfterSeconds" in spec:
        reply["expireAfterSeconds_old"] = index.options.get("expireAfterSeconds")
        reply["expireAfterSeconds_new"] = spec["expireAfterSeconds"]
    if "hidden" in spec:
        if index.is_identity:
            raise bad_value("can't hide _id index")
        reply["hidden_old"], reply["hidden_new"] = bool(index.options.get("hidden")), spec["hidden"]
    if spec.get("unique") and not index.options.get("unique"):
        if not (spec.get("prepareUnique") or index.options.get("prepareUnique")):
            raise invalid_options("Cannot make index unique, as it is not in prepareUnique mode")
        _check_values_unique(collection, index, pace)
        reply["unique_new"] = True
    changed = {name: spec[name] for name in _CHANGES if name in spec}
    options = {**index.options, **changed}
    index.options = {name: value for name, value in options.items() if name != "hidden" or value}
    return {name: value for name, value in reply.items() if value is not None}


def _check_change(spec: Any) -> None:
    """Check what is said of an index."""
    if not isinstance(spec, dict):
        raise type_mismatch(f"BSON field 'collMod.index' is the wrong type '{type_name(spec)}', expected type 'object'")
    for name, value in spec.items():
        if name not in _OF_INDEX:
            raise CommandError(40415, "Location40415", f"BSON field 'collMod.index.{name}' is an unknown field.")
        if name == "expireAfterSeconds" and not is_number(value):
            raise type_mismatch("BSON field 'collMod.index.expireAfterSeconds' must be a number")
        if name in ("hidden", "prepareUnique", "unique") and not (isinstance(value, bool) or is_number(value)):
            raise type_mismatch(f"BSON field 'collMod.index.{name}' must be a bool")
    if ("name" in spec) == ("keyPattern" in spec):
        raise invalid_options("Must specify either index name or keyPattern")
    if not set(spec) & set(_CHANGES):
        raise invalid_options(f"no {', '.join(_CHANGES)} field")
    if not spec.get("unique", True):
        raise bad_value("'unique: false' is not supported")


def _index_of(collection: Collection, spec: Document) -> Index:
    wanted = spec.get("name", spec.get("keyPattern"))
    found = indexes_of(collection, wanted)
    if not found:
        raise index_not_found(f"cannot find index {wanted} for ns {collection.namespace}")
    return found[0]


def _check_values_unique(collection: Collection, index: Index, pace: Pace) -> None:
    """Check that the values are unique; the error lists the documents that share one."""
    holders: dict[Any, list[Any]] = {}
    for record in pace.through(list(collection.records.values())):
        for entry, _ in index.entries(record.document):
            holders.setdefault(entry, []).append(record.document["_id"])
    violations = [{"ids": ids} for ids in pace.through(holders.values()) if len(ids) > 1]
    if violations:
        raise CommandError(
            359,
            "CannotConvertIndexToUnique",
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
            violations=violations,
        )
