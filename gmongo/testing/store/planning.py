"""Which documents a query has to look at: what an index says of its conditions, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.index import TOP, Index
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import Key, is_nan, is_number, key_of, rank

# More combinations of values than this are not looked up one by one.
_MOST_POINTS = 1000
_BOUNDED = frozenset({"$gt", "$gte", "$lt", "$lte"})


@dataclass(frozen=True)
class Plan:
    """How an index is used.

    :param prefixes: what entries begin with: keys that the first fields are to be equal to.
    :param low: what follows in the first entry.
    :param high: what follows in the last one.
    """

    index: Index
    prefixes: list[Key]
    low: Key = ()
    high: Key = (TOP,)

    @property
    def worth(self) -> tuple[int, int, int, int]:
        """Of two plans the one that is worth more looks at fewer documents, as a rule."""
        length = len(self.prefixes[0])
        return length, self.low != (), -len(self.prefixes), self.index.unique

    def keys(self) -> Iterator[Key]:
        """The keys of the records, some perhaps more than once."""
        for prefix in self.prefixes:
            yield from self.index.between(prefix, self.low, self.high)


def plan_of(indexes: Iterable[Index], query: Any, collation: Collation) -> Plan | None:
    """The best way to find all documents that the query may select; None without one."""
    conditions = conditions_of(query)
    if not conditions:
        return None
    plans = [_plan(index, conditions, collation) for index in indexes]
    return max((plan for plan in plans if plan is not None), key=lambda plan: plan.worth, default=None)


def conditions_of(query: Any) -> dict[str, list[tuple[str, Any]]]:
    """The conditions that all have to hold, by their paths."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for path, name, operand in _conditions(query):
        found.setdefault(path, []).append((name, operand))
    return found


def _conditions(query: Any) -> Iterator[tuple[str, str, Any]]:
    """The conditions that all have to hold."""
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


def usable(index: Index) -> bool:
    """Whether the index knows all documents with its fields."""
    options = index.options
    return index.is_ordered and not options.get("hidden") and "partialFilterExpression" not in options


def sorting_index(indexes: Iterable[Index], sort: Mapping[str, Any]) -> Index | None:
    """An index whose entries are in this order, forwards or backwards; None without one."""
    wanted = list(sort.items())
    if not wanted or not all(is_number(direction) for _, direction in wanted):
        return None
    for index in indexes:
        fields = list(index.keys.items())[: len(wanted)]
        same = [path for path, _ in fields] == [path for path, _ in wanted]
        if same and usable(index) and len({direction == sort[path] for path, direction in fields}) == 1:
            return index
    return None


def _plan(index: Index, conditions: Mapping[str, list[tuple[str, Any]]], collation: Collation) -> Plan | None:
    if not usable(index) or next(iter(index.keys)) not in conditions:
        return None
    points: list[list[Key]] = []
    for path in index.keys:
        # Conditions on several fields may hold for different elements of an array.
        if points and index.multikey:
            break
        found = _points(conditions.get(path, []), index.collation, collation)
        if found is None or len(found) * _product(points) > _MOST_POINTS:
            break
        points.append(found)
    prefixes = [tuple(parts) for parts in product(*points)]
    if not prefixes:
        return Plan(index, [()], (TOP,), (TOP,))  # an empty $in: nothing
    if len(points) < len(index.keys) and not (points and index.multikey):
        path = list(index.keys)[len(points)]
        bounds = _bounds(conditions.get(path, []), index, collation)
        if bounds is not None:
            return Plan(index, prefixes, *bounds)
    return Plan(index, prefixes) if points else None


def _product(points: list[list[Key]]) -> int:
    number = 1
    for keys in points:
        number *= len(keys)
    return number


def _points(conditions: list[tuple[str, Any]], of_index: Collation, collation: Collation) -> list[Key] | None:
    """The keys that a field has to be equal to one of."""
    for name, operand in conditions:
        wanted = [operand] if name == "$eq" else operand if name == "$in" and isinstance(operand, list) else None
        if wanted is not None and all(is_point(value, of_index, collation) for value in wanted):
            return list(dict.fromkeys(key_of(collation.folded(value)) for value in wanted))
    return None


def is_point(value: Any, of_index: Collation, collation: Collation) -> bool:
    """Whether all documents with the value are found under its key alone."""
    if value is None or isinstance(value, list) or is_pattern(value):
        return False
    return of_index == collation or not _has_text(value)


def _has_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_text, value.values()))
    return isinstance(value, (str, list))


def _bounds(conditions: list[tuple[str, Any]], index: Index, collation: Collation) -> tuple[Key, Key] | None:
    """The range that a field has to be in: it ends where the type of the bound does."""
    low: Key | None = None
    high: Key | None = None
    for name, operand in conditions:
        if name not in _BOUNDED or not is_point(operand, index.collation, collation) or is_nan(operand):
            continue
        kind, key = rank(operand), key_of(collation.folded(operand))
        if kind in (0, 127):
            continue
        if index.multikey and low is not None:
            continue  # the bounds may hold for different elements
        first, last = (((kind,),), ((kind + 0.5,),)) if low is None or high is None else (low, high)
        tail = (key, TOP) if name in ("$gt", "$lte") else (key,)
        low, high = (max(first, tail), last) if name in ("$gt", "$gte") else (first, min(last, tail))
    return None if low is None or high is None else (low, high)
