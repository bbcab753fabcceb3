"""The expression operators of documents and of types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Expression, Make, Scope, Variables, compile_expression, folded
from gmongo.testing.store.expressions.operands import is_null, named, of_type, of_values
from gmongo.testing.store.values import MISSING, is_number, type_name


def merged(values: Iterable[Any]) -> dict[str, Any]:
    """Return a document with the fields of several documents."""
    found: dict[str, Any] = {}
    for value in values:
        if not is_null(value):
            found.update(of_type(dict, value))
    return found


def _merged_arguments(*values: Any) -> dict[str, Any]:
    return merged(values[0] if len(values) == 1 and isinstance(values[0], list) else values)


def _field_name(name: str, expression: Any) -> str:
    """Return the name of the field of a ``$getField`` or ``$setField``."""
    if isinstance(expression, dict) and set(expression) <= {"$const", "$literal"} and len(expression) == 1:
        (expression,) = expression.values()
    elif isinstance(expression, str) and expression.startswith("$"):
        raise failed_expression(f"{name} with a path as field")
    if "\0" in of_type(str, expression):
        raise failed_expression(f"{name} with a null byte")
    return str(expression)


def _get_field(name: str, operand: Any, scope: Scope) -> Expression:
    is_short = not isinstance(operand, dict) or next(iter(operand), "").startswith("$")
    fields = {"field": operand, "input": "$$CURRENT"} if is_short else named(name, operand, "field input")
    field = _field_name(name, fields["field"])
    source = compile_expression(fields["input"], scope)

    def run(variables: Variables) -> Any:
        document = source(variables)
        if isinstance(document, dict):
            return document.get(field, MISSING)
        return None if document is None else MISSING

    return run


def _set_field(name: str, operand: Any, scope: Scope) -> Expression:
    if name == "$setField":
        fields = named(name, operand, "field input value")
    else:
        fields = {**named(name, operand, "field input"), "value": "$$REMOVE"}
    field = _field_name(name, fields["field"])
    source, new = compile_expression(fields["input"], scope), compile_expression(fields["value"], scope)

    def run(variables: Variables) -> Any:
        document, value = source(variables), new(variables)
        if is_null(document):
            return None
        if value is MISSING:
            return {one: part for one, part in of_type(dict, document).items() if one != field}
        return {**of_type(dict, document), field: value}

    return folded(run, [source, new])


OPERATORS: Mapping[str, Make] = {
    "$getField": _get_field,
    "$isNumber": of_values(lambda value: is_number(value), 1),
    "$mergeObjects": of_values(_merged_arguments, 0, None),
    "$setField": _set_field,
    "$type": of_values(lambda value: type_name(value), 1),
    "$unsetField": _set_field,
}
