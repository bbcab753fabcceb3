"""The options of time series: what ``create`` and ``collMod`` take, and what is added to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, invalid_options, location, type_mismatch
from gmongo.testing.store.values import MISSING, is_number, long_of, type_name

_STRINGS = ("timeField", "metaField", "granularity")
_SECONDS = ("bucketMaxSpanSeconds", "bucketRoundingSeconds")
_MAX_SECONDS = 365 * 86400
# The seconds that a bucket spans at most, by the granularity.
_SPANS: Mapping[str, int] = {"seconds": 3600, "minutes": 86400, "hours": 30 * 86400}
# What else `create` may say of a time series.
_BESIDE = frozenset({"collation", "expireAfterSeconds", "indexOptionDefaults", "storageEngine", "timeseries"})


def check_beside(options: Mapping[str, Any]) -> None:
    """Check that the options of a time series go together.

    :raises CommandError: 72, if they do not.
    """
    for name in options:
        if name not in _BESIDE:
            raise invalid_options(f"'timeseries' is not allowed with '{name}'")


def completed(options: Mapping[str, Any]) -> Document:
    """The ``timeseries`` of ``create`` with what is set by default.

    :raises CommandError: if there is no such time series.
    """
    _check_fields("create", options, (*_STRINGS, *_SECONDS))
    if "timeField" not in options:
        raise location(40414, "BSON field 'create.timeseries.timeField' is missing but a required field")
    for name in ("timeField", "metaField"):
        if "." in options.get(name, ""):
            raise invalid_options(f"'{name}' must be a top-level field and not contain a '.'")
    if options.get("metaField") == "_id":
        raise invalid_options("'metaField' cannot be \"_id\"")
    if options.get("metaField") == options["timeField"]:
        raise invalid_options("'metaField' cannot be the same as 'timeField'")
    names = {name: options[name] for name in ("timeField", "metaField") if name in options}
    return {**names, **_bucketing(options, "seconds")}


def check_index(series: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    """Check the specification of an index of a time series.

    :raises CommandError: a time series cannot have it.
    """
    if spec.get("unique"):
        raise invalid_options("Unique indexes are not supported on time-series collections")
    if "text" in spec["key"].values():
        raise invalid_options("Text indexes are not supported on time-series collections")
    if "partialFilterExpression" in spec and "collation" in spec:
        raise CommandError(85, "IndexOptionsConflict", "On a time-series collection, partialFilterExpression and "
                           "collation arguments are incompatible")  # fmt: skip
    of_series = {series["timeField"], series.get("metaField")}
    if "sparse" in spec and any(path != series["timeField"] and path.partition(".")[0] not in of_series
                                for path in spec["key"]):  # fmt: skip
        raise invalid_options("Sparse indexes are not supported on time-series measurements")
    if "expireAfterSeconds" in spec:
        condition = spec.get("partialFilterExpression", {})
        if not condition or any(path.partition(".")[0] != series.get("metaField") for path in condition):
            raise invalid_options("TTL indexes on time-series collections require a partialFilterExpression on the "
                                  "metaField")  # fmt: skip


def check_update(series: Mapping[str, Any], statement: Mapping[str, Any]) -> None:
    """Check a statement of ``update``: a time series is updated as a whole, and in its ``metaField`` only.

    :raises CommandError: 72, if it cannot be updated so.
    """
    meta, change = series.get("metaField"), statement["u"]
    if meta is None:
        raise invalid_options("Cannot perform an update on a time-series collection that does not have a metaField")
    if not statement.get("multi"):
        raise invalid_options("Cannot perform a non-multi update on a time-series collection")
    if statement.get("upsert"):
        raise invalid_options("Cannot perform an upsert on a time-series collection")
    if not isinstance(change, dict) or not all(name.startswith("$") for name in change):
        raise invalid_options("Cannot perform replacement or pipeline updates on a time-series collection")
    changed = [path for fields in change.values() if isinstance(fields, dict) for path in fields]
    for path in (*changed, *_paths(statement["q"])):
        if path.partition(".")[0] != meta:
            raise invalid_options("Cannot perform an update on a time-series collection which updates or queries a "
                                  f"field that is not the metaField '{meta}': {path}")  # fmt: skip


def _paths(query: Mapping[str, Any]) -> Iterator[str]:
    for name, condition in query.items():
        if name in ("$and", "$or", "$nor"):
            for part in condition:
                yield from _paths(part)
        elif not name.startswith("$"):
            yield name


def check_time(series: Mapping[str, Any], document: Document) -> None:
    """Check that a measurement has a time.

    :raises CommandError: 2, if it has none.
    """
    field = series["timeField"]
    if type_name(document.get(field, MISSING)) != "date":
        raise bad_value(f"'{field}' must be present and contain a valid BSON UTC datetime value")


def modified(current: Mapping[str, Any], change: Mapping[str, Any]) -> Document:
    """The options of a time series after ``collMod``: buckets may span more than before, and not less.

    :raises CommandError: if they cannot be changed so.
    """
    _check_fields("collMod", change, ("granularity", *_SECONDS))
    if not change:
        return dict(current)
    wanted = _bucketing(change, None)
    if wanted["bucketMaxSpanSeconds"] < current["bucketMaxSpanSeconds"]:
        raise invalid_options("Invalid transition for timeseries.granularity or the seconds of buckets: they can only "
                              "grow")  # fmt: skip
    kept = {name: value for name, value in current.items() if name != "granularity" and name not in _SECONDS}
    return {**kept, **wanted}


def _check_fields(command: str, options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name, value in options.items():
        field = f"BSON field '{command}.timeseries.{name}'"
        if name not in known:
            raise location(40415, f"{field} is an unknown field.")
        if type(value) is not str if name in _STRINGS else not is_number(value):
            raise type_mismatch(f"{field} is the wrong type '{type_name(value)}'")
        if name in _SECONDS and not 1 <= long_of(value) <= _MAX_SECONDS:
            raise bad_value(f"{field} value must be from 1 to {_MAX_SECONDS}, actual value '{value}'")
        if name == "granularity" and value not in _SPANS:
            raise bad_value(
                f"Enumeration value '{value}' for field '{command}.timeseries.{name}' is not a valid value."
            )
        if name in _STRINGS and "\0" in value:
            raise bad_value(f"{field} cannot contain an embedded null byte")


def _bucketing(options: Mapping[str, Any], default: str | None) -> Document:
    """How measurements are put together: by a granularity, or by two equal numbers of seconds."""
    span, rounding = (long_of(options[name]) if name in options else None for name in _SECONDS)
    granularity = options.get("granularity", default if span is None and rounding is None else None)
    if granularity is None:
        if span is None or span != rounding:
            raise invalid_options(f"Timeseries {' and '.join(_SECONDS)} must both be set, and be equal")
        return {"bucketRoundingSeconds": rounding, "bucketMaxSpanSeconds": span}
    if rounding is not None or span not in (None, _SPANS[granularity]):
        raise invalid_options(f"Timeseries 'bucketMaxSpanSeconds' can only be {_SPANS[granularity]} with the "
                              f"granularity '{granularity}', and there can be no 'bucketRoundingSeconds'")  # fmt: skip
    return {"granularity": granularity, "bucketMaxSpanSeconds": _SPANS[granularity]}
