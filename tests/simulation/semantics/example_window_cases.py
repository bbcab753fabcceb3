"""The manual's examples of windows."""

from __future__ import annotations

from typing import Any

from .calls import Call
from .cases import Case
from .examples import AGGREGATION, CAKES
from .refusals import ONE, answers, location, of, piped, plain, refusal

SO_FAR = {"documents": ["unbounded", "current"]}
QUOTES = [
    {"_id": 1, "price": 500},
    {"_id": 2},
    {"_id": 3, "price": 515},
    {"_id": 4, "price": None},
    {"_id": 5},
    {"_id": 6, "price": 485},
]


def _windows(output: Any, **fields: Any) -> Call:
    """What a window makes of the cakes of each state by their dates."""
    return of(
        piped(
            {
                "$setWindowFields": {
                    "partitionBy": "$state",
                    "sortBy": {"orderDate": 1},
                    **fields,
                    "output": {"r": output},
                }
            },
            {"$sort": {"state": 1, "orderDate": 1}},
        ),
        lambda found: [[each["_id"], plain(each["r"])] for each in found],
    )


def _no_window(name: str, expected: Any, output: Any, **fields: Any) -> Case:
    expected = location(expected) if isinstance(expected, int) else expected
    call = refusal(piped({"$setWindowFields": {**fields, "output": {"r": output}}}))
    return Case(name, ONE, call, expected, "server: src/mongo/db/pipeline/window_function")


CASES = [
    Case(
        "the quantities of a state so far",
        CAKES,
        _windows({"$push": "$quantity", "window": SO_FAR}),
        [
            [4, [162]],
            [0, [162, 120]],
            [2, [162, 120, 145]],
            [5, [134]],
            [3, [134, 104]],
            [1, [134, 104, 140]],
        ],
        f"{AGGREGATION}/push",
    ),
    Case(
        "$stdDevPop and $stdDevSamp of the quantities of a state so far",
        CAKES,
        answers(
            _windows({"$stdDevPop": "$quantity", "window": SO_FAR}),
            _windows({"$stdDevSamp": "$quantity", "window": SO_FAR}),
        ),
        [
            [[4, 0], [0, 21], [2, 17.249799], [5, 0], [3, 15], [1, 15.748016]],
            [[4, None], [0, 29.698485], [2, 21.126603], [5, None], [3, 21.213203], [1, 19.287302]],
        ],
        f"{AGGREGATION}/stdDevPop",
    ),
    Case(
        "$covariancePop of the years and quantities of a state so far",
        CAKES,
        _windows({"$covariancePop": [{"$year": "$orderDate"}, "$quantity"], "window": SO_FAR}),
        [[4, 0], [0, -10.5], [2, -5.666667], [5, 0], [3, -7.5], [1, 2]],
        f"{AGGREGATION}/covariancePop",
    ),
    Case(
        "the lowest quantity of a document and its neighbours",
        CAKES,
        _windows({"$min": "$quantity", "window": {"documents": [-1, 1]}}),
        [[4, 120], [0, 120], [2, 120], [5, 104], [3, 104], [1, 104]],
        f"{AGGREGATION}/min",
    ),
    Case(
        "$locf carries the last price on",
        QUOTES,
        of(
            piped({"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"price": {"$locf": "$price"}}}}),
            lambda found: [each["price"] for each in found],
        ),
        [500, 500, 515, 515, 515, 485],
        f"{AGGREGATION}/locf",
    ),
    _no_window("$rank in a window", 5371601, {"$rank": {}, "window": SO_FAR}, sortBy={"a": 1}),
    _no_window("$documentNumber without a sort", 5371602, {"$documentNumber": {}}),
    _no_window("a range without a sort", 5339902, {"$sum": "$a", "window": {"range": [-1, 1]}}),
    _no_window(
        "a window that ends before it begins",
        5339900,
        {"$sum": "$a", "window": {"documents": [1, -1]}},
        sortBy={"a": 1},
    ),
]
