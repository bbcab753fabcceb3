"""Convert values to strings, for expression operators."""

from __future__ import annotations

import datetime
import math
from typing import Any

from bson.decimal128 import Decimal128
from bson.timestamp import Timestamp

from gmongo.testing.store.errors import location
from gmongo.testing.store.values import MISSING, is_date, is_number, type_name
from gmongo.testing.unsupported import not_supported


def coerced(value: Any) -> str:
    """Convert a value to a string, as the string operators convert their operands.

    Null and missing values become an empty string.

    :raises CommandError: the operators do not accept the type of the value.
    """
    if value is None or value is MISSING:
        return ""
    if isinstance(value, str):
        return str(value)
    if is_date(value):
        return date_text(value)
    if isinstance(value, Timestamp):
        return f"Timestamp({value.time}, {value.inc})"
    if isinstance(value, float):
        return f"{value:g}"  # at most six significant digits
    if is_number(value):
        return number_text(value)
    raise location(16007, f"can't convert from BSON type {type_name(value)} to String")


def number_text(value: Any) -> str:
    """Convert a number to a string."""
    if isinstance(value, float):
        return _of_double(value)
    return str(value) if isinstance(value, Decimal128) else str(int(value))


def _of_double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:g}"  # at most six significant digits


def date_text(value: Any) -> str:
    """Convert a date to a string in UTC, such as ``2000-01-01T00:00:00.000Z``."""
    if not isinstance(value, datetime.datetime):
        raise not_supported("a date beyond the years 1 to 9999")
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
