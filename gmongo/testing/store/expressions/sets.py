"""The expression operators that treat arrays as sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import Constant, Expression, Make, Scope, Variables, folded, optimizes
from gmongo.testing.store.expressions.operands import arguments, of_iterator, of_values, under_collation
from gmongo.testing.store.values import MISSING, Key, is_true, key_of, type_name


def _set(name: str, value: Any, code: int, collation: Collation) -> dict[Key, Any]:
    if not isinstance(value, list):
        raise location(code, f"All operands of {name} must be arrays. One argument is of type: {type_name(value)}")
    found: dict[Key, Any] = {}
    for element in value:
        found.setdefault(key_of(collation.folded(element)), element)
    return found


def _is_null_or_missing(value: Any) -> bool:
    return value is None or value is MISSING


def _sorted_values(values: Mapping[Key, Any]) -> list[Any]:
    return [values[key] for key in sorted(values)]


def _union(collation: Collation, arrays: Iterable[Any]) -> Any:
    found: dict[Key, Any] = {}
    for array in arrays:
        if _is_null_or_missing(array):
            return None
        found = {**_set("$setUnion", array, 17043, collation), **found}
    return _sorted_values(found)


def _intersection(collation: Collation, arrays: Iterable[Any]) -> Any:
    found: dict[Key, Any] | None = None
    for array in arrays:
        if _is_null_or_missing(array):
            return None
        other = _set("$setIntersection", array, 17047, collation)
        found = other if found is None else {key: value for key, value in found.items() if key in other}
    return _sorted_values(found or {})


def _difference(collation: Collation, left: Any, right: Any) -> Any:
    if _is_null_or_missing(left) or _is_null_or_missing(right):
        return None
    minuend = _set("$setDifference", left, 17048, collation)
    subtrahend = _set("$setDifference", right, 17049, collation)
    return [value for key, value in minuend.items() if key not in subtrahend]


def _equals(collation: Collation, arrays: Iterable[Any]) -> bool:
    found = [_set("$setEquals", array, 17044, collation).keys() for array in arrays]
    return all(one == found[0] for one in found)


def _of_several_sets(function: Callable[[Collation, Iterable[Any]], Any]) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Expression:
        return of_iterator(lambda arrays: function(scope.collation, arrays), commutes=True)(name, operand, scope)

    return make


def _set_equals(name: str, operand: Any, scope: Scope) -> Expression:
    parts = arguments(name, operand, scope, 0, None)
    if len(parts) < 2:
        raise location(17045, f"$setEquals needs at least two arguments had: {len(parts)}")
    for part in parts if optimizes() else ():
        if isinstance(part, Constant) and not isinstance(part.value, list):
            raise location(5887502, f"All operands of $setEquals must be arrays, not {type_name(part.value)}")
    return folded(lambda variables: _equals(scope.collation, (part(variables) for part in parts)), parts)


def _set_is_subset(name: str, operand: Any, scope: Scope) -> Expression:
    left, right = arguments(name, operand, scope, 2, 2)
    codes = 17046, 17042
    if optimizes() and isinstance(right, Constant) and not isinstance(left, Constant):
        codes = 17310, 17311
        if not isinstance(right.value, list):
            raise location(17311, f"both operands of $setIsSubset must be arrays, not {type_name(right.value)}")

    def run(variables: Variables) -> Any:
        arrays = left(variables), right(variables)
        inner, outer = (_set(name, array, code, scope.collation) for array, code in zip(arrays, codes, strict=True))
        return inner.keys() <= outer.keys()

    return folded(run, [left, right])


def _all_true(array: Any) -> bool:
    if not isinstance(array, list):
        raise location(17040, f"$allElementsTrue's argument must be an array, but is {type_name(array)}")
    return all(map(is_true, array))


def _any_true(array: Any) -> bool:
    if not isinstance(array, list):
        raise location(17041, f"$anyElementTrue's argument must be an array, but is {type_name(array)}")
    return any(map(is_true, array))


OPERATORS: Mapping[str, Make] = {
    "$allElementsTrue": of_values(_all_true, 1),
    "$anyElementTrue": of_values(_any_true, 1),
    "$setDifference": under_collation(_difference, 2),
    "$setEquals": _set_equals,
    "$setIntersection": _of_several_sets(_intersection),
    "$setIsSubset": _set_is_subset,
    "$setUnion": _of_several_sets(_union),
}
