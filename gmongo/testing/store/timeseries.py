"""The options and the documents of time series collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.values import MISSING, long_of, type_name
from gmongo.testing.unsupported import not_supported

_SECONDS = ("bucketMaxSpanSeconds", "bucketRoundingSeconds")
_MAX_SECONDS = 365 * 86400
# The maximum time in seconds that a bucket covers, by granularity.
_SPANS: Mapping[str, int] = {"seconds": 3600, "minutes": 86400, "hours": 30 * 86400}
# The options of `create` that a time series accepts.
ACCEPTED = frozenset({"create", "collation", "expireAfterSeconds", "timeseries"})


def completed(options: Mapping[str, Any]) -> Document:
    """Check the option ``timeseries`` of a ``create``, and return the option with its defaults."""
    options = {name: value for name, value in options.items() if value is not None}
    names: Document = {name: options[name] for name in ("timeField", "metaField") if name in options}
    is_wrong = names.get("metaField") in ("_id", names["timeField"])
    if is_wrong or any("\0" in value or "." in value for value in names.values()):
        raise malformed("the fields of a time series")
    return {**names, **_bucketing(options)}


def _bucketing(options: Mapping[str, Any]) -> Document:
    """Return the options that determine the buckets: a granularity, or the numbers of seconds in ``_SECONDS``."""
    span, rounding = (long_of(options[name]) if name in options else None for name in _SECONDS)
    if "granularity" not in options and rounding is not None:
        if span != rounding or not 1 <= rounding <= _MAX_SECONDS:
            raise malformed("the seconds of a time series")
        return {"bucketRoundingSeconds": rounding, "bucketMaxSpanSeconds": span}
    granularity = options.get("granularity", "seconds")
    if granularity not in _SPANS or rounding is not None or span not in (None, _SPANS[granularity]):
        raise malformed("the granularity of a time series")
    return {"granularity": granularity, "bucketMaxSpanSeconds": _SPANS[granularity]}


def measurement(series: Mapping[str, Any], document: Document) -> Document:
    """Return the form in which a time series stores a document: the time and the metadata are the first fields.

    :param series: the option ``timeseries`` of the collection.
    """
    first = [name for name in (series["timeField"], series.get("metaField")) if name in document]
    if type_name(document.get(series["timeField"], MISSING)) != "date":
        raise not_supported("a time series", "a measurement without a time")
    return {**{name: document[name] for name in first}, **document}
