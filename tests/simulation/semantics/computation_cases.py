"""Expressions, with their values and refusals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Decimal128, Int64, Timestamp

from .cases import Case, evaluate
from .refusals import EXPRESSIONS, ONE, computed, location


def _values(file: str, *pairs: tuple[Any, Any], documents: Any = tuple(ONE)) -> list[Case]:
    """Values of expressions, for the first document."""
    source = f"{EXPRESSIONS}/{file}"
    return [
        Case(f"{expression!r}"[:110], list(documents), evaluate(expression), value, source)
        for expression, value in pairs
    ]


def _refused(file: str, *pairs: tuple[Any, int]) -> list[Case]:
    source = f"{EXPRESSIONS}/{file}"
    return [
        Case(f"{expression!r} refused"[:110], ONE, computed(expression), location(code), source)
        for expression, code in pairs
    ]


NEW_YORK = {"date": datetime(2017, 6, 19, 15, 13, 25, 713000), "timezone": "America/New_York"}
MIXED = [{"_id": 0, "a": [datetime(2020, 1, 1), None, 0, False, Decimal128("1"), [], {"c": 3}]}]
CLOCK = {"minute": 13, "second": 25, "millisecond": 713}

COMPUTATIONS = [
    *_values("expression_mod.js", ({"$mod": [138.5, 3]}, 0.5)),
    *_values("indexof_codepoints.js", ({"$indexOfCP": ["∫aƒ", "ƒ"]}, 2), ({"$indexOfCP": ["abc", "b", 3]}, -1)),
    *_refused("indexof_codepoints.js", ({"$indexOfCP": [3, "s"]}, 40093)),
    *_refused("in.js", ({"$in": [1, "$notAField"]}, 40081)),
    *_values(
        "date_to_parts.js",
        ({"$dateToParts": NEW_YORK}, {"year": 2017, "month": 6, "day": 19, "hour": 11, **CLOCK}),
        (
            {"$dateToParts": {**NEW_YORK, "iso8601": True}},
            {"isoWeekYear": 2017, "isoWeek": 25, "isoDayOfWeek": 1, "hour": 11, **CLOCK},
        ),
    ),
    *_refused("date_to_parts.js", ({"$dateToParts": {**NEW_YORK, "timezone": "DoesNot/Exist"}}, 40485)),
    *_values(
        "round_trunc.js",
        ({"$round": [1.298, 1]}, 1.3),
        ({"$round": [2147483647, -1]}, Int64(2147483650)),
        ({"$trunc": [Decimal128("23.298"), -1]}, Decimal128("2E+1")),
    ),
    *_refused("round_trunc.js", ({"$round": [1, 101]}, 51083)),
    *_values("split.js", ({"$split": ["abc abc cba abc", "abc"]}, ["", " ", " cba ", ""])),
    *_refused("split.js", ({"$split": ["abc", ""]}, 40087)),
    *_refused("range.js", ({"$range": [0, 10, 0]}, 34449)),
    *_values(
        "merge_objects.js",
        ({"$mergeObjects": [{"a": "defaultValue"}, "$$ROOT"]}, {"a": 0, "_id": 3, "b": 1}),
        documents=[{"_id": 3, "a": 0, "b": 1}],
    ),
    *_refused("merge_objects.js", ({"$mergeObjects": ["$a", {"a": "newString"}]}, 40400)),
    *_values(
        "filter.js",
        (
            {"$filter": {"input": "$a", "as": "x", "cond": "$$x"}},
            [datetime(2020, 1, 1), Decimal128("1"), [], {"c": 3}],
        ),
        documents=MIXED,
    ),
    *_refused("filter.js", ({"$filter": {"input": "$a", "as": "x"}}, 28650)),
    *_values("log_pow_exp.js", ({"$pow": [3, 35]}, Int64(50031545098999707))),
    *_refused("log_pow_exp.js", ({"$log": [5, 1]}, 28759)),
    *_values("divide.js", ({"$divide": [10, Decimal128("2.5")]}, Decimal128("4"))),
    *_refused("objectToArray.js", ({"$objectToArray": "$a"}, 40390)),
    *_refused("size.js", ({"$size": "$a"}, 17124)),
    Case(
        "$tsSecond of a timestamp",
        [{"_id": 1, "t": Timestamp(100, 5)}],
        evaluate({"$tsSecond": "$t"}),
        Int64(100),
        "manual: reference/operator/aggregation/tsSecond",
    ),
]


CASES = [*COMPUTATIONS]
