"""The details of validation errors: the rules of a ``$jsonSchema`` that a document does not satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson import Int64

from gmongo.testing.store.patterns import compile_pattern
from gmongo.testing.store.schema import extra_names, is_valid, satisfies, titles
from gmongo.testing.store.values import equal, type_name

Document = dict[str, Any]
Schema = Mapping[str, Any]
Details = Callable[[Any, Any, Schema], Document]

# The keywords in the order of the details.
_ORDER = """pattern maxLength minLength multipleOf maximum minimum minItems maxItems uniqueItems items additionalItems
    encrypt properties additionalProperties patternProperties required minProperties maxProperties dependencies allOf
    anyOf oneOf not enum bsonType type"""
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("bsonType", "type"), "type did not match"),
    **dict.fromkeys(("maxItems", "minItems"), "array did not match specified length"),
    **dict.fromkeys(("maxLength", "minLength"), "specified string length was not satisfied"),
    **dict.fromkeys(("maxProperties", "minProperties"), "specified number of properties was not satisfied"),
    "enum": "value was not found in enum",
    "multipleOf": "considered value is not a multiple of the specified value",
    "pattern": "regular expression did not match",
    "uniqueItems": "found a duplicate item",
}


def schema_details(schema: Schema, document: Document) -> Document:
    """Return the details of a document that does not satisfy the schema of a validator."""
    kinds = schema.get("bsonType", schema.get("type", "object"))
    if "object" not in ([kinds] if isinstance(kinds, str) else kinds):
        return {"specifiedAs": {"$jsonSchema": schema}, "reason": "expression always evaluates to false"}
    return {**titles(schema), "schemaRulesNotSatisfied": _violated_rules(schema, document)}


def _violated_rules(schema: Schema, value: Any) -> list[Document]:
    """Return the details of the rules of a schema that a value does not satisfy, in the order of a server."""
    names = [name for name in _ORDER.split() if name in schema and not satisfies(name, value, schema)]
    return [{"operatorName": name, **_OF_PARTS.get(name, _of_value(name))(schema[name], value, schema)}
            for name in names]  # fmt: skip


def _of_value(name: str) -> Details:
    def details(rule: Any, value: Any, schema: Schema) -> Document:
        exclusive = f"exclusive{name.capitalize()}"
        specified = {name: rule, **({exclusive: True} if schema.get(exclusive) else {})}
        found: Document = {"specifiedAs": specified, "reason": _REASONS.get(name, "comparison failed")}
        if name.endswith("Properties"):
            return {**found, "numberOfProperties": len(value)}
        found["consideredValue"] = value
        if name in ("bsonType", "type"):
            found["consideredType"] = type_name(value)
        if name in ("maxItems", "minItems"):
            found["numberOfItems"] = len(value)
        if name == "uniqueItems":
            found["duplicatedValue"] = next(
                one for number, one in enumerate(value) if any(equal(one, other) for other in value[:number])
            )
        return found

    return details


def _properties(rule: Any, value: Any, _schema: Schema) -> Document:
    failed = [name for name in rule if name in value and not is_valid(rule[name], value[name])]
    return {
        "propertiesNotSatisfied": [
            {"propertyName": name, **titles(rule[name]), "details": _violated_rules(rule[name], value[name])}
            for name in failed
        ]
    }


def _pattern_properties(rule: Any, value: Any, _schema: Schema) -> Document:
    """Return the details of the first field that does not satisfy the schema of a pattern."""
    for name in value:
        schemas = {pattern: one for pattern, one in rule.items() if compile_pattern(pattern).search(name)}
        broken = {pattern: _violated_rules(one, value[name]) for pattern, one in schemas.items()}
        failed = [
            {"propertyName": name, "regexMatched": pattern, "details": details}
            for pattern, details in broken.items()
            if details
        ]
        if failed:
            break
    return {"details": failed}


def _additional_properties(rule: Any, value: Any, schema: Schema) -> Document:
    extra = extra_names(value, schema)
    if not isinstance(rule, dict):
        return {"specifiedAs": {"additionalProperties": rule}, "additionalProperties": extra}
    name = next(name for name in extra if not is_valid(rule, value[name]))
    return {"reason": "at least one additional property did not match the subschema", "failingProperty": name,
            "details": _violated_rules(rule, value[name])}  # fmt: skip


def _required(rule: Any, value: Any, _schema: Schema) -> Document:
    return {"specifiedAs": {"required": rule}, "missingProperties": sorted(set(rule) - set(value))}


def _dependencies(rule: Any, value: Any, _schema: Schema) -> Document:
    failed: list[Document] = []
    for name, needed in rule.items():
        if name in value and isinstance(needed, dict) and not is_valid(needed, value):
            failed.append({"conditionalProperty": name, "details": _violated_rules(needed, value)})
        elif name in value and not isinstance(needed, dict) and not set(needed) <= set(value):
            missing = [one for one in needed if one not in value]
            failed.append({"conditionalProperty": name, "missingProperties": missing})
    return {"failingDependencies": failed}


def _items(rule: Any, value: Any, _schema: Schema) -> Document:
    if isinstance(rule, dict):
        return _first_item(rule, value, 0, "At least one item did not match the sub-schema")
    pairs = enumerate(zip(rule, value, strict=False))
    return {
        "details": [
            {"itemIndex": Int64(number), "details": _violated_rules(one, element)}
            for number, (one, element) in pairs
            if not is_valid(one, element)
        ]
    }


def _additional_items(rule: Any, value: Any, schema: Schema) -> Document:
    start = len(schema["items"])
    if isinstance(rule, dict):
        return _first_item(rule, value, start, "At least one additional item did not match the sub-schema")
    return {"specifiedAs": {"additionalItems": rule}, "reason": "found additional items",
            "additionalItems": value[start:]}  # fmt: skip


def _first_item(rule: Schema, value: list[Any], start: int, reason: str) -> Document:
    number = next(number for number in range(start, len(value)) if not is_valid(rule, value[number]))
    return {"reason": reason, "itemIndex": number, "details": _violated_rules(rule, value[number])}


def _combined(rule: Any, value: Any, _schema: Schema) -> Document:
    broken = [_violated_rules(one, value) if not is_valid(one, value) else [] for one in rule]
    return {
        "schemasNotSatisfied": [
            {"index": number, **titles(rule[number]), "details": details}
            for number, details in enumerate(broken)
            if details
        ]
    }


def _one_of(rule: Any, value: Any, schema: Schema) -> Document:
    matching = [number for number, one in enumerate(rule) if is_valid(one, value)]
    if not matching:
        return _combined(rule, value, schema)
    return {"reason": "more than one subschema matched", "matchingSchemaIndexes": matching}


_OF_PARTS: Mapping[str, Details] = {
    "additionalItems": _additional_items,
    "additionalProperties": _additional_properties,
    "allOf": _combined,
    "anyOf": _combined,
    "dependencies": _dependencies,
    "items": _items,
    "encrypt": lambda _rule, _value, _schema: {"reason": "value was not encrypted"},
    "not": lambda _rule, _value, _schema: {"reason": "child expression matched"},
    "oneOf": _one_of,
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "required": _required,
}
