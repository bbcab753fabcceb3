"""The expression operators that evaluate an expression for each element of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    none_if_missing,
)
from gmongo.testing.store.expressions.operands import integer, is_null, named, of_type
from gmongo.testing.store.values import is_true


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


def _reduce(name: str, operand: Any, scope: Scope) -> Expression:
    fields = named(name, operand, "input initialValue in")
    source, start = compile_expression(fields["input"], scope), compile_expression(fields["initialValue"], scope)
    inner = compile_expression(fields["in"], scope.within(["this", "value"]))

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null(array):
            return None
        result = start(variables)
        for element in scope.pace.through(of_type(list, array)):
            result = inner({**variables, "this": element, "value": result})
        return result

    return run


OPERATORS: Mapping[str, Make] = {"$filter": _filter, "$map": _map, "$reduce": _reduce}
