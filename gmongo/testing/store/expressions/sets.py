"""The expression operators that treat arrays as sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope
from gmongo.testing.store.expressions.operands import is_null, of_iterator, of_type, of_values, under_collation
from gmongo.testing.store.values import Key, is_true, key_of


def _set(value: Any, collation: Collation) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for element in of_type(list, value):
        found.setdefault(key_of(collation.folded(element)), element)
    return found


def _sorted_values(values: Mapping[Key, Any]) -> list[Any]:
    return [values[key] for key in sorted(values)]


def _union(found: dict[Key, Any], other: dict[Key, Any]) -> dict[Key, Any]:
    return {**other, **found}


def _intersection(found: dict[Key, Any], other: dict[Key, Any]) -> dict[Key, Any]:
    return {key: value for key, value in found.items() if key in other}


def _difference(collation: Collation, left: Any, right: Any) -> Any:
    if is_null(left) or is_null(right):
        return None
    minuend = _set(left, collation)
    subtrahend = _set(right, collation)
    return [value for key, value in minuend.items() if key not in subtrahend]


def _equals(collation: Collation, *arrays: Any) -> bool:
    found = [_set(array, collation).keys() for array in arrays]
    return all(one == found[0] for one in found)


def _is_subset(collation: Collation, inner: Any, outer: Any) -> bool:
    return _set(inner, collation).keys() <= _set(outer, collation).keys()


def _of_several_sets(combine: Callable[[dict[Key, Any], dict[Key, Any]], dict[Key, Any]]) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Expression:
        def run(arrays: Iterable[Any]) -> Any:
            values = list(arrays)
            found: list[dict[Key, Any]] = [_set(value, scope.collation) for value in values if not is_null(value)]
            if len(found) < len(values):
                return None
            combined: dict[Key, Any] = functools.reduce(combine, found) if found else {}
            return _sorted_values(combined)

        return of_iterator(run, commutes=True)(name, operand, scope)

    return make


def _all_true(array: Any) -> bool:
    return all(map(is_true, of_type(list, array)))


def _any_true(array: Any) -> bool:
    return any(map(is_true, of_type(list, array)))


OPERATORS: Mapping[str, Make] = {
    "$allElementsTrue": of_values(_all_true, 1),
    "$anyElementTrue": of_values(_any_true, 1),
    "$setDifference": under_collation(_difference, 2),
    "$setEquals": under_collation(_equals, 2, None),
    "$setIntersection": _of_several_sets(_intersection),
    "$setIsSubset": under_collation(_is_subset, 2),
    "$setUnion": _of_several_sets(_union),
}
