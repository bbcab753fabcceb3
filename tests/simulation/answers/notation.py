"""Extended JSON with a short form of numbers: a plain JSON number is an int32 or a double."""

from __future__ import annotations

import json
import math
from typing import Any

from bson import Binary, CodecOptions, DatetimeMS, Int64, json_util
from bson.codec_options import DatetimeConversion

_JSON_OPTIONS = json_util.JSONOptions(
    json_mode=json_util.JSONMode.CANONICAL, tz_aware=False, datetime_conversion=DatetimeConversion.DATETIME_MS
)
_CODEC: CodecOptions[Any] = CodecOptions(tz_aware=False)
_WRAPPER_KEYS = (
    *("$binary", "$code", "$date", "$dbPointer", "$maxKey", "$minKey", "$numberDecimal", "$numberDouble"),
    *("$numberLong", "$oid", "$regularExpression", "$symbol", "$timestamp", "$undefined"),
)
_INT32_LIMIT = 2**31
# First millisecond of the year 10000, which `datetime` cannot represent.
_YEAR_10000 = 253402300800000


def is_wrapper(value: Any) -> bool:
    """Return True if a JSON value is an Extended JSON object such as ``{"$oid": ...}``."""
    return isinstance(value, dict) and bool(value) and next(iter(value)) in _WRAPPER_KEYS


def to_json(value: Any) -> Any:
    """Convert a BSON value to a value that the module ``json`` can write."""
    if isinstance(value, dict):
        return {name: to_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(part) for part in value]
    if isinstance(value, bool) or value is None or type(value) is str:
        return value
    if isinstance(value, int):
        is_long = isinstance(value, Int64) or not -_INT32_LIMIT <= value < _INT32_LIMIT
        return {"$numberLong": str(value)} if is_long else int(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, DatetimeMS) and 0 <= int(value) < _YEAR_10000:
        return {"$date": f"{value.as_datetime(_CODEC).isoformat(timespec='milliseconds')}Z"}
    if type(value) is bytes:
        value = Binary(value)
    return to_json_parts(json_util.default(value, _JSON_OPTIONS))


def to_json_parts(wrapper: Any) -> Any:
    """Convert the values inside an Extended JSON object, such as the values in the scope of code."""
    return wrapper if is_wrapper(wrapper) and "$code" not in wrapper else to_json(wrapper)


def from_json(value: Any) -> Any:
    """Convert JSON values to BSON values."""
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: from_json(part) for name, part in value.items()}
    return json_util.object_hook(parts, _JSON_OPTIONS) if is_wrapper(value) else parts


def to_line(value: Any) -> str:
    """Return a value as JSON text in one line."""
    return json.dumps(value, ensure_ascii=False)
