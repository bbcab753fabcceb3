"""Compile the operand of an expression operator, which is a list of arguments or a document of named arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Constant, Expression, Make, Scope, compile_expression, folded
from gmongo.testing.store.values import MISSING, is_number, is_whole, type_name, whole

_INT32 = range(-(2**31), 2**31)


def arguments(name: str, operand: Any, scope: Scope, least: int, most: int | None) -> list[Expression]:
    """Compile the arguments of an operator. An operand that is not a list is the only argument."""
    parts = operand if isinstance(operand, list) else [operand]
    if len(parts) < least or (most is not None and len(parts) > most):
        raise failed_expression(f"{name} with {len(parts)} arguments")
    return [compile_expression(part, scope) for part in parts]


def of_values(function: Callable[..., Any], least: int, most: int | None = -1, commutes: bool = False) -> Make:
    """Return an operator that calls a function with the values of the arguments."""
    upper = least if most == -1 else most

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = arguments(name, operand, scope, least, upper)
        if commutes:
            parts.sort(key=lambda part: isinstance(part, Constant))
        if len(parts) == 2:
            left, right = parts
            return folded(lambda variables: function(left(variables), right(variables)), parts)
        return folded(lambda variables: function(*[part(variables) for part in parts]), parts)

    return make


def is_null(value: Any) -> bool:
    """Return True if the value is null or missing."""
    return value is None or value is MISSING


def null_for_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns None if an argument is null or missing, and otherwise calls `function`."""
    return lambda *values, **fields: (
        None if any(map(is_null, (*values, *fields.values()))) else function(*values, **fields)
    )


def under_collation(function: Callable[..., Any], least: int, most: int | None = -1, commutes: bool = False) -> Make:
    """Return an operator that calls a function with the collation and the values of the arguments."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        return of_values(lambda *values: function(scope.collation, *values), least, most, commutes)(
            name, operand, scope
        )

    return make


def named(name: str, operand: Any, required: str, optional: str = "") -> dict[str, Any]:
    """Check the names of the named arguments of an operator, and return the arguments."""
    least = set(required.split())
    if not isinstance(operand, dict) or not least <= set(operand) <= least | set(optional.split()):
        raise failed_expression(f"{name} has other arguments than '{required} {optional}'")
    return operand


def compiled(name: str, operand: Any, scope: Scope, required: str, optional: str = "") -> dict[str, Expression]:
    """Check and compile the named arguments of an operator."""
    return {field: compile_expression(part, scope) for field, part in named(name, operand, required, optional).items()}


def of_fields(required: str, optional: str, function: Callable[..., Any]) -> Make:
    """Return an operator that calls a function with the values of the named arguments, as keyword arguments."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = compiled(name, operand, scope, required, optional)
        return folded(lambda variables: function(**{key: part(variables) for key, part in parts.items()}),
                      parts.values())  # fmt: skip

    return make


def of_type(kind: type, value: Any) -> Any:
    """Check that a value has a type, and return the value."""
    if not isinstance(value, kind) or (kind is str and type(value) is not str):
        raise failed_expression(f"an operand has the type {type_name(value)}")
    return value


def number(value: Any) -> Any:
    """Check that a value is a number, and return the value."""
    if not is_number(value):
        raise failed_expression(f"an operand has the type {type_name(value)}")
    return value


def integer(value: Any, least: int = _INT32[0]) -> int:
    """Check that a value is an integral number in the range of an int32. Return the number."""
    if not is_whole(number(value)) or whole(value) not in _INT32 or whole(value) < least:
        raise failed_expression(f"an operand is {value}")
    return whole(value)
