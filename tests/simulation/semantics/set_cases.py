"""Operators of updates, and what they refuse."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64

from .calls import command
from .cases import Case, update
from .refusals import ONE, THREE, WRITE, by_name, changed, of, update_code


def _all_names(values: Any) -> Any:
    return [by_name(each) for each in values]


GRADES = [
    {
        "_id": 1,
        "grades": [
            {"grade": 80, "mean": 75, "std": 6},
            {"grade": 85, "mean": 90, "std": 4},
            {"grade": 85, "mean": 85, "std": 6},
        ],
    }
]
MODIFIERS = "server: src/mongo/db/update"

CASES = [
    Case(
        "$inc makes a long of an int that is full",
        [{"_id": 1, "a": 2147483647}],
        update({}, {"$inc": {"a": 1}}),
        {"_id": 1, "a": Int64(2147483648)},
        "server: src/mongo/util/safe_num.cpp",
    ),
    Case(
        "$mul of an int by a double",
        [{"_id": 1, "a": 2}],
        update({}, {"$mul": {"a": 1.5}}),
        {"_id": 1, "a": 3.0},
        "manual: reference/operator/update/mul",
    ),
    Case(
        "$set of the same number in another type",
        [{"_id": 1, "a": 1}],
        update({}, {"$set": {"a": 1.0}}),
        {"_id": 1, "a": 1.0},
        f"{MODIFIERS}/set_node.cpp",
    ),
    Case(
        "$set beyond the end of an array fills it with null",
        [{"_id": 1, "a": [1]}],
        update({}, {"$set": {"a.3": 9}}),
        {"_id": 1, "a": [1, None, None, 9]},
        f"{MODIFIERS}/path_support.cpp",
    ),
    Case(
        "$set makes the documents of its path",
        [{"_id": 1}],
        update({}, {"$set": {"a.b.c": 1}}),
        {"_id": 1, "a": {"b": {"c": 1}}},
        "manual: reference/operator/update/set",
    ),
    Case(
        "$unset of an element leaves null",
        [{"_id": 1, "a": [1, 2, 3]}],
        update({}, {"$unset": {"a.1": ""}}),
        {"_id": 1, "a": [1, None, 3]},
        "manual: reference/operator/update/unset",
    ),
    Case(
        "$max of a field that is missing",
        [{"_id": 1}],
        update({}, {"$max": {"a": 5}}),
        {"_id": 1, "a": 5},
        "manual: reference/operator/update/max",
    ),
    Case(
        "$rename to a field that is there",
        [{"_id": 1, "a": 1, "b": 2, "c": 3}],
        of(update({}, {"$rename": {"a": "b"}}), by_name),
        {"_id": 1, "b": 1, "c": 3},
        "manual: reference/operator/update/rename",
    ),
    Case(
        "$push at a position from the end",
        [{"_id": 1, "scores": [50, 60, 70, 100]}],
        update({}, {"$push": {"scores": {"$each": [90, 80], "$position": -2}}}),
        {"_id": 1, "scores": [50, 60, 90, 80, 70, 100]},
        "manual: reference/operator/update/position",
    ),
    Case(
        "$push with $slice of zero empties the array",
        [{"_id": 1, "a": [1, 2]}],
        update({}, {"$push": {"a": {"$each": [3], "$slice": 0}}}),
        {"_id": 1, "a": []},
        "manual: reference/operator/update/slice",
    ),
    Case(
        "$pop takes the first",
        [{"_id": 0, "a": {"b": [1, 2, 3]}}],
        update({}, {"$pop": {"a.b": -1}}),
        {"_id": 0, "a": {"b": [2, 3]}},
        f"{WRITE}/update/update_modifier_pop.js",
    ),
    Case(
        "elements by a condition on one of their fields",
        GRADES,
        update({}, {"$set": {"grades.$[each].mean": 100}}, array_filters=[{"each.grade": {"$gte": 85}}]),
        {
            "_id": 1,
            "grades": [
                {"grade": 80, "mean": 75, "std": 6},
                {"grade": 85, "mean": 100, "std": 4},
                {"grade": 85, "mean": 100, "std": 6},
            ],
        },
        "manual: reference/operator/update/positional-filtered",
    ),
    Case(
        "a pipeline computes from the fields of the document",
        [{"_id": 1, "scores": [3, 4, 5]}],
        update({}, [{"$set": {"total": {"$sum": "$scores"}}}, {"$unset": "scores"}]),
        {"_id": 1, "total": 12},
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "an upsert takes the only value of $in and of $or",
        [],
        of(
            changed({"_id": 1, "x": {"$in": [7]}, "$or": [{"y": 8}]}, {"$set": {"a": 1}}, upsert=True),
            _all_names,
        ),
        [{"_id": 1, "a": 1, "x": 7, "y": 8}],
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "an upsert by a replacement takes nothing but the _id",
        [],
        changed({"_id": 1, "x": 5}, {"a": 1}, upsert=True),
        [{"_id": 1, "a": 1}],
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "$setOnInsert leaves a document that is there",
        ONE,
        changed({"_id": 1}, {"$set": {"a": 2}, "$setOnInsert": {"b": 3}}, upsert=True),
        [{"_id": 1, "a": 2}],
        "manual: reference/operator/update/setOnInsert",
    ),
    Case(
        "an upsert of two values for a field",
        [],
        update_code({"$and": [{"x": 1}, {"x": 2}]}, {"$set": {"a": 1}}, upsert=True),
        54,
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "an update of nothing new is a match, and no change",
        ONE,
        command(
            "update",
            of=lambda reply: [reply["n"], reply["nModified"]],
            updates=[{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}],
        ),
        [1, 0],
        "manual: reference/command/update",
    ),
    Case(
        "$set of a path below a number",
        ONE,
        update_code({}, {"$set": {"a.b": 1}}),
        28,
        "server: src/mongo/db/update/path_support.cpp",
    ),
    Case(
        "two operators for one path",
        ONE,
        update_code({}, {"$set": {"a": 2}, "$inc": {"a": 1}}),
        40,
        "server: src/mongo/db/update/update_object_node.cpp",
    ),
    Case("$set of another _id", ONE, update_code({}, {"$set": {"_id": 2}}), 66, "manual: tutorial/update-documents"),
    Case(
        "a replacement with another _id",
        ONE,
        update_code({"a": 1}, {"_id": 2}),
        66,
        f"{MODIFIERS}/object_replace_executor.cpp",
    ),
    Case(
        "an update operator that there is not",
        ONE,
        update_code({}, {"$append": {"a": 1}}),
        9,
        f"{MODIFIERS}/update_driver.cpp",
    ),
    Case("a replacement of many", THREE, update_code({}, {"b": 1}, multi=True), 9, f"{MODIFIERS}/update_driver.cpp"),
    Case("$push to a number", ONE, update_code({}, {"$push": {"a": 1}}), 2, f"{MODIFIERS}/push_node.cpp"),
    Case(
        "a filter of an element that the update does not name",
        ONE,
        update_code({}, {"$set": {"a": 2}}, arrayFilters=[{"i": 0}]),
        9,
        f"{WRITE}/update/update_arrayFilters.js",
    ),
    Case(
        "$pull of some values, and of one",
        [{"_id": 1, "fruits": ["apples", "pears", "oranges"], "vegetables": ["carrots", "celery", "carrots"]}],
        update({}, {"$pull": {"fruits": {"$in": ["apples", "oranges"]}, "vegetables": "carrots"}}),
        {"_id": 1, "fruits": ["pears"], "vegetables": ["celery"]},
        "manual: reference/operator/update/pull",
    ),
    Case(
        "$currentDate makes a date",
        ONE,
        of(update({}, {"$currentDate": {"a": True}}), lambda found: isinstance(found["a"], datetime)),
        True,
        "manual: reference/operator/update/currentDate",
    ),
    Case(
        "an update by a version that has passed",
        [{"_id": 1, "version": 1}],
        lambda collection: [
            collection.update_one({"_id": 1, "version": 1}, {"$inc": {"version": 1}}).matched_count for _ in range(2)
        ],
        [1, 0],
        "manual: core/write-operations-atomicity",
    ),
]
