"""Updates."""

from __future__ import annotations

import re

from bson import Decimal128, Int64, ObjectId

from .cases import Case, Error, update

ONE = {"_id": 1}


def _op(name):
    return f"manual: reference/operator/update/{name}"


def _upserted(collection, query, change):
    """What an upsert stores, without an ``_id`` that it makes."""
    send = collection.update_one if "$set" in change else collection.replace_one
    made = send(query, change, upsert=True).upserted_id
    found = collection.find_one({})
    return {name: value for name, value in found.items() if name != "_id" or not isinstance(made, ObjectId)}


CASES = [
    Case(
        "$pull of a value",
        [{**ONE, "a": [1, [1, 2], 1.0, "1"]}],
        update(ONE, {"$pull": {"a": 1}}),
        {**ONE, "a": [[1, 2], "1"]},
        _op("pull"),
    ),
    Case(
        "$pull of an array",
        [{**ONE, "a": [1, [1, 2]]}],
        update(ONE, {"$pull": {"a": [1, 2]}}),
        {**ONE, "a": [1]},
        _op("pull"),
    ),
    Case(
        "$pull with a condition",
        [{**ONE, "a": [3, 5, 6, 7, 7, 8, [9]]}],
        update(ONE, {"$pull": {"a": {"$gte": 6}}}),
        {**ONE, "a": [3, 5]},
        "server: src/mongo/db/update/pull_node.cpp",
    ),
    *(
        Case(
            f"$pull of {condition!r}",
            [{**ONE, "a": [3, 7, [9], [3]]}],
            update(ONE, {"$pull": {"a": condition}}),
            {**ONE, "a": left},
            "server: src/mongo/db/update/pull_node.cpp",
        )
        for condition, left in [
            ({"$eq": 9}, [3, 7, [3]]),
            ({"$in": [3]}, [7, [9]]),
            ({"$not": {"$gt": 6}}, [7, [9]]),
            ({"$ne": 3}, [3, [3]]),
            ({"$size": 1}, [3, 7]),
            ({"$type": "array"}, [3, 7]),
            ({"$exists": False}, [3, 7, [9], [3]]),
            (3, [7, [9], [3]]),
            ([3], [3, 7, [9]]),
        ]
    ),
    *(
        Case(
            f"an upsert of {query!r}",
            [],
            lambda collection, query=query: _upserted(collection, query, {"$set": {"s": 1}}),
            expected,
            "server: src/mongo/db/ops/path_support.cpp",
        )
        for query, expected in [
            ({"k": 3}, {"k": 3, "s": 1}),
            ({"k": None}, {"k": None, "s": 1}),
            ({"k": {"$eq": 3}}, {"k": 3, "s": 1}),
            ({"k": {"$in": [3]}}, {"k": 3, "s": 1}),
            ({"k": {"$in": [3, 4]}}, {"s": 1}),
            ({"k": {"$all": [3]}}, {"k": 3, "s": 1}),
            ({"k": {"$all": [3, 4]}}, Error(54)),
            ({"k": {"$all": [{"$elemMatch": {"x": 1}}]}}, {"s": 1}),
            ({"k": {"$gt": 3}}, {"s": 1}),
            ({"k": {"$not": {"$eq": 3}}}, {"s": 1}),
            ({"k": re.compile("a")}, {"s": 1}),
            ({"k": {"$in": [re.compile("a")]}}, {"s": 1}),
            ({"k": {"$all": [re.compile("a")]}}, {"s": 1}),
            ({"$or": [{"k": 1}]}, {"k": 1, "s": 1}),
            ({"$or": [{"k": 1}, {"k": 2}]}, {"s": 1}),
            ({"$nor": [{"k": 1}]}, {"s": 1}),
            ({"$and": [{"k": 1}, {"l": 2}]}, {"k": 1, "l": 2, "s": 1}),
            ({"$and": [{"k": 1}, {"k": 2}]}, Error(54)),
            ({"k": 1, "$and": [{"k": 2}]}, Error(54)),
            ({"k": 1, "k.l": 2}, Error(54)),
            ({"k": {"l": 1}, "k.m": 2}, Error(54)),
            ({"k.l": 1, "k": {"l": 1}}, Error(54)),
            ({"k.l": 1, "k.m": 2}, {"k": {"l": 1, "m": 2}, "s": 1}),
        ]
    ),
    *(
        Case(
            f"an upsert of {query!r} with a replacement",
            [],
            lambda collection, query=query: _upserted(collection, query, {"s": 1}),
            expected,
            "server: src/mongo/db/ops/path_support.cpp",
        )
        for query, expected in [
            ({"k": 3}, {"s": 1}),
            ({"_id": 3, "k": 3}, {"_id": 3, "s": 1}),
            ({"$and": [{"k": 1}, {"k": 2}]}, {"s": 1}),
            ({"$and": [{"_id": 1}, {"_id": 2}]}, Error(54)),
            ({"_id.x": 3}, Error(111)),
        ]
    ),
    *(
        Case(
            f"the position that {query!r} found in another array",
            [{**ONE, "a": [1, 2], "b": [5, 6], "c": {"d": [{"x": 1}, {"x": 2}]}, "e": 1}],
            lambda collection, query=query: update(query, {"$set": {"b.$": 0}})(collection)["b"],
            expected,
            "server: src/mongo/db/matcher/match_details.h",
        )
        for query, expected in [
            ({"a": 2}, [5, 0]),
            ({"a": 1}, [0, 6]),
            ({"a": {"$elemMatch": {"$gt": 1}}}, [5, 0]),
            ({"c.d.x": 2}, [5, 0]),
            ({"e": 1, "a": 2}, [5, 0]),
            ({"a": 2, "b": 5}, [0, 6]),
            ({"e": 1}, Error(2)),
        ]
    ),
    Case("$unset of _id", [ONE], update(ONE, {"$unset": {"_id": 1}}), Error(66), _op("unset")),
    Case("$rename of _id", [ONE], update(ONE, {"$rename": {"_id": "a"}}), Error(66), _op("rename")),
    Case(
        "a pipeline that unsets _id",
        [{**ONE, "a": 1}],
        update(ONE, [{"$unset": ["_id", "a"]}]),
        ONE,
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    *(
        Case(
            f"$rename of a.x in {document!r}",
            [{**ONE, **document}],
            update(ONE, {"$rename": {"a.x": "b"}}),
            expected,
            "server: src/mongo/db/update/path_support.cpp",
        )
        for document, expected in [
            ({"a": [1]}, Error(28)),
            ({"a": 5}, Error(28)),
            ({"a": {"y": 1}}, {**ONE, "a": {"y": 1}}),
            ({}, ONE),
        ]
    ),
    *(
        Case(
            f"the array filter {filter!r}",
            [{**ONE, "a": [{"x": 1}, {"x": 2}]}],
            update(ONE, {"$set": {"a.$[e].x": 0}}, array_filters=[filter]),
            expected,
            _op("positional-filtered"),
        )
        for filter, expected in [
            ({"e.x": 1}, {**ONE, "a": [{"x": 0}, {"x": 2}]}),
            ({"e.x": 1, "e.y": None}, {**ONE, "a": [{"x": 0}, {"x": 2}]}),
            ({"$or": [{"e.x": 1}, {"e.x": 2}]}, {**ONE, "a": [{"x": 0}, {"x": 0}]}),
            ({"e": 1, "f": 1}, Error(9)),
            ({"$and": [{"e": 1}, {"f": 1}]}, Error(9)),
            ({"$or": [{"e": 1}, {"$and": [{"f": 1}]}]}, Error(9)),
        ]
    ),
    Case(
        "$pull of documents",
        [{**ONE, "a": [{"x": 1, "y": 2}, {"x": 2}]}],
        update(ONE, {"$pull": {"a": {"x": 1}}}),
        {**ONE, "a": [{"x": 2}]},
        _op("pull"),
    ),
    Case(
        "$pull of documents with a condition",
        [{**ONE, "a": [{"x": 8}, {"x": 5}]}],
        update(ONE, {"$pull": {"a": {"x": {"$gt": 6}}}}),
        {**ONE, "a": [{"x": 5}]},
        _op("pull"),
    ),
    Case(
        "$pullAll",
        [{**ONE, "a": [0, 2, 5, 5, 1, 0]}],
        update(ONE, {"$pullAll": {"a": [0, 5]}}),
        {**ONE, "a": [2, 1]},
        _op("pullAll"),
    ),
    Case(
        "$rename in an array",
        [{**ONE, "a": [{"b": 1}]}],
        update(ONE, {"$rename": {"a.0.b": "c"}}),
        Error(2),
        _op("rename"),
    ),
    Case(
        "$rename into an array",
        [{**ONE, "a": [{"b": 1}], "c": 1}],
        update(ONE, {"$rename": {"c": "a.0.c"}}),
        Error(2),
        _op("rename"),
    ),
    Case("$bit with a double", [{**ONE, "a": 1}], update(ONE, {"$bit": {"a": {"or": 1.0}}}), Error(2), _op("bit")),
    Case("$bit of a double", [{**ONE, "a": 1.0}], update(ONE, {"$bit": {"a": {"or": 1}}}), Error(2), _op("bit")),
    Case("$bit", [{**ONE, "a": 13}], update(ONE, {"$bit": {"a": {"and": 10}}}), {**ONE, "a": 8}, _op("bit")),
    Case("$inc beyond int64", [{**ONE, "a": Int64(2**63 - 1)}], update(ONE, {"$inc": {"a": 1}}), Error(2), _op("inc")),
    Case(
        "$inc of decimals",
        [{**ONE, "a": Decimal128("1.5")}],
        update(ONE, {"$inc": {"a": 1}}),
        {**ONE, "a": Decimal128("2.5")},
        _op("inc"),
    ),
    Case("$inc of a string", [{**ONE, "a": "x"}], update(ONE, {"$inc": {"a": 1}}), Error(14), _op("inc")),
    Case("$mul of a missing field", [ONE], update(ONE, {"$mul": {"a": Int64(5)}}), {**ONE, "a": Int64(0)}, _op("mul")),
    Case(
        "$push with all its modifiers",
        [{**ONE, "a": [{"w": 1, "s": 4}]}],
        update(
            ONE,
            {
                "$push": {
                    "a": {
                        "$each": [{"w": 3, "s": 8}, {"w": 4, "s": 7}, {"w": 5, "s": 6}],
                        "$sort": {"s": -1},
                        "$slice": 3,
                    }
                }
            },
        ),
        {**ONE, "a": [{"w": 3, "s": 8}, {"w": 4, "s": 7}, {"w": 5, "s": 6}]},
        _op("push"),
    ),
    Case(
        "$addToSet knows the order of fields",
        [{**ONE, "a": [{"x": 1, "y": 2}]}],
        update(ONE, {"$addToSet": {"a": {"y": 2, "x": 1}}}),
        {**ONE, "a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]},
        _op("addToSet"),
    ),
    Case("$min compares types", [{**ONE, "a": "5"}], update(ONE, {"$min": {"a": 7}}), {**ONE, "a": 7}, _op("min")),
    Case(
        "the position that the query found",
        [{**ONE, "a": [80, 85, 80]}],
        update({"a": 85}, {"$set": {"a.$": 82}}),
        {**ONE, "a": [80, 82, 80]},
        _op("positional"),
    ),
    Case(
        "all positions that a filter selects",
        [{**ONE, "a": [95, 102, 90]}],
        update({}, {"$set": {"a.$[e]": 100}}, array_filters=[{"e": {"$gte": 95}}]),
        {**ONE, "a": [100, 100, 90]},
        _op("positional-filtered"),
    ),
    Case(
        "a pipeline as update",
        [{**ONE, "a": 1, "b": 5}],
        update(ONE, [{"$set": {"a": {"$add": ["$a", "$b"]}}}, {"$unset": "b"}]),
        {**ONE, "a": 6},
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "a broken pipeline as update of nothing",
        [],
        update(ONE, [{"$set": {"a": {"$nope": 1}}}]),
        Error(168),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    *(
        Case(
            f"{name} of {operand!r} when nothing matches",
            [],
            update({"_id": 9}, {name: {"a": operand}}),
            Error(code),
            _op(name[1:]),
        )
        for name, operand, code in [
            ("$inc", "x", 14),
            ("$mul", None, 14),
            ("$bit", {}, 2),
            ("$bit", {"not": 1}, 2),
            ("$rename", 1, 2),
            ("$rename", "a", 2),
            ("$rename", "b.$", 2),
            ("$push", {"$each": 1}, 2),
            ("$push", {"$each": [], "$slice": "x"}, 2),
            ("$push", {"$each": [], "$sort": 2}, 2),
            ("$push", {"$each": [], "$position": 1.5}, 2),
            ("$push", {"$each": [], "$nope": 1}, 2),
            ("$addToSet", {"$each": 1}, 14),
            ("$addToSet", {"$each": [], "$slice": 1}, 2),
            ("$pop", 2, 9),
            ("$pop", True, 9),
            ("$pullAll", 1, 2),
            ("$pull", {"$nope": 1}, 2),
            ("$currentDate", "x", 2),
        ]
    ),
    Case("$pop of no array", [{**ONE, "a": 1}], update(ONE, {"$pop": {"a": 1}}), Error(14), _op("pop")),
    Case(
        "an unknown operator in a filter that finds no collection",
        [],
        update({"a": {"$nope": 1}}, {"$set": {"a": 1}}),
        Error(2),
        "server: src/mongo/db/matcher/expression_parser.cpp",
    ),
]
