"""Check schemas of ``$jsonSchema``, and find the rules of a schema that a document violates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson import Binary

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.values import TYPE_NAMES, compare, equal, is_nan, is_number, is_whole, type_name, whole
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# A function that returns the details of a violated keyword, and None if the value satisfies the keyword. The arguments
# of the function are the value of the keyword, the tested value, and the schema that contains the keyword.
Keyword = Callable[[Any, Any, Mapping[str, Any]], "Document | None"]

_NUMBERS = frozenset({"int", "long", "double", "decimal"})
_JSON_TYPES = {"boolean": "bool"}
_OF_JSON = frozenset({"array", "boolean", "null", "number", "object", "string"})
_OF_BSON = frozenset({*(name for name, _ in TYPE_NAMES), "number"})
_TITLES = ("title", "description")
_ANNOTATIONS = frozenset({*_TITLES, "encryptMetadata", "exclusiveMaximum", "exclusiveMinimum"})
_CIPHERTEXT_SUBTYPE = 6


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True if a value satisfies a schema."""
    return not violations(schema, value)


def violations(schema: Mapping[str, Any], value: Any) -> list[Document]:
    """Return the details of the rules that a value violates, in the order of a server."""
    found = []
    for name, keyword in _KEYWORDS.items():
        details = keyword(schema[name], value, schema) if name in schema else None
        if details is not None:
            found.append({"operatorName": name, **details})
    return found


def titles(schema: Mapping[str, Any]) -> Document:
    """Return the title and the description of a schema, which validation errors contain."""
    return {name: schema[name] for name in _TITLES if name in schema}


def check(schema: Any, is_nested: bool = False) -> None:
    """Check that a schema and its nested schemas are valid.

    :param is_nested: True if the schema is a part of another schema.
    """
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


def _is_size(rule: Any) -> bool:
    return is_number(rule) and is_whole(rule) and whole(rule) >= 0


def _are_different(rule: Any) -> bool:
    return isinstance(rule, list) and bool(rule) and not any(equal(a, b) for n, a in enumerate(rule) for b in rule[:n])


def _are_names(rule: Any) -> bool:
    return _are_different(rule) and all(type(one) is str for one in rule)


_RULES: Mapping[tuple[str, ...], Callable[[Any], bool]] = {
    ("bsonType",): _are_types(_OF_BSON),
    ("type",): _are_types(_OF_JSON),
    ("title", "description", "pattern"): lambda rule: type(rule) is str,
    ("minimum", "maximum"): is_number,
    ("minLength", "maxLength"): _is_size,
    ("required",): _are_names,
    ("enum",): _are_different,
    ("encrypt", "encryptMetadata", "items", "properties"): lambda rule: isinstance(rule, dict),
    ("additionalProperties", "exclusiveMinimum", "exclusiveMaximum"): lambda rule: isinstance(rule, bool),
}


def _types(name: str) -> Keyword:
    def keyword(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
        expected = {_JSON_TYPES.get(one, one) for one in (rule if isinstance(rule, list) else [rule])}
        found = type_name(value)
        if found in expected or ("number" in expected and found in _NUMBERS):
            return None
        return {**_failure(name, rule, "type did not match", value), "consideredType": found}

    return keyword


def _failure(name: str, rule: Any, reason: str, value: Any) -> Document:
    return {"specifiedAs": {name: rule}, "reason": reason, "consideredValue": value}


def _limit(name: str, direction: int) -> Keyword:
    def keyword(rule: Any, value: Any, schema: Mapping[str, Any]) -> Document | None:
        exclusive = f"exclusiveM{name[1:]}"
        order = compare(value, rule) * direction if is_number(value) else 1
        if not is_number(value) or (not is_nan(value) and order > (0 if schema.get(exclusive) else -1)):
            return None
        details = _failure(name, rule, "comparison failed", value)
        if exclusive in schema:
            details["specifiedAs"][exclusive] = schema[exclusive]
        return details

    return keyword


def _text_keyword(name: str, reason: str, holds: Callable[[Any, str], bool]) -> Keyword:
    def keyword(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
        return None if type(value) is not str or holds(rule, value) else _failure(name, rule, reason, value)

    return keyword


def _items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
    for index, element in enumerate(value if isinstance(value, list) else ()):
        details = violations(rule, element)
        if details:
            return {"reason": "At least one item did not match the sub-schema", "itemIndex": index, "details": details}
    return None


def _properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
    found = [
        {"propertyName": name, **titles(schema), "details": details}
        for name, schema in rule.items()
        if isinstance(value, dict) and name in value and (details := violations(schema, value[name]))
    ]
    return {"propertiesNotSatisfied": found} if found else None


def _additional(rule: Any, value: Any, schema: Mapping[str, Any]) -> Document | None:
    names = [name for name in value if name not in schema.get("properties", {})] if isinstance(value, dict) else []
    return None if rule or not names else {"specifiedAs": {"additionalProperties": rule}, "additionalProperties": names}


def _required(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
    names = sorted(name for name in rule if name not in value) if isinstance(value, dict) else []
    return {"specifiedAs": {"required": rule}, "missingProperties": names} if names else None


def _enum(rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
    if any(equal(value, one) for one in rule):
        return None
    return _failure("enum", rule, "value was not found in enum", value)


def _encrypt(_rule: Any, value: Any, _schema: Mapping[str, Any]) -> Document | None:
    """Return None if the value is encrypted. A server cannot check the decrypted value."""
    return None if isinstance(value, Binary) and value.subtype == _CIPHERTEXT_SUBTYPE else {"reason": "not encrypted"}


_LENGTH = "specified string length was not satisfied"
# The keywords in the order in which a server shows violated rules.
_KEYWORDS: Mapping[str, Keyword] = {
    "maximum": _limit("maximum", -1),
    "minimum": _limit("minimum", 1),
    "pattern": _text_keyword(
        "pattern", "regular expression did not match", lambda rule, value: bool(compile_pattern(rule).search(value))
    ),
    "minLength": _text_keyword("minLength", _LENGTH, lambda rule, value: len(value) >= rule),
    "maxLength": _text_keyword("maxLength", _LENGTH, lambda rule, value: len(value) <= rule),
    "bsonType": _types("bsonType"),
    "type": _types("type"),
    "encrypt": _encrypt,
    "items": _items,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "enum": _enum,
}
