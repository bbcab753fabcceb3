"""Collection scans: skip records with a different plain value, without a Python call for each record."""

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

# A value of these types matches a plain value only if the two are equal in Python.
_WANTED: frozenset[type] = frozenset({str, int, Int64, ObjectId})
# All other values, such as arrays and decimals, need the full comparison.
_PLAIN: frozenset[type] = _WANTED | {bool, float, dict, type(None), datetime.datetime}
_NUMBERS: frozenset[type] = frozenset({int, Int64, float})
# The types of bounds that Python compares like a server, with the types of matching plain values.
_COMPARED: Mapping[type, frozenset[type]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **{kind: frozenset({kind}) for kind in (str, datetime.datetime)},
}
_RANGES = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_BATCH = 512


class _Bound(NamedTuple):
    """A condition on the plain value of a field.

    :param types: the types of plain values that can match.
    :param holds: compares a value with `operand`.
    """

    field: str
    types: frozenset[type]
    holds: Callable[[Any, Any], bool]
    operand: Any


def scanned(records: Mapping[Key, Record], query: Any, collation: Collation, pace: Pace) -> Iterable[Key]:
    """Return the keys of all records that the query may select, in natural order."""
    keys = list(records)
    for field, condition in query.items():
        if not field.startswith("$") and "." not in field:
            for bound in _bounds(field, condition):
                if collation == BINARY or bound.operand.__class__ is not str:
                    return _filtered(records, keys, bound, pace)
    return keys


def _bounds(field: str, condition: Any) -> Iterator[_Bound]:
    if condition.__class__ in _WANTED:
        yield _Bound(field, _PLAIN, operator.eq, condition)
    elif condition.__class__ is dict:
        for name, value in condition.items():
            if name == "$eq" and value.__class__ in _WANTED:
                yield _Bound(field, _PLAIN, operator.eq, value)
            elif name in _RANGES and value.__class__ in _COMPARED and not is_nan(value):
                yield _Bound(field, _COMPARED[value.__class__], _RANGES[name], value)


def _filtered(records: Mapping[Key, Record], keys: list[Key], bound: _Bound, pace: Pace) -> Iterator[Key]:
    select = _equal if bound.holds is operator.eq else _within
    for start in range(0, len(keys), _BATCH):
        some = keys[start : start + _BATCH]
        yield from select(zip(some, map(records.get, some), strict=True), bound)
        pace.pause()


def _equal(some: Iterable[tuple[Key, Record | None]], bound: _Bound) -> list[Key]:
    field, operand = bound.field, bound.operand
    return [
        key
        for key, record in some
        if record is not None and ((value := record[1].get(field)) == operand or value.__class__ not in _PLAIN)
    ]


def _within(some: Iterable[tuple[Key, Record | None]], bound: _Bound) -> list[Key]:
    field, types, holds, operand = bound
    return [
        key
        for key, record in some
        if record is not None
        and (
            ((kind := (value := record[1].get(field)).__class__) in types and holds(value, operand))
            or kind not in _PLAIN
        )
    ]
