"""Scan a collection. The scan skips records by comparing plain values, without a Python call for each record."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bson.int64 import Int64
from bson.objectid import ObjectId

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.data import Record
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import Key, is_nan

# If a query compares a field with an operand of these types, a plain value matches only if the value equals the operand
# in Python.
_EQUALITY_TYPES: frozenset[type] = frozenset({str, int, Int64, ObjectId})
# The types of plain values. All other values, such as arrays and decimals, need the complete comparison of a query.
_PLAIN: frozenset[type] = _EQUALITY_TYPES | {bool, float, dict, type(None), datetime.datetime}
_NUMBERS: frozenset[type] = frozenset({int, Int64, float})
# The types of plain values that Python and a server compare equally with the operand of a range, by
# the type of the operand.
_COMPARED: Mapping[type, frozenset[type]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **{kind: frozenset({kind}) for kind in (str, datetime.datetime)},
}
_RANGES = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_BATCH = 512


class _Bound(NamedTuple):
    """A condition on the plain value of a field.

    :param field: the name of the field.
    :param types: the types of plain values that can match.
    :param holds: a function that compares a value with `operand`, such as ``operator.gt``.
    :param operand: the operand of the condition.
    """

    field: str
    types: frozenset[type]
    holds: Callable[[Any, Any], bool]
    operand: Any


def scan_keys(records: Mapping[Key, Record], query: Any, collation: Collation, pace: Pace) -> Iterable[Key]:
    """Return the keys of all records that the query may match, in natural order.

    The result can include records that do not match.
    """
    keys = list(records)
    for field, condition in query.items():
        if not field.startswith("$") and "." not in field:
            for bound in _bounds(field, condition):
                if collation == BINARY or bound.operand.__class__ is not str:
                    return _filtered(records, keys, bound, pace)
    return keys


def _bounds(field: str, condition: Any) -> Iterator[_Bound]:
    if condition.__class__ in _EQUALITY_TYPES:
        yield _Bound(field, _PLAIN, operator.eq, condition)
    elif condition.__class__ is dict:
        for name, value in condition.items():
            if name == "$eq" and value.__class__ in _EQUALITY_TYPES:
                yield _Bound(field, _PLAIN, operator.eq, value)
            elif name in _RANGES and value.__class__ in _COMPARED and not is_nan(value):
                yield _Bound(field, _COMPARED[value.__class__], _RANGES[name], value)


def _filtered(records: Mapping[Key, Record], keys: list[Key], bound: _Bound, pace: Pace) -> Iterator[Key]:
    select = _select_equal if bound.holds is operator.eq else _select_in_range
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        yield from select(zip(batch, map(records.get, batch), strict=True), bound)
        pace.pause()


def _select_equal(items: Iterable[tuple[Key, Record | None]], bound: _Bound) -> list[Key]:
    field, operand = bound.field, bound.operand
    return [
        key
        for key, record in items
        if record is not None and ((value := record[1].get(field)) == operand or value.__class__ not in _PLAIN)
    ]


def _select_in_range(items: Iterable[tuple[Key, Record | None]], bound: _Bound) -> list[Key]:
    field, types, holds, operand = bound
    return [
        key
        for key, record in items
        if record is not None
        and (
            ((kind := (value := record[1].get(field)).__class__) in types and holds(value, operand))
            or kind not in _PLAIN
        )
    ]
