"""Expressions of objects, and conversions."""

from __future__ import annotations

from datetime import datetime as D

from bson import Binary, Decimal128, Int64, ObjectId, Timestamp

from .cases import Case, Error, evaluate
from .expressions import MISSING, RICH, rows

CASES = [
    *rows("$mergeObjects", ([{"a": 1}, None, {"b": 2}], {"a": 1, "b": 2}), ([1], Error(40400))),
    *rows("$objectToArray", ({"a": 1}, [{"k": "a", "v": 1}]), (1, Error(40390)), (None, None)),
    *rows(
        "$arrayToObject",
        ([[["a", 1]]], {"a": 1}),
        ([[{"k": "a", "v": 1}]], {"a": 1}),
        ([[{"k": "a"}]], Error(40392)),
        ([[["a"]]], Error(40397)),
        ([[[1, 2]]], Error(40395)),
        (1, Error(40386)),
        (None, None),
    ),
    *rows(
        "$getField",
        ("n", 5),
        ({"field": "x", "input": "$o"}, 1),
        ({"field": "none", "input": "$o"}, MISSING),
        ({"field": {"$literal": "$x"}, "input": {}}, MISSING),
    ),
    *rows(
        "$setField",
        ({"field": "x", "input": "$o", "value": 2}, {"x": 2, "y": RICH["o"]["y"]}),
        ({"field": "a", "input": 1, "value": 2}, Error(4161105)),
        ({"field": "y", "input": "$o", "value": "$$REMOVE"}, {"x": 1}),
    ),
    *rows("$unsetField", ({"field": "y", "input": "$o"}, {"x": 1})),
    *rows(
        "$type",
        ("$none", "missing"),
        ("$n", "int"),
        ("$a", "array"),
        (Int64(1), "long"),
        (Timestamp(1, 1), "timestamp"),
    ),
    *rows("$bsonSize", ({"$literal": {}}, 5), (None, None), (1, Error(31393))),
    *rows("$binarySize", ("é", 2), (Binary(b"abc"), 3), (1, Error(51276))),
    *rows("$tsSecond", (Timestamp(5, 7), Int64(5))),
    *rows("$tsIncrement", (Timestamp(5, 7), Int64(7)), (1, Error(5687302))),
    Case("a path through an array", [RICH], evaluate("$o.y.k"), [1, 2], "manual: core/field-paths"),
    Case("no numbers in paths", [RICH], evaluate("$a.0"), [], "manual: core/field-paths"),
    Case(
        "a missing field in an object",
        [RICH],
        evaluate({"$mergeObjects": [{"x": "$none", "y": 1}]}),
        {"y": 1},
        "manual: reference/aggregation-expressions",
    ),
    Case(
        "a missing field in an array",
        [RICH],
        evaluate(["$none", 1]),
        [None, 1],
        "manual: reference/aggregation-expressions",
    ),
    *rows(
        "$toInt",
        ("1_0", Error(241)),
        ("-2", -2),
        (1.99999, 1),
        (Int64(5000), 5000),
        (Decimal128("5.5"), 5),
        (Int64(9999999999), Error(241)),
        ("-2.5", Error(241)),
        (None, None),
        (True, 1),
        ("$a", Error(241)),
        (" 1", Error(241)),
    ),
    *rows("$toLong", ("1", Int64(1)), ("$d", Int64(1577836800000))),
    *rows("$toDouble", ("2.5e1", 25.0), (True, 1.0), ("x", Error(241))),
    *rows("$toDecimal", ("1.10", Decimal128("1.10")), (False, Decimal128("0"))),
    *rows("$toBool", ("false", True), ("", True), (0, False), ("$none", None), (1.5, True)),
    *rows(
        "$toString",
        (True, "true"),
        (2.5, "2.5"),
        (ObjectId("5ab9c3da31c2ab715d421285"), "5ab9c3da31c2ab715d421285"),
        ("$d", "2020-01-01T00:00:00.000Z"),
        (1.0, "1"),
    ),
    *rows(
        "$toDate",
        (Int64(120000000000), D(1973, 10, 20, 21, 20)),
        ("2018-03-20", D(2018, 3, 20)),
        ("2018-03-20 11:00:06 +0500", D(2018, 3, 20, 6, 0, 6)),
        ("Friday", Error(241)),
        (5, Error(241)),
        (ObjectId("5ab9c3da31c2ab715d421285"), D(2018, 3, 27, 4, 8, 58)),
    ),
    *rows(
        "$toObjectId",
        ("5ab9cbfa31c2ab715d42129e", ObjectId("5ab9cbfa31c2ab715d42129e")),
        ("5ab9cbfa31c2ab715d42129", Error(241)),
    ),
    *rows(
        "$convert",
        ({"input": "x", "to": "int", "onError": "bad"}, "bad"),
        ({"input": "$none", "to": "int", "onNull": 7}, 7),
        ({"input": None, "to": "int"}, None),
        ({"input": 1, "to": "nope"}, Error(2)),
        ({"input": 1, "to": 2}, "1"),
        ({"input": {}, "to": "int"}, Error(241)),
        ({"input": 1}, Error(9)),
    ),
    *rows("$isNumber", ("$n", True), ("5", False)),
]
