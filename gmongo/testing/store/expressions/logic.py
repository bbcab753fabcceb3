"""The expression operators of comparisons, logic, conditions, variables and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo import _random as chance
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import (
    Constant,
    Expression,
    Make,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    folded,
)
from gmongo.testing.store.expressions.operands import (
    arguments,
    compiled,
    is_null,
    named,
    of_type,
    of_values,
    under_collation,
)
from gmongo.testing.store.values import MISSING, compare, is_true
from gmongo.testing.unsupported import not_supported


def _comparison(holds: Callable[[int], Any]) -> Make:
    def run(collation: Collation, left: Any, right: Any) -> Any:
        return holds(compare(collation.folded(left), collation.folded(right)))

    return under_collation(run, 2)


def _quantifier(holds: Callable[[Iterable[bool]], bool]) -> Make:
    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = arguments(name, operand, scope, 0, None)
        return folded(lambda variables: holds(is_true(part(variables)) for part in parts), parts)

    return make


def _cond(name: str, operand: Any, scope: Scope) -> Expression:
    if isinstance(operand, dict):
        fields = compiled(name, operand, scope, "if then else")
        parts = [fields["if"], fields["then"], fields["else"]]
    else:
        parts = arguments(name, operand, scope, 3, 3)
    condition, then, otherwise = parts

    def run(variables: Variables) -> Any:
        return then(variables) if is_true(condition(variables)) else otherwise(variables)

    return folded(run, parts)


def _if_null(name: str, operand: Any, scope: Scope) -> Expression:
    parts = arguments(name, operand, scope, 2, None)

    def run(variables: Variables) -> Any:
        value: Any = MISSING
        for part in parts:
            value = part(variables)
            if not is_null(value):
                break
        return value

    return folded(run, parts)


def _switch(name: str, operand: Any, scope: Scope) -> Expression:
    fields = named(name, operand, "branches", "default")
    parts = [compiled(name, branch, scope, "case then") for branch in of_type(list, fields["branches"])]
    branches = [(part["case"], part["then"]) for part in parts]
    default = compile_expression(fields["default"], scope) if "default" in fields else None
    if not branches:
        raise failed_expression("$switch has no branches")

    def run(variables: Variables) -> Any:
        for case, then in branches:
            if is_true(case(variables)):
                return then(variables)
        if default is None:
            raise failed_expression("$switch has no matching branch")
        return default(variables)

    return folded(run, [*(part for branch in branches for part in branch), *([default] if default else [])])


def _literal(_name: str, operand: Any, _scope: Scope) -> Expression:
    return Constant(operand)


def _let(name: str, operand: Any, scope: Scope) -> Expression:
    fields = named(name, operand, "vars in")
    for variable in of_type(dict, fields["vars"]):
        check_variable(variable)
    parts = {variable: compile_expression(part, scope) for variable, part in fields["vars"].items()}
    inner = compile_expression(fields["in"], scope.within(parts))

    def run(variables: Variables) -> Any:
        return inner({**variables, **{variable: part(variables) for variable, part in parts.items()}})

    return run


def _random(_name: str, operand: Any, _scope: Scope) -> Expression:
    if operand not in ({}, []):
        raise failed_expression("$rand has arguments")
    return lambda variables: chance.random()


def _meta(_name: str, operand: Any, scope: Scope) -> Expression:
    score = scope.score
    if operand != "textScore" or score is None:
        raise not_supported("$meta", repr(operand))

    def run(variables: Mapping[str, Any]) -> Any:
        value = score(variables["ROOT"])
        return MISSING if value is None else value

    return run


OPERATORS: Mapping[str, Make] = {
    "$eq": _comparison(lambda order: order == 0),
    "$ne": _comparison(lambda order: order != 0),
    "$gt": _comparison(lambda order: order > 0),
    "$gte": _comparison(lambda order: order >= 0),
    "$lt": _comparison(lambda order: order < 0),
    "$lte": _comparison(lambda order: order <= 0),
    "$cmp": _comparison(lambda order: order),
    "$and": _quantifier(all),
    "$or": _quantifier(any),
    "$not": of_values(lambda value: not is_true(value), 1),
    "$cond": _cond,
    "$ifNull": _if_null,
    "$switch": _switch,
    "$literal": _literal,
    "$const": _literal,
    "$let": _let,
    "$rand": _random,
    "$meta": _meta,
}
