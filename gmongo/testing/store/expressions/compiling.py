"""Compile expressions to functions of variables. A malformed expression raises an error during the compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gmongo.testing import unsupported
from gmongo.testing.command import error
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import DBREF_FIELDS, MISSING
from gmongo.testing.unsupported import not_supported

# The values of variables by name. The variables ROOT and CURRENT contain the document.
Variables = Mapping[str, Any]
# A compiled expression: a function that returns a value or MISSING.
Expression = Callable[[Variables], Any]


@dataclass(frozen=True)
class Scope:
    """The context in which an expression is compiled."""

    names: frozenset[str] = frozenset()  # the names of the variables besides ROOT, CURRENT and REMOVE
    collation: Collation = BINARY  # the collation with which strings are compared
    pace: Pace = field(default_factory=Pace)  # the pace of the command
    # The options of the text index of the collection, or None if the collection has no text index.
    text: Mapping[str, Any] | None = None
    # A function that returns the text score of a document. The field is None without a text search.
    score: Callable[[Any], float | None] | None = None

    def add_names(self, names: Iterable[str]) -> Scope:
        return replace(self, names=self.names | set(names))


# A function that compiles an operator. The arguments of the function are the name of the operator,
# the operand and the context.
Compiler = Callable[[str, Any, Scope], Expression]
# The compilers of operators by name. `__init__.py` adds the operators of all modules.
OPERATORS: dict[str, Compiler] = {}
_DOCUMENT_VARIABLES = frozenset({"ROOT", "CURRENT"})
_SERVER_VARIABLES = frozenset({"CLUSTER_TIME", "IS_MR", "JS_SCOPE", "SEARCH_META", "USER_ROLES"})


class Constant:
    """A compiled expression whose value does not depend on variables."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _variables: Variables) -> Any:
        return self.value


def compile_expression(expression: Any, scope: Scope) -> Expression:
    """Compile an expression to a function that returns the expression's value for given variables."""
    if isinstance(expression, str) and expression.startswith("$"):
        return _compile_path(expression, scope)
    if isinstance(expression, list):
        return _compile_array([compile_expression(element, scope) for element in expression])
    if not isinstance(expression, dict):
        return Constant(expression)
    name = next(iter(expression), "")
    if not name.startswith("$"):
        return _compile_object(expression, scope)
    if len(expression) != 1:
        raise failed_expression("the expression has several operators")
    return _compile_operator(name, expression[name], scope)


def is_expression_operator(name: str) -> bool:
    """Return True if a server has this expression operator, even if the simulation does not."""
    return name in OPERATORS or name in unsupported.EXPRESSIONS


def _compile_operator(name: str, operand: Any, scope: Scope) -> Expression:
    if name in OPERATORS:
        return OPERATORS[name](name, operand, scope)
    if name in unsupported.EXPRESSIONS:
        raise not_supported(name)
    raise error(168, f"Unrecognized expression '{name}'")


def _compile_object(fields: Mapping[str, Any], scope: Scope) -> Expression:
    for name in fields:
        check_field_name(name)
    expressions = {name: compile_expression(field, scope) for name, field in fields.items()}

    def run(variables: Variables) -> Any:
        values = ((name, part(variables)) for name, part in expressions.items())
        return {name: value for name, value in values if value is not MISSING}

    return fold(run, expressions.values())


def _compile_array(items: list[Expression]) -> Expression:
    return fold(lambda variables: [missing_to_none(item(variables)) for item in items], items)


def fold(run: Expression, operands: Iterable[Expression]) -> Expression:
    """If all operands are constants, evaluate the expression, and return a constant. If not, return `run`."""
    return Constant(run({})) if all(isinstance(operand, Constant) for operand in operands) else run


def missing_to_none(value: Any) -> Any:
    """Return the value, or None if the value is MISSING."""
    return None if value is MISSING else value


def check_field_name(name: str) -> None:
    """Check the name of a field in an expression."""
    if not name or (name.startswith("$") and name not in DBREF_FIELDS) or "\0" in name or "." in name:
        raise failed_expression(f"the field name {name!r} is invalid")


def split_path(path: str) -> list[str]:
    """Check a path, and return the parts of the path."""
    parts = path.split(".")
    for part in parts:
        check_field_name(part)
    return parts


def _compile_path(expression: str, scope: Scope) -> Expression:
    if not expression.startswith("$$"):
        return _compile_variable_path("CURRENT", split_path(expression[1:]))
    name, *parts = expression[2:].split(".")
    if parts:
        split_path(".".join(parts))
    if name == "REMOVE":
        return Constant(MISSING)
    if name not in scope.names and name not in _DOCUMENT_VARIABLES:
        check_variable(name, may_be_system=True)
        if name in _SERVER_VARIABLES:
            raise not_supported("a system variable such as $$USER_ROLES", name)
        raise error(17276, f"Use of undefined variable: {name}")
    return _compile_variable_path(name, parts)


def _compile_variable_path(name: str, parts: list[str]) -> Expression:
    if len(parts) == 1:
        (part,) = parts

        def run(variables: Variables) -> Any:
            source = variables[name]
            return source.get(part, MISSING) if isinstance(source, dict) else follow(source, parts)

        return run
    return lambda variables: follow(variables[name], parts)


def check_variable(name: str, may_be_system: bool = False) -> None:
    """Check the name of a variable."""
    first = name[:1]
    is_user_variable = "a" <= first <= "z" or not first.isascii() or name == "CURRENT"
    is_valid = all(letter.isalnum() or letter == "_" or not letter.isascii() for letter in name)
    if not first or not is_valid or not (is_user_variable or (may_be_system and first.isupper())):
        raise failed_expression(f"the variable name {name!r} is invalid")


def follow(value: Any, parts: list[str]) -> Any:
    """Return the value at a path.

    If the path leads through an array, return a list of the values in the documents of the array.
    """
    for position, part in enumerate(parts):
        if isinstance(value, list):
            element_values = (follow(element, parts[position:]) for element in value if isinstance(element, dict))
            return [element for element in element_values if element is not MISSING]
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    return value
