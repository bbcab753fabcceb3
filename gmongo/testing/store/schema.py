"""Check schemas of ``$jsonSchema``, and test values against schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson import Binary

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.values import TYPE_NAMES, are_equal, compare, is_integral, is_nan, is_number, trunc, type_name
from gmongo.testing.unsupported import not_supported

# A function that returns True if a value satisfies a keyword. The arguments of the function are the
# value of the keyword, the tested value, and the schema that contains the keyword.
KeywordTest = Callable[[Any, Any, Mapping[str, Any]], bool]

_NUMBER_TYPES = frozenset({"int", "long", "double", "decimal"})
_RENAMED_JSON_TYPES = {"boolean": "bool"}
_JSON_TYPE_NAMES = frozenset({"array", "boolean", "null", "number", "object", "string"})
_BSON_TYPE_NAMES = frozenset({*(name for name, _ in TYPE_NAMES), "number"})
_ANNOTATIONS = frozenset({"title", "description", "encryptMetadata", "exclusiveMaximum", "exclusiveMinimum"})
_CIPHERTEXT_SUBTYPE = 6


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True if a value satisfies a schema."""
    return all(_KEYWORDS[name](rule, value, schema) for name, rule in schema.items() if name in _KEYWORDS)


def check_schema(schema: Any, is_nested: bool = False) -> None:
    """Check that a schema and its nested schemas are valid."""
    if not isinstance(schema, dict):
        raise malformed("$jsonSchema")
    for name, rule in schema.items():
        if name not in _KEYWORDS and name not in _ANNOTATIONS:
            raise not_supported("an unsupported keyword of $jsonSchema", name)
        if not next(allows for names, allows in _RULE_CHECKS.items() if name in names)(rule):
            raise malformed(f"$jsonSchema with {name}")
    outer_type = schema.get("bsonType", schema.get("type", "object"))
    if {"type", "bsonType"} <= set(schema) or (not is_nested and outer_type != "object"):
        raise malformed("the type of $jsonSchema")
    for limit in ("minimum", "maximum"):
        if f"exclusiveM{limit[1:]}" in schema and limit not in schema:
            raise malformed(f"$jsonSchema without {limit}")
    if "pattern" in schema:
        compile_pattern(schema["pattern"])
    inner_schemas = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    for inner_schema in inner_schemas:
        check_schema(inner_schema, is_nested=True)


def _create_types_check(names: frozenset[str]) -> Callable[[Any], bool]:
    def are_valid(rule: Any) -> bool:
        items = rule if isinstance(rule, list) else [rule]
        return (
            bool(items) and all(type(item) is str and item in names for item in items) and len(set(items)) == len(items)
        )

    return are_valid


def _is_unique_array(rule: Any) -> bool:
    return (
        isinstance(rule, list) and bool(rule) and not any(are_equal(a, b) for n, a in enumerate(rule) for b in rule[:n])
    )


_RULE_CHECKS: Mapping[tuple[str, ...], Callable[[Any], bool]] = {
    ("bsonType",): _create_types_check(_BSON_TYPE_NAMES),
    ("type",): _create_types_check(_JSON_TYPE_NAMES),
    ("title", "description", "pattern"): lambda rule: type(rule) is str,
    ("minimum", "maximum"): is_number,
    ("minLength", "maxLength"): lambda rule: is_number(rule) and is_integral(rule) and trunc(rule) >= 0,
    ("required",): lambda rule: _is_unique_array(rule) and all(type(name) is str for name in rule),
    ("enum",): _is_unique_array,
    ("encrypt", "encryptMetadata", "items", "properties"): lambda rule: isinstance(rule, dict),
    ("additionalProperties", "exclusiveMinimum", "exclusiveMaximum"): lambda rule: isinstance(rule, bool),
}


def _has_type(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    types = {_RENAMED_JSON_TYPES.get(item, item) for item in (rule if isinstance(rule, list) else [rule])}
    found_type = type_name(value)
    return found_type in types or ("number" in types and found_type in _NUMBER_TYPES)


def _create_limit_keyword(name: str, direction: int) -> KeywordTest:
    def match_limit(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
        excluded_order = 0 if schema.get(f"exclusiveM{name[1:]}") else -1
        return not is_number(value) or (not is_nan(value) and compare(value, rule) * direction > excluded_order)

    return match_limit


def _create_text_keyword(match_text: Callable[[Any, str], bool]) -> KeywordTest:
    return lambda rule, value, schema: type(value) is not str or match_text(rule, value)


def _match_items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, list) or all(is_valid(rule, element) for element in value)


def _match_properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, dict) or all(is_valid(rule[name], value[name]) for name in rule if name in value)


def _match_additional_properties(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return rule or not isinstance(value, dict) or set(value) <= set(schema.get("properties", {}))


def _is_encrypted(_rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    """Return True if the value is encrypted. A server cannot check the decrypted value."""
    return isinstance(value, Binary) and value.subtype == _CIPHERTEXT_SUBTYPE


_KEYWORDS: Mapping[str, KeywordTest] = {
    "maximum": _create_limit_keyword("maximum", -1),
    "minimum": _create_limit_keyword("minimum", 1),
    "pattern": _create_text_keyword(lambda rule, value: bool(compile_pattern(rule).search(value))),
    "minLength": _create_text_keyword(lambda rule, value: len(value) >= rule),
    "maxLength": _create_text_keyword(lambda rule, value: len(value) <= rule),
    "bsonType": _has_type,
    "type": _has_type,
    "encrypt": _is_encrypted,
    "items": _match_items,
    "properties": _match_properties,
    "additionalProperties": _match_additional_properties,
    "required": lambda rule, value, schema: not isinstance(value, dict) or set(rule) <= set(value),
    "enum": lambda rule, value, schema: any(are_equal(value, allowed_value) for allowed_value in rule),
}
