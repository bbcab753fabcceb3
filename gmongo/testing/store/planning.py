"""Select an index for a query, and the bounds of the index entries to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.index import HIGHEST_KEY, Index
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import Key, find_rank, is_nan, is_number, make_key

_RANGE_OPERATORS = frozenset({"$gt", "$gte", "$lt", "$lte"})


@dataclass(frozen=True)
class Plan:
    """The index entries that a query reads."""

    index: Index  # the index that the query reads
    prefixes: list[Key]  # the sort keys of an equality condition on the first field, or one empty key
    low: Key = ()  # the lower bound of the first field, if the prefix is empty
    high: Key = (HIGHEST_KEY,)  # the upper bound of the first field, if the prefix is empty
    equality_count: int = 0  # the number of leading index fields that have an equality condition

    @property
    def preference(self) -> tuple[int, int, int, int]:
        """A sort key for plans. The plan with the highest key usually reads the fewest documents."""
        return self.equality_count, self.low != (), -len(self.prefixes), self.index.unique

    def keys(self) -> Iterator[Key]:
        """Yield the keys of the records in the range of the plan. A key can occur more than once."""
        for prefix in self.prefixes:
            yield from self.index.find_between(prefix, self.low, self.high)


def select_plan(indexes: Iterable[Index], query: Any, collation: Collation) -> Plan | None:
    """Return the best plan for a query. Return None if no index can be used."""
    conditions = group_conditions(query)
    if not conditions:
        return None
    plans = [_create_plan(index, conditions, collation) for index in indexes]
    return max((plan for plan in plans if plan is not None), key=lambda plan: plan.preference, default=None)


def group_conditions(query: Any) -> dict[str, list[tuple[str, Any]]]:
    """Return conditions that each matching document satisfies: pairs (operator, operand) by path."""
    conditions: dict[str, list[tuple[str, Any]]] = {}
    for path, name, operand in _find_conditions(query):
        conditions.setdefault(path, []).append((name, operand))
    return conditions


def _find_conditions(query: Any) -> Iterator[tuple[str, str, Any]]:
    for path, condition in query.items():
        if path == "$and":
            for clause in condition:
                yield from _find_conditions(clause)
        elif path.startswith("$"):
            continue
        elif has_operators(condition):
            yield from ((path, name, operand) for name, operand in condition.items())
        else:
            yield path, "$eq", condition


def is_usable(index: Index) -> bool:
    """Return True if plans can use the index: an ordered index that is neither hidden nor partial."""
    options = index.options
    return index.is_ordered and not options.get("hidden") and "partialFilterExpression" not in options


def find_sorting_index(indexes: Iterable[Index], sort: Mapping[str, Any]) -> Index | None:
    """Return an index with entries in the order of `sort`, forward or backward. Else return None."""
    sort_fields = list(sort.items())
    if not sort_fields or not all(is_number(direction) for _, direction in sort_fields):
        return None
    for index in indexes:
        fields = list(index.keys.items())[: len(sort_fields)]
        has_same_paths = [path for path, _ in fields] == [path for path, _ in sort_fields]
        if has_same_paths and is_usable(index) and len({direction == sort[path] for path, direction in fields}) == 1:
            return index
    return None


def _create_plan(index: Index, conditions: Mapping[str, list[tuple[str, Any]]], collation: Collation) -> Plan | None:
    def find_keys(path: str) -> list[Key] | None:
        return _find_equality_keys(conditions.get(path, []), index.collation, collation)

    first_path = next(iter(index.keys))
    if not is_usable(index) or first_path not in conditions:
        return None
    keys = find_keys(first_path)
    if keys is not None:
        equality_count = len(list(takewhile(lambda path: find_keys(path) is not None, index.keys)))
        return Plan(index, [(key,) for key in keys], equality_count=equality_count)
    bounds = _find_bounds(conditions[first_path], index, collation)
    return None if bounds is None else Plan(index, [()], *bounds)


def _find_equality_keys(
    conditions: list[tuple[str, Any]], index_collation: Collation, collation: Collation
) -> list[Key] | None:
    """Return the sort keys that an equality condition or ``$in`` compares. Return None without such a condition."""
    for name, operand in conditions:
        values = [operand] if name == "$eq" else operand if name == "$in" and isinstance(operand, list) else None
        if values is not None and all(has_single_key(value, index_collation, collation) for value in values):
            return list(dict.fromkeys(make_key(collation.apply(value)) for value in values))
    return None


def has_single_key(value: Any, index_collation: Collation, collation: Collation) -> bool:
    """Return True if all field values that match `value` have the same sort key in an index."""
    if value is None or isinstance(value, list) or is_pattern(value):
        return False
    return index_collation == collation or not _may_contain_strings(value)


def _may_contain_strings(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_may_contain_strings, value.values()))
    return isinstance(value, (str, list))


def _find_bounds(conditions: list[tuple[str, Any]], index: Index, collation: Collation) -> tuple[Key, Key] | None:
    """Return the lower and upper bounds of a field. Return None if no condition has a bound.

    A comparison matches only values of the type of its operand. Therefore one condition determines both bounds.
    """
    low: Key | None = None
    high: Key | None = None
    for name, operand in conditions:
        if name not in _RANGE_OPERATORS or not has_single_key(operand, index.collation, collation) or is_nan(operand):
            continue
        type_rank, key = find_rank(operand), make_key(collation.apply(operand))
        if type_rank in (0, 127):
            continue
        if index.is_multikey and low is not None:
            continue  # different elements of an array may match the two conditions
        lowest, highest = low, high
        if lowest is None or highest is None:
            lowest, highest = ((type_rank,),), ((type_rank + 0.5,),)
        bound = (key, HIGHEST_KEY) if name in ("$gt", "$lte") else (key,)
        low, high = (max(lowest, bound), highest) if name in ("$gt", "$gte") else (lowest, min(highest, bound))
    return None if low is None or high is None else (low, high)
