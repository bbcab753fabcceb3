"""The manual's examples of validators."""

from __future__ import annotations

from typing import Any

from bson import Decimal128

from .calls import Call, after, command, made
from .cases import Case, find
from .refusals import BAD_VALUE, MISMATCH, UNPARSED, answers, inserted, make, of, refusal, update_code

STUDENT_SCHEMA = {
    "bsonType": "object",
    "title": "Student Object Validation",
    "required": ["address", "major", "name", "year"],
    "properties": {
        "name": {"bsonType": "string", "description": "'name' must be a string and is required"},
        "year": {
            "bsonType": "int",
            "minimum": 2017,
            "maximum": 3017,
            "description": "'year' must be an integer in [ 2017, 3017 ] and is required",
        },
        "gpa": {"bsonType": ["double"], "description": "'gpa' must be a double if the field exists"},
    },
}
ALICE = {"_id": 1, "name": "Alice", "year": 2019, "major": "History", "gpa": 3, "address": {"city": "NYC"}}
STOCKED = [
    {"_id": 1, "item": "journal", "qty": 25, "size": {"h": 14, "w": 21, "uom": "cm"}, "instock": True},
    {"_id": 2, "item": "notebook", "qty": 50, "size": {"h": 8.5, "w": 11, "uom": "in"}, "instock": True},
    {"_id": 3, "item": "paper", "qty": 100, "size": {"h": 8.5, "w": 11, "uom": "in"}, "instock": 1},
    {"_id": 4, "item": "planner", "qty": 75, "size": {"h": 22.85, "w": 30, "uom": "cm"}, "instock": 1},
    {"_id": 5, "item": "postcard", "qty": 45, "size": {"h": 10, "w": 15.25, "uom": "cm"}, "instock": True},
    {"_id": 6, "item": "apple", "qty": 45, "status": "A", "instock": True},
    {"_id": 7, "item": "pears", "qty": 50, "status": "A", "instock": True},
]
STOCK_SCHEMA = {
    "$jsonSchema": {
        "required": ["item", "qty", "instock"],
        "properties": {
            "item": {"bsonType": "string"},
            "qty": {"bsonType": "int"},
            "size": {
                "bsonType": "object",
                "required": ["uom"],
                "properties": {
                    "uom": {"bsonType": "string"},
                    "h": {"bsonType": "double"},
                    "w": {"bsonType": "double"},
                },
            },
            "instock": {"bsonType": "bool"},
        },
    }
}
TAXED = {"$eq": ["$totalWithVAT", {"$multiply": ["$total", {"$sum": [1, "$VAT"]}]}]}
CONTACTS = [
    {"_id": 1, "name": "Anne", "phone": "+1 555 123 456", "city": "London", "status": "Complete"},
    {"_id": 2, "name": "Ivan", "city": "Vancouver"},
]
CONTACT_SCHEMA = {
    "bsonType": "object",
    "required": ["phone", "name"],
    "properties": {"phone": {"bsonType": "string"}, "name": {"bsonType": "string"}},
}


def _details(validator: Any, document: Any) -> Call:
    """Why a validator refuses a document."""
    return after(
        made(validator=validator),
        command("insert", of=lambda reply: reply["writeErrors"][0]["errInfo"]["details"], documents=[document]),
    )


def _property(schema: Any, document: Any) -> Call:
    """Why a schema refuses the one property of a document."""
    return of(
        _details({"$jsonSchema": schema}, document),
        lambda found: found["schemaRulesNotSatisfied"][0]["propertiesNotSatisfied"][0],
    )


def _no_schema(name: str, schema: Any, expected: Any) -> Case:
    call = refusal(make(validator={"$jsonSchema": schema}))
    return Case(name, [], call, expected, "server: src/mongo/db/matcher/schema/json_schema_parser.cpp")


CASES = [
    Case(
        "a student whose grade is no double",
        [],
        _details({"$jsonSchema": STUDENT_SCHEMA}, ALICE),
        {
            "operatorName": "$jsonSchema",
            "title": "Student Object Validation",
            "schemaRulesNotSatisfied": [
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
                }
            ],
        },
        "manual: core/schema-validation/specify-json-schema",
    ),
    Case(
        "an order with another total than its tax makes",
        [],
        _details(
            {"$expr": TAXED},
            {"_id": 1, "total": Decimal128("141"), "VAT": Decimal128("0.20"), "totalWithVAT": Decimal128("169")},
        ),
        {
            "operatorName": "$expr",
            "specifiedAs": {"$expr": TAXED},
            "reason": "expression did not match",
            "expressionResult": False,
        },
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "an order with the total that its tax makes",
        [],
        after(
            made(validator={"$expr": TAXED}),
            inserted(
                {"_id": 1, "total": Decimal128("141"), "VAT": Decimal128("0.20"), "totalWithVAT": Decimal128("169.2")}
            ),
            find({}),
        ),
        [1],
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "a country that is none of those allowed",
        [],
        _property(
            {
                "bsonType": "object",
                "title": "Shipping Country Validation",
                "properties": {
                    "country": {
                        "enum": ["France", "United Kingdom", "United States"],
                        "description": "Must be either France, United Kingdom, or United States",
                    }
                },
            },
            {"_id": 1, "item": "sweater", "size": "medium", "country": "Germany"},
        ),
        {
            "propertyName": "country",
            "description": "Must be either France, United Kingdom, or United States",
            "details": [
                {
                    "operatorName": "enum",
                    "specifiedAs": {"enum": ["France", "United Kingdom", "United States"]},
                    "reason": "value was not found in enum",
                    "consideredValue": "Germany",
                }
            ],
        },
        "manual: core/schema-validation/specify-json-schema/specify-allowed-field-values",
    ),
    Case(
        "documents that match a schema, and others",
        STOCKED,
        answers(find(STOCK_SCHEMA), find({"$nor": [STOCK_SCHEMA]})),
        [[6, 7], [1, 2, 3, 4, 5]],
        "manual: core/schema-validation/use-json-schema-query-conditions",
    ),
    Case(
        "documents that do not match a schema are marked, and deleted",
        STOCKED,
        answers(
            lambda collection: (
                collection.update_many({"$nor": [STOCK_SCHEMA]}, {"$set": {"isValid": False}}).modified_count
            ),
            lambda collection: collection.delete_many({"isValid": False}).deleted_count,
            find({}),
        ),
        [5, 5, [6, 7]],
        "manual: core/schema-validation/use-json-schema-query-conditions",
    ),
    Case(
        "a document that failed before may not be updated, if that is strict",
        CONTACTS,
        after(
            command("collMod", validator={"$jsonSchema": CONTACT_SCHEMA}, validationLevel="strict"),
            answers(
                update_code({"_id": 1}, {"$set": {"name": 10}}),
                update_code({"_id": 2}, {"$set": {"city": "Calgary"}}),
                update_code({"_id": 2}, {"$set": {"phone": "+1 555 123 457"}}),
            ),
        ),
        [121, 121, None],
        "manual: core/schema-validation/specify-validation-level",
    ),
    _no_schema("a schema that requires a text", {"required": "name"}, MISMATCH),
    _no_schema("a schema with a length below zero", {"properties": {"a": {"minLength": -1}}}, UNPARSED),
    Case(
        "a validator with a search for text",
        [],
        refusal(make(validator={"$text": {"$search": "coffee"}})),
        BAD_VALUE,
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
]
