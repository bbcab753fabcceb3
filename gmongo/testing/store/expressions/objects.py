"""The expression operators of documents and of types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gmongo.testing.store.errors import failed_expression
from gmongo.testing.store.expressions.compiling import Compiler, Expression, Scope, Variables, compile_expression, fold
from gmongo.testing.store.expressions.operands import check_arguments, create_operator, is_null, require_type
from gmongo.testing.store.values import MISSING, is_number, type_name


def merge(documents: Iterable[Any]) -> dict[str, Any]:
    """Return a document with the fields of several documents."""
    fields: dict[str, Any] = {}
    for document in documents:
        if not is_null(document):
            fields.update(require_type(dict, document))
    return fields


def _merge_arguments(*values: Any) -> dict[str, Any]:
    return merge(values[0] if len(values) == 1 and isinstance(values[0], list) else values)


def _parse_field_name(operator_name: str, expression: Any) -> str:
    if isinstance(expression, dict) and set(expression) <= {"$const", "$literal"} and len(expression) == 1:
        (expression,) = expression.values()
    elif isinstance(expression, str) and expression.startswith("$"):
        raise failed_expression(f"{operator_name} with a path as field")
    if "\0" in require_type(str, expression):
        raise failed_expression(f"{operator_name} with a null byte in a field name")
    return str(expression)


def _compile_get_field(name: str, operand: Any, scope: Scope) -> Expression:
    is_short = not isinstance(operand, dict) or next(iter(operand), "").startswith("$")
    fields = {"field": operand, "input": "$$CURRENT"} if is_short else check_arguments(name, operand, "field input")
    field = _parse_field_name(name, fields["field"])
    compute_input = compile_expression(fields["input"], scope)

    def run(variables: Variables) -> Any:
        document = compute_input(variables)
        if isinstance(document, dict):
            return document.get(field, MISSING)
        return None if document is None else MISSING

    return run


def _compile_set_field(name: str, operand: Any, scope: Scope) -> Expression:
    if name == "$setField":
        fields = check_arguments(name, operand, "field input value")
    else:
        fields = {**check_arguments(name, operand, "field input"), "value": "$$REMOVE"}
    field = _parse_field_name(name, fields["field"])
    compute_input = compile_expression(fields["input"], scope)
    compute_value = compile_expression(fields["value"], scope)

    def run(variables: Variables) -> Any:
        document, value = compute_input(variables), compute_value(variables)
        if is_null(document):
            return None
        if value is MISSING:
            return {key: item for key, item in require_type(dict, document).items() if key != field}
        return {**require_type(dict, document), field: value}

    return fold(run, [compute_input, compute_value])


OPERATORS: Mapping[str, Compiler] = {
    "$getField": _compile_get_field,
    "$isNumber": create_operator(lambda value: is_number(value), 1),
    "$mergeObjects": create_operator(_merge_arguments, 0, None),
    "$setField": _compile_set_field,
    "$type": create_operator(lambda value: type_name(value), 1),
    "$unsetField": _compile_set_field,
}
