"""Find and modify, inserts, bulk writes and deletes; distinct values and counts."""

from __future__ import annotations

from typing import Any

from gmongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne

from .calls import command, stored
from .cases import BULK_WRITE_ERRORS, Case, Error, update
from .refusals import BAD_VALUE, MISMATCH, ONE, QUERY, SPARSE, TENS, UNPARSED, WRITE, by_name, indexed, refusal

MODIFIED = f"{WRITE}/find_and_modify/find_and_modify_hint.js"
POSITIONS = f"{WRITE}/find_and_modify/find_and_modify_server6865.js"
EMPTIED = f"{WRITE}/find_and_modify/find_and_modify_empty_update.js"
PIPED = f"{WRITE}/find_and_modify/find_and_modify_pipeline_update.js"


def _modified(name: str, documents: list[Any], fields: Any, expected: Any, source: str) -> Case:
    """The document that the command returns."""
    return Case(name, documents, command("findAndModify", of=lambda reply: reply["value"], **fields), expected, source)


MODIFY = [
    _modified(
        "findAndModify shows an element as it is afterwards",
        [{"_id": 1, "a": [{"x": 1, "y": 1}, {"x": 1, "y": 2}]}],
        {"query": {"_id": 1}, "fields": {"a": {"$elemMatch": {"x": 1}}}, "update": {"$pop": {"a": -1}}, "new": True},
        {"_id": 1, "a": [{"x": 1, "y": 2}]},
        POSITIONS,
    ),
    _modified(
        "findAndModify shows the element that matched of what it removes",
        [{"_id": 42, "a": [1, 2]}],
        {"query": {"a": 2}, "fields": {"a.$": 1}, "remove": True},
        {"_id": 42, "a": [2]},
        POSITIONS,
    ),
    _modified(
        "findAndModify with an empty document keeps the _id alone",
        [{"_id": 0, "a": 1}],
        {"query": {"a": 1}, "update": {}, "new": True},
        {"_id": 0},
        EMPTIED,
    ),
    _modified(
        "findAndModify inserts of an empty document the _id alone",
        [],
        {"query": {"_id": 0, "a": 1}, "update": {}, "upsert": True, "sort": {"a": 1}, "new": True},
        {"_id": 0},
        EMPTIED,
    ),
    _modified(
        "findAndModify with a pipeline and a sort",
        [{"_id": 0, "x": "b"}, {"_id": 1, "x": "d"}, {"_id": 2, "x": "a"}, {"_id": 3, "x": "c"}],
        {"update": [{"$set": {"foo": "bar"}}], "sort": {"x": -1}, "new": True},
        {"_id": 1, "x": "d", "foo": "bar"},
        PIPED,
    ),
    Case(
        "findAndModify refuses filters of arrays for a pipeline",
        ONE,
        refusal(
            command("findAndModify", query={"_id": 1}, update=[{"$set": {"y": 1}}], arrayFilters=[{"i.x": 4}]),
        ),
        UNPARSED,
        PIPED,
    ),
    Case(
        "findAndModify by an index without the document inserts another",
        [{"_id": 0, "x": 2}, {"_id": 2, "x": 1, "s": 0}],
        indexed(
            {"s": 1},
            command(
                "findAndModify",
                of=lambda reply: [by_name(reply["lastErrorObject"]), by_name(reply["value"])],
                query={"x": 2},
                update={"$set": {"_id": 3, "y": 1}},
                hint={"s": 1},
                upsert=True,
                new=True,
            ),
            sparse=True,
        ),
        [{"n": 1, "updatedExisting": False, "upserted": 3}, {"_id": 3, "x": 2, "y": 1}],
        MODIFIED,
    ),
    Case(
        "findAndModify refuses a hint of no index",
        ONE,
        refusal(command("findAndModify", query={"_id": 1}, update={"$set": {"y": 1}}, hint={"badHint": 1})),
        BAD_VALUE,
        MODIFIED,
    ),
]


def _many(collection: Any) -> Any:
    result = collection.bulk_write(
        [
            InsertOne({"a": 1}),
            UpdateOne({"a": 1}, {"$set": {"b": 1}}),
            UpdateOne({"a": 1}, {"$set": {"b": 1}}),
            UpdateOne({"a": 2}, {"$set": {"b": 2}}, upsert=True),
            InsertOne({"a": 3}),
            UpdateMany({"a": 3}, {"$set": {"b": 1}}),
            UpdateMany({"a": 3}, {"$set": {"b": 2}}, upsert=True),
            UpdateMany({"a": 10}, {"$set": {"b": 2}}, upsert=True),
            ReplaceOne({"a": 2}, {"a": 11}),
            DeleteOne({"a": 11}),
            DeleteMany({"a": 3}),
        ]
    )
    return [
        result.inserted_count,
        result.upserted_count,
        result.matched_count,
        result.modified_count,
        result.deleted_count,
        sorted(result.upserted_ids),
    ]


def _stopped(collection: Any) -> Any:
    collection.create_index([("a", 1)], unique=True)
    try:
        collection.bulk_write(
            [
                InsertOne({"b": 1, "a": 1}),
                UpdateOne({"b": 2}, {"$set": {"a": 1}}, upsert=True),
                UpdateOne({"b": 3}, {"$set": {"a": 2}}, upsert=True),
                InsertOne({"b": 4, "a": 3}),
            ]
        )
    except BULK_WRITE_ERRORS as error:
        return [error.details["nInserted"], [[each["index"], each["code"]] for each in error.details["writeErrors"]]]
    return None


def _inserted(reply: Any) -> Any:
    return [reply["n"], [[each["index"], each["code"]] for each in reply.get("writeErrors", [])]]


KITS = [{"_id": number} for number in (10, 11, 11, 12, 13, 13, 14)]
PARALLEL = f"{WRITE}/insert/insert_illegal_doc.js"
CRUD = f"{WRITE}/crud_api.js"
THREE = [{"_id": 1, "x": 11}, {"_id": 2, "x": 22}, {"_id": 3, "x": 33}]

WRITES = [
    Case("a bulk of all kinds of writes", [], _many, [2, 2, 5, 4, 2, [3, 7]], f"{WRITE}/bulk/bulk_api_ordered.js"),
    Case("an ordered bulk stops at an error", [], _stopped, [1, [[1, 11000]]], f"{WRITE}/bulk/bulk_api_ordered.js"),
    Case(
        "an ordered insert stops at a duplicate",
        [],
        command("insert", of=_inserted, documents=[{"_id": 13}, {"_id": 13}, {"_id": 14}]),
        [1, [[1, 11000]]],
        "manual: reference/method/db.collection.insertMany",
    ),
    Case(
        "an insert in any order goes on after duplicates",
        [],
        command("insert", of=_inserted, documents=KITS, ordered=False),
        [5, [[2, 11000], [5, 11000]]],
        "manual: reference/method/db.collection.insertMany",
    ),
    Case(
        "an insert of two arrays into one index",
        [],
        indexed({"a": 1, "b": 1}, lambda collection: collection.insert_one({"_id": 1, "a": [1, 2, 3], "b": [4, 5, 6]})),
        Error(171),
        PARALLEL,
    ),
    Case(
        "a field with a number for a name in an array of an index",
        [{"_id": 0, "a": [{}]}],
        indexed({"a.0.c": 1}, update({"_id": 0}, {"$set": {"a.0.0": 1}})),
        Error(16746),
        f"{QUERY}/update/update_numeric_field_name.js",
    ),
    Case(
        "an _id that is an array",
        [],
        lambda collection: collection.insert_one({"_id": [1]}),
        Error(53),
        "manual: core/document",
    ),
    Case(
        "a delete by an index that has only some documents",
        SPARSE,
        indexed(
            {"s": 1},
            command("delete", of=lambda reply: reply["n"], deletes=[{"q": {}, "limit": 0, "hint": {"s": 1}}]),
            sparse=True,
        ),
        2,
        f"{WRITE}/delete/delete_hint.js",
    ),
    Case(
        "deletes before one that cannot be parsed are done",
        [{"_id": 0}, {"_id": 1}],
        command(
            "delete", of=_inserted, deletes=[{"q": {"_id": 0}, "limit": 1}, {"q": {"$expr": "$$unbound"}, "limit": 1}]
        ),
        [1, [[1, 17276]]],
        f"{QUERY}/expr/expr.js",
    ),
    Case(
        "a replaced document as it was, the first by a sort",
        THREE,
        lambda collection: [
            collection.find_one_and_replace({"_id": {"$gt": 1}}, {"x": 32}, {"x": 1, "_id": 0}, sort=[("x", 1)]),
            stored(collection),
        ],
        [{"x": 22}, [{"_id": 1, "x": 11}, {"_id": 2, "x": 32}, {"_id": 3, "x": 33}]],
        CRUD,
    ),
]


SHIRTS = [
    {"_id": 1, "dept": "A", "item": {"sku": "111", "color": "red"}, "sizes": ["S", "M"]},
    {"_id": 2, "dept": "A", "item": {"sku": "111", "color": "blue"}, "sizes": ["M", "L"]},
    {"_id": 3, "dept": "B", "item": {"sku": "222", "color": "blue"}, "sizes": "S"},
    {"_id": 4, "dept": "A", "item": {"sku": "333", "color": "black"}, "sizes": ["S"]},
]


def _count(
    name: str, fields: Any, expected: Any, source: str = "server: jstests/core/query/explain/explain_count.js"
) -> Case:
    return Case(name, TENS, command("count", of=lambda reply: reply["n"], **fields), expected, source)


COUNTS = [
    _count("count with a negative limit and a skip", {"limit": -3, "skip": 4}, 3),
    _count("count of a query with a skip", {"query": {"a": 1}, "skip": 3}, 7),
    Case(
        "count by an index that has no document",
        TENS,
        indexed({"x": 1}, command("count", of=lambda reply: reply["n"], hint={"x": 1}), sparse=True),
        0,
        f"{QUERY}/count/count_hint.js",
    ),
    Case(
        "distinct of a field in documents, with a query",
        SHIRTS,
        command("distinct", of=lambda reply: sorted(reply["values"]), key="item.sku", query={"dept": "A"}),
        ["111", "333"],
        "manual: reference/command/distinct",
    ),
    Case(
        "distinct refuses a key that is a document",
        ONE,
        refusal(command("distinct", key={"a": 1})),
        MISMATCH,
        f"{QUERY}/distinct/distinct_syntax.js",
    ),
]


CASES = [*MODIFY, *WRITES, *COUNTS]
