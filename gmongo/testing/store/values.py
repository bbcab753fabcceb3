"""How BSON values compare: their order across types, equality, and the key that a value is filed under."""

from __future__ import annotations

import datetime
import functools
import re
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import bson
from bson.binary import Binary
from bson.code import Code
from bson.dbref import DBRef
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

Key = tuple[Any, ...]


class _Missing:
    """The value of a field that is not there."""

    def __repr__(self) -> str:
        return "<missing>"

    def __bool__(self) -> bool:
        return False


MISSING: Any = _Missing()

# The order of types when values are sorted.
_RANKS: tuple[tuple[type | tuple[type, ...], int], ...] = (
    (MinKey, 0),
    (_Missing, 5),
    (type(None), 5),
    (bool, 40),
    ((int, float, Decimal128), 10),
    (Code, 60),
    (str, 15),
    ((dict, DBRef), 20),
    ((list, tuple), 25),
    ((bytes, uuid.UUID), 30),
    (ObjectId, 35),
    (datetime.datetime, 45),
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
    ((dict, DBRef), "object"),
    ((list, tuple), "array"),
    ((bytes, uuid.UUID), "binData"),
    (ObjectId, "objectId"),
    (datetime.datetime, "date"),
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
    """The place of the value's type in the order of types."""
    kind = type(value)
    found = _known_ranks.get(kind)
    return _rank_of_type(kind) if found is None else found


def type_name(value: Any) -> str:
    """The type's alias, such as ``int``, ``long`` or ``missing``."""
    if isinstance(value, int) and not isinstance(value, (bool, Int64)):
        return "int" if -(2**31) <= value < 2**31 else "long"
    for types, name in _SIMPLE_TYPES:
        if isinstance(value, types):
            return name
    raise TypeError(f"{type(value).__name__} is no BSON type")


def is_number(value: Any) -> bool:
    """Whether the value is an int, long, double or decimal."""
    return rank(value) == 10


def is_whole(value: Any) -> bool:
    """Whether the value is an int, a long, or a double without a fraction."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value % 1 == 0


def compare(left: Any, right: Any) -> int:
    """Below zero, zero or above zero, in the order in which the server sorts."""
    by_type = rank(left) - rank(right)
    if by_type:
        return by_type
    return _COMPARISONS.get(rank(left), _compare_plain)(left, right)


def equal(left: Any, right: Any) -> bool:
    """Whether the server holds them to be the same value: 1 and 1.0 are, 1 and True are not."""
    return rank(left) == rank(right) and compare(left, right) == 0


def identical(left: Any, right: Any) -> bool:
    """Whether they are the same bytes: 1 and 1.0 are not."""
    return bool(bson.encode({"v": left}) == bson.encode({"v": right}))


def _sign(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def _compare_plain(left: Any, right: Any) -> int:
    return _sign(left, right)


def _number(value: Any) -> Any:
    return value.to_decimal() if isinstance(value, Decimal128) else value


def _compare_numbers(left: Any, right: Any) -> int:
    left, right = _number(left), _number(right)
    if left != left or right != right:  # NaN sorts below every number
        return (right != right) - (left != left)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = Decimal(left), Decimal(right)
    return _sign(left, right)


def _compare_nothing(_left: Any, _right: Any) -> int:
    return 0


def _compare_documents(left: Any, right: Any) -> int:
    first = left.as_doc() if isinstance(left, DBRef) else left
    second = right.as_doc() if isinstance(right, DBRef) else right
    for (name, value), (other, against) in zip(first.items(), second.items(), strict=False):
        found = rank(value) - rank(against) or _sign(name, other) or compare(value, against)
        if found:
            return found
    return len(first) - len(second)


def _compare_arrays(left: Any, right: Any) -> int:
    for value, against in zip(left, right, strict=False):
        found = compare(value, against)
        if found:
            return found
    return len(left) - len(right)


def _binary(value: Any) -> tuple[int, int, bytes]:
    if isinstance(value, uuid.UUID):
        value = Binary(value.bytes, 4)
    return len(value), getattr(value, "subtype", 0), bytes(value)


def _compare_binary(left: Any, right: Any) -> int:
    return _sign(_binary(left), _binary(right))


def _pattern(value: Any) -> tuple[Any, int]:
    return value.pattern, int(value.flags)


def _compare_patterns(left: Any, right: Any) -> int:
    return _sign(_pattern(left), _pattern(right))


_COMPARISONS = {
    0: _compare_nothing,
    5: _compare_nothing,
    10: _compare_numbers,
    20: _compare_documents,
    25: _compare_arrays,
    30: _compare_binary,
    50: _compare_patterns,
    127: _compare_nothing,
}

sort_key = functools.cmp_to_key(compare)


def key_of(value: Any) -> Key:
    """What the value is filed under: equal values, and only they, have equal keys."""
    kind = rank(value)
    if kind == 10:
        return kind, _number_key(value)
    if kind == 20:
        document = value.as_doc() if isinstance(value, DBRef) else value
        return (kind, *((name, key_of(part)) for name, part in document.items()))
    if kind == 25:
        return (kind, *(key_of(part) for part in value))
    if kind == 30:
        return (kind, *_binary(value))
    if kind == 50:
        return (kind, *_pattern(value))
    if kind == 60:
        return kind, str(value), key_of(value.scope)
    return (kind,) if kind in (0, 5, 127) else (kind, value)


def _number_key(value: Any) -> Any:
    number = _number(value)
    return "nan" if number != number else number


def copy_value(value: Any) -> Any:
    """A copy that shares no document and no array with the original."""
    if isinstance(value, Mapping):
        return {name: copy_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy_value(part) for part in value]
    return value


def is_true(value: Any) -> bool:
    """Whether a condition with this value holds: all but false, zero, null and missing do."""
    if value is None or value is MISSING:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal128):
        return bool(value.to_decimal())
    return bool(value) if is_number(value) else True
