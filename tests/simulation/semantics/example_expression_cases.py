"""The manual's examples of expressions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64, ObjectId, Regex

from .cases import Case, evaluate, find
from .examples import AGGREGATION
from .refusals import BAD_VALUE, ONE, computed, each_value, location, plainly_piped

WAREHOUSES = [
    {"_id": 1, "item": "ABC1", "instock": {"warehouse1": 2500, "warehouse2": 500}},
    {"_id": 2, "item": "ABC2", "instock": {"warehouse2": 500, "warehouse3": 200}},
]
HOBBIES = [
    {"_id": 1, "name": "Melissa", "hobbies": ["softball", "drawing", "reading"]},
    {"_id": 2, "name": "Josh", "hobbies": ["programming"]},
    {"_id": 3, "name": "Claire", "hobbies": []},
]
FLOWERS = [
    {"_id": 1, "a": ["rose", "orchid"], "b": ["rose", "orchid"]},
    {"_id": 2, "a": ["rose", "orchid"], "b": ["orchid", "rose", "orchid"]},
    {"_id": 3, "a": ["rose", "orchid"], "b": ["rose", "orchid", "jasmine"]},
    {"_id": 4, "a": ["rose", "orchid"], "b": ["jasmine", "rose"]},
    {"_id": 5, "a": ["rose", "orchid"], "b": []},
    {"_id": 6, "a": ["rose", "orchid"], "b": [["rose", "orchid"]]},
    {"_id": 7, "a": [], "b": ["rose"]},
]
MIXED = [
    20,
    4,
    {"a": "Free"},
    6,
    21,
    5,
    "Gratis",
    {"a": None},
    {"a": {"sale": True, "price": 19}},
    10.23,
    {"a": "On sale"},
]
GAMES = [
    {"_id": 1, "score": [1, 2, 3]},
    {"_id": 2, "score": [12, 90, 7, 89, 8]},
    {"_id": 3, "score": [None]},
    {"_id": 4, "score": []},
    {"_id": 5, "score": [1293, "2", 3489, 9]},
]
COATS = [
    {"_id": 1, "item": "sweatshirt", "price.usd": 45.99},
    {"_id": 2, "item": "winter coat", "price.usd": 499.99},
    {"_id": 3, "item": "sun dress", "price.usd": 199.99},
    {"_id": 4, "item": "leather jacket", "price.usd": 249.99},
]
DESCRIBED = [
    {"_id": 1, "description": "Single LINE description."},
    {"_id": 2, "description": "First lines\nsecond line"},
    {"_id": 3, "description": "Many spaces before     line"},
    {"_id": 4, "description": "Multiple\nline descriptions"},
    {"_id": 5, "description": "anchors, links and hyperlinks"},
    {"_id": 6},
]
PAINTS = [
    {"_id": 1, "item": "blue paint"},
    {"_id": 2, "item": "blue and green paint"},
    {"_id": 3, "item": "blue paint with blue paintbrush"},
    {"_id": 4, "item": "blue paint with green paintbrush"},
]
CITIES = [
    {"_id": 1, "city": "Berkeley, CA", "qty": 648},
    {"_id": 2, "city": "Bend, OR", "qty": 491},
    {"_id": 3, "city": "Kensington, CA", "qty": 233},
    {"_id": 4, "city": "Eugene, OR", "qty": 842},
    {"_id": 5, "city": "Reno, NV", "qty": 655},
    {"_id": 6, "city": "Portland, OR", "qty": 408},
    {"_id": 7, "city": "Sacramento, CA", "qty": 574},
]
TAXES = [
    {"_id": 1, "price": 10, "tax": 0.50, "applyDiscount": True},
    {"_id": 2, "price": 10, "tax": 0.25, "applyDiscount": False},
]
MOMENTS = [
    {"_id": 1, "at": ObjectId("5ab9c3da31c2ab715d421285")},
    {"_id": 2, "at": 120000000000.5},
    {"_id": 3, "at": Int64(1100000000000)},
    {"_id": 4, "at": "2018-03-03"},
    {"_id": 5, "at": "2018-03-20 11:00:06 +0500"},
]
DISTANCES = [
    {"_id": 0, "city": "San Jose", "distance": 42},
    {"_id": 1, "city": "Sacramento", "distance": 88},
    {"_id": 2, "city": "Reno", "distance": 218},
    {"_id": 3, "city": "Los Angeles", "distance": 383},
]
FIRST_WORDS = "My hobbies include:"


def _no_value(name: str, expression: Any, expected: Any) -> Case:
    expected = location(expected) if isinstance(expected, int) else expected
    return Case(name, ONE, computed(expression), expected, "server: src/mongo/db/pipeline/expression.cpp")


CASES = [
    Case(
        "what warehouses have, by their names",
        WAREHOUSES,
        plainly_piped(
            {"$project": {"warehouses": {"$objectToArray": "$instock"}}},
            {"$unwind": "$warehouses"},
            {"$group": {"_id": "$warehouses.k", "total": {"$sum": "$warehouses.v"}}},
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": "warehouse1", "total": 2500},
            {"_id": "warehouse2", "total": 1000},
            {"_id": "warehouse3", "total": 200},
        ],
        f"{AGGREGATION}/objectToArray",
    ),
    Case(
        "a matrix on its side, and rows that are filled up",
        [{"_id": 1, "matrix": [[1, 2], [2, 3], [3, 4]]}],
        evaluate(
            [
                {"$zip": {"inputs": [{"$arrayElemAt": ["$matrix", row]} for row in range(3)]}},
                {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": ["a", "b"]}},
            ]
        ),
        [[[1, 2, 3], [2, 3, 4]], [[1, 2], ["a", 3]]],
        f"{AGGREGATION}/zip",
    ),
    Case(
        "$reduce joins texts with commas",
        HOBBIES,
        each_value(
            {
                "$reduce": {
                    "input": "$hobbies",
                    "initialValue": FIRST_WORDS,
                    "in": {"$concat": ["$$value", {"$cond": [{"$eq": ["$$value", FIRST_WORDS]}, " ", ", "]}, "$$this"]},
                }
            }
        ),
        [f"{FIRST_WORDS} softball, drawing, reading", f"{FIRST_WORDS} programming", FIRST_WORDS],
        f"{AGGREGATION}/reduce",
    ),
    Case(
        "flowers that only the second has",
        FLOWERS,
        each_value({"$setDifference": ["$b", "$a"]}),
        [[], [], ["jasmine"], ["jasmine"], [], [["rose", "orchid"]], ["rose"]],
        f"{AGGREGATION}/setDifference",
    ),
    Case(
        "$sortArray of values of several types",
        ONE,
        evaluate({"$sortArray": {"input": {"$literal": MIXED}, "sortBy": 1}}),
        [
            *(4, 5, 6, 10.23, 20, 21, "Gratis"),
            *({"a": None}, {"a": "Free"}, {"a": "On sale"}, {"a": {"sale": True, "price": 19}}),
        ],
        f"{AGGREGATION}/sortArray",
    ),
    Case(
        "the two highest of values of several types",
        GAMES,
        each_value({"$maxN": {"n": 2, "input": "$score"}}),
        [[3, 2], [90, 89], [], [], ["2", 3489]],
        f"{AGGREGATION}/maxN-array-element",
    ),
    Case(
        "$getField of a name with a dot",
        COATS,
        find({"$expr": {"$gt": [{"$getField": "price.usd"}, 200]}}),
        [2, 4],
        f"{AGGREGATION}/getField",
    ),
    Case(
        "where a pattern is found first",
        DESCRIBED,
        each_value({"$regexFind": {"input": "$description", "regex": Regex("line")}}),
        [
            None,
            {"match": "line", "idx": 6, "captures": []},
            {"match": "line", "idx": 23, "captures": []},
            {"match": "line", "idx": 9, "captures": []},
            None,
            None,
        ],
        f"{AGGREGATION}/regexFind",
    ),
    Case(
        "$replaceOne of the first of two",
        PAINTS,
        each_value({"$replaceOne": {"input": "$item", "find": "blue paint", "replacement": "red paint"}}),
        [
            "red paint",
            "blue and green paint",
            "red paint with blue paintbrush",
            "red paint with green paintbrush",
        ],
        f"{AGGREGATION}/replaceOne",
    ),
    Case(
        "totals of states that are split from cities",
        CITIES,
        plainly_piped(
            {"$project": {"city_state": {"$split": ["$city", ", "]}, "qty": 1}},
            {"$unwind": "$city_state"},
            {"$match": {"city_state": Regex("[A-Z]{2}")}},
            {"$group": {"_id": {"state": "$city_state"}, "total_qty": {"$sum": "$qty"}}},
            {"$sort": {"total_qty": -1}},
        ),
        [
            {"_id": {"state": "OR"}, "total_qty": 1741},
            {"_id": {"state": "CA"}, "total_qty": 1455},
            {"_id": {"state": "NV"}, "total_qty": 655},
        ],
        f"{AGGREGATION}/split",
    ),
    Case(
        "$toDate of IDs, numbers and texts",
        MOMENTS,
        each_value({"$toDate": "$at"}),
        [
            datetime(2018, 3, 27, 4, 8, 58),
            datetime(1973, 10, 20, 21, 20),
            datetime(2004, 11, 9, 11, 33, 20),
            datetime(2018, 3, 3),
            datetime(2018, 3, 20, 6, 0, 6),
        ],
        f"{AGGREGATION}/toDate",
    ),
    Case(
        "a price with its tax and its discount",
        TAXES,
        each_value(
            {
                "$let": {
                    "vars": {
                        "total": {"$add": ["$price", "$tax"]},
                        "discounted": {"$cond": {"if": "$applyDiscount", "then": 0.9, "else": 1}},
                    },
                    "in": {"$multiply": ["$$total", "$$discounted"]},
                }
            }
        ),
        [9.45, 10.25],
        f"{AGGREGATION}/let",
    ),
    Case(
        "$range of the rests on the way",
        DISTANCES,
        each_value({"$range": [0, "$distance", 25]}),
        [[0, 25], [0, 25, 50, 75], [*range(0, 218, 25)], [*range(0, 383, 25)]],
        f"{AGGREGATION}/range",
    ),
    Case(
        "$literal of a text with a dollar",
        [{"_id": 1, "price": "$2.50"}, {"_id": 2, "price": "1"}, {"_id": 3, "price": "$1"}],
        each_value({"$eq": ["$price", {"$literal": "$1"}]}),
        [False, False, True],
        f"{AGGREGATION}/literal",
    ),
    Case(
        "$map of distances without their fractions",
        [{"_id": 1, "distances": [34.57, 81.96, 44.24]}, {"_id": 2, "distances": []}, {"_id": 3}],
        each_value({"$map": {"input": "$distances", "as": "distance", "in": {"$trunc": "$$distance"}}}),
        [[34, 81, 44], [], None],
        f"{AGGREGATION}/map",
    ),
    Case(
        "$switch by the averages of scores",
        [
            {"_id": 1, "name": "Susan Wilkes", "scores": [87, 86, 78]},
            {"_id": 2, "name": "Bob Hanna", "scores": [71, 64, 81]},
            {"_id": 3, "name": "James Torrelio", "scores": [91, 84, 97]},
        ],
        each_value(
            {
                "$switch": {
                    "branches": [
                        {"case": {"$gte": [{"$avg": "$scores"}, 90]}, "then": "Doing great!"},
                        {
                            "case": {"$and": [{"$gte": [{"$avg": "$scores"}, 80]}, {"$lt": [{"$avg": "$scores"}, 90]}]},
                            "then": "Doing pretty well.",
                        },
                        {"case": {"$lt": [{"$avg": "$scores"}, 80]}, "then": "Needs improvement."},
                    ],
                    "default": "No scores found.",
                }
            }
        ),
        ["Doing pretty well.", "Needs improvement.", "Doing great!"],
        f"{AGGREGATION}/switch",
    ),
    Case(
        "$indexOfArray of two",
        [
            {"_id": 1, "items": ["one", "two", "three"]},
            {"_id": 2, "items": [1, 2, 3]},
            {"_id": 3, "items": [None, None, 2]},
            {"_id": 4, "items": None},
            {"_id": 5, "amount": 3},
        ],
        each_value({"$indexOfArray": ["$items", 2]}),
        [-1, 1, 2, None, None],
        f"{AGGREGATION}/indexOfArray",
    ),
    _no_value("$divide by zero", {"$divide": ["$a", 0]}, BAD_VALUE),
    _no_value("$cond without its other value", {"$cond": {"if": "$a", "then": 1}}, 17082),
    _no_value("$map of nothing", {"$map": {"in": "$$this"}}, 16880),
]
