"""The operators of comparisons, logic, conditions, literals, variables, metadata and ``$rand``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gmongo import _random as chance
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import (
    Compiler,
    Constant,
    Expression,
    Scope,
    Variables,
    check_variable,
    compile_expression,
    fold,
)
from gmongo.testing.store.expressions.operands import (
    check_arguments,
    compile_arguments,
    compile_fields,
    create_collation_operator,
    create_operator,
    is_null,
    require_type,
)
from gmongo.testing.store.values import MISSING, compare, is_true
from gmongo.testing.unsupported import not_supported


def _create_comparison(test_order: Callable[[int], Any]) -> Compiler:
    def compare_values(collation: Collation, left: Any, right: Any) -> Any:
        return test_order(compare(collation.apply(left), collation.apply(right)))

    return create_collation_operator(compare_values, 2)


def _create_quantifier(join: Callable[[Iterable[bool]], bool]) -> Compiler:
    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        operands = compile_arguments(name, operand, scope, 0, None)
        return fold(lambda variables: join(is_true(run(variables)) for run in operands), operands)

    return compile_operator


def _compile_cond(name: str, operand: Any, scope: Scope) -> Expression:
    if isinstance(operand, dict):
        fields = compile_fields(name, operand, scope, "if then else")
        branches = [fields["if"], fields["then"], fields["else"]]
    else:
        branches = compile_arguments(name, operand, scope, 3, 3)
    condition, then_branch, else_branch = branches

    def run(variables: Variables) -> Any:
        return then_branch(variables) if is_true(condition(variables)) else else_branch(variables)

    return fold(run, branches)


def _compile_if_null(name: str, operand: Any, scope: Scope) -> Expression:
    operands = compile_arguments(name, operand, scope, 2, None)

    def run(variables: Variables) -> Any:
        value: Any = MISSING
        for operand_expression in operands:
            value = operand_expression(variables)
            if not is_null(value):
                break
        return value

    return fold(run, operands)


def _compile_switch(name: str, operand: Any, scope: Scope) -> Expression:
    fields = check_arguments(name, operand, "branches", "default")
    branch_fields = [
        compile_fields(name, branch, scope, "case then") for branch in require_type(list, fields["branches"])
    ]
    branches = [(part["case"], part["then"]) for part in branch_fields]
    default_branch = compile_expression(fields["default"], scope) if "default" in fields else None
    if not branches:
        raise failed_expression("$switch has no branches")

    def run(variables: Variables) -> Any:
        for case, result in branches:
            if is_true(case(variables)):
                return result(variables)
        if default_branch is None:
            raise failed_expression("$switch has no matching branch")
        return default_branch(variables)

    return fold(run, [*(part for branch in branches for part in branch), *([default_branch] if default_branch else [])])


def _compile_literal(_name: str, operand: Any, _scope: Scope) -> Expression:
    return Constant(operand)


def _compile_let(name: str, operand: Any, scope: Scope) -> Expression:
    fields = check_arguments(name, operand, "vars in")
    for variable in require_type(dict, fields["vars"]):
        check_variable(variable)
    expressions = {variable: compile_expression(value, scope) for variable, value in fields["vars"].items()}
    inner_expression = compile_expression(fields["in"], scope.add_names(expressions))

    def run(variables: Variables) -> Any:
        return inner_expression({**variables, **{variable: run(variables) for variable, run in expressions.items()}})

    return run


def _compile_random(_name: str, operand: Any, _scope: Scope) -> Expression:
    if operand not in ({}, []):
        raise failed_expression("$rand has arguments")
    return lambda variables: chance.random()


def _compile_meta(_name: str, operand: Any, scope: Scope) -> Expression:
    score = scope.score
    if operand != "textScore" or score is None:
        raise not_supported("$meta", repr(operand))

    def run(variables: Mapping[str, Any]) -> Any:
        value = score(variables["ROOT"])
        return MISSING if value is None else value

    return run


OPERATORS: Mapping[str, Compiler] = {
    "$eq": _create_comparison(lambda order: order == 0),
    "$ne": _create_comparison(lambda order: order != 0),
    "$gt": _create_comparison(lambda order: order > 0),
    "$gte": _create_comparison(lambda order: order >= 0),
    "$lt": _create_comparison(lambda order: order < 0),
    "$lte": _create_comparison(lambda order: order <= 0),
    "$cmp": _create_comparison(lambda order: order),
    "$and": _create_quantifier(all),
    "$or": _create_quantifier(any),
    "$not": create_operator(lambda value: not is_true(value), 1),
    "$cond": _compile_cond,
    "$ifNull": _compile_if_null,
    "$switch": _compile_switch,
    "$literal": _compile_literal,
    "$const": _compile_literal,
    "$let": _compile_let,
    "$rand": _compile_random,
    "$meta": _compile_meta,
}
