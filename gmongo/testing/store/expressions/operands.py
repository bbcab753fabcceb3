"""Compile the operand of an expression operator, which is a list of arguments or a document of named arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import Constant, Expression, Make, Scope, compile_expression, folded
from gmongo.testing.store.values import MISSING


def arguments(name: str, operand: Any, scope: Scope, least: int, most: int | None) -> list[Expression]:
    """Compile the arguments of an operator.

    If the operand is not a list, the operand is the only argument.

    :param name: the name of the operator.
    :param operand: the operand of the operator.
    :param scope: the context of the compilation.
    :param least: the minimum number of arguments.
    :param most: the maximum number of arguments; None means no maximum.
    """
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

    :param function: the function to call with the values.
    :param least: the minimum number of arguments.
    :param most: the maximum number of arguments; by default `least`. None means no maximum.
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
    """Return an operator that calls a function with an iterator of the values of the arguments.

    The iterator evaluates an argument when the function needs the value. After a null, the function can ignore the
    remaining arguments.

    :param function: the function to call with the values.
    :param least: the minimum number of arguments.
    :param most: the maximum number of arguments; None means no maximum.
    :param commutes: True to evaluate constant arguments last, like a server evaluates commutative operators.
    """

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = arguments(name, operand, scope, least, most)
        if commutes:
            parts.sort(key=lambda part: isinstance(part, Constant))
        return folded(lambda variables: function(part(variables) for part in parts), parts)

    return make


def null_for_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns None if an argument is null or missing, and otherwise calls `function`."""

    def run(*values: Any) -> Any:
        for value in values:
            if value is None or value is MISSING:
                return None
        return function(*values)

    return run


def under_collation(function: Callable[..., Any], least: int, most: int | None = -1) -> Make:
    """Return an operator that calls a function with the collation and the values of the arguments.

    :param function: the function to call with the values.
    :param least: the minimum number of arguments.
    :param most: the maximum number of arguments; by default `least`. None means no maximum.
    """

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        return of_values(lambda *values: function(scope.collation, *values), least, most)(name, operand, scope)

    return make


@dataclass(frozen=True)
class Fields:
    """The rules for the named arguments of an operator.

    :param required: the error codes for missing arguments, by the name of the required argument.
    :param optional: the names of optional arguments.
    :param not_object: the error code for an operand that is not a document.
    :param unknown: the error code for an unknown argument.
    """

    required: Mapping[str, int]
    optional: tuple[str, ...]
    not_object: int
    unknown: int

    def of(self, name: str, operand: Any) -> dict[str, Any]:
        """Check the named arguments of an operator, and return the arguments."""
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
        """Check and compile the named arguments of an operator."""
        return {field: compile_expression(part, scope) for field, part in self.of(name, operand).items()}


def of_fields(fields: Fields, function: Callable[..., Any]) -> Make:
    """Return an operator that calls a function with the values of the named arguments, as keyword arguments.

    :param fields: the rules for the named arguments.
    :param function: the function, which has a default for each optional argument.
    """

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = fields.compiled(name, operand, scope)
        return folded(lambda variables: function(**{key: part(variables) for key, part in parts.items()}),
                      parts.values())  # fmt: skip

    return make
