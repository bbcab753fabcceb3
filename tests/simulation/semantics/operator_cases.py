"""Operators of expressions, with values that they refuse."""

from __future__ import annotations

from datetime import datetime

from bson import Int64, ObjectId

from .cases import Case, evaluate
from .refusals import CONVERSION, EXPRESSIONS, ONE, computed, location

MOMENT = [{"_id": 1, "at": datetime(2014, 1, 1, 8, 15, 39, 736000)}]
TEXT = [{"_id": 1, "s": "cafétéria", "n": None, "a": [1, 2], "m": {"x": 1, "y": 20, "z": 30}}]

CASES = [
    Case(
        "$dateToString in a time zone, and by weeks",
        MOMENT,
        evaluate(
            [
                {"$dateToString": {"format": "%H:%M:%S:%L%z", "date": "$at", "timezone": "America/New_York"}},
                {"$dateToString": {"format": "%Z", "date": "$at", "timezone": "America/New_York"}},
                {"$dateToString": {"format": "%j %G-W%V-%u", "date": "$at"}},
                {"$dateToString": {"format": "%Y", "date": "$none", "onNull": "never"}},
            ]
        ),
        ["03:15:39:736-0500", "-300", "001 2014-W01-3", "never"],
        "manual: reference/operator/aggregation/dateToString",
    ),
    Case(
        "$dateTrunc to weeks begins with Sunday, or on another day, in twos",
        ONE,
        evaluate(
            [
                {"$dateTrunc": {"date": datetime(2021, 2, 15, 18, 23, 36), "unit": "week"}},
                {
                    "$dateTrunc": {
                        "date": datetime(2000, 1, 30, 18),
                        "unit": "week",
                        "binSize": 2,
                        "timezone": "America/New_York",
                        "startOfWeek": "mon",
                    }
                },
            ]
        ),
        [datetime(2021, 2, 14), datetime(2000, 1, 17, 5)],
        f"{EXPRESSIONS}/date_trunc.js",
    ),
    Case(
        "$dateTrunc to some hours of a time zone",
        ONE,
        evaluate(
            {
                "$dateTrunc": {
                    "date": datetime(2021, 12, 1, 18, 23, 36),
                    "unit": "hour",
                    "binSize": 4,
                    "timezone": "America/New_York",
                }
            }
        ),
        datetime(2021, 12, 1, 17),
        f"{EXPRESSIONS}/date_trunc.js",
    ),
    Case(
        "$dateDiff counts the weeks that begin between",
        ONE,
        evaluate(
            [
                {
                    "$dateDiff": {
                        "startDate": datetime(2021, 1, 24, 18, 23, 36),
                        "endDate": datetime(2021, 1, 25, 2, 23, 36),
                        "unit": "week",
                        "startOfWeek": start,
                    }
                }
                for start in ("MONDAY", "sunday")
            ]
        ),
        [Int64(1), Int64(0)],
        f"{EXPRESSIONS}/date_diff.js",
    ),
    Case(
        "$dateAdd of a day is no day of 24 hours",
        ONE,
        evaluate(
            [
                {"$dateAdd": {"startDate": datetime(2020, 10, 24, 18, 10), "timezone": "Europe/Paris", **amount}}
                for amount in ({"unit": "hour", "amount": 24}, {"unit": "day", "amount": 1})
            ]
        ),
        [datetime(2020, 10, 25, 18, 10), datetime(2020, 10, 25, 19, 10)],
        f"{EXPRESSIONS}/date_add_subtract.js",
    ),
    Case(
        "$dateSubtract of months ends on the last day there is",
        ONE,
        evaluate({"$dateSubtract": {"startDate": datetime(2021, 1, 31, 3), "unit": "month", "amount": 2}}),
        datetime(2020, 11, 30, 3),
        f"{EXPRESSIONS}/date_add_subtract.js",
    ),
    Case(
        "$dateToParts in a time zone",
        ONE,
        evaluate({"$dateToParts": {"date": datetime(2017, 1, 1, 1, 29, 9, 123000), "timezone": "America/New_York"}}),
        {"year": 2016, "month": 12, "day": 31, "hour": 20, "minute": 29, "second": 9, "millisecond": 123},
        "manual: reference/operator/aggregation/dateToParts",
    ),
    Case(
        "$dateFromParts carries months",
        ONE,
        evaluate(
            [
                {"$dateFromParts": {"year": 2017, "month": 14, "day": 1, "hour": 12}},
                {"$dateFromParts": {"year": 2017, "month": 0, "day": 1, "hour": 12}},
            ]
        ),
        [datetime(2018, 2, 1, 12), datetime(2016, 12, 1, 12)],
        "manual: reference/operator/aggregation/dateFromParts",
    ),
    Case(
        "$dateFromString in a time zone",
        ONE,
        evaluate({"$dateFromString": {"dateString": "2017-07-06T12:35:37", "timezone": "Asia/Tokyo"}}),
        datetime(2017, 7, 6, 3, 35, 37),
        f"{EXPRESSIONS}/date_from_string.js",
    ),
    Case(
        "$dateFromString of no date",
        ONE,
        computed({"$dateFromString": {"dateString": "tomorrow or so"}}),
        CONVERSION,
        f"{EXPRESSIONS}/date_from_string.js",
    ),
    Case(
        "a time zone that there is not",
        MOMENT,
        computed({"$hour": {"date": "$at", "timezone": "America/Invalid"}}),
        location(40485),
        f"{EXPRESSIONS}/date_expressions_with_timezones.js",
    ),
    Case(
        "$add makes a long of ints",
        [{"_id": 1, "a": 2147483647}],
        evaluate([{"$add": ["$a", 1]}, {"$multiply": ["$a", 2]}]),
        [Int64(2147483648), Int64(4294967294)],
        f"{EXPRESSIONS}/arith_overflow.js",
    ),
    Case(
        "$reduce to a document",
        ONE,
        evaluate(
            {
                "$reduce": {
                    "input": [1, 2, 3, 4],
                    "initialValue": {"sum": 5, "product": 2},
                    "in": {
                        "sum": {"$add": ["$$value.sum", "$$this"]},
                        "product": {"$multiply": ["$$value.product", "$$this"]},
                    },
                }
            }
        ),
        {"sum": 15, "product": 48},
        "manual: reference/operator/aggregation/reduce",
    ),
    Case(
        "$sortArray by a field, and of numbers",
        [{"_id": 1, "team": [{"name": "pat"}, {"name": "dallas"}, {"name": "charlie"}]}],
        evaluate(
            [
                {"$sortArray": {"input": "$team.name", "sortBy": 1}},
                {"$first": {"$sortArray": {"input": "$team", "sortBy": {"name": -1}}}},
                {"$sortArray": {"input": [1, 4, 1, 6, 12, 5], "sortBy": -1}},
            ]
        ),
        [["charlie", "dallas", "pat"], {"name": "pat"}, [12, 6, 5, 4, 1, 1]],
        "manual: reference/operator/aggregation/sortArray",
    ),
    Case(
        "$filter with a limit",
        ONE,
        evaluate({"$filter": {"input": [1, 5, 7, 9], "as": "n", "cond": {"$gt": ["$$n", 2]}, "limit": 2}}),
        [5, 7],
        "manual: reference/operator/aggregation/filter",
    ),
    Case(
        "fields of a document by their values",
        TEXT,
        evaluate(
            {
                "$arrayToObject": {
                    "$filter": {"input": {"$objectToArray": "$m"}, "cond": {"$gt": ["$$this.v", 10]}},
                }
            }
        ),
        {"y": 20, "z": 30},
        "manual: reference/operator/aggregation/objectToArray",
    ),
    Case(
        "$regexFindAll with a group that need not match",
        ONE,
        evaluate({"$regexFindAll": {"input": "hello world", "regex": "o(r)?"}}),
        [{"match": "o", "idx": 4, "captures": [None]}, {"match": "or", "idx": 7, "captures": ["r"]}],
        "manual: reference/operator/aggregation/regexFindAll",
    ),
    Case(
        "the length of a text in bytes and in characters",
        TEXT,
        evaluate([{"$strLenBytes": "$s"}, {"$strLenCP": "$s"}]),
        [11, 9],
        "manual: reference/operator/aggregation/strLenCP",
    ),
    Case(
        "$concat of a number",
        TEXT,
        computed({"$concat": ["$s", 1]}),
        location(16702),
        f"{EXPRESSIONS}/concat_error.js",
    ),
    Case(
        "$ifNull takes the first that there is",
        TEXT,
        evaluate({"$ifNull": ["$none", "$n", 3]}),
        3,
        "manual: reference/operator/aggregation/ifNull",
    ),
    Case(
        "$switch with no branch for it",
        ONE,
        computed({"$switch": {"branches": [{"case": {"$eq": ["$a", 2]}, "then": "two"}]}}),
        location(40066),
        "manual: reference/operator/aggregation/switch",
    ),
    Case(
        "$convert by the number of a type, of null, and of what is no number",
        TEXT,
        evaluate(
            [
                {"$convert": {"input": "7", "to": 16}},
                {"$convert": {"input": "$none", "to": "int", "onNull": "none"}},
                {"$convert": {"input": "$s", "to": "int", "onError": "wrong"}},
                {"$toDate": ObjectId("0123456789abcdef01234567")},
            ]
        ),
        [7, "none", "wrong", datetime(1970, 8, 9, 22, 25, 43)],
        f"{EXPRESSIONS}/convert.js",
    ),
    Case(
        "$toObjectId of another text",
        TEXT,
        computed({"$toObjectId": "$s"}),
        CONVERSION,
        "manual: reference/operator/aggregation/toObjectId",
    ),
    Case(
        "$size of what is no array",
        TEXT,
        computed({"$size": "$s"}),
        location(17124),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    Case(
        "$dateFromString by a format",
        ONE,
        evaluate({"$dateFromString": {"dateString": "06-15-2018", "format": "%m-%d-%Y"}}),
        datetime(2018, 6, 15),
        "manual: reference/operator/aggregation/dateFromString",
    ),
    Case(
        "$replaceAll and $toLower",
        ONE,
        evaluate({"$toLower": {"$replaceAll": {"input": "A New Title", "find": " ", "replacement": "-"}}}),
        "a-new-title",
        "manual: reference/operator/aggregation/replaceAll",
    ),
    Case(
        "$setIsSubset counts no value twice, $anyElementTrue takes null for false",
        ONE,
        evaluate([{"$setIsSubset": [["a", "a"], ["b", "a"]]}, {"$anyElementTrue": [[None, False, 0]]}]),
        [True, False],
        "manual: reference/operator/aggregation/setIsSubset",
    ),
    Case(
        "$mergeObjects passes over null and what is missing",
        TEXT,
        evaluate({"$mergeObjects": [{"a": 1}, "$n", "$none", {"b": 2}]}),
        {"a": 1, "b": 2},
        "manual: reference/operator/aggregation/mergeObjects",
    ),
]
