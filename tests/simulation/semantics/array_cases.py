"""Expressions of arrays and sets."""

from __future__ import annotations

from .cases import Case, Error, evaluate
from .expressions import MISSING, rows

CASES = [
    *rows("$arrayElemAt", (["$a", -1], 3), (["$a", 5], MISSING), (["$n", 0], Error(28689)), (["$z", 0], None)),
    *rows("$first", ("$a", 1), ([[]], MISSING), ("$n", Error(28689))),
    *rows("$last", ("$a", 3)),
    *rows(
        "$slice",
        (["$a", 2], [1, 2]),
        (["$a", -2], [2, 3]),
        (["$a", 1, 1], [2]),
        (["$none", 1], None),
        (["$z", 1], None),
        (["$n", 1], Error(28724)),
        (["$a", 1, 0], Error(28729)),
    ),
    *(
        Case(
            f"{path} of {value!r}",
            [{"_id": 1, "a": value}],
            evaluate(path),
            expected,
            "server: src/mongo/db/pipeline/expression.cpp, evaluatePathArray",
        )
        for path, value, expected in [
            ("$a.b", [{"b": 1}, [{"b": 2}], []], [1]),
            ("$a.b", [[{"b": 2}]], []),
            ("$a.b", [1, "x", None], []),
            ("$a.b", [{"b": [1]}, {"b": None}, {}], [[1], None]),
            ("$a.b.c", {"b": [{"c": 1}, [{"c": 2}]]}, [1]),
            ("$a.b.c", [{"b": [{"c": 1}]}, {"b": {"c": 2}}], [[1], 2]),
            ("$a.0", [{"0": 1}, 2], [1]),
        ]
    ),
    *rows("$size", ("$a", 3), ("$none", Error(17124))),
    *rows("$isArray", (["$a"], True), (["$n"], False)),
    *rows(
        "$range",
        ([0, 10, 2], [0, 2, 4, 6, 8]),
        ([10, 0, -2], [10, 8, 6, 4, 2]),
        ([0, 10, -2], []),
        ([0, 5], [0, 1, 2, 3, 4]),
        ([0, 1, 0], Error(34449)),
        (["x", 1], Error(34443)),
    ),
    *rows(
        "$indexOfArray",
        ([["a", "abc"], "a"], 0),
        (["$none", {"$last": "$n"}], None),
        ([None, {"$last": "$n"}], None),
        ([["a", "abc", "de"], ["de"]], -1),
        ([[1, 2], 5], -1),
        ([[1, 2, 3, 2, 1], 2, 2], 3),
        ([None, "foo"], None),
        (["foo", "foo"], Error(40090)),
        ([[1, 2], [1, 2]], -1),
    ),
    *rows("$reverseArray", ("$a", [3, 2, 1]), ("$none", None), ("x", Error(34435))),
    *rows(
        "$zip",
        ({"inputs": [["a"], ["b"], ["c"]]}, [["a", "b", "c"]]),
        ({"inputs": [[1, 2, 3], ["a"]]}, [[1, "a"]]),
        ({"inputs": [[1], [2, 3]], "useLongestLength": True}, [[1, 2], [None, 3]]),
        ({"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": ["x", "y"]}, [[1, 2], ["x", 3]]),
        ({"inputs": [None]}, None),
        ({"inputs": ["x"]}, Error(34468)),
    ),
    *rows(
        "$concatArrays",
        ([["hello", " "], ["world"]], ["hello", " ", "world"]),
        ([[1], None], None),
        ([[1], 2], Error(28664)),
    ),
    *rows(
        "$filter",
        ({"input": "$a", "as": "x", "cond": {"$gt": ["$$x", 1]}}, [2, 3]),
        ({"input": "$a", "cond": True, "limit": 1}, [1]),
        ({"input": "$n", "cond": True}, Error(28651)),
        ({"input": "$z", "cond": True}, None),
        ({"input": "$a"}, Error(28650)),
    ),
    *rows(
        "$map",
        ({"input": "$a", "as": "x", "in": {"$multiply": ["$$x", 2]}}, [2, 4, 6]),
        ({"input": "$a", "in": "$$this.x"}, [None] * 3),
        ({"input": "$n", "in": 1}, Error(16883)),
    ),
    *rows(
        "$reduce",
        ({"input": "$a", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}, 6),
        ({"input": "$n", "initialValue": 0, "in": 1}, Error(40080)),
    ),
    *rows("$in", ([2, "$a"], True), ([1, "x"], Error(40081))),
    *rows(
        "$sortArray",
        ({"input": [3, 1, 2], "sortBy": -1}, [3, 2, 1]),
        ({"input": [{"x": 2}, {"x": 1}], "sortBy": {"x": 1}}, [{"x": 1}, {"x": 2}]),
    ),
    *rows("$firstN", ({"n": 2, "input": "$a"}, [1, 2]), ({"n": 0, "input": "$a"}, Error(5787908))),
    *rows("$lastN", ({"n": 2, "input": "$a"}, [2, 3])),
    *rows("$maxN", ({"n": 2, "input": "$a"}, [3, 2])),
    *rows("$minN", ({"n": 2, "input": [3, None, 1]}, [1, 3])),
    *rows(
        "$setUnion", ([[1], [True]], [1, True]), (["$none", [1]], None), (["$z", [1]], None), ([[1], 2], Error(17043))
    ),
    *rows(
        "$setIntersection",
        ([["a", "b", "a"], ["b", "a"]], ["a", "b"]),
        ([["a"], [["a"]]], []),
        ([[1], None], None),
        ([1], Error(17047)),
    ),
    *rows(
        "$setDifference",
        ([["red", "blue"], ["red"]], ["blue"]),
        ([[1, 1.0, True], [2]], [1, True]),
        ([None, []], None),
        ([1, []], Error(17048)),
    ),
    *rows("$setEquals", ([["a", "b", "a"], ["b", "a"]], True), ([[1], [True]], False), ([None, []], Error(17044))),
    *rows("$setIsSubset", ([["a"], ["a", "b"]], True), ([[1], None], Error(17042))),
    *rows("$allElementsTrue", ([[1, 0]], False), ([[]], True), ("x", Error(17040))),
    *rows("$anyElementTrue", ([[0, None]], False), ([[1]], True)),
]
