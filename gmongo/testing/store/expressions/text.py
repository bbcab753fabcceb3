"""Convert numbers and dates to strings, for expression operators."""

from __future__ import annotations

import datetime
import math
from typing import Any

from bson.decimal128 import Decimal128

from gmongo.testing.unsupported import not_supported


def number_text(value: Any) -> str:
    """Convert a number to a string."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{value:g}"  # at most six significant digits
    return str(value) if isinstance(value, Decimal128) else str(int(value))


def date_text(value: Any) -> str:
    """Convert a date to a string in UTC, such as ``2000-01-01T00:00:00.000Z``."""
    if not isinstance(value, datetime.datetime):
        raise not_supported("a date beyond the years 1 to 9999")
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
