"""Comparisons of BSON values: the order across types, equality and sort keys."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import bson
from bson.binary import Binary
from bson.code import Code
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

Key = tuple[Any, ...]


class _Missing:
    """The value of a missing field."""

    def __repr__(self) -> str:
        return "<missing>"

    def __bool__(self) -> bool:
        return False


class _EmptyArray:
    """The value of an empty array in sorts and indexes."""

    def __repr__(self) -> str:
        return "<empty array>"


MISSING: Any = _Missing()
EMPTY_ARRAY: Any = _EmptyArray()

_NAN = 9  # sorts below all other numbers
_NUMBER = 10
_EPOCH = datetime.datetime(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_FIRST_DATE = (datetime.datetime.min - _EPOCH) // _MILLISECOND
_LAST_DATE = (datetime.datetime.max - _EPOCH) // _MILLISECOND
# Types with the same order in Python and on the server, with their ranks.
_QUICK: dict[type, int] = {int: _NUMBER, Int64: _NUMBER, str: 15, bool: 40, ObjectId: 35}

# The order of types when values are sorted.
_RANKS: tuple[tuple[type | tuple[type, ...], int], ...] = (
    (MinKey, 0),
    (_EmptyArray, 2),
    (_Missing, 3),
    (type(None), 5),
    (bool, 40),
    ((int, float, Decimal128), _NUMBER),
    (Code, 60),
    (str, 15),
    (Mapping, 20),
    ((list, tuple), 25),
    ((bytes, uuid.UUID), 30),
    (ObjectId, 35),
    ((datetime.datetime, DatetimeMS), 45),
    (Timestamp, 47),
    ((Regex, re.Pattern), 50),
    (MaxKey, 127),
)

TYPE_NAMES: tuple[tuple[str, int], ...] = (
    ("double", 1),
    ("string", 2),
    ("object", 3),
    ("array", 4),
    ("binData", 5),
    ("undefined", 6),
    ("objectId", 7),
    ("bool", 8),
    ("date", 9),
    ("null", 10),
    ("regex", 11),
    ("dbPointer", 12),
    ("javascript", 13),
    ("symbol", 14),
    ("javascriptWithScope", 15),
    ("int", 16),
    ("timestamp", 17),
    ("long", 18),
    ("decimal", 19),
    ("minKey", -1),
    ("maxKey", 127),
)

_SIMPLE_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (_Missing, "missing"),
    (type(None), "null"),
    (bool, "bool"),
    (Int64, "long"),
    (float, "double"),
    (Decimal128, "decimal"),
    (Code, "javascript"),
    (str, "string"),
    (Mapping, "object"),
    ((list, tuple), "array"),
    ((bytes, uuid.UUID), "binData"),
    (ObjectId, "objectId"),
    ((datetime.datetime, DatetimeMS), "date"),
    (Timestamp, "timestamp"),
    ((Regex, re.Pattern), "regex"),
    (MinKey, "minKey"),
    (MaxKey, "maxKey"),
)


_known_ranks: dict[type, int] = {}


def _rank_of_type(kind: type) -> int:
    for types, rank in _RANKS:
        if issubclass(kind, types):
            _known_ranks[kind] = rank
            return rank
    raise TypeError(f"{kind.__name__} is no BSON type")


def rank(value: Any) -> int:
    """Return the position of the type of a value in the order of types."""
    kind = type(value)
    found = _known_ranks.get(kind)
    return _rank_of_type(kind) if found is None else found


def type_name(value: Any) -> str:
    """Return the alias of the type, such as ``int``, ``long`` or ``missing``."""
    if isinstance(value, Code) and value.scope is not None:
        return "javascriptWithScope"
    if isinstance(value, int) and not isinstance(value, (bool, Int64)):
        return "int" if -(2**31) <= value < 2**31 else "long"
    for types, name in _SIMPLE_TYPES:
        if isinstance(value, types):
            return name
    raise TypeError(f"{type(value).__name__} is no BSON type")


def is_number(value: Any) -> bool:
    """True for an int, long, double or decimal."""
    return rank(value) == _NUMBER


def is_nan(value: Any) -> bool:
    """True for NaN as a double or a decimal."""
    if isinstance(value, float):
        return value != value
    return isinstance(value, Decimal128) and value.to_decimal().is_nan()


def is_whole(value: Any) -> bool:
    """True for an int, a long, or a double or decimal without a fraction."""
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        return number.is_finite() and number == number.to_integral_value()
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0


def whole(value: Any) -> int:
    """Return a number without its fraction."""
    return int(value.to_decimal()) if isinstance(value, Decimal128) else int(value)


def long_of(value: Any) -> int:
    """Return a number as a server reads a long: without the fraction, limited to the range of a long, 0 for NaN."""
    if is_nan(value):
        return 0
    return int(max(-(2**63), min(2**63 - 1, value.to_decimal() if isinstance(value, Decimal128) else value)))


def milliseconds(date: Any) -> int:
    """Return the milliseconds of a date since 1970."""
    if isinstance(date, DatetimeMS):
        return int(date)
    if date.tzinfo is not None:
        date = date.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return int((date - _EPOCH) // _MILLISECOND)


def date_of(number: int) -> Any:
    """Return the date for milliseconds since 1970. Dates outside of the range of Python are ``DatetimeMS`` values."""
    if _FIRST_DATE <= number <= _LAST_DATE:
        return _EPOCH + datetime.timedelta(milliseconds=number)
    return DatetimeMS(number)


def is_date(value: Any) -> bool:
    """True if the value is a date."""
    return isinstance(value, (datetime.datetime, DatetimeMS))


def key_of(value: Any) -> Key:
    """Return the sort key of a value.

    Only equal values have equal keys. Keys sort in the order of the server.
    """
    quick = _QUICK.get(type(value))
    if quick is not None:
        return quick, value
    kind = rank(value)
    make = _KEYS.get(kind)
    return (kind,) if make is None else make(kind, value)


def _number_key(kind: int, value: Any) -> Key:
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    return (_NAN,) if value != value else (kind, value)


def _document_key(kind: int, value: Any) -> Key:
    # The server compares the type of a field before its name.
    return kind, tuple((rank(part), name, key_of(part)) for name, part in value.items())


def _array_key(kind: int, value: Any) -> Key:
    return kind, tuple(key_of(part) for part in value)


def _binary_key(kind: int, value: Any) -> Key:
    if isinstance(value, uuid.UUID):
        value = Binary(value.bytes, 4)
    return kind, len(value), getattr(value, "subtype", 0), bytes(value)


def _pattern_key(kind: int, value: Any) -> Key:
    return kind, value.pattern, flags_of(value)


def _code_key(kind: int, value: Any) -> Key:
    return (kind, str(value)) if value.scope is None else (kind + 5, str(value), key_of(value.scope))


def _plain_key(kind: int, value: Any) -> Key:
    return kind, value


_KEYS: Mapping[int, Callable[[int, Any], Key]] = {
    _NUMBER: _number_key,
    15: _plain_key,
    20: _document_key,
    25: _array_key,
    30: _binary_key,
    35: _plain_key,
    40: _plain_key,
    45: lambda kind, value: (kind, milliseconds(value)),
    47: lambda kind, value: (kind, value.time, value.inc),
    50: _pattern_key,
    60: _code_key,
}
_FLAGS = ((re.IGNORECASE, "i"), (re.LOCALE, "l"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.UNICODE, "u"),
          (re.VERBOSE, "x"))  # fmt: skip


def flags_of(pattern: Any) -> str:
    """Return the options of a BSON regular expression as letters."""
    flags = int(pattern.flags)
    # Python adds the Unicode flag to each pattern of text.
    return "".join(
        letter for flag, letter in _FLAGS if flags & flag and not (letter == "u" and hasattr(pattern, "search"))
    )


def compare(left: Any, right: Any) -> int:
    """Return a number below, at or above zero, in the sort order of the server."""
    if type(left) is type(right) and type(left) in _QUICK:
        first, second = left, right
    else:
        first, second = key_of(left), key_of(right)
    order: int = (first > second) - (first < second)
    return order


def equal(left: Any, right: Any) -> bool:
    """True if the server compares the values as equal: 1 and 1.0 are equal, 1 and True are not."""
    return compare(left, right) == 0


def identical(left: Any, right: Any) -> bool:
    """True if the values have the same bytes: 1 and 1.0 differ."""
    return bool(bson.encode({"v": left}) == bson.encode({"v": right}))


def copy_value(value: Any) -> Any:
    """Return a copy that shares no document and no array with the original."""
    if isinstance(value, Mapping):
        return {name: copy_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy_value(part) for part in value]
    return value


def is_true(value: Any) -> bool:
    """True for all values in a condition except false, zero, null and missing."""
    if value is None or value is MISSING:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal128):
        return value.to_decimal() != 0
    return value != 0 if is_number(value) else True
