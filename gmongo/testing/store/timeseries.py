"""The options of a time series collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.data import Document
from gmongo.testing.store.errors import bad_value, invalid_options, location, type_mismatch
from gmongo.testing.store.values import type_name
from gmongo.testing.unsupported import not_supported

_STRINGS = ("timeField", "metaField", "granularity")
# The seconds that a bucket spans at most, by the granularity.
_SPANS: Mapping[str, int] = {"seconds": 3600, "minutes": 86400, "hours": 30 * 86400}
# The other options that `create` accepts beside those of a time series.
_BESIDE = frozenset({"collation", "expireAfterSeconds", "indexOptionDefaults", "storageEngine", "timeseries"})


def check_beside(options: Mapping[str, Any]) -> None:
    """Check that the other options fit a time series.

    :raises CommandError: 72, if they do not.
    """
    for name in options:
        if name not in _BESIDE:
            raise invalid_options(f"'timeseries' is not allowed with '{name}'")


def completed(options: Mapping[str, Any]) -> Document:
    """Return the ``timeseries`` of ``create`` with its defaults.

    :raises CommandError: if no time series can have the options.
    """
    for name, value in options.items():
        if name not in _STRINGS:
            raise not_supported("a time series", name)
        if type(value) is not str:
            raise type_mismatch(f"BSON field 'create.timeseries.{name}' is the wrong type '{type_name(value)}'")
    if "timeField" not in options:
        raise location(40414, "BSON field 'create.timeseries.timeField' is missing but a required field")
    granularity = options.get("granularity", "seconds")
    if granularity not in _SPANS:
        raise bad_value(f"Enumeration value '{granularity}' for field 'create.timeseries.granularity' is not valid")
    names = {name: options[name] for name in ("timeField", "metaField") if name in options}
    for name, value in names.items():
        if "\0" in value:
            raise bad_value(f"BSON field 'create.timeseries.{name}' cannot contain an embedded null byte")
        if "." in value:
            raise invalid_options(f"'{name}' must be a top-level field and not contain a '.'")
    if names.get("metaField") in ("_id", names["timeField"]):
        raise invalid_options("'metaField' cannot be \"_id\" or the same as 'timeField'")
    return {**names, "granularity": granularity, "bucketMaxSpanSeconds": _SPANS[granularity]}
