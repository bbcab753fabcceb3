"""From an expression to a function of variables. What is malformed is refused here, before there are documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import failed_to_parse, location
from gmongo.testing.store.values import MISSING

# The values of variables by their names. ROOT and CURRENT are the document.
Variables = Mapping[str, Any]
# Gives the value, MISSING if there is none.
Expression = Callable[[Variables], Any]


@dataclass(frozen=True)
class Scope:
    """What an expression is compiled for.

    :param names: the variables that it can use, besides ROOT, CURRENT and REMOVE.
    :param collation: how it compares strings.
    """

    names: frozenset[str] = frozenset()
    collation: Collation = BINARY

    def within(self, names: Iterable[str]) -> Scope:
        """The scope with more variables."""
        return replace(self, names=self.names | set(names))


# Compiles the operand of an operator; gets the operator's name, too.
Make = Callable[[str, Any, Scope], Expression]
# All operators by their names; the package fills it.
OPERATORS: dict[str, Make] = {}
_OF_DOCUMENTS = frozenset({"ROOT", "CURRENT"})
_OF_SERVERS = frozenset({"CLUSTER_TIME", "IS_MR", "JS_SCOPE", "SEARCH_META", "USER_ROLES"})
_REFERENCE = frozenset({"$ref", "$id", "$db"})
# What a server has and the simulation does not.
LACKING = frozenset(
    {
        "$accumulator",
        "$createObjectId",
        "$currentDate",
        "$encStrContains",
        "$encStrEndsWith",
        "$encStrNormalizedEq",
        "$encStrStartsWith",
        "$function",
        "$median",
        "$meta",
        "$percentile",
        "$similarityCosine",
        "$similarityDotProduct",
        "$similarityEuclidean",
        "$toHashedIndexKey",
    }
)


class Constant:
    """An expression with the same value for every document."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _variables: Variables) -> Any:
        return self.value


def compile_expression(expression: Any, scope: Scope) -> Expression:
    """The function that gives the expression's value.

    :raises CommandError: it is malformed, an operator does not exist or is not supported, or the value of a constant
        part of it is an error.
    """
    if isinstance(expression, str) and expression.startswith("$"):
        return _compile_path(expression, scope)
    if isinstance(expression, list):
        return _array([compile_expression(part, scope) for part in expression])
    if not isinstance(expression, dict):
        return Constant(expression)
    name = next(iter(expression), "")
    if not name.startswith("$"):
        return _compile_object(expression, scope)
    if len(expression) != 1:
        raise location(15983, f"An object representing an expression must have exactly one field: {expression!r}")
    return _compile_operator(name, expression[name], scope)


def _compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
    if name in OPERATORS:
        return OPERATORS[name](name, operand, scope)
    if name in LACKING:
        raise not_supported(f"the expression {name}")
    raise CommandError(168, "InvalidPipelineOperator", f"Unrecognized expression '{name}'")


def _compile_object(fields: Mapping[str, Any], scope: Scope) -> Expression:
    for name in fields:
        check_field_name(name)
    parts = {name: compile_expression(part, scope) for name, part in fields.items()}

    def run(variables: Variables) -> Any:
        found = ((name, part(variables)) for name, part in parts.items())
        return {name: value for name, value in found if value is not MISSING}

    return folded(run, parts.values())


def _array(parts: list[Expression]) -> Expression:
    return folded(lambda variables: [none_if_missing(part(variables)) for part in parts], parts)


def folded(run: Expression, parts: Iterable[Expression]) -> Expression:
    """The expression made of these parts; its value is found out now if all of them are constants."""
    if all(isinstance(part, Constant) for part in parts):
        return Constant(run({}))
    return run


def none_if_missing(value: Any) -> Any:
    """The value, None for one that is missing."""
    return None if value is MISSING else value


# Paths


def check_field_name(name: str) -> None:
    """Check a name that an expression gives a field, or looks a field up by.

    :raises CommandError: no field of a path can have it.
    """
    if not name:
        raise location(15998, "FieldPath field names may not be empty strings.")
    if name.startswith("$") and name not in _REFERENCE:
        raise location(16410, f"FieldPath field names may not start with '$'. Consider using $getField or $setField, "
                       f"given '{name}'.")  # fmt: skip
    if "." in name:
        raise location(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")


def path_parts(path: str) -> list[str]:
    """The parts of a path.

    :raises CommandError: if it is none.
    """
    if not path:
        raise location(40352, "FieldPath cannot be constructed with empty string")
    if path.endswith("."):
        raise location(40353, "FieldPath must not end with a '.'.")
    parts = path.split(".")
    for part in parts:
        check_field_name(part)
    return parts


def _compile_path(expression: str, scope: Scope) -> Expression:
    if expression == "$":
        raise location(16872, "'$' by itself is not a valid FieldPath")
    if not expression.startswith("$$"):
        return _of_variable("CURRENT", path_parts(expression[1:]))
    if expression == "$$":
        raise failed_to_parse("empty variable names are not allowed")
    name, *parts = expression[2:].split(".")
    if parts:
        path_parts(".".join(parts))
    if name == "REMOVE":
        return Constant(MISSING)
    if name not in scope.names and name not in _OF_DOCUMENTS:
        check_variable(name, may_be_system=True)
        if name in _OF_SERVERS:
            raise not_supported(f"the variable {name} here")
        raise location(17276, f"Use of undefined variable: {name}")
    return _of_variable(name, parts)


def _of_variable(name: str, parts: list[str]) -> Expression:
    if len(parts) == 1:
        (part,) = parts

        def run(variables: Variables) -> Any:
            source = variables[name]
            return source.get(part, MISSING) if isinstance(source, dict) else follow(source, parts)

        return run
    return lambda variables: follow(variables[name], parts)


def check_variable(name: str, may_be_system: bool = False) -> None:
    """Check the name of a variable.

    :param may_be_system: whether it may be one of those that a server defines.
    :raises CommandError: no variable can have it.
    """
    first = name[:1]
    if not first:
        raise failed_to_parse("empty variable names are not allowed")
    lower = ("a" <= first <= "z") or not first.isascii()
    if not (lower or (may_be_system and first.isupper()) or name == "CURRENT"):
        raise failed_to_parse(f"'{name}' starts with an invalid character for a user variable name")
    if not all(letter.isalnum() or letter == "_" or not letter.isascii() for letter in name):
        raise failed_to_parse(f"'{name}' contains an invalid character for a variable name")


def follow(value: Any, parts: list[str]) -> Any:
    """The value that a path leads to: of an array, the values that it leads to in the array's elements."""
    for number, part in enumerate(parts):
        if isinstance(value, list):
            found = (follow(element, parts[number:]) for element in value)
            return [element for element in found if element is not MISSING]
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    return value


# Operands


def arguments(name: str, operand: Any, scope: Scope, least: int, most: int | None) -> list[Expression]:
    """The arguments of an operator; a single one may come without brackets.

    :raises CommandError: there are too few or too many.
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
    """An operator whose value is a function of those of its arguments.

    :param most: None for any number; by default as many as `least`.
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


def null_of_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, made to give None if any of its arguments is None or missing."""

    def run(*values: Any) -> Any:
        for value in values:
            if value is None or value is MISSING:
                return None
        return function(*values)

    return run


def under_collation(function: Callable[..., Any], least: int, most: int | None = -1) -> Make:
    """An operator whose function takes the collation before its arguments."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        return of_values(lambda *values: function(scope.collation, *values), least, most)(name, operand, scope)

    return make


@dataclass(frozen=True)
class Fields:
    """The named arguments of an operator.

    :param required: those that it cannot do without: the name, and the error's code.
    :param optional: the others.
    :param not_object: the code of the error if the operand is no object.
    :param unknown: that of a field it does not know.
    """

    required: Mapping[str, int]
    optional: tuple[str, ...]
    not_object: int
    unknown: int

    def of(self, name: str, operand: Any) -> dict[str, Any]:
        """The fields of the operand, checked.

        :raises CommandError: with one of those codes.
        """
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
        """The same, compiled."""
        return {field: compile_expression(part, scope) for field, part in self.of(name, operand).items()}


def of_fields(fields: Fields, function: Callable[..., Any]) -> Make:
    """An operator whose value is a function of those of its named arguments; optional ones may be left out."""

    def make(name: str, operand: Any, scope: Scope) -> Expression:
        parts = fields.compiled(name, operand, scope)
        return folded(lambda variables: function(**{key: part(variables) for key, part in parts.items()}),
                      parts.values())  # fmt: skip

    return make
