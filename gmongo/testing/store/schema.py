"""Check schemas of ``$jsonSchema``, and test values against schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson import Binary

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.values import TYPE_NAMES, compare, equal, is_nan, is_number, is_whole, type_name, whole
from gmongo.testing.unsupported import not_supported

# A function that returns True if a value satisfies a keyword. The arguments of the function are the value of the
# keyword, the tested value, and the schema that contains the keyword.
Keyword = Callable[[Any, Any, Mapping[str, Any]], bool]

_NUMBERS = frozenset({"int", "long", "double", "decimal"})
_JSON_TYPES = {"boolean": "bool"}
_OF_JSON = frozenset({"array", "boolean", "null", "number", "object", "string"})
_OF_BSON = frozenset({*(name for name, _ in TYPE_NAMES), "number"})
_ANNOTATIONS = frozenset({"title", "description", "encryptMetadata", "exclusiveMaximum", "exclusiveMinimum"})
_CIPHERTEXT_SUBTYPE = 6


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True if a value satisfies a schema."""
    return all(_KEYWORDS[name](rule, value, schema) for name, rule in schema.items() if name in _KEYWORDS)


def check(schema: Any, is_nested: bool = False) -> None:
    """Check that a schema and its nested schemas are valid."""
    if not isinstance(schema, dict):
        raise malformed("$jsonSchema")
    for name, rule in schema.items():
        if name not in _KEYWORDS and name not in _ANNOTATIONS:
            raise not_supported("other keywords of $jsonSchema", name)
        if not next(holds for names, holds in _RULES.items() if name in names)(rule):
            raise malformed(f"$jsonSchema with {name}")
    outer = schema.get("bsonType", schema.get("type", "object"))
    if {"type", "bsonType"} <= set(schema) or (not is_nested and outer != "object"):
        raise malformed("the type of $jsonSchema")
    for limit in ("minimum", "maximum"):
        if f"exclusiveM{limit[1:]}" in schema and limit not in schema:
            raise malformed(f"$jsonSchema without {limit}")
    if "pattern" in schema:
        compile_pattern(schema["pattern"])
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    for one in inner:
        check(one, is_nested=True)


def _are_types(names: frozenset[str]) -> Callable[[Any], bool]:
    def holds(rule: Any) -> bool:
        given = rule if isinstance(rule, list) else [rule]
        return bool(given) and all(type(one) is str and one in names for one in given) and len(set(given)) == len(given)

    return holds


def _are_different(rule: Any) -> bool:
    return isinstance(rule, list) and bool(rule) and not any(equal(a, b) for n, a in enumerate(rule) for b in rule[:n])


_RULES: Mapping[tuple[str, ...], Callable[[Any], bool]] = {
    ("bsonType",): _are_types(_OF_BSON),
    ("type",): _are_types(_OF_JSON),
    ("title", "description", "pattern"): lambda rule: type(rule) is str,
    ("minimum", "maximum"): is_number,
    ("minLength", "maxLength"): lambda rule: is_number(rule) and is_whole(rule) and whole(rule) >= 0,
    ("required",): lambda rule: _are_different(rule) and all(type(one) is str for one in rule),
    ("enum",): _are_different,
    ("encrypt", "encryptMetadata", "items", "properties"): lambda rule: isinstance(rule, dict),
    ("additionalProperties", "exclusiveMinimum", "exclusiveMaximum"): lambda rule: isinstance(rule, bool),
}


def _has_type(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    expected = {_JSON_TYPES.get(one, one) for one in (rule if isinstance(rule, list) else [rule])}
    found = type_name(value)
    return found in expected or ("number" in expected and found in _NUMBERS)


def _limit(name: str, direction: int) -> Keyword:
    def keyword(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
        least = 0 if schema.get(f"exclusiveM{name[1:]}") else -1
        return not is_number(value) or (not is_nan(value) and compare(value, rule) * direction > least)

    return keyword


def _text_keyword(holds: Callable[[Any, str], bool]) -> Keyword:
    return lambda rule, value, schema: type(value) is not str or holds(rule, value)


def _items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, list) or all(is_valid(rule, element) for element in value)


def _properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return not isinstance(value, dict) or all(is_valid(rule[name], value[name]) for name in rule if name in value)


def _additional(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return rule or not isinstance(value, dict) or set(value) <= set(schema.get("properties", {}))


def _encrypt(_rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    """Return True if the value is encrypted. A server cannot check the decrypted value."""
    return isinstance(value, Binary) and value.subtype == _CIPHERTEXT_SUBTYPE


_KEYWORDS: Mapping[str, Keyword] = {
    "maximum": _limit("maximum", -1),
    "minimum": _limit("minimum", 1),
    "pattern": _text_keyword(lambda rule, value: bool(compile_pattern(rule).search(value))),
    "minLength": _text_keyword(lambda rule, value: len(value) >= rule),
    "maxLength": _text_keyword(lambda rule, value: len(value) <= rule),
    "bsonType": _has_type,
    "type": _has_type,
    "encrypt": _encrypt,
    "items": _items,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": lambda rule, value, schema: not isinstance(value, dict) or set(rule) <= set(value),
    "enum": lambda rule, value, schema: any(equal(value, one) for one in rule),
}
