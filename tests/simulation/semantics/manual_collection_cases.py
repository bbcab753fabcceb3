"""Collections, views and validation, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import after
from .cases import (
    WRITE_ERRORS,
    Case,
    Error,
    find,
)
from .manual_calls import everything, ids, indexes, insert, listed, made, modify, page, plain, refused, tried

_CONTACTS = {
    "$jsonSchema": {
        "bsonType": "object",
        "required": ["phone"],
        "properties": {
            "phone": {"bsonType": "string", "description": "must be a string and is required"},
            "email": {"bsonType": "string", "pattern": "@mongodb\\.com$", "description": "must match the pattern"},
            "status": {"enum": ["Unknown", "Incomplete"], "description": "can only be one of the enum values"},
        },
    }
}


_TOTAL = {"$expr": {"$eq": ["$totalWithVAT", {"$multiply": ["$total", {"$sum": [1, "$VAT"]}]}]}}


_ADULT = {"age": {"$gte": 18}}


def _why(document: Any) -> Callable[[Any], Any]:
    """Why a document fails the validation, its rules in order of their operators."""

    def run(collection: Any) -> Any:
        try:
            collection.insert_one(dict(document))
        except WRITE_ERRORS as error:
            information = plain(error.details["errInfo"])
            details = information["details"]
            if "schemaRulesNotSatisfied" in details:
                details["schemaRulesNotSatisfied"].sort(key=lambda rule: rule["operatorName"])
            return information
        return "inserted"

    return run


def _view(pipeline: Any, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The answer of a call on a view of the collection."""

    def run(collection: Any) -> Any:
        database = collection.database
        database.drop_collection("a_view")
        database.command({"create": "a_view", "viewOn": collection.name, "pipeline": pipeline})
        try:
            return call(database["a_view"])
        finally:
            database.drop_collection("a_view")

    return run


def _rename(to: str, **options: Any) -> Callable[[Any], Any]:
    def run(collection: Any) -> Any:
        name = collection.database.name
        return collection.database.client.admin.command(
            {"renameCollection": f"{name}.{collection.name}", "to": f"{name}.{to}", **options}
        )

    return run


CASES = [
    Case(
        "a capped collection keeps its last documents in the order of insertion",
        [],
        made(
            "capped",
            after(
                insert({"_id": 5}, {"_id": 1}, {"_id": 4}, {"_id": 2}, {"_id": 3}),
                lambda c: [
                    [d["_id"] for d in c.find()],
                    [d["_id"] for d in c.find({}, sort=[("$natural", -1)])],
                ],
            ),
            capped=True,
            size=4096,
            max=3,
        ),
        [[4, 2, 3], [3, 2, 4]],
        page("core/capped-collections"),
    ),
    Case(
        "a capped collection needs a size",
        [],
        refused(made("capped", lambda c: None, capped=True)),
        "refused",
        page("reference/command/create"),
    ),
    Case(
        "statistics say that a collection is capped",
        [],
        made(
            "capped",
            lambda c: plain([c.database.command("collStats", c.name)[name] for name in ("capped", "max", "count")]),
            capped=True,
            size=4096,
            max=7,
        ),
        [True, 7, 0],
        page("reference/command/collStats"),
    ),
    Case(
        "another maximum is given to a capped collection",
        [],
        made(
            "capped",
            after(
                modify(cappedMax=2),
                insert({"_id": 1}, {"_id": 2}, {"_id": 3}),
                lambda c: [d["_id"] for d in c.find()],
            ),
            capped=True,
            size=4096,
            max=5,
        ),
        [2, 3],
        page("reference/command/collMod"),
    ),
    Case(
        "a clustered collection lists its index with its options",
        [],
        made(
            "clustered",
            lambda c: plain(dict(listed(c)["options"]["clusteredIndex"])),
            clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "orders clustered key"},
        ),
        {"key": {"_id": 1}, "name": "orders clustered key", "unique": True, "v": 2},
        page("core/clustered-collections"),
    ),
    Case(
        "a clustered collection is not capped",
        [],
        refused(
            made(
                "clustered",
                lambda c: None,
                clusteredIndex={"key": {"_id": 1}, "unique": True},
                capped=True,
                size=4096,
            )
        ),
        "refused",
        page("core/clustered-collections"),
    ),
    Case(
        "a time series is listed as one, with seconds for granularity unless told",
        [],
        made(
            "measured",
            lambda c: [
                listed(c)["type"],
                *(listed(c)["options"]["timeseries"][name] for name in ("timeField", "metaField", "granularity")),
            ],
            timeseries={"timeField": "at", "metaField": "sensor"},
        ),
        ["timeseries", "at", "sensor", "seconds"],
        page("core/timeseries/timeseries-granularity"),
    ),
    Case(
        "a measurement needs its time",
        [],
        made(
            "measured",
            refused(lambda c: c.insert_one({"_id": 1, "temperature": 12})),
            timeseries={"timeField": "at"},
        ),
        "refused",
        page("core/timeseries-collections"),
    ),
    Case(
        "a view computes its documents anew for every reading",
        [{"_id": 1, "kind": "a"}, {"_id": 2, "kind": "b"}],
        lambda c: _view(
            [{"$match": {"kind": "a"}}],
            lambda view: [
                view.count_documents({}),
                c.insert_one({"_id": 3, "kind": "a"}).inserted_id,
                ids(view),
            ],
        )(c),
        [1, 3, [1, 3]],
        page("core/views"),
    ),
    Case(
        "a view is not written to",
        [{"_id": 1}],
        _view([], refused(lambda view: view.insert_one({"_id": 2}))),
        "refused",
        page("core/views"),
    ),
    Case(
        "a view does not write",
        [{"_id": 1}],
        refused(_view([{"$out": "elsewhere"}], lambda view: None)),
        "refused",
        page("core/views"),
    ),
    Case(
        "a view is listed with its source and its pipeline, and may only be read",
        [],
        _view(
            [{"$match": {"a": 1}}],
            lambda view: [
                listed(view)["type"],
                plain(dict(listed(view)["options"])),
                listed(view)["info"]["readOnly"],
            ],
        ),
        ["view", {"pipeline": [{"$match": {"a": 1}}], "viewOn": "cases"}, True],
        page("reference/command/listCollections"),
    ),
    Case(
        "the definition of a view is changed",
        [{"_id": 1, "status": "Q"}, {"_id": 2, "status": "A"}, {"_id": 3, "status": "Q"}],
        _view(
            [{"$match": {"status": "A"}}],
            lambda view: [
                ids(view),
                modify(viewOn="cases", pipeline=[{"$match": {"status": "Q"}}])(view)["ok"],
                ids(view),
            ],
        ),
        [[2], 1.0, [1, 3]],
        page("reference/command/collMod"),
    ),
    Case(
        "a failed schema is explained rule by rule",
        [],
        made("contacts", _why({"_id": 7, "name": "Amanda", "status": "Updated"}), validator=_CONTACTS),
        plain(
            {
                "failingDocumentId": 7,
                "details": {
                    "operatorName": "$jsonSchema",
                    "schemaRulesNotSatisfied": [
                        {
                            "operatorName": "properties",
                            "propertiesNotSatisfied": [
                                {
                                    "propertyName": "status",
                                    "description": "can only be one of the enum values",
                                    "details": [
                                        {
                                            "operatorName": "enum",
                                            "specifiedAs": {"enum": ["Unknown", "Incomplete"]},
                                            "reason": "value was not found in enum",
                                            "consideredValue": "Updated",
                                        }
                                    ],
                                }
                            ],
                        },
                        {
                            "operatorName": "required",
                            "specifiedAs": {"required": ["phone"]},
                            "missingProperties": ["phone"],
                        },
                    ],
                },
            }
        ),
        page("core/schema-validation/handle-invalid-documents"),
    ),
    Case(
        "a failed expression is explained with its result",
        [],
        made("orders", _why({"_id": 1, "total": 100, "VAT": 1, "totalWithVAT": 150}), validator=_TOTAL),
        plain(
            {
                "failingDocumentId": 1,
                "details": {
                    "operatorName": "$expr",
                    "specifiedAs": _TOTAL,
                    "reason": "expression did not match",
                    "expressionResult": False,
                },
            }
        ),
        page("core/schema-validation/specify-query-expression-rules"),
    ),
    Case(
        "an invalid document is error 121",
        [],
        made("adults", lambda c: c.insert_one({"_id": 1, "age": 17}), validator=_ADULT),
        Error(121),
        page("core/schema-validation"),
    ),
    Case(
        "a warning lets invalid documents pass",
        [],
        made(
            "adults",
            after(insert({"_id": 1, "age": 17}, {"_id": 2}), ids),
            validator=_ADULT,
            validationAction="warn",
        ),
        [1, 2],
        page("core/schema-validation/handle-invalid-documents"),
    ),
    Case(
        "moderate validation lets documents that were invalid stay so",
        [{"_id": 1, "age": 3}, {"_id": 2, "age": 30}],
        after(
            modify(validator=_ADULT, validationLevel="moderate"),
            lambda c: [
                c.update_one({"_id": 1}, {"$set": {"name": "Tim"}}).modified_count,
                tried(lambda k: k.update_one({"_id": 2}, {"$set": {"age": 4}}), c),
                tried(lambda k: k.insert_one({"_id": 3, "age": 5}), c),
            ],
        ),
        [1, ("code", 121), ("code", 121)],
        page("core/schema-validation/specify-validation-level"),
    ),
    Case(
        "strict validation refuses any update that leaves a document invalid",
        [{"_id": 1, "age": 3}],
        after(modify(validator=_ADULT), lambda c: c.update_one({"_id": 1}, {"$set": {"name": "Tim"}})),
        Error(121),
        page("core/schema-validation/specify-validation-level"),
    ),
    Case(
        "validation is bypassed by those that ask for it",
        [],
        made(
            "adults",
            after(lambda c: c.insert_one({"_id": 1, "age": 2}, bypass_document_validation=True), everything),
            validator=_ADULT,
        ),
        [{"_id": 1, "age": 2}],
        page("core/schema-validation/bypass-document-validation"),
    ),
    Case(
        "a schema without additional properties must name the id too",
        [],
        made(
            "narrow",
            lambda c: tried(lambda k: k.insert_one({"_id": 1, "name": "x"}), c),
            validator={"$jsonSchema": {"properties": {"name": {"bsonType": "string"}}, "additionalProperties": False}},
        ),
        ("code", 121),
        page("core/schema-validation/specify-json-schema/json-schema-tips"),
    ),
    Case(
        "a schema is a filter too",
        [
            {"_id": 1, "item": "journal", "qty": 25},
            {"_id": 2, "item": "notebook", "qty": "50"},
            {"_id": 3, "qty": 100},
            {"_id": 4, "item": "planner"},
        ],
        find(
            {"$jsonSchema": {"required": ["item"], "properties": {"qty": {"bsonType": "int", "minimum": 25}}}},
            sort=[("_id", 1)],
        ),
        [1, 4],
        page("reference/operator/query/jsonSchema"),
    ),
    Case(
        "a renamed collection keeps its documents and its indexes",
        [{"_id": 1, "a": 1}],
        lambda c: (
            c.database.drop_collection("renamed"),
            c.create_index("a"),
            _rename("renamed")(c),
            [
                c.count_documents({}),
                c.database["renamed"].count_documents({}),
                sorted(indexes(c.database["renamed"])),
            ],
            c.database.drop_collection("renamed"),
        )[3],
        [0, 1, ["_id_", "a_1"]],
        page("reference/command/renameCollection"),
    ),
    Case(
        "a collection is not renamed to one that exists",
        [{"_id": 1}],
        _rename("others"),
        Error(48),
        page("reference/command/renameCollection"),
        [{"_id": 2}],
    ),
    Case(
        "a collection replaces another one that is to be dropped",
        [{"_id": 1}],
        after(_rename("others", dropTarget=True), lambda c: ids(c.database["others"])),
        [1],
        page("reference/command/renameCollection"),
        [{"_id": 2}],
    ),
    Case(
        "a collection that does not exist is not renamed",
        [],
        after(lambda c: c.drop(), _rename("others")),
        Error(26),
        page("reference/command/renameCollection"),
    ),
]
