"""The expression operators of comparisons, logic, conditions and variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo import _random as chance
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import (
    Constant,
    Expression,
    Make,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    dropped_failures,
    folded,
    optimizes,
)
from gmongo.testing.store.expressions.operands import Fields, arguments, under_collation
from gmongo.testing.store.values import MISSING, compare, is_true

_COND = Fields({"if": 17080, "then": 17081, "else": 17082}, (), 17083, 17083)
_LET = Fields({"vars": 16876, "in": 16877}, (), 16874, 16875)
_SWITCH = Fields({"branches": 40068}, ("default",), 40060, 40067)
_BRANCH = Fields({"case": 40064, "then": 40065}, (), 40062, 40063)


def _comparison(holds: Callable[[int], Any]) -> Make:
    def run(collation: Collation, left: Any, right: Any) -> Any:
        return holds(compare(collation.folded(left), collation.folded(right)))

    return under_collation(run, 2)


def _and(name: str, operand: Any, scope: Scope) -> Expression:
    parts = arguments(name, operand, scope, 0, None)
    if optimizes() and any(isinstance(part, Constant) and not is_true(part.value) for part in parts):
        return Constant(False)
    return folded(lambda variables: all(is_true(part(variables)) for part in parts), parts)


def _or(name: str, operand: Any, scope: Scope) -> Expression:
    parts = arguments(name, operand, scope, 0, None)
    if optimizes() and any(isinstance(part, Constant) and is_true(part.value) for part in parts):
        return Constant(True)
    return folded(lambda variables: any(is_true(part(variables)) for part in parts), parts)


def _not(name: str, operand: Any, scope: Scope) -> Expression:
    parts = arguments(name, operand, scope, 1, 1)
    return folded(lambda variables: not is_true(parts[0](variables)), parts)


def _cond(name: str, operand: Any, scope: Scope) -> Expression:
    if isinstance(operand, dict):
        fields = _COND.compiled(name, operand, scope)
        parts = [fields["if"], fields["then"], fields["else"]]
    else:
        parts = arguments(name, operand, scope, 3, 3)
    condition, then, otherwise = parts

    def run(variables: Variables) -> Any:
        return then(variables) if is_true(condition(variables)) else otherwise(variables)

    return folded(run, parts)


def _if_null(name: str, operand: Any, scope: Scope) -> Expression:
    if not isinstance(operand, list) or len(operand) < 2:
        raise location(1257300, "$ifNull needs at least two arguments")
    parts = arguments(name, operand, scope, 2, None)

    def run(variables: Variables) -> Any:
        value: Any = MISSING
        for part in parts:
            value = part(variables)
            if value is not None and value is not MISSING:
                break
        return value

    return folded(run, parts)


def _switch(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _SWITCH.of(name, operand)
    if not isinstance(fields["branches"], list):
        raise location(40061, "$switch expected an array for 'branches'")
    if not fields["branches"]:
        raise location(40068, "$switch requires at least one branch.")
    default = compile_expression(fields["default"], scope) if "default" in fields else None
    branches: list[tuple[Expression, Expression]] = []
    has_constant_match = False
    for branch in fields["branches"]:
        with dropped_failures() as drop:
            compiled = _BRANCH.compiled(name, branch, scope)
            case = compiled["case"]
            never_matches = isinstance(case, Constant) and not is_true(case.value)
            if has_constant_match or never_matches:
                drop()
            else:
                branches.append((case, compiled["then"]))
            has_constant_match = has_constant_match or (isinstance(case, Constant) and not never_matches)
    if not branches and default is None and optimizes():
        raise location(40069, "Cannot execute a switch statement where all the cases evaluate to false without a "
                       "default")  # fmt: skip

    def run(variables: Variables) -> Any:
        for case, then in branches:
            if is_true(case(variables)):
                return then(variables)
        if default is None:
            raise location(40066, "$switch could not find a matching branch for an input, and no default was "
                           "specified.")  # fmt: skip
        return default(variables)

    return folded(run, [*(part for branch in branches for part in branch), *([default] if default else [])])


def _literal(_name: str, operand: Any, _scope: Scope) -> Expression:
    return Constant(operand)


def _let(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _LET.of(name, operand)
    if not isinstance(fields["vars"], dict):
        raise location(10065, "invalid parameter: expected an object (vars)")
    for variable in fields["vars"]:
        check_variable(variable)
    parts = {variable: compile_expression(part, scope) for variable, part in fields["vars"].items()}
    inner = compile_expression(fields["in"], scope.within(parts))

    def run(variables: Variables) -> Any:
        return inner({**variables, **{variable: part(variables) for variable, part in parts.items()}})

    return run


def _random(_name: str, operand: Any, _scope: Scope) -> Expression:
    if not isinstance(operand, (dict, list)):
        raise location(10065, "invalid parameter: expected an object ($rand)")
    if operand not in ({}, []):
        raise location(3040501, "$rand does not currently accept arguments")
    return lambda variables: chance.random()


OPERATORS: Mapping[str, Make] = {
    "$eq": _comparison(lambda order: order == 0),
    "$ne": _comparison(lambda order: order != 0),
    "$gt": _comparison(lambda order: order > 0),
    "$gte": _comparison(lambda order: order >= 0),
    "$lt": _comparison(lambda order: order < 0),
    "$lte": _comparison(lambda order: order <= 0),
    "$cmp": _comparison(lambda order: order),
    "$and": _and,
    "$or": _or,
    "$not": _not,
    "$cond": _cond,
    "$ifNull": _if_null,
    "$switch": _switch,
    "$literal": _literal,
    "$const": _literal,
    "$let": _let,
    "$rand": _random,
}
