"""Validators: what an error tells of the rules that a document breaks."""

from __future__ import annotations

from typing import Any

from .calls import Call, command, made
from .cases import Case
from .refusals import UNPARSED, make, refusal

VALIDATED = "manual: core/schema-validation/specify-json-schema"
RULES = "server: src/mongo/db/matcher/doc_validation_error.cpp"


def _broken(schema: Any, document: Any) -> Call:
    """The rules that a document breaks, as an error lists them."""

    def run(collection: Any) -> Any:
        made(validator={"$jsonSchema": schema})(collection)
        (error,) = command("insert", of=lambda reply: reply["writeErrors"], documents=[document])(collection)
        return [error["code"], error["errInfo"]["failingDocumentId"], error["errInfo"]["details"]]

    return run


def _breaking(name: str, schema: Any, document: Any, *rules: Any, source: str = RULES) -> Case:
    title = {"title": schema["title"]} if "title" in schema else {}
    expected = [121, 1, {"operatorName": "$jsonSchema", **title, "schemaRulesNotSatisfied": list(rules)}]
    return Case(name, [], _broken(schema, {"_id": 1, **document}), expected, source)


VALIDATORS = [
    _breaking(
        "a property of another type",
        {
            "bsonType": "object",
            "title": "Student Object Validation",
            "required": ["name"],
            "properties": {
                "name": {"bsonType": "string"},
                "gpa": {"bsonType": ["double"], "description": "'gpa' must be a double if the field exists"},
            },
        },
        {"name": "Alice", "gpa": 3},
        {
            "operatorName": "properties",
            "propertiesNotSatisfied": [
                {
                    "propertyName": "gpa",
                    "description": "'gpa' must be a double if the field exists",
                    "details": [
                        {
                            "operatorName": "bsonType",
                            "specifiedAs": {"bsonType": ["double"]},
                            "reason": "type did not match",
                            "consideredValue": 3,
                            "consideredType": "int",
                        }
                    ],
                }
            ],
        },
        source=VALIDATED,
    ),
    _breaking(
        "a property that is missing",
        {"required": ["a", "b"]},
        {"a": 1},
        {"operatorName": "required", "specifiedAs": {"required": ["a", "b"]}, "missingProperties": ["b"]},
    ),
    _breaking(
        "a value that is too small",
        {"properties": {"a": {"minimum": 5}}},
        {"a": 1},
        {
            "operatorName": "properties",
            "propertiesNotSatisfied": [
                {
                    "propertyName": "a",
                    "details": [
                        {
                            "operatorName": "minimum",
                            "specifiedAs": {"minimum": 5},
                            "reason": "comparison failed",
                            "consideredValue": 1,
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        "a schema with a type that there is not",
        [],
        refusal(make(validator={"$jsonSchema": {"properties": {"a": {"type": "integer"}}}})),
        UNPARSED,
        "manual: reference/operator/query/jsonSchema",
    ),
]


CASES = [*VALIDATORS]
