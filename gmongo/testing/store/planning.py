"""Select an index for a query, and the bounds of the index entries to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.index import TOP, Index
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import Key, is_nan, is_number, key_of, rank

_BOUNDED = frozenset({"$gt", "$gte", "$lt", "$lte"})


@dataclass(frozen=True)
class Plan:
    """The index entries that a query reads."""

    index: Index  # the index that the query reads
    prefixes: list[Key]  # the sort keys of the first field, if the query compares the field for equality
    low: Key = ()  # the lower bound of the first field, if there is no prefix
    high: Key = (TOP,)  # the upper bound of the first field, if there is no prefix
    matched: int = 0  # the number of the first fields of the index that the query compares for equality

    @property
    def preference(self) -> tuple[int, int, int, int]:
        """A sort key for plans. The plan with the highest sort key usually reads the fewest documents."""
        return self.matched, self.low != (), -len(self.prefixes), self.index.unique

    def keys(self) -> Iterator[Key]:
        """Yield the keys of the records in the range of the plan. A key can occur more than once."""
        for prefix in self.prefixes:
            yield from self.index.between(prefix, self.low, self.high)


def plan_of(indexes: Iterable[Index], query: Any, collation: Collation) -> Plan | None:
    """Return the best plan that reads all documents that match the query. Return None if no index can be used."""
    conditions = conditions_of(query)
    if not conditions:
        return None
    plans = [_plan(index, conditions, collation) for index in indexes]
    return max((plan for plan in plans if plan is not None), key=lambda plan: plan.preference, default=None)


def conditions_of(query: Any) -> dict[str, list[tuple[str, Any]]]:
    """Return the conditions that all matching documents satisfy, as pairs of operator and operand by path."""
    conditions: dict[str, list[tuple[str, Any]]] = {}
    for path, name, operand in _conditions(query):
        conditions.setdefault(path, []).append((name, operand))
    return conditions


def _conditions(query: Any) -> Iterator[tuple[str, str, Any]]:
    for path, condition in query.items():
        if path == "$and":
            for part in condition:
                yield from _conditions(part)
        elif path.startswith("$"):
            continue
        elif is_operators(condition):
            yield from ((path, name, operand) for name, operand in condition.items())
        else:
            yield path, "$eq", condition


def is_usable(index: Index) -> bool:
    """Return True if plans can use the index. A hidden or partial index, or an index without entries, is not usable."""
    options = index.options
    return index.is_ordered and not options.get("hidden") and "partialFilterExpression" not in options


def sorting_index(indexes: Iterable[Index], sort: Mapping[str, Any]) -> Index | None:
    """Return an index whose entries are in the order of `sort`, or in reverse order.

    If there is no such index, return None.
    """
    required = list(sort.items())
    if not required or not all(is_number(direction) for _, direction in required):
        return None
    for index in indexes:
        fields = list(index.keys.items())[: len(required)]
        same = [path for path, _ in fields] == [path for path, _ in required]
        if same and is_usable(index) and len({direction == sort[path] for path, direction in fields}) == 1:
            return index
    return None


def _plan(index: Index, conditions: Mapping[str, list[tuple[str, Any]]], collation: Collation) -> Plan | None:
    def points(path: str) -> list[Key] | None:
        return _points(conditions.get(path, []), index.collation, collation)

    first = next(iter(index.keys))
    if not is_usable(index) or first not in conditions:
        return None
    found = points(first)
    if found is not None:
        matched = len(list(takewhile(lambda path: points(path) is not None, index.keys)))
        return Plan(index, [(key,) for key in found], matched=matched)
    bounds = _bounds(conditions[first], index, collation)
    return None if bounds is None else Plan(index, [()], *bounds)


def _points(conditions: list[tuple[str, Any]], index_collation: Collation, collation: Collation) -> list[Key] | None:
    """Return the sort keys of the values of an equality condition or ``$in``, or None without such a condition."""
    for name, operand in conditions:
        required = [operand] if name == "$eq" else operand if name == "$in" and isinstance(operand, list) else None
        if required is not None and all(is_point(value, index_collation, collation) for value in required):
            return list(dict.fromkeys(key_of(collation.folded(value)) for value in required))
    return None


def is_point(value: Any, index_collation: Collation, collation: Collation) -> bool:
    """Return True if all documents that have the value have equal sort keys in an index."""
    if value is None or isinstance(value, list) or is_pattern(value):
        return False
    return index_collation == collation or not _may_contain_strings(value)


def _may_contain_strings(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_may_contain_strings, value.values()))
    return isinstance(value, (str, list))


def _bounds(conditions: list[tuple[str, Any]], index: Index, collation: Collation) -> tuple[Key, Key] | None:
    """Return the lower and upper bounds of a field. Return None if no condition has a bound.

    A comparison matches only values of the type of its operand. Therefore one condition determines both bounds.
    """
    low: Key | None = None
    high: Key | None = None
    for name, operand in conditions:
        if name not in _BOUNDED or not is_point(operand, index.collation, collation) or is_nan(operand):
            continue
        kind, key = rank(operand), key_of(collation.folded(operand))
        if kind in (0, 127):
            continue
        if index.multikey and low is not None:
            continue  # different elements of an array may match the two conditions
        first, last = (((kind,),), ((kind + 0.5,),)) if low is None or high is None else (low, high)
        tail = (key, TOP) if name in ("$gt", "$lte") else (key,)
        low, high = (max(first, tail), last) if name in ("$gt", "$gte") else (first, min(last, tail))
    return None if low is None or high is None else (low, high)
