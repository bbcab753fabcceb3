"""The expression operators that evaluate an expression for each element of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.arrays import array_of, integral, is_null_or_missing
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    none_if_missing,
)
from gmongo.testing.store.expressions.operands import Fields
from gmongo.testing.store.values import is_true

_MAP = Fields({"input": 16880, "in": 16882}, ("as",), 16878, 16879)
_FILTER = Fields({"input": 28648, "cond": 28650}, ("as", "limit"), 28646, 28647)
_REDUCE = Fields({"input": 40077, "initialValue": 40078, "in": 40079}, (), 40075, 40076)


def _variable(fields: Mapping[str, Any]) -> str:
    name = fields.get("as", "this")
    if not isinstance(name, str):
        raise location(16866, "'as' must be the name of a variable")
    check_variable(name)
    return name


def _map(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _MAP.of(name, operand)
    variable = _variable(fields)
    source, inner = (
        compile_expression(fields["input"], scope),
        compile_expression(fields["in"], scope.within([variable])),
    )

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null_or_missing(array):
            return None
        array = array_of("input to $map", array, 16883)
        return [none_if_missing(inner({**variables, variable: element})) for element in scope.pace.through(array)]

    return run


def _filter(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _FILTER.of(name, operand)
    variable = _variable(fields)
    source, condition = (compile_expression(fields["input"], scope),
                         compile_expression(fields["cond"], scope.within([variable])))  # fmt: skip
    limit = compile_expression(fields.get("limit"), scope)

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null_or_missing(array):
            return None
        if not array_of("input to $filter", array, 28651):
            return []
        most = limit(variables)
        if not is_null_or_missing(most):
            most = integral("$filter: limit", most, 327391, 327391)
            if most < 1:
                raise location(327392, f"$filter: limit must be greater than 0, but is {most}")
        found = []
        for element in scope.pace.through(array):
            if is_true(condition({**variables, variable: element})):
                found.append(element)
                if len(found) == most:
                    break
        return found

    return run


def _reduce(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _REDUCE.of(name, operand)
    source, start = compile_expression(fields["input"], scope), compile_expression(fields["initialValue"], scope)
    inner = compile_expression(fields["in"], scope.within(["this", "value"]))

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null_or_missing(array):
            return None
        result = start(variables)
        for element in scope.pace.through(array_of("input to $reduce", array, 40080)):
            result = inner({**variables, "this": element, "value": result})
        return result

    return run


OPERATORS: Mapping[str, Make] = {"$filter": _filter, "$map": _map, "$reduce": _reduce}
