"""The expression operators of arrays, and the set operators, which treat arrays as sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.expressions.compiling import (
    Compiler,
    Expression,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    missing_to_none,
)
from gmongo.testing.store.expressions.operands import (
    check_arguments,
    create_collation_operator,
    create_operator,
    is_null,
    propagate_null,
    require_integer,
    require_type,
)
from gmongo.testing.store.values import MISSING, Key, are_equal, is_true, make_key


def _select_element(array: Any, index: Any) -> Any:
    position = require_integer(index)
    return array[position] if -len(require_type(list, array)) <= position < len(array) else MISSING


def _contains_element(collation: Collation, target: Any, array: Any) -> bool:
    target = collation.apply(target)
    return any(are_equal(target, collation.apply(element)) for element in require_type(list, array))


def _concatenate_arrays(*arrays: Any) -> Any:
    elements: list[Any] = []
    for array in arrays:
        if is_null(array):
            return None
        elements += require_type(list, array)
    return elements


def _slice_array(array: Any, first: Any, count: Any = None) -> list[Any]:
    elements: list[Any] = require_type(list, array)
    position = require_integer(first)
    if count is None:
        return elements[:position] if position >= 0 else elements[position:]
    start = position if position >= 0 else max(0, len(elements) + position)
    return elements[start : start + require_integer(count, least=1)]


def _index_elements(value: Any, collation: Collation) -> dict[Key, Any]:
    elements_by_key: dict[Key, Any] = {}
    for element in require_type(list, value):
        elements_by_key.setdefault(make_key(collation.apply(element)), element)
    return elements_by_key


def _intersect_arrays(collation: Collation, *arrays: Any) -> Any:
    sets = [_index_elements(array, collation) for array in arrays if not is_null(array)]
    if len(sets) < len(arrays):
        return None
    first, *others = sets or [{}]
    return [first[key] for key in sorted(first) if all(key in other for other in others)]


def _is_subset(collation: Collation, array: Any, superset: Any) -> bool:
    return _index_elements(array, collation).keys() <= _index_elements(superset, collation).keys()


def _parse_variable_name(fields: Mapping[str, Any]) -> str:
    variable = str(require_type(str, fields.get("as", "this")))
    check_variable(variable)
    return variable


def _compile_map(name: str, operand: Any, scope: Scope) -> Expression:
    fields = check_arguments(name, operand, "input in", "as")
    variable = _parse_variable_name(fields)
    input_expression = compile_expression(fields["input"], scope)
    compute = compile_expression(fields["in"], scope.add_names([variable]))

    def run(variables: Variables) -> Any:
        array = input_expression(variables)
        if is_null(array):
            return None
        elements = scope.pace.iterate(require_type(list, array))
        return [missing_to_none(compute({**variables, variable: element})) for element in elements]

    return run


def _compile_filter_operator(name: str, operand: Any, scope: Scope) -> Expression:
    fields = check_arguments(name, operand, "input cond", "as limit")
    variable = _parse_variable_name(fields)
    input_expression = compile_expression(fields["input"], scope)
    condition = compile_expression(fields["cond"], scope.add_names([variable]))
    limit_expression = compile_expression(fields.get("limit"), scope)

    def run(variables: Variables) -> Any:
        array = input_expression(variables)
        if is_null(array):
            return None
        matches: list[Any] = []
        if not require_type(list, array):
            return matches
        limit = limit_expression(variables)
        limit = None if is_null(limit) else require_integer(limit, least=1)
        for element in scope.pace.iterate(array):
            if len(matches) == limit:
                break
            if is_true(condition({**variables, variable: element})):
                matches.append(element)
        return matches

    return run


OPERATORS: Mapping[str, Compiler] = {
    "$arrayElemAt": create_operator(propagate_null(_select_element), 2),
    "$concatArrays": create_operator(_concatenate_arrays, 0, None),
    "$first": create_operator(propagate_null(lambda array: _select_element(array, 0)), 1),
    "$in": create_collation_operator(_contains_element, 2),
    "$isArray": create_operator(lambda value: isinstance(value, list), 1),
    "$last": create_operator(propagate_null(lambda array: _select_element(array, -1)), 1),
    "$size": create_operator(lambda value: len(require_type(list, value)), 1),
    "$slice": create_operator(propagate_null(_slice_array), 2, 3),
    "$anyElementTrue": create_operator(lambda flags: any(map(is_true, require_type(list, flags))), 1),
    "$setIntersection": create_collation_operator(_intersect_arrays, 0, None, commutes=True),
    "$setIsSubset": create_collation_operator(_is_subset, 2),
    "$filter": _compile_filter_operator,
    "$map": _compile_map,
}
