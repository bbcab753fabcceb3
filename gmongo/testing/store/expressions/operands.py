"""Compile operands of expression operators: lists of arguments and documents of named arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Compiler, Constant, Expression, Scope, compile_expression, fold
from gmongo.testing.store.values import MISSING, is_integral, is_number, trunc, type_name

_INT32 = range(-(2**31), 2**31)


def compile_arguments(name: str, operand: Any, scope: Scope, min_count: int, max_count: int | None) -> list[Expression]:
    """Compile the arguments of an operator. An operand that is not a list is a single argument."""
    operands = operand if isinstance(operand, list) else [operand]
    if len(operands) < min_count or (max_count is not None and len(operands) > max_count):
        raise failed_expression(f"{name} with {len(operands)} arguments")
    return [compile_expression(argument, scope) for argument in operands]


def create_operator(
    function: Callable[..., Any], min_count: int, max_count: int | None = -1, commutes: bool = False
) -> Compiler:
    """Return an operator that calls a function. The `max_count` -1 means `min_count`, and None means no limit."""
    highest_count = min_count if max_count == -1 else max_count

    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        operands = compile_arguments(name, operand, scope, min_count, highest_count)
        if commutes:
            operands.sort(key=lambda run: isinstance(run, Constant))
        if len(operands) == 2:
            left, right = operands
            return fold(lambda variables: function(left(variables), right(variables)), operands)
        return fold(lambda variables: function(*[run(variables) for run in operands]), operands)

    return compile_operator


def is_null(value: Any) -> bool:
    """Return True if the value is null or missing."""
    return value is None or value is MISSING


def propagate_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns None if an argument is null or missing, and otherwise calls `function`."""
    return lambda *values, **fields: (
        None if any(map(is_null, (*values, *fields.values()))) else function(*values, **fields)
    )


def create_collation_operator(
    function: Callable[..., Any], min_count: int, max_count: int | None = -1, commutes: bool = False
) -> Compiler:
    """Return an operator that calls a function with the collation and the values of the arguments."""

    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        bound_function = partial(function, scope.collation)
        return create_operator(bound_function, min_count, max_count, commutes)(name, operand, scope)

    return compile_operator


def check_arguments(name: str, operand: Any, required: str, optional: str = "") -> dict[str, Any]:
    """Check the names of the named arguments of an operator, and return the arguments."""
    names = set(required.split())
    if not isinstance(operand, dict) or not names <= set(operand) <= names | set(optional.split()):
        raise failed_expression(f"{name} has other arguments than '{required} {optional}'")
    return operand


def compile_fields(name: str, operand: Any, scope: Scope, required: str, optional: str = "") -> dict[str, Expression]:
    """Check and compile the named arguments of an operator."""
    return {
        field: compile_expression(expression, scope)
        for field, expression in check_arguments(name, operand, required, optional).items()
    }


def create_named_operator(required: str, optional: str, function: Callable[..., Any]) -> Compiler:
    """Return an operator that calls a function with the values of the named arguments, as keyword arguments."""

    def compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
        expressions = compile_fields(name, operand, scope, required, optional)
        return fold(lambda variables: function(**{key: run(variables) for key, run in expressions.items()}),
                      expressions.values())  # fmt: skip

    return compile_operator


def require_type(type_: type, value: Any) -> Any:
    """Check that a value has a type, and return the value."""
    if not isinstance(value, type_) or (type_ is str and type(value) is not str):
        raise failed_expression(f"an operand of type {type_name(value)} is not allowed")
    return value


def require_number(value: Any) -> Any:
    """Check that a value is a number, and return the value."""
    if not is_number(value):
        raise failed_expression(f"an operand of type {type_name(value)} is not allowed")
    return value


def require_integer(value: Any, least: int = _INT32[0]) -> int:
    """Check that a number is integral, in int32 range, and at least `least`. Return the number."""
    if not is_integral(require_number(value)) or trunc(value) not in _INT32 or trunc(value) < least:
        raise failed_expression(f"the operand {value} is not an allowed integer")
    return trunc(value)
