"""The command ``collMod``, which changes the options of a collection, a view or an index."""

from __future__ import annotations

from typing import Any

from bson import Int64

from gmongo.testing.command import CommandError
from gmongo.testing.store.context import Context
from gmongo.testing.store.creation import ORDER, check_contents, check_expiry
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import bad_value, index_not_found, invalid_options
from gmongo.testing.store.fields import TABLE
from gmongo.testing.store.index import Index
from gmongo.testing.store.indexes import indexes_of
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import long_of
from gmongo.testing.store.views import check_view
from gmongo.testing.unsupported import not_supported

_CHANGES = ("expireAfterSeconds", "hidden", "unique", "prepareUnique")
# The options that a view does not have.
_NOT_OF_VIEWS = ("index", "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages",
                 "expireAfterSeconds", "timeseries")  # fmt: skip
_MAX_SECONDS = 2**31 - 1
# If a command changes one of these options, the collection also stores the other option with this
# default.
_VALIDATION = {"validationLevel": "strict", "validationAction": "error"}


def collection_modify(context: Context) -> Document:
    """Execute ``collMod``."""
    collection = context.existing_collection()
    requested = {
        name: value for name, value in context.body.items() if name in TABLE["collMod"].fields and value is not None
    }
    del requested["collMod"]
    index, is_dry_run = requested.pop("index", None), requested.pop("dryRun", False)
    if index is not None:
        index = {name: value for name, value in index.items() if value is not None}
    if is_dry_run:
        return _dry_run(context, collection, index, requested)
    options = _changed_options(collection, requested, index is not None)
    refused = {"cappedSize", "cappedMax"} & set(requested)
    if refused:
        raise not_supported("a change of a capped collection", refused.pop())
    check_contents(requested)
    if collection.is_view:
        check_view(context.access, collection.database, collection.name, {**collection.options, **options})
    reply = _modify_index(collection, index, context.pace, alone=not requested) if index is not None else {}
    kept = {name: value for name, value in {**collection.options, **options}.items() if value is not None}
    collection.options = {name: kept[name] for name in sorted(kept, key=ORDER.split().index)}
    if collection.is_view:
        context.state.list_view(collection)
    context.state.tick()
    extra = {"operationDescription": dict(requested) if index is None else {"index": index}}
    context.state.publish("modify", collection.database, collection.name, uuid=collection.uuid, extra=extra)
    return reply


def _changed_options(collection: Collection, requested: Document, has_index: bool) -> Document:
    """Return the changed options.

    The value None means that the caller removes the option from the collection.
    """
    options = dict(requested)
    named = {*options, "index"} if has_index else set(options)
    for names, is_refused, reason in (
        (_NOT_OF_VIEWS, collection.is_view, "not supported on a view"),
        (("pipeline", "viewOn"), not collection.is_view, "only supported on a view"),
        (("timeseries",), True, "only supported on a time-series collection"),
    ):
        for name in names:
            if is_refused and name in named:
                raise invalid_options(f"option {reason}: {name}")
    if any(name in options for name in ("validator", *_VALIDATION)):
        options |= {
            name: options.get(name) or collection.options.get(name, value) for name, value in _VALIDATION.items()
        }
    if "expireAfterSeconds" in options:
        options["expireAfterSeconds"] = _checked_expiry(collection, options["expireAfterSeconds"])
    return options


def _checked_expiry(collection: Collection, seconds: Any) -> Any:
    if "clusteredIndex" not in collection.options:
        raise invalid_options("'expireAfterSeconds' option is only supported on collections clustered by _id")
    if isinstance(seconds, str):
        if seconds != "off":
            raise invalid_options(f"Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: "
                                  f"'{seconds}'. Accepted value is 'off'")  # fmt: skip
        return None
    check_expiry(seconds)
    return long_of(seconds)


def _dry_run(context: Context, collection: Collection, index: Any, others: Document) -> Document:
    """Execute a ``collMod`` with the option ``dryRun``, which only checks if the index can become unique."""
    if index is None or not index.get("unique"):
        raise invalid_options("dry run mode requires an index modification with unique: true.")
    _check_change(index)
    found = _requested_index(collection, index)
    if others or set(index) & (set(_CHANGES) - {"unique"}):
        raise invalid_options("unique: true cannot be combined with any other modification in dry run mode.")
    _check_values_unique(collection, found, context.pace)
    return {}


def _modify_index(collection: Collection, spec: Any, pace: Pace, *, alone: bool) -> Document:
    _check_change(spec)
    index = _requested_index(collection, spec)
    reply: Document = {}
    changed: Document = {}
    if "expireAfterSeconds" in spec:
        _check_expiry(collection, index, spec["expireAfterSeconds"])
        changed["expireAfterSeconds"] = long_of(spec["expireAfterSeconds"])
        if "expireAfterSeconds" in index.options:
            reply["expireAfterSeconds_old"] = Int64(index.options["expireAfterSeconds"])
        reply["expireAfterSeconds_new"] = Int64(changed["expireAfterSeconds"])
    if spec.get("unique") and not index.options.get("unique"):
        if not index.options.get("prepareUnique"):
            raise invalid_options("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
        _check_values_unique(collection, index, pace)
        changed.update(unique=True, prepareUnique=False)
        reply["unique_new"] = True
    if "hidden" in spec:
        if index.is_identity:
            raise bad_value("can't hide _id index")
        changed["hidden"] = bool(spec["hidden"])
        if bool(index.options.get("hidden")) != changed["hidden"]:
            reply["hidden_old"], reply["hidden_new"] = not changed["hidden"], changed["hidden"]
    if "prepareUnique" in spec:
        changed.update(_change_of_prepare_unique(collection, index, spec, reply, alone))
    options = {**index.options, **changed}
    index.options = {name: value for name, value in options.items() if name not in ("hidden", "prepareUnique") or value}
    return {name: value for name, value in reply.items() if value is not None}


def _change_of_prepare_unique(
    collection: Collection, index: Index, spec: Document, reply: Document, alone: bool
) -> Document:
    """Return the change of ``prepareUnique``, and add the fields of the change to `reply`.

    Return no change if the option does not change, or the index is unique.
    """
    before, requested = bool(index.options.get("prepareUnique")), bool(spec["prepareUnique"])
    if before == requested or (index.unique and not before):
        return {}
    if not alone or set(spec) & (set(_CHANGES) - {"prepareUnique"}):
        raise invalid_options("prepareUnique cannot be combined with any other modification.")
    reply["prepareUnique_old"], reply["prepareUnique_new"] = before, requested
    return {"prepareUnique": requested}


def _check_expiry(collection: Collection, index: Index, seconds: Any) -> None:
    if not 0 <= long_of(seconds) <= _MAX_SECONDS:
        raise invalid_options(f"TTL index 'expireAfterSeconds' option must be from 0 to {_MAX_SECONDS}")
    if "expireAfterSeconds" not in index.options:
        if index.is_identity:
            raise invalid_options("the _id field does not support TTL indexes")
        if len(index.keys) > 1:
            raise invalid_options("TTL indexes are single-field indexes, compound indexes do not support TTL")


def _check_change(spec: Any) -> None:
    if ("name" in spec) == ("keyPattern" in spec):
        raise invalid_options("Must specify either index name or key pattern, and not both.")
    if not set(spec) & set(_CHANGES):
        raise invalid_options("no expireAfterSeconds, hidden, unique, or prepareUnique field")
    if not spec.get("unique", True):
        raise bad_value("Cannot make index non-unique")


def _requested_index(collection: Collection, spec: Document) -> Index:
    requested = spec.get("name", spec.get("keyPattern"))
    found = indexes_of(collection, requested)
    if not found:
        raise index_not_found(f"cannot find index {requested} for ns {collection.namespace}")
    return found[0]


def _check_values_unique(collection: Collection, index: Index, pace: Pace) -> None:
    """Check that the documents have unique values for the index.

    :raises CommandError: several documents have equal values. The error lists these documents.
    """
    ids_by_entry: dict[Any, list[Any]] = {}
    for record in pace.through(list(collection.records.values())):
        for entry, _ in index.entries(record.document):
            ids_by_entry.setdefault(entry, []).append(record.document["_id"])
    violations = [{"ids": ids} for ids in pace.through(ids_by_entry.values()) if len(ids) > 1]
    if violations:
        raise CommandError(
            359,
            "CannotConvertIndexToUnique",
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
            violations=violations,
        )
