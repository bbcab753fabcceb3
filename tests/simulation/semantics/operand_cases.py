"""Operands that expressions and accumulators refuse, the order in which they look at them, and projected paths."""

from __future__ import annotations

import datetime

from bson import Decimal128

from .cases import Case, Error, aggregate, evaluate, project, update

SWITCH = "server: jstests/aggregation/expressions/switch_errors.js"
REDUCE = "server: jstests/aggregation/expressions/reduce.js"
TRIM = "server: jstests/aggregation/expressions/trim.js"
ZIP = "server: jstests/aggregation/expressions/zip.js"
SLICE = "server: jstests/aggregation/expressions/slice.js"
SORT = "server: jstests/aggregation/expressions/sortArray.js"
REPLACE = "server: jstests/aggregation/expressions/replace_one.js"
TO_OBJECT = "server: jstests/aggregation/expressions/arrayToObject.js"
PARTS = "server: jstests/aggregation/expressions/date_from_parts.js"
NULLS = "server: jstests/aggregation/expressions/expression_set_field_null_chars.js"
COUNT = "server: src/mongo/db/pipeline/document_source_count.cpp"
RENAME = "server: src/mongo/db/update/rename_node.cpp"
FIRST_N = "server: jstests/aggregation/accumulators/first_n_last_n.js"
PATHS = "server: jstests/core/query/project/projection_semantics.js"
ONE = [{"_id": 1, "s": "foo", "i": 1, "o": {"a": 1}, "n": None, "a": [1, 2]}]
FIVE = [0, 1, 2, 3, 4]


def _rows(source, operator, *pairs):
    return [
        Case(f"{operator}: {operand!r}"[:170], ONE, evaluate({operator: operand}), expected, source)
        for operand, expected in pairs
    ]


def _replacement(input, find, replacement):
    return {"input": input, "find": find, "replacement": replacement}


def _utc(year, month, day, *time):
    return datetime.datetime(year, month, day, *time)


CASES: list[Case] = [
    *_rows(
        SWITCH,
        "$switch",
        ("not an object", Error(40060)),
        ({"branches": "not an array"}, Error(40061)),
        ({"branches": ["not an object"]}, Error(40062)),
        ({"branches": [{}]}, Error(40064)),
        ({"branches": [{"case": 1}]}, Error(40065)),
        ({"branches": [{"case": True, "then": False, "badKey": 1}]}, Error(40063)),
        ({"notAnArgument": 1}, Error(40067)),
        ({}, Error(40068)),
    ),
    *_rows(
        REDUCE,
        "$reduce",
        ({"input": [], "initialValue": 0, "in": 10}, 0),
        ({"input": [1, 2], "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$value.notAField"]]}}, [[], []]),
        ({"input": None, "initialValue": 0, "in": 5}, None),
        (0, Error(40075)),
        ({"input": 0, "initialValue": 0, "in": 0, "notAField": 0}, Error(40076)),
        ({"initialValue": 0, "in": 0}, Error(40077)),
        ({"input": 0, "in": 0}, Error(40078)),
        ({"input": 0, "initialValue": 0}, Error(40079)),
        ({"input": "$$value", "initialValue": [], "in": []}, Error(17276)),
    ),
    *_rows(
        TRIM,
        "$trim",
        ({"input": " a b\nc "}, "a b\nc"),
        (" x ", Error(50696)),
        ({"input": {"$add": [4, 2]}}, Error(50699)),
        ({"input": " x ", "chars": "$_id"}, Error(50700)),
    ),
    *_rows(TRIM, "$ltrim", ({"input": "\u2001\u2002 Odd unicode indentation\u200a"}, "Odd unicode indentation\u200a")),
    *_rows(TRIM, "$rtrim", ({"input": "∎∃ proof∎", "chars": "∎"}, "∎∃ proof")),
    Case(
        "$trim looks past the collation",
        ONE,
        aggregate(
            {"$project": {"_id": 0, "r": {"$trim": {"input": "xXx", "chars": "x"}}}},
            collation={"locale": "en_US", "strength": 2},
        ),
        [{"r": "X"}],
        TRIM,
    ),
    *_rows(
        ZIP,
        "$zip",
        (3, Error(34460)),
        ({"inputs": []}, Error(34465)),
        ({"inputs": {"a": "b"}}, Error(34461)),
        ({"inputs": ["$a"], "defaults": ["A"]}, Error(34466)),
        ({"inputs": ["$a"], "defaults": ["A", "B"], "useLongestLength": True}, Error(34467)),
        ({"inputs": ["$a"], "defaults": {"a": "b"}}, Error(34462)),
        ({"inputs": ["$a"], "defaults": ["A"], "useLongestLength": 1}, Error(34463)),
        ({"inputs": ["$a", "$a"], "defaults": ["A"], "notAField": 1}, Error(34464)),
        ({"inputs": ["A", "B"]}, Error(34468)),
        ({"inputs": [[1, 2, 3], None]}, None),
        ({"inputs": [["$a"]]}, [[[1, 2]]]),
    ),
    *_rows(
        SLICE,
        "$slice",
        ([FIVE, -10], FIVE),
        ([FIVE, None], None),
        ([FIVE, -3, 2], [2, 3]),
        ([FIVE, -10, 2], [0, 1]),
        ([FIVE, -1, None], None),
        ([[1, 2, 3]], Error(28667)),
        (["one", 2], Error(28724)),
        ([[1, 2], "2"], Error(28725)),
        ([[1, 2], 1.5], Error(28726)),
        ([[1, 2], 2**32], Error(28726)),
        ([[1, 2], 0, "2"], Error(28727)),
        ([[1, 2], 0, 1.5], Error(28728)),
        ([[1, 2], 0, -1], Error(28729)),
    ),
    *_rows(
        SORT,
        "$sortArray",
        (1, Error(2942500)),
        ({"input": "$none", "sortBy": 1}, None),
        ({"input": [{"a": 1}, {"b": 2}, {"c": 3}], "sortBy": {"b": 1}}, [{"a": 1}, {"c": 3}, {"b": 2}]),
        ({"input": [{"a": 1}, {"b": 2}, {"c": 3}], "sortBy": -1}, [{"c": 3}, {"b": 2}, {"a": 1}]),
        ({"input": [1, [1], {"a": 1}, "1"], "sortBy": 1}, [1, "1", {"a": 1}, [1]]),
        (
            {"input": [2, 1, "hello", {"a": 6}, {"a": "hello"}, {"a": -1}, None], "sortBy": 1},
            [None, 1, 2, "hello", {"a": -1}, {"a": 6}, {"a": "hello"}],
        ),
        ({"input": [[Decimal128("4")], [1, 9, 8]], "sortBy": 1}, [[1, 9, 8], [Decimal128("4")]]),
        (
            {"input": [{"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 1}}], "sortBy": {"b.c": 1}},
            [{"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": 2}}],
        ),
    ),
    *_rows(
        REPLACE,
        "$replaceOne",
        (_replacement("albatross", "", "one "), "one albatross"),
        (_replacement("an antelope is an animal", "an", ""), " antelope is an animal"),
        (_replacement("$s", "$o", "$s"), Error(51745)),
        (_replacement("$s", "$s", "$i"), Error(51744)),
        (_replacement("$i", "$a", "$i"), Error(51746)),
        (_replacement("$n", "$o", "$none"), Error(51745)),
        (_replacement("$n", "$none", "$o"), Error(51744)),
    ),
    *_rows(
        TO_OBJECT,
        "$arrayToObject",
        ({"$literal": [{"k": "price", "v": 24}, {"k": "price", "v": 100}]}, {"price": 100}),
        ({"$literal": []}, {}),
        ({"$literal": [{"k": "price", "v": 24}, ["item", "apple"]]}, Error(40391)),
        ({"$literal": [["item", "apple"], {"k": "price", "v": 24}]}, Error(40396)),
        ({"$literal": [0]}, Error(40398)),
        ({"$literal": [["key", "value", "offset"]]}, Error(40397)),
        ({"$literal": [{"y": "x", "x": "y"}]}, Error(40393)),
        ({"$literal": [{"k": None, "v": "nullKey"}]}, Error(40394)),
        ({"$literal": [{"y": "ignored", "k": "item", "v": "pear"}]}, Error(40392)),
        ({"$literal": [["a\0b", "abra cadabra"]]}, Error(4940400)),
        ({"$literal": [{"k": "a\0b", "v": "blah"}]}, Error(4940401)),
    ),
    *_rows(
        NULLS,
        "$setField",
        ({"field": "a\0", "input": {}, "value": True}, Error(9534700)),
        ({"field": {"$literal": "$foo.\0"}, "input": {}, "value": True}, Error(9534700)),
        ({"field": {"$concat": ["a\0"]}, "input": {}, "value": True}, Error(4161106)),
    ),
    *_rows(
        NULLS,
        "$unsetField",
        ({"field": "\0a", "input": {}}, Error(9534700)),
        ({"field": "$\0a", "input": {}}, Error(16411)),
    ),
    Case("$count of a null byte", ONE, aggregate({"$count": "a\0"}), Error(40159), COUNT),
    Case("$rename to a null byte", ONE, update({}, {"$rename": {"s": "t\0"}}), Error(2), RENAME),
    *_rows(
        PARTS,
        "$dateFromParts",
        ({"year": 2017, "timezone": "Asia/Tokyo"}, _utc(2016, 12, 31, 15)),
        (
            {"year": 2017, "month": 6, "day": 23, "hour": 16, "minute": 42, "timezone": "+04:15"},
            _utc(2017, 6, 23, 12, 27),
        ),
        ({"year": 2017, "month": -1}, _utc(2016, 11, 1)),
        ({"year": 2017, "day": 61}, _utc(2017, 3, 2)),
        ({"year": 2017, "second": 71841012}, _utc(2019, 4, 12, 11, 50, 12)),
        ("$o", Error(40519)),
        ({"timezone": "UTC"}, Error(40516)),
        ({"year": False}, Error(40515)),
        ({"year": 2012, "timezone": 5}, Error(40517)),
        ({"year": 10000}, Error(40523)),
    ),
    *[
        Case(
            f"$group with {specification!r}",
            ONE,
            aggregate({"$group": {"_id": None, "r": specification}}),
            Error(code),
            FIRST_N,
        )
        for specification, code in (
            ({"$firstN": {"input": "$i", "n": "string"}}, 5787902),
            ({"$firstN": {"input": "$i", "n": 3.2}}, 5787903),
            ({"$firstN": {"input": "$i", "n": -1}}, 5787908),
            ({"$firstN": {"input": "$i", "n": 2, "randomField": "x"}}, 5787901),
            ({"$firstN": {"input": "$i"}}, 5787906),
            ({"$minN": {"n": 2}}, 5787907),
        )
    ],
    *[
        Case(
            f"{projection!r} of {value!r}",
            [{"_id": 1, "a": value, "x": "extra"}],
            project({**projection, "_id": 0}),
            expected,
            PATHS,
        )
        for projection, value, expected in (
            ({"a.b": 1}, {"b": "demo", "_id": "extra"}, {"a": {"b": "demo"}}),
            ({"a.b": 1}, [{"b": 1, "c": 1}, {"c": 2}], {"a": [{"b": 1}, {}]}),
            ({"a.b": 1}, "scalar", {}),
            ({"a.b": 1}, ["scalar", {}, "scalar", {"c": 1}], {"a": [{}, {}]}),
            ({"a.b": 1}, [None], {"a": []}),
            ({"a.b": 1}, [[1, {"b": 1}, {"b": 2, "c": 2}, "scalar"]], {"a": [[{"b": 1}, {"b": 2}]]}),
            ({"a.b": 1, "a.c": 1}, [{"c": 1, "d": 2}, {"b": 3, "d": 4}], {"a": [{"c": 1}, {"b": 3}]}),
            ({"a.b": 1, "a.c": 1}, {"d": "extra"}, {"a": {}}),
            ({"a.b.c": 1}, {"b": {"c": "demo", "z": "extra"}, "y": "extra"}, {"a": {"b": {"c": "demo"}}}),
        )
    ],
]
