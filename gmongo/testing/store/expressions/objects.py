"""The expression operators of documents and of types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    compile_expression,
    folded,
)
from gmongo.testing.store.expressions.operands import Fields, null_for_null, of_values
from gmongo.testing.store.values import MISSING, is_number, type_name

_SET = Fields({"field": 4161102, "input": 4161109, "value": 4161103}, (), 4161100, 4161101)
_UNSET = Fields({"field": 4161102, "input": 4161109}, (), 4161100, 4161101)
_GET = Fields({"field": 3041702, "input": 3041703}, (), 3041701, 3041701)


def _is_null_or_missing(value: Any) -> bool:
    return value is None or value is MISSING


def _merged(*values: Any) -> Any:
    found: dict[str, Any] = {}
    if len(values) == 1 and isinstance(values[0], list):
        values = tuple(values[0])
    for value in values:
        if _is_null_or_missing(value):
            continue
        if not isinstance(value, dict):
            raise location(40400, f"$mergeObjects requires object inputs, but input {value!r} is of type "
                           f"{type_name(value)}")  # fmt: skip
        found.update(value)
    return found


def _object_to_array(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        raise location(40390, f"$objectToArray requires a document input, found: {type_name(value)}")
    return [{"k": name, "v": part} for name, part in value.items()]


def _array_to_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise location(40386, f"$arrayToObject requires an array input, found: {type_name(value)}")
    take = _of_object if value and isinstance(value[0], dict) else _of_pair
    return dict(map(take, value))


def _of_object(entry: Any) -> tuple[str, Any]:
    if not isinstance(entry, dict):
        raise location(40391, "$arrayToObject requires a consistent input format. Elements must all be arrays or all "
                       f"be objects. Object was detected, now found: {type_name(entry)}")  # fmt: skip
    if len(entry) != 2:
        raise location(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:"
                       f"{len(entry)}")  # fmt: skip
    if set(entry) != {"k", "v"}:
        raise location(40393, f"$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys "
                       f"from: {entry!r}")  # fmt: skip
    if type(entry["k"]) is not str:
        raise location(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be "
                       f"of type string. Found type: {type_name(entry['k'])}")  # fmt: skip
    if "\0" in entry["k"]:
        raise location(4940401, "Key field cannot contain an embedded null byte")
    return entry["k"], entry["v"]


def _of_pair(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, dict):
        raise location(40396, "$arrayToObject requires a consistent input format. Elements must all be arrays or all "
                       "be objects. Array was detected, now found: object")  # fmt: skip
    if not isinstance(entry, list):
        raise location(40398, f"Unrecognised input type format for $arrayToObject: {type_name(entry)}")
    if len(entry) != 2:
        raise location(40397, f"$arrayToObject requires an array of size 2 arrays,found array of size: {len(entry)}")
    if type(entry[0]) is not str:
        raise location(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type "
                       f"string. Found key type: {type_name(entry[0])}")  # fmt: skip
    if "\0" in entry[0]:
        raise location(4940400, "Key field cannot contain an embedded null byte")
    return entry[0], entry[1]


def _field_name(name: str, expression: Any, codes: tuple[int, int, int]) -> str:
    """Return the name of the field of a ``$getField``, ``$setField`` or ``$unsetField``.

    :param name: the name of the operator.
    :param expression: the argument ``field``.
    :param codes: three error codes: for a path, for an expression that is not constant, and for a value that is not a
        string.
    """
    if isinstance(expression, str) and expression.startswith("$"):
        raise location(codes[0], f"'{expression}' is a field path reference which is not allowed in this context")
    is_literal = isinstance(expression, dict) and len(expression) == 1 and set(expression) <= {"$const", "$literal"}
    if isinstance(expression, (dict, list)) and not is_literal:
        raise location(codes[1], f"{name} requires 'field' to evaluate to a constant")
    (value,) = expression.values() if is_literal else (expression,)
    if type(value) is not str:
        raise location(codes[2], f"{name} requires 'field' to evaluate to type String, but got {type_name(value)}")
    return value


def _get_field(name: str, operand: Any, scope: Scope) -> Expression:
    is_short = not isinstance(operand, dict) or next(iter(operand), "").startswith("$")
    fields = {"field": operand} if is_short else _GET.of(name, operand)
    field = _field_name(name, fields["field"], (5654600, 5654601, 5654602))
    source = compile_expression(fields.get("input", "$$CURRENT"), scope)

    def run(variables: Variables) -> Any:
        document = source(variables)
        if isinstance(document, dict):
            return document.get(field, MISSING)
        return None if document is None else MISSING

    return run


def _set_field(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _SET.of(name, operand) if name == "$setField" else {**_UNSET.of(name, operand), "value": "$$REMOVE"}
    field = _field_name(name, fields["field"], (4161108, 4161106, 4161107))
    if "\0" in field:
        raise location(9534700, f"{name} requires 'field' not to contain embedded null bytes")
    source, new = compile_expression(fields["input"], scope), compile_expression(fields["value"], scope)

    def run(variables: Variables) -> Any:
        document, value = source(variables), new(variables)
        if _is_null_or_missing(document):
            return None
        if not isinstance(document, dict):
            raise location(4161105, f"{name} requires 'input' to evaluate to type Object, not {type_name(document)}")
        if value is MISSING:
            return {one: part for one, part in document.items() if one != field}
        return {**document, field: value}

    return folded(run, [source, new])


def _type(value: Any) -> str:
    return type_name(value)


def _is_number(value: Any) -> bool:
    return is_number(value)


OPERATORS: Mapping[str, Make] = {
    "$arrayToObject": of_values(null_for_null(_array_to_object), 1),
    "$getField": _get_field,
    "$isNumber": of_values(_is_number, 1),
    "$mergeObjects": of_values(_merged, 0, None),
    "$objectToArray": of_values(null_for_null(_object_to_array), 1),
    "$setField": _set_field,
    "$type": of_values(_type, 1),
    "$unsetField": _set_field,
}
