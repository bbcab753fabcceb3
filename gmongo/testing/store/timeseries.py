"""The options and the documents of time series collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, invalid_options
from gmongo.testing.store.values import MISSING, long_of, type_name
from gmongo.testing.unsupported import not_supported

_SECONDS = ("bucketMaxSpanSeconds", "bucketRoundingSeconds")
_MAX_SECONDS = 365 * 86400
# The maximum time in seconds that a bucket covers, by granularity.
_SPANS: Mapping[str, int] = {"seconds": 3600, "minutes": 86400, "hours": 30 * 86400}
# The options of `create` that a time series accepts.
_ACCEPTED = frozenset({"collation", "expireAfterSeconds", "indexOptionDefaults", "storageEngine", "timeseries"})


def check_other_options(options: Mapping[str, Any]) -> None:
    """Check that a time series accepts all options of a ``create``."""
    for name in options:
        if name not in _ACCEPTED:
            raise invalid_options(f"'timeseries' is not allowed with '{name}'")


def completed(options: Mapping[str, Any]) -> Document:
    """Check the option ``timeseries`` of a ``create``, and return the option with its defaults."""
    options = {name: value for name, value in options.items() if value is not None}
    for name, value in options.items():
        if name in _SECONDS and not 1 <= long_of(value) <= _MAX_SECONDS:
            # The error code of servers from version 6.3, which accept bucketRoundingSeconds, is 2.
            raise error(
                2 if _SECONDS[1] in options else 51024,
                f"{name} must be from 1 to {_MAX_SECONDS}, actual value '{value}'",
            )
    names: Document = {name: options[name] for name in ("timeField", "metaField") if name in options}
    for name, value in names.items():
        if "\0" in value:
            raise bad_value(f"BSON field 'create.timeseries.{name}' cannot contain an embedded null byte")
        if "." in value:
            raise invalid_options(f"'{name}' must be a top-level field and not contain a '.'")
    if names.get("metaField") in ("_id", names["timeField"]):
        raise invalid_options("'metaField' cannot be \"_id\" or the same as 'timeField'")
    return {**names, **_bucketing(options)}


def _bucketing(options: Mapping[str, Any]) -> Document:
    """Return the options that determine the buckets: a granularity, or the numbers of seconds in ``_SECONDS``."""
    span, rounding = (long_of(options[name]) if name in options else None for name in _SECONDS)
    if "granularity" not in options and rounding is not None:
        if span != rounding:
            raise invalid_options(f"Timeseries {' and '.join(_SECONDS)} must be equal")
        return {"bucketRoundingSeconds": rounding, "bucketMaxSpanSeconds": span}
    granularity = options.get("granularity", "seconds")
    if granularity not in _SPANS:
        raise bad_value(f"Enumeration value '{granularity}' for field 'create.timeseries.granularity' is not valid")
    if rounding is not None or span not in (None, _SPANS[granularity]):
        raise invalid_options(f"'bucketMaxSpanSeconds' can only be {_SPANS[granularity]} with '{granularity}'")
    return {"granularity": granularity, "bucketMaxSpanSeconds": _SPANS[granularity]}


def measurement(series: Mapping[str, Any], document: Document) -> Document:
    """Return the form in which a time series stores a document: the time and the metadata are the first fields.

    :param series: the option ``timeseries`` of the collection.
    :param document: the document to store.
    """
    first = [name for name in (series["timeField"], series.get("metaField")) if name in document]
    if type_name(document.get(series["timeField"], MISSING)) != "date":
        raise not_supported("a time series", "a measurement without a time")
    return {**{name: document[name] for name in first}, **document}
