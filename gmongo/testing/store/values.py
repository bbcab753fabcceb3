"""Compare BSON values like a server: the order of types and values, equality, and sort keys."""

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
    """The value that represents a missing field."""

    def __repr__(self) -> str:
        return "<missing>"

    def __bool__(self) -> bool:
        return False


class _EmptyArray:
    """The value that represents an empty array in sorts and indexes."""

    def __repr__(self) -> str:
        return "<empty array>"


MISSING: Any = _Missing()
EMPTY_ARRAY: Any = _EmptyArray()

_NAN_RANK = 9  # the rank of NaN, which sorts before all other numbers
_NUMBER_RANK = 10
EPOCH = datetime.datetime(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_FIRST_DATE = (datetime.datetime.min - EPOCH) // _MILLISECOND
_LAST_DATE = (datetime.datetime.max - EPOCH) // _MILLISECOND
# The ranks of the types whose values Python and a server sort in the same order.
_SIMPLE_RANKS: dict[type, int] = {int: _NUMBER_RANK, Int64: _NUMBER_RANK, str: 15, bool: 40, ObjectId: 35}

# Triples: a Python type or several types, the rank, and the name of the BSON type. Values sort by rank first.
_TYPES: tuple[tuple[type | tuple[type, ...], int, str], ...] = (
    (MinKey, 0, "minKey"),
    (_EmptyArray, 2, "array"),
    (_Missing, 3, "missing"),
    (type(None), 5, "null"),
    (bool, 40, "bool"),
    (Int64, _NUMBER_RANK, "long"),
    (int, _NUMBER_RANK, "int"),
    (float, _NUMBER_RANK, "double"),
    (Decimal128, _NUMBER_RANK, "decimal"),
    (Code, 60, "javascript"),
    (str, 15, "string"),
    (Mapping, 20, "object"),
    ((list, tuple), 25, "array"),
    ((bytes, uuid.UUID), 30, "binData"),
    (ObjectId, 35, "objectId"),
    ((datetime.datetime, DatetimeMS), 45, "date"),
    (Timestamp, 47, "timestamp"),
    ((Regex, re.Pattern), 50, "regex"),
    (MaxKey, 127, "maxKey"),
)

_NUMBERED_TYPE_NAMES = """double string object array binData undefined objectId bool date null regex
    dbPointer javascript symbol javascriptWithScope int timestamp long decimal"""
TYPE_NAMES: tuple[tuple[str, int], ...] = (
    *((name, number) for number, name in enumerate(_NUMBERED_TYPE_NAMES.split(), 1)), ("minKey", -1), ("maxKey", 127)
)  # fmt: skip
TYPE_NAMES_BY_NUMBER = {number: name for name, number in TYPE_NAMES}
DBREF_FIELDS = frozenset({"$ref", "$id", "$db"})

_cached_ranks_and_names: dict[type, tuple[int, str]] = {}


def _find_rank_and_name(kind: type) -> tuple[int, str]:
    if kind in _cached_ranks_and_names:
        return _cached_ranks_and_names[kind]
    for types, rank, name in _TYPES:
        if issubclass(kind, types):
            return _cached_ranks_and_names.setdefault(kind, (rank, name))
    raise TypeError(f"{kind.__name__} is not a BSON type")


def find_rank(value: Any) -> int:
    """Return the rank of a value's type. A server sorts values by the ranks of their types first."""
    return _find_rank_and_name(type(value))[0]


def type_name(value: Any) -> str:
    """Return the name of the BSON type of a value, such as ``int`` or ``long``. Return ``missing`` for MISSING."""
    name = _find_rank_and_name(type(value))[1]
    if name == "int" and not -(2**31) <= value < 2**31:
        return "long"
    return "javascriptWithScope" if name == "javascript" and value.scope is not None else name


def is_number(value: Any) -> bool:
    """Return True if the value is an int, long, double or decimal."""
    return find_rank(value) == _NUMBER_RANK


def is_nan(value: Any) -> bool:
    """Return True if the value is a double or a decimal that is NaN."""
    if isinstance(value, float):
        return value != value
    return isinstance(value, Decimal128) and value.to_decimal().is_nan()


def is_integral(value: Any) -> bool:
    """Return True if the value is a finite number without a fractional part."""
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        return number.is_finite() and number == number.to_integral_value()
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0


def trunc(value: Any) -> int:
    """Return the integral part of a number."""
    return int(value.to_decimal()) if isinstance(value, Decimal128) else int(value)


def to_long(value: Any) -> int:
    """Return the integral part of a number, limited to the range of a long. Return 0 for NaN."""
    if is_nan(value):
        return 0
    return int(max(-(2**63), min(2**63 - 1, value.to_decimal() if isinstance(value, Decimal128) else value)))


def to_millis(date: Any) -> int:
    """Return the number of milliseconds from 1970 to a date."""
    if isinstance(date, DatetimeMS):
        return int(date)
    if date.tzinfo is not None:
        date = date.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return int((date - EPOCH) // _MILLISECOND)


def create_date(millis: int) -> Any:
    """Return the date that is `millis` milliseconds after 1970, or a ``DatetimeMS`` outside the years 1 to 9999."""
    if _FIRST_DATE <= millis <= _LAST_DATE:
        return EPOCH + datetime.timedelta(milliseconds=millis)
    return DatetimeMS(millis)


def is_date(value: Any) -> bool:
    """Return True if the value is a date."""
    return isinstance(value, (datetime.datetime, DatetimeMS))


def make_key(value: Any) -> Key:
    """Return the sort key of a value.

    Only values that a server compares as equal have equal keys. Keys sort in the order in which a server sorts values.
    """
    simple_rank = _SIMPLE_RANKS.get(type(value))
    if simple_rank is not None:
        return simple_rank, value
    type_rank = find_rank(value)
    create = _KEY_FUNCTIONS.get(type_rank)
    return (type_rank,) if create is None else create(type_rank, value)


def _create_number_key(type_rank: int, value: Any) -> Key:
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    return (_NAN_RANK,) if value != value else (type_rank, value)


def _create_binary_key(type_rank: int, value: Any) -> Key:
    if isinstance(value, uuid.UUID):
        value = Binary(value.bytes, 4)
    return type_rank, len(value), getattr(value, "subtype", 0), bytes(value)


# A server compares documents field by field: first the types of the two fields, then their names, then their values.
_KEY_FUNCTIONS: Mapping[int, Callable[[int, Any], Key]] = {
    _NUMBER_RANK: _create_number_key,
    15: lambda rank, value: (rank, value),
    20: lambda rank, value: (rank, tuple((find_rank(part), name, make_key(part)) for name, part in value.items())),
    25: lambda rank, value: (rank, tuple(make_key(part) for part in value)),
    30: _create_binary_key,
    35: lambda rank, value: (rank, value),
    40: lambda rank, value: (rank, value),
    45: lambda rank, value: (rank, to_millis(value)),
    47: lambda rank, value: (rank, value.time, value.inc),
    50: lambda rank, value: (rank, value.pattern, join_flags(value)),
    60: lambda rank, value: (
        (rank, str(value)) if value.scope is None else (rank + 5, str(value), make_key(value.scope))
    ),
}
_FLAG_LETTERS = ((re.IGNORECASE, "i"), (re.LOCALE, "l"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.UNICODE, "u"),
          (re.VERBOSE, "x"))  # fmt: skip


def join_flags(pattern: Any) -> str:
    """Return the options of a BSON regular expression as letters."""
    flags = int(pattern.flags)
    # Python adds the flag `re.UNICODE` to each pattern that is a `str`.
    return "".join(
        letter for flag, letter in _FLAG_LETTERS if flags & flag and not (letter == "u" and hasattr(pattern, "search"))
    )


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 if a server sorts `left` before, equal to, or after `right`."""
    if type(left) is type(right) and type(left) in _SIMPLE_RANKS:
        first, second = left, right
    else:
        first, second = make_key(left), make_key(right)
    order: int = (first > second) - (first < second)
    return order


def are_equal(left: Any, right: Any) -> bool:
    """Return True if a server compares the values as equal. 1 and 1.0 are equal. 1 and True are not equal."""
    return compare(left, right) == 0


def are_identical(left: Any, right: Any) -> bool:
    """Return True if the BSON bytes of the values are equal. 1 and 1.0 have different bytes."""
    return bool(bson.encode({"v": left}) == bson.encode({"v": right}))


def copy_value(value: Any) -> Any:
    """Return a deep copy of a value. All documents and arrays in the copy are new objects."""
    if isinstance(value, Mapping):
        return {name: copy_value(child) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy_value(child) for child in value]
    return value


def is_true(value: Any) -> bool:
    """Return True if a server treats the value as true. False, zero, null and missing values are not true."""
    if value is None or value is MISSING:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal128):
        return value.to_decimal() != 0
    return value != 0 if is_number(value) else True
