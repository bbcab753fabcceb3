"""Check schemas of ``$jsonSchema``, and test if a document satisfies a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import combinations
from typing import Any

from bson import Binary

from gmongo.testing.store.errors import bad_value, failed_to_parse, type_mismatch
from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.values import TYPE_NAMES, compare, equal, is_nan, is_number, is_whole, type_name, whole

# A function that returns True if a value satisfies a keyword of a schema. Its arguments are the value of the keyword,
# the tested value, and the schema that contains the keyword.
Keyword = Callable[[Any, Any, Mapping[str, Any]], bool]

_NUMBERS = frozenset({"int", "long", "double", "decimal"})
_JSON_TYPES = {"boolean": "bool"}
_OF_JSON = frozenset({"array", "boolean", "null", "number", "object", "string"})
_OF_BSON = frozenset({*(name for name, _ in TYPE_NAMES), "number"})
_ANNOTATIONS = frozenset({"title", "description", "encryptMetadata"})
_CIPHERTEXT_SUBTYPE = 6


def is_valid(schema: Any, value: Any) -> bool:
    """Return True if a value satisfies a schema."""
    return all(_KEYWORDS[name](rule, value, schema) for name, rule in schema.items() if name not in _ANNOTATIONS)


def satisfies(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Return True if a value satisfies the rule of one keyword of a schema."""
    return _KEYWORDS[name](schema[name], value, schema)


def titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the title and the description of a schema, which validation errors contain."""
    return {name: schema[name] for name in ("title", "description") if name in schema}


def check(schema: Any) -> None:
    """Check that a schema and its nested schemas are valid.

    :raises CommandError: a schema is invalid.
    """
    if not isinstance(schema, dict):
        raise type_mismatch("$jsonSchema must be an object")
    if {"type", "bsonType"} <= set(schema):
        raise failed_to_parse("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
    for name in ("minimum", "maximum"):
        if f"exclusiveM{name[1:]}" in schema and name not in schema:
            raise failed_to_parse(f"$jsonSchema keyword 'exclusiveM{name[1:]}' needs '{name}'")
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
    if isinstance(rule, list) and (not rule or len(set(map(str, rule))) < len(rule)):
        raise failed_to_parse(f"$jsonSchema keyword '{name}' cannot be an empty array, or have duplicate values")
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
    if name == "pattern":
        compile_pattern(rule)


def _check_kind(*kinds: type) -> Callable[[str, Any], None]:
    def check_rule(name: str, rule: Any) -> None:
        if not isinstance(rule, kinds):
            raise type_mismatch(f"$jsonSchema keyword '{name}' has the wrong type")
        if rule == [] and name != "items":
            raise bad_value(f"$jsonSchema keyword '{name}' must be a nonempty array")

    return check_rule


def _check_number(name: str, rule: Any) -> None:
    if not is_number(rule):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be a number")
    if name == "multipleOf" and float(str(rule)) <= 0:
        raise failed_to_parse(f"$jsonSchema keyword '{name}' must have a positive value")


def _check_size(name: str, rule: Any) -> None:
    if not is_number(rule) or not is_whole(rule) or whole(rule) < 0:
        raise failed_to_parse(f"$jsonSchema keyword '{name}' must be a whole number that is not negative")


def _check_names(name: str, rule: Any) -> None:
    if not isinstance(rule, list) or not all(type(one) is str for one in rule):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be an array of strings")
    if not rule or len(set(rule)) < len(rule):
        raise failed_to_parse(f"$jsonSchema keyword '{name}' cannot be an empty array, or have duplicate values")


def _check_enum(name: str, rule: Any) -> None:
    if not isinstance(rule, list):
        raise type_mismatch(f"$jsonSchema keyword '{name}' must be an array")
    if not rule or any(equal(*pair) for pair in combinations(rule, 2)):
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
    frozenset({"enum"}): _check_enum,
    frozenset({"properties", "patternProperties"}): _check_object,
    frozenset({"dependencies"}): _check_dependencies,
    frozenset({"items"}): _check_kind(dict, list),
    frozenset({"not"}): _check_kind(dict),
    frozenset({"additionalItems", "additionalProperties"}): _check_kind(bool, dict),
    frozenset({"exclusiveMinimum", "exclusiveMaximum", "uniqueItems"}): _check_kind(bool),
    frozenset({"allOf", "anyOf", "oneOf"}): _check_kind(list),
}


def _schemas_of(name: str, rule: Any) -> list[Any]:
    if name in ("dependencies", "patternProperties", "properties"):
        return [one for one in rule.values() if isinstance(one, dict)]
    if name in ("allOf", "anyOf", "items", "oneOf") and isinstance(rule, list):
        return rule
    inner = ("items", "not", "additionalItems", "additionalProperties")
    return [rule] if name in inner and isinstance(rule, dict) else []


def _types(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    expected = {_JSON_TYPES.get(one, one) for one in (rule if isinstance(rule, list) else [rule])}
    found = type_name(value)
    return found in expected or ("number" in expected and found in _NUMBERS)


def _additional(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return all(_allows(rule, value[name]) for name in extra_names(value, schema))


def extra_names(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields for which ``properties`` and ``patternProperties`` have no schema."""
    patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    return [
        name
        for name in value
        if name not in schema.get("properties", {}) and not any(pattern.search(name) for pattern in patterns)
    ]


def _allows(rule: Any, value: Any) -> bool:
    """Return True if a value satisfies a rule. A rule is a schema, or a boolean that allows all or no values."""
    return is_valid(rule, value) if isinstance(rule, dict) else bool(rule)


def _pattern_properties(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return all(
        is_valid(schema, value[name])
        for pattern, schema in rule.items()
        for name in value
        if compile_pattern(pattern).search(name)
    )


def _items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    if isinstance(rule, dict):
        return all(is_valid(rule, element) for element in value)
    return all(is_valid(schema, element) for schema, element in zip(rule, value, strict=False))


def _additional_items(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    """Return True if the array elements for which ``items`` has no schema satisfy ``additionalItems``."""
    first = schema.get("items")
    return not isinstance(first, list) or all(_allows(rule, element) for element in value[len(first) :])


def _unique_items(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return not rule or not any(equal(*pair) for pair in combinations(value, 2))


def _dependencies(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    return all(
        is_valid(needed if isinstance(needed, dict) else {"required": needed}, value)
        for name, needed in rule.items()
        if name in value
    )


def _minimum(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return not is_nan(value) and compare(value, rule) > (0 if schema.get("exclusiveMinimum") else -1)


def _maximum(rule: Any, value: Any, schema: Mapping[str, Any]) -> bool:
    return not is_nan(value) and compare(value, rule) < (0 if schema.get("exclusiveMaximum") else 1)


def _multiple_of(rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    number = Decimal(str(value))
    return number.is_finite() and number % Decimal(str(rule)) == 0


def _encrypt(_rule: Any, value: Any, _schema: Mapping[str, Any]) -> bool:
    """Return True if the value is encrypted. A server cannot check the value itself."""
    return isinstance(value, Binary) and value.subtype == _CIPHERTEXT_SUBTYPE


def _only_for(applies: Callable[[Any], bool], keyword: Keyword) -> Keyword:
    """Return a keyword function that accepts all values to which a keyword does not apply.

    :param applies: a function that returns True if the keyword applies to a value.
    :param keyword: the function of the keyword.
    """
    return lambda rule, value, schema: not applies(value) or keyword(rule, value, schema)


def _of_objects(keyword: Keyword) -> Keyword:
    return _only_for(lambda value: isinstance(value, dict), keyword)


def _of_arrays(keyword: Keyword) -> Keyword:
    return _only_for(lambda value: isinstance(value, list), keyword)


def _of_texts(keyword: Keyword) -> Keyword:
    return _only_for(lambda value: isinstance(value, str), keyword)


def _count_matching(rule: Any, value: Any) -> int:
    return sum(is_valid(schema, value) for schema in rule)


_KEYWORDS: Mapping[str, Keyword] = {
    "bsonType": _types,
    "type": _types,
    "required": _of_objects(lambda rule, value, schema: all(name in value for name in rule)),
    "properties": _of_objects(
        lambda rule, value, schema: all(is_valid(rule[name], value[name]) for name in rule if name in value)
    ),
    "additionalProperties": _of_objects(_additional),
    "patternProperties": _of_objects(_pattern_properties),
    "dependencies": _of_objects(_dependencies),
    "minProperties": _of_objects(lambda rule, value, schema: len(value) >= rule),
    "maxProperties": _of_objects(lambda rule, value, schema: len(value) <= rule),
    "items": _of_arrays(_items),
    "additionalItems": _of_arrays(_additional_items),
    "uniqueItems": _of_arrays(_unique_items),
    "multipleOf": _only_for(is_number, _multiple_of),
    "enum": lambda rule, value, schema: any(equal(value, one) for one in rule),
    "minimum": _only_for(is_number, _minimum),
    "maximum": _only_for(is_number, _maximum),
    "exclusiveMinimum": lambda rule, value, schema: True,
    "exclusiveMaximum": lambda rule, value, schema: True,
    "minLength": _of_texts(lambda rule, value, schema: len(value) >= rule),
    "maxLength": _of_texts(lambda rule, value, schema: len(value) <= rule),
    "minItems": _of_arrays(lambda rule, value, schema: len(value) >= rule),
    "maxItems": _of_arrays(lambda rule, value, schema: len(value) <= rule),
    "pattern": _of_texts(lambda rule, value, schema: bool(compile_pattern(rule).search(value))),
    "allOf": lambda rule, value, schema: _count_matching(rule, value) == len(rule),
    "anyOf": lambda rule, value, schema: _count_matching(rule, value) > 0,
    "oneOf": lambda rule, value, schema: _count_matching(rule, value) == 1,
    "not": lambda rule, value, schema: not is_valid(rule, value),
    "encrypt": _encrypt,
}
