"""The expression operators of arrays, and of arrays that are treated as sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    none_if_missing,
)
from gmongo.testing.store.expressions.operands import (
    integer,
    is_null,
    named,
    null_for_null,
    of_type,
    of_values,
    under_collation,
)
from gmongo.testing.store.values import MISSING, Key, equal, is_true, key_of


def _element(array: Any, index: Any) -> Any:
    place = integer(index)
    return array[place] if -len(of_type(list, array)) <= place < len(array) else MISSING


def _in(collation: Collation, searched: Any, array: Any) -> bool:
    searched = collation.folded(searched)
    return any(equal(searched, collation.folded(element)) for element in of_type(list, array))


def _concatenated(*arrays: Any) -> Any:
    found: list[Any] = []
    for array in arrays:
        if is_null(array):
            return None
        found += of_type(list, array)
    return found


def _slice(array: Any, first: Any, count: Any = None) -> list[Any]:
    found: list[Any] = of_type(list, array)
    place = integer(first)
    if count is None:
        return found[:place] if place >= 0 else found[place:]
    start = place if place >= 0 else max(0, len(found) + place)
    return found[start : start + integer(count, least=1)]


def _set(value: Any, collation: Collation) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for element in of_type(list, value):
        found.setdefault(key_of(collation.folded(element)), element)
    return found


def _intersection(collation: Collation, *arrays: Any) -> Any:
    sets = [_set(array, collation) for array in arrays if not is_null(array)]
    if len(sets) < len(arrays):
        return None
    first, *others = sets or [{}]
    return [first[key] for key in sorted(first) if all(key in other for other in others)]


def _is_subset(collation: Collation, inner: Any, outer: Any) -> bool:
    return _set(inner, collation).keys() <= _set(outer, collation).keys()


def _variable(fields: Mapping[str, Any]) -> str:
    name = str(of_type(str, fields.get("as", "this")))
    check_variable(name)
    return name


def _map(name: str, operand: Any, scope: Scope) -> Expression:
    fields = named(name, operand, "input in", "as")
    variable = _variable(fields)
    source = compile_expression(fields["input"], scope)
    inner = compile_expression(fields["in"], scope.within([variable]))

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null(array):
            return None
        elements = scope.pace.through(of_type(list, array))
        return [none_if_missing(inner({**variables, variable: element})) for element in elements]

    return run


def _filter(name: str, operand: Any, scope: Scope) -> Expression:
    fields = named(name, operand, "input cond", "as limit")
    variable = _variable(fields)
    source = compile_expression(fields["input"], scope)
    condition = compile_expression(fields["cond"], scope.within([variable]))
    limit = compile_expression(fields.get("limit"), scope)

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null(array):
            return None
        found: list[Any] = []
        if not of_type(list, array):
            return found
        most = limit(variables)
        most = None if is_null(most) else integer(most, least=1)
        for element in scope.pace.through(array):
            if len(found) == most:
                break
            if is_true(condition({**variables, variable: element})):
                found.append(element)
        return found

    return run


OPERATORS: Mapping[str, Make] = {
    "$arrayElemAt": of_values(null_for_null(_element), 2),
    "$concatArrays": of_values(_concatenated, 0, None),
    "$first": of_values(null_for_null(lambda array: _element(array, 0)), 1),
    "$in": under_collation(_in, 2),
    "$isArray": of_values(lambda value: isinstance(value, list), 1),
    "$last": of_values(null_for_null(lambda array: _element(array, -1)), 1),
    "$size": of_values(lambda value: len(of_type(list, value)), 1),
    "$slice": of_values(null_for_null(_slice), 2, 3),
    "$anyElementTrue": of_values(lambda array: any(map(is_true, of_type(list, array))), 1),
    "$setIntersection": under_collation(_intersection, 0, None, commutes=True),
    "$setIsSubset": under_collation(_is_subset, 2),
    "$filter": _filter,
    "$map": _map,
}
