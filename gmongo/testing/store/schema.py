"""Validating documents against ``$jsonSchema``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from bson import Binary

from gmongo.testing.store.errors import bad_value, failed_to_parse, type_mismatch
from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.values import TYPE_NAMES, compare, equal, is_number, is_whole, type_name, whole

Details = dict[str, Any]
Keyword = Callable[[Any, Any, Mapping[str, Any]], "list[Details]"]

_NUMBERS = frozenset({"int", "long", "double", "decimal"})
_JSON_TYPES = {"boolean": "bool"}
_OF_JSON = frozenset({"array", "boolean", "null", "number", "object", "string"})
_OF_BSON = frozenset({*(name for name, _ in TYPE_NAMES), "number"})
_ANNOTATIONS = frozenset({"title", "description", "encryptMetadata"})
_CIPHERTEXT_SUBTYPE = 6


def violations(schema: Any, value: Any) -> list[Details]:
    """The rules that the value breaks, each as a server describes it in ``schemaRulesNotSatisfied``."""
    found: list[Details] = []
    for name, rule in schema.items():
        if name not in _ANNOTATIONS:
            found += _KEYWORDS[name](rule, value, schema)
    return found


def titles(schema: Mapping[str, Any]) -> Details:
    """What a schema says of itself, which errors repeat."""
    return {name: schema[name] for name in ("title", "description") if name in schema}


def check(schema: Any) -> None:
    """Check a schema, and those in it.

    :raises CommandError: 14, 9 or 2, if it is malformed.
    """
    if not isinstance(schema, dict):
        raise type_mismatch("$jsonSchema must be an object")
    for name, rule in schema.items():
        if name not in _KEYWORDS and name not in _ANNOTATIONS:
            raise failed_to_parse(f"Unknown $jsonSchema keyword: {name}")
        for known, check_rule in _RULES.items():
            if name in known:
                check_rule(name, rule)
        for inner in _schemas_of(name, rule):
            check(inner)


def _check_types(name: str, rule: Any) -> None:
    known = _OF_JSON if name == "type" else _OF_BSON
    for one in rule if isinstance(rule, list) else [rule]:
        if type(one) is not str:
            raise type_mismatch(f"$jsonSchema keyword '{name}' must be a string or an array of strings")
        if one == "integer":
            raise failed_to_parse("$jsonSchema type 'integer' is not currently supported.")
        if one not in known:
            raise bad_value(f"Unknown type name alias: {one}")


def _check_text(name: str, rule: Any) -> None:
    if type(rule) is not str:
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be a string")


def _check_number(name: str, rule: Any) -> None:
    if not is_number(rule):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be a number")
    if name == "multipleOf" and float(str(rule)) <= 0:
        raise failed_to_parse(f"$jsonSchema keyword '{name}' must have a positive value")


def _check_size(name: str, rule: Any) -> None:
    if not is_number(rule):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be a number")
    if not is_whole(rule) or whole(rule) < 0:
        raise failed_to_parse(f"$jsonSchema keyword '{name}' must be a whole number that is not negative")


def _check_names(name: str, rule: Any) -> None:
    if not isinstance(rule, list) or not all(type(one) is str for one in rule):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be an array of strings")
    if not rule or len(set(rule)) < len(rule):
        raise failed_to_parse(f"$jsonSchema keyword '{name}' cannot be an empty array, or have duplicate values")


def _check_object(name: str, rule: Any) -> None:
    if not isinstance(rule, dict) or not all(isinstance(one, dict) for one in rule.values()):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be an object of objects")


def _check_dependencies(name: str, rule: Any) -> None:
    if not isinstance(rule, dict):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be an object")
    for one in rule.values():
        if not isinstance(one, dict):
            _check_names(name, one)


_RULES: Mapping[frozenset[str], Callable[[str, Any], None]] = {
    frozenset({"type", "bsonType"}): _check_types,
    frozenset({"title", "description", "pattern"}): _check_text,
    frozenset({"minimum", "maximum", "multipleOf"}): _check_number,
    frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}): _check_size,
    frozenset({"required"}): _check_names,
    frozenset({"properties", "patternProperties"}): _check_object,
    frozenset({"dependencies"}): _check_dependencies,
}


def _schemas_of(name: str, rule: Any) -> list[Any]:
    if name in ("dependencies", "patternProperties", "properties"):
        return [one for one in rule.values() if isinstance(one, dict)]
    if name in ("allOf", "anyOf", "items", "oneOf") and isinstance(rule, list):
        return rule
    inner = ("items", "not", "additionalItems", "additionalProperties")
    return [rule] if name in inner and isinstance(rule, dict) else []


def _broken(name: str, rule: Any, value: Any, reason: str) -> list[Details]:
    return [{"operatorName": name, "specifiedAs": {name: rule}, "reason": reason, "consideredValue": value}]


def _types(name: str) -> Keyword:
    def check(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
        wanted = {_JSON_TYPES.get(one, one) for one in (rule if isinstance(rule, list) else [rule])}
        found = type_name(value)
        if found in wanted or ("number" in wanted and found in _NUMBERS):
            return []
        broken = _broken(name, rule, value, "type did not match")
        broken[0]["consideredType"] = found
        return broken

    return check


def _required(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    missing = [name for name in rule if name not in value] if isinstance(value, dict) else []
    if not missing:
        return []
    return [{"operatorName": "required", "specifiedAs": {"required": rule}, "missingProperties": missing}]


def _properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not isinstance(value, dict):
        return []
    failed = [
        {"propertyName": name, **titles(schema), "details": broken}
        for name, schema in rule.items()
        if name in value and (broken := violations(schema, value[name]))
    ]
    return [{"operatorName": "properties", "propertiesNotSatisfied": failed}] if failed else []


def _additional(rule: Any, value: Any, schema: Mapping[str, Any]) -> list[Details]:
    if not isinstance(value, dict) or rule is True:
        return []
    patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    extra = [
        name
        for name in value
        if name not in schema.get("properties", {}) and not any(pattern.search(name) for pattern in patterns)
    ]
    if isinstance(rule, dict):
        extra = [name for name in extra if violations(rule, value[name])]
    if not extra:
        return []
    return [{"operatorName": "additionalProperties", "specifiedAs": {"additionalProperties": rule},
             "additionalProperties": extra}]  # fmt: skip


def _pattern_properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not isinstance(value, dict):
        return []
    failed = [
        {"propertyName": name, **titles(schema), "details": broken}
        for pattern, schema in rule.items()
        for name in value
        if compile_pattern(pattern).search(name) and (broken := violations(schema, value[name]))
    ]
    return [{"operatorName": "patternProperties", "propertiesNotSatisfied": failed}] if failed else []


def _items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not isinstance(value, list):
        return []
    for index, element in enumerate(value):
        schema = rule if isinstance(rule, dict) else rule[index] if index < len(rule) else {}
        broken = violations(schema, element)
        if broken:
            return [{"operatorName": "items", "reason": "At least one item did not match the sub-schema",
                     "itemIndex": index, "details": broken}]  # fmt: skip
    return []


def _additional_items(rule: Any, value: Any, schema: Mapping[str, Any]) -> list[Details]:
    """The rule for elements behind those that ``items``, as an array, has schemas for."""
    first = schema.get("items")
    if not isinstance(value, list) or not isinstance(first, list) or rule is True:
        return []
    extra = value[len(first) :]
    if extra and rule is False:
        return [{"operatorName": "additionalItems", "specifiedAs": {"additionalItems": False},
                 "reason": "found additional items", "additionalItems": extra}]  # fmt: skip
    for index, element in enumerate(extra, len(first)):
        broken = violations(rule, element)
        if broken:
            return [{"operatorName": "additionalItems", "reason": "At least one additional item did not match the "
                     "sub-schema", "itemIndex": index, "details": broken}]  # fmt: skip
    return []


def _unique_items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not rule or not isinstance(value, list):
        return []
    for index, element in enumerate(value):
        if any(equal(element, other) for other in value[:index]):
            broken = _broken("uniqueItems", rule, value, "found a duplicate item")
            return [{**broken[0], "duplicatedValue": element}]
    return []


def _count_properties(name: str, holds: Callable[[int, int], bool]) -> Keyword:
    def check(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
        if not isinstance(value, dict) or holds(len(value), rule):
            return []
        return [{"operatorName": name, "specifiedAs": {name: rule}, "reason": "specified number of properties was not "
                 "satisfied", "numberOfProperties": len(value)}]  # fmt: skip

    return check


def _multiple_of(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not is_number(value) or Decimal(str(value)) % Decimal(str(rule)) == 0:
        return []
    return _broken("multipleOf", rule, value, "considered value is not a multiple of the specified value")


def _dependencies(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if not isinstance(value, dict):
        return []
    failed = []
    for name, needed in rule.items():
        schema = needed if isinstance(needed, dict) else {"required": needed}
        if name in value and (broken := violations(schema, value)):
            failed.append({"conditionalProperty": name, "details": broken})
    return [{"operatorName": "dependencies", "failingDependencies": failed}] if failed else []


def _enum(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    if any(equal(value, one) for one in rule):
        return []
    return _broken("enum", rule, value, "value was not found in enum")


def _bound(name: str, applies: Callable[[Any], bool], holds: Callable[[Any, Any, Any], bool]) -> Keyword:
    def check(rule: Any, value: Any, schema: Mapping[str, Any]) -> list[Details]:
        if not applies(value) or holds(value, rule, schema):
            return []
        return _broken(name, rule, value, "comparison failed")

    return check


def _minimum(value: Any, rule: Any, schema: Any) -> bool:
    found = compare(value, rule)
    return found > 0 if schema.get("exclusiveMinimum") else found >= 0


def _maximum(value: Any, rule: Any, schema: Any) -> bool:
    found = compare(value, rule)
    return found < 0 if schema.get("exclusiveMaximum") else found <= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _combined(name: str, holds: Callable[[int, int], bool]) -> Keyword:
    def check(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
        matching = sum(not violations(schema, value) for schema in rule)
        if holds(matching, len(rule)):
            return []
        return [{"operatorName": name, "reason": f"{matching} of {len(rule)} sub-schemas matched"}]

    return check


def _encrypt(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    """The client has encrypted the value; how, a server cannot see."""
    if isinstance(value, Binary) and value.subtype == _CIPHERTEXT_SUBTYPE:
        return []
    return _broken("encrypt", rule, value, "value was not encrypted")


def _not(rule: Any, value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    return [] if violations(rule, value) else [{"operatorName": "not", "reason": "child expression matched"}]


def _nothing(_rule: Any, _value: Any, _schema: Mapping[str, Any]) -> list[Details]:
    """For a keyword that another one takes into account."""
    return []


_KEYWORDS: Mapping[str, Keyword] = {
    "bsonType": _types("bsonType"),
    "type": _types("type"),
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "patternProperties": _pattern_properties,
    "dependencies": _dependencies,
    "minProperties": _count_properties("minProperties", lambda found, rule: found >= rule),
    "maxProperties": _count_properties("maxProperties", lambda found, rule: found <= rule),
    "items": _items,
    "additionalItems": _additional_items,
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
    "enum": _enum,
    "minimum": _bound("minimum", is_number, _minimum),
    "maximum": _bound("maximum", is_number, _maximum),
    "exclusiveMinimum": _nothing,
    "exclusiveMaximum": _nothing,
    "minLength": _bound("minLength", _is_text, lambda value, rule, schema: len(value) >= rule),
    "maxLength": _bound("maxLength", _is_text, lambda value, rule, schema: len(value) <= rule),
    "minItems": _bound("minItems", _is_array, lambda value, rule, schema: len(value) >= rule),
    "maxItems": _bound("maxItems", _is_array, lambda value, rule, schema: len(value) <= rule),
    "pattern": _bound("pattern", _is_text, lambda value, rule, schema: bool(compile_pattern(rule).search(value))),
    "allOf": _combined("allOf", lambda matching, of: matching == of),
    "anyOf": _combined("anyOf", lambda matching, of: matching > 0),
    "oneOf": _combined("oneOf", lambda matching, of: matching == 1),
    "not": _not,
    "encrypt": _encrypt,
}
