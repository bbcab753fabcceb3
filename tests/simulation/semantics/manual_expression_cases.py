"""Accumulators and expressions, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import Decimal128, Int64

from .cases import (
    Case,
    aggregate,
    evaluate,
)
from .manual_calls import date, page, plainly, refused, shown
from .manual_stage_cases import ONE, each, values

_GAMES = [
    {"_id": 1, "g": "G1", "p": "A", "s": 31},
    {"_id": 2, "g": "G1", "p": "B", "s": 33},
    {"_id": 3, "g": "G1", "p": "C", "s": 99},
    {"_id": 4, "g": "G2", "p": "D", "s": None},
    {"_id": 5, "g": "G2", "p": "E", "s": 14},
]


def _grouped(accumulator: Any, *, key: Any = "$g") -> Callable[[Any], Any]:
    return values("r", {"$sort": {"_id": 1}}, {"$group": {"_id": key, "r": accumulator}}, {"$sort": {"_id": 1}})


_MOMENT = date(2021, 3, 20, 11, 30, 5)


CASES = [
    Case(
        "the top of a group is as long as its key says",
        _GAMES,
        _grouped(
            {"$topN": {"output": ["$p", "$s"], "sortBy": {"s": -1}, "n": {"$cond": [{"$eq": ["$g", "G2"]}, 1, 2]}}},
            key={"g": "$g"},
        ),
        [[["C", 99], ["B", 33]], [["E", 14]]],
        page("reference/operator/aggregation/topN"),
    ),
    Case(
        "the greatest values of a group leave out nulls, the first ones do not",
        _GAMES,
        lambda c: [_grouped({name: {"input": "$s", "n": 2}})(c) for name in ("$maxN", "$firstN")],
        [[[99, 33], [14]], [[31, 33], [None, 14]]],
        page("reference/operator/aggregation/firstN"),
    ),
    Case(
        "averages leave out what is no number",
        [
            {"_id": 1, "g": 1, "v": 2},
            {"_id": 2, "g": 1, "v": "9"},
            {"_id": 3, "g": 1, "v": 5},
            {"_id": 4, "g": 1},
            {"_id": 5, "g": 2, "v": "x"},
        ],
        lambda c: [_grouped({"$avg": "$v"})(c), _grouped({"$sum": "$v"})(c)],
        [[3.5, None], [7, 0]],
        page("reference/operator/aggregation/avg"),
    ),
    Case(
        "documents of a group are merged, the last value of a field stays",
        [
            {"_id": 1, "g": 1, "v": {"a": 1, "b": 1}},
            {"_id": 2, "g": 1, "v": None},
            {"_id": 3, "g": 1, "v": {"b": 2, "c": 3}},
        ],
        _grouped({"$mergeObjects": "$v"}),
        [{"a": 1, "b": 2, "c": 3}],
        page("reference/operator/aggregation/mergeObjects"),
    ),
    Case(
        "periods of several units are cut off from a date",
        ONE,
        each(
            {"$dateTrunc": {"date": _MOMENT, "unit": "hour", "binSize": 2}},
            {"$dateTrunc": {"date": _MOMENT, "unit": "week"}},
            {"$dateTrunc": {"date": _MOMENT, "unit": "quarter"}},
            {"$dateTrunc": {"date": _MOMENT, "unit": "year", "binSize": 10}},
            {
                "$dateTrunc": {
                    "date": _MOMENT,
                    "unit": "week",
                    "binSize": 2,
                    "timezone": "America/Los_Angeles",
                    "startOfWeek": "Monday",
                }
            },
        ),
        [date(2021, 3, 20, 10), date(2021, 3, 14), date(2021, 1, 1), date(2020, 1, 1), date(2021, 3, 15, 7)],
        page("reference/operator/aggregation/dateTrunc"),
    ),
    Case(
        "a difference of dates counts the boundaries that are passed",
        [{"_id": 1, "a": date(2021, 12, 31, 23, 59), "b": date(2022, 1, 1)}],
        each(
            *(
                {"$dateDiff": {"startDate": "$a", "endDate": "$b", **options}}
                for options in (
                    {"unit": "year"},
                    {"unit": "quarter"},
                    {"unit": "day"},
                    {"unit": "minute"},
                    {"unit": "week"},
                    {"unit": "week", "startOfWeek": "sat"},
                    {"unit": "day", "timezone": "America/New_York"},
                )
            )
        ),
        [1, 1, 1, 1, 0, 1, 0],
        page("reference/operator/aggregation/dateDiff"),
    ),
    Case(
        "a day is added by the clock of the zone, hours are not",
        [{"_id": 1, "at": date(2021, 3, 13, 17)}],
        each(
            {"$dateAdd": {"startDate": "$at", "unit": "day", "amount": 1, "timezone": "America/New_York"}},
            {"$dateAdd": {"startDate": "$at", "unit": "hour", "amount": 24, "timezone": "America/New_York"}},
            {"$dateAdd": {"startDate": date(2021, 1, 31), "unit": "month", "amount": 1}},
        ),
        [date(2021, 3, 14, 16), date(2021, 3, 14, 17), date(2021, 2, 28)],
        page("reference/operator/aggregation/dateAdd"),
    ),
    Case(
        "parts beyond their range are carried on",
        ONE,
        each(
            {"$dateFromParts": {"year": 2017, "month": 14, "day": 1, "hour": 12}},
            {"$dateFromParts": {"year": 2017, "month": 0, "day": 1, "hour": 12}},
            {"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}},
            {
                "$dateFromParts": {
                    "year": 2016,
                    "month": 12,
                    "day": 31,
                    "hour": 23,
                    "minute": 46,
                    "second": 12,
                    "timezone": "America/New_York",
                }
            },
        ),
        [date(2018, 2, 1, 12), date(2016, 12, 1, 12), date(2017, 2, 8, 12), date(2017, 1, 1, 4, 46, 12)],
        page("reference/operator/aggregation/dateFromParts"),
    ),
    Case(
        "a date is written in the clock of a zone",
        [{"_id": 1, "at": date(2014, 1, 1, 8, 15, 39, 736000)}],
        each(
            {"$dateToString": {"format": "%H:%M:%S:%L%z", "date": "$at", "timezone": "America/New_York"}},
            {"$dateToString": {"format": "%H:%M:%S:%L%z", "date": "$at", "timezone": "+04:30"}},
            {"$dateToString": {"format": "%Z", "date": "$at", "timezone": "America/New_York"}},
            {"$dateToString": {"format": "%G-%V-%u %j", "date": "$at"}},
            {"$dateToString": {"date": "$at"}},
            {"$dateToString": {"date": "$none", "onNull": "never"}},
        ),
        ["03:15:39:736-0500", "12:45:39:736+0430", "-300", "2014-01-3 001", "2014-01-01T08:15:39.736Z", "never"],
        page("reference/operator/aggregation/dateToString"),
    ),
    Case(
        "a date is read in the clock of a zone",
        ONE,
        each(
            {"$dateFromString": {"dateString": "2017-02-08T12:10:40.787", "timezone": "America/New_York"}},
            {"$dateFromString": {"dateString": "15/06/2018", "format": "%d/%m/%Y"}},
            {"$dateFromString": {"dateString": "no date", "format": "%Y", "onError": "wrong"}},
            {"$dateFromString": {"dateString": None, "onNull": "none"}},
        ),
        [date(2017, 2, 8, 17, 10, 40, 787000), date(2018, 6, 15), "wrong", "none"],
        page("reference/operator/aggregation/dateFromString"),
    ),
    Case(
        "values are converted to other types",
        ONE,
        lambda c: [
            evaluate({"$convert": {"input": value, "to": to}})(c)
            for value, to in (
                (1.99999, "int"),
                ("-2", "int"),
                (Decimal128("5.5000"), 16),
                ("false", "bool"),
                (date(2018, 3, 26, 4, 38, 28, 44000), "string"),
                (True, "decimal"),
                (None, "int"),
                ("5", "long"),
            )
        ],
        [1, -2, 5, True, "2018-03-26T04:38:28.044Z", Decimal128("1"), None, Int64(5)],
        page("reference/operator/aggregation/convert"),
    ),
    Case(
        "a conversion that fails gives what is for errors, or is one",
        ONE,
        lambda c: [
            evaluate({"$convert": {"input": "2.5", "to": "int", "onError": "bad"}})(c),
            evaluate({"$convert": {"input": "$none", "to": "int", "onNull": "nil"}})(c),
            refused(evaluate({"$toInt": "2.5"}))(c),
            refused(evaluate({"$toInt": Int64(922337203600)}))(c),
        ],
        ["bad", "nil", "refused", "refused"],
        page("reference/operator/aggregation/convert"),
    ),
    Case(
        "all matches of a pattern are found with their groups, by code points",
        [{"_id": 1, "t": "métier: lined links"}],
        lambda c: [
            [(found["match"], found["idx"], found["captures"]) for found in evaluate({"$regexFindAll": spec})(c)]
            for spec in (
                {"input": "$t", "regex": "lin(e|k)(s)?"},
                {"input": "$t", "regex": "tier"},
                {"input": "$t", "regex": "LINE", "options": "i"},
                {"input": "$t", "regex": "none"},
            )
        ],
        [[("line", 8, ["e", None]), ("links", 14, ["k", "s"])], [("tier", 2, [])], [("line", 8, [])], []],
        page("reference/operator/aggregation/regexFindAll"),
    ),
    Case(
        "a switch without a branch for a value is an error",
        [{"_id": 1, "n": 5}],
        lambda c: [
            evaluate(
                {"$switch": {"branches": [{"case": {"$gt": ["$n", 3]}, "then": "big"}, {"case": True, "then": "any"}]}}
            )(c),
            refused(evaluate({"$switch": {"branches": [{"case": {"$gt": ["$n", 9]}, "then": "big"}]}}))(c),
        ],
        ["big", "refused"],
        page("reference/operator/aggregation/switch"),
    ),
    Case(
        "fields of any name are set, read and unset",
        [{"_id": 1, "price": 5}],
        lambda c: [
            plainly(
                aggregate(
                    {
                        "$replaceWith": {
                            "$setField": {"field": {"$literal": "$usd"}, "input": "$$ROOT", "value": "$price"}
                        }
                    }
                )
            )(c),
            evaluate(
                {"$getField": {"field": "a.b", "input": {"$setField": {"field": "a.b", "input": "$$ROOT", "value": 7}}}}
            )(c),
            aggregate({"$replaceWith": {"$unsetField": {"field": "price", "input": "$$ROOT"}}})(c),
            evaluate({"$setField": {"field": "x", "input": None, "value": 1}})(c),
        ],
        [[{"$usd": 5, "_id": 1, "price": 5}], 7, [{"_id": 1}], None],
        page("reference/operator/aggregation/setField"),
    ),
    Case(
        "texts are split, trimmed and searched",
        ONE,
        each(
            {"$split": ["banana split", "a"]},
            {"$split": ["astronomical", "astronomical"]},
            {"$trim": {"input": " ggggoodbyeeeee", "chars": "ge"}},
            {"$trim": {"input": " ggggoodbyeeeee", "chars": " ge"}},
            {"$indexOfCP": ["cafétéria", "t"]},
            {"$indexOfBytes": ["cafétéria", "t"]},
            {"$indexOfCP": ["foo.bar.fi", ".", 5]},
            {"$strLenCP": "cafétéria"},
            {"$strLenBytes": "cafétéria"},
        ),
        [["b", "n", "n", " split"], ["", ""], " ggggoodby", "oodby", 4, 5, 7, 9, 11],
        page("reference/operator/aggregation/trim"),
    ),
    Case(
        "arrays are cut, zipped, ranged and filtered",
        ONE,
        each(
            {"$slice": [[1, 2, 3], 1, 1]},
            {"$slice": [[1, 2, 3], -2]},
            {"$slice": [[1, 2, 3], 15, 2]},
            {"$slice": [[1, 2, 3], -15, 2]},
            {"$zip": {"inputs": [[1], [2, 3]], "useLongestLength": True, "defaults": ["a", "b"]}},
            {"$zip": {"inputs": [["a", "b", "c"], [1, 2]]}},
            {"$range": [10, 0, -4]},
            {"$range": [0, 10, -2]},
            {"$filter": {"input": [1, "a", 2, 3.5, 4], "as": "e", "cond": {"$isNumber": "$$e"}, "limit": 2}},
        ),
        [[2], [2, 3], [], [1, 2], [[1, 2], ["a", 3]], [["a", 1], ["b", 2]], [10, 6, 2], [], [1, 2]],
        page("reference/operator/aggregation/zip"),
    ),
    Case(
        "an array is true in all or in any of its elements",
        ONE,
        each(
            *({"$allElementsTrue": [value]} for value in ([True, 1, "x"], [[False]], [], [None, False, 0], [True, 0])),
            *({"$anyElementTrue": [value]} for value in ([True, False], [[False]], [], [None, False, 0])),
        ),
        [True, True, True, False, False, True, True, False, False],
        page("reference/operator/aggregation/allElementsTrue"),
    ),
    Case(
        "numbers are rounded to the even neighbour, and cut off at places",
        ONE,
        lambda c: [
            float(evaluate(expression)(c))
            for expression in (
                {"$round": [124.5, 0]},
                {"$round": [125.5, 0]},
                {"$round": [12.5, 0]},
                {"$round": [-45.39, 0]},
                {"$round": [19.25, 1]},
                {"$trunc": [1234.5678, 2]},
                {"$trunc": [1234.5678, -2]},
            )
        ],
        [124.0, 126.0, 12.0, -45.0, 19.2, 1234.56, 1200.0],
        page("reference/operator/aggregation/round"),
    ),
    Case(
        "percentiles of an array leave out what is no number",
        ONE,
        lambda c: list(
            map(
                float,
                [
                    *evaluate(
                        {
                            "$percentile": {
                                "input": [30, "x", 10, None, 20],
                                "p": [1.0, 0.0, 0.5],
                                "method": "approximate",
                            }
                        }
                    )(c),
                    evaluate({"$median": {"input": [7, 9, 1], "method": "approximate"}})(c),
                ],
            )
        ),
        [30.0, 10.0, 20.0, 7.0],
        page("reference/operator/aggregation/percentile"),
    ),
    Case(
        "a stage counts the documents of a collection by its statistics",
        [{"_id": 1}, {"_id": 2}],
        lambda c: [
            (int(d["count"]), d["ns"] == f"{c.database.name}.{c.name}")
            for d in c.aggregate([{"$collStats": {"count": {}}}])
        ],
        [(2, True)],
        page("reference/operator/aggregation/collStats"),
    ),
    Case(
        "the status of a server counts operations and names its set",
        [],
        lambda c: shown(
            c.database.client.admin.command("serverStatus"),
            lambda status: [
                sorted({"insert", "query", "update", "delete", "getmore", "command"} & set(status["opcounters"])),
                status["repl"]["setName"] == c.database.command("hello")["setName"],
                status["connections"]["current"] > 0,
                status["ok"],
            ],
        ),
        [["command", "delete", "getmore", "insert", "query", "update"], True, True, 1.0],
        page("reference/command/serverStatus"),
    ),
]
