"""The operands of operators: a list of arguments, or an object with names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import Constant, Expression, Make, Scope, compile_expression, folded
from gmongo.testing.store.values import MISSING


def arguments(name: str, operand: Any, scope: Scope, least: int, most: int | None) -> list[Expression]:
    """Return the arguments of an operator. A single argument needs no list."""
    parts = operand if isinstance(operand, list) else [operand]
    if len(parts) < least or (most is not None and len(parts) > most):
        if least == most:
            raise location(16020, f"Expression {name} takes exactly {least} arguments. {len(parts)} were passed in.")
        upper = "" if most is None else f", and at most {most}"
        raise location(28667, f"Expression {name} takes at least {least} arguments{upper}, but {len(parts)} were "
                       "passed in.")  # fmt: skip
    return [compile_expression(part, scope) for part in parts]


def of_values(function: Callable[..., Any], least: int, most: int | None = -1) -> Make:
    """Return an operator that calls a function with the values of the arguments.

    :param most: the maximum number of arguments, None for no maximum, `least` by default.
    """
    upper = least if most == -1 else most

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = arguments(name, operand, scope, least, upper)
        if len(parts) == 1:
            (only,) = parts
            return folded(lambda variables: function(only(variables)), parts)
        if len(parts) == 2:
            left, right = parts
            return folded(lambda variables: function(left(variables), right(variables)), parts)
        return folded(lambda variables: function(*[part(variables) for part in parts]), parts)

    return make


def of_iterator(
    function: Callable[[Iterator[Any]], Any], least: int = 0, most: int | None = None, commutes: bool = False
) -> Make:
    """Return an operator whose function gets an iterator of its arguments, and stops at a null.

    :param commutes: True if constant arguments come last, in the order of a server.
    """

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = arguments(name, operand, scope, least, most)
        if commutes:
            parts.sort(key=lambda part: isinstance(part, Constant))
        return folded(lambda variables: function(part(variables) for part in parts), parts)

    return make


def null_of_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns None if an argument is None or missing."""

    def run(*values: Any) -> Any:
        for value in values:
            if value is None or value is MISSING:
                return None
        return function(*values)

    return run


def under_collation(function: Callable[..., Any], least: int, most: int | None = -1) -> Make:
    """Return an operator whose function gets the collation before the arguments."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        return of_values(lambda *values: function(scope.collation, *values), least, most)(name, operand, scope)

    return make


@dataclass(frozen=True)
class Fields:
    """The named arguments of an operator.

    :param required: the names of required arguments with error codes.
    :param optional: the names of optional arguments.
    :param not_object: the error code for an operand that is not an object.
    :param unknown: the error code for an unknown field.
    """

    required: Mapping[str, int]
    optional: tuple[str, ...]
    not_object: int
    unknown: int

    def of(self, name: str, operand: Any) -> dict[str, Any]:
        if not isinstance(operand, dict):
            raise location(self.not_object, f"{name} requires an object as an argument, found: {operand!r}")
        for field in operand:
            if field not in self.required and field not in self.optional:
                raise location(self.unknown, f"Unrecognized argument to {name}: {field}")
        for field, code in self.required.items():
            if field not in operand:
                raise location(code, f"Missing '{field}' parameter to {name}")
        return operand

    def compiled(self, name: str, operand: Any, scope: Scope) -> dict[str, Expression]:
        return {field: compile_expression(part, scope) for field, part in self.of(name, operand).items()}


def of_fields(fields: Fields, function: Callable[..., Any]) -> Make:
    """Return an operator that calls a function with the named arguments. Optional arguments may be missing."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = fields.compiled(name, operand, scope)
        return folded(lambda variables: function(**{key: part(variables) for key, part in parts.items()}),
                      parts.values())  # fmt: skip

    return make
