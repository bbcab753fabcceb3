"""``$setWindowFields`` and its functions."""

from __future__ import annotations

import datetime

from .cases import Case, Error, aggregate


def _page(name):
    return f"manual: reference/operator/aggregation/{name}"


def _date(text):
    return datetime.datetime.fromisoformat(text)


PAGE = _page("setWindowFields")
CAKES = [
    {"_id": 0, "type": "chocolate", "at": _date("2020-05-18T14:10:30"), "state": "CA", "price": 13, "n": 120},
    {"_id": 1, "type": "chocolate", "at": _date("2021-03-20T11:30:05"), "state": "WA", "price": 14, "n": 140},
    {"_id": 2, "type": "vanilla", "at": _date("2021-01-11T06:31:15"), "state": "CA", "price": 12, "n": 145},
    {"_id": 3, "type": "vanilla", "at": _date("2020-02-08T13:13:23"), "state": "WA", "price": 13, "n": 104},
    {"_id": 4, "type": "strawberry", "at": _date("2019-05-18T16:09:01"), "state": "CA", "price": 41, "n": 162},
    {"_id": 5, "type": "strawberry", "at": _date("2019-01-08T06:12:03"), "state": "WA", "price": 43, "n": 134},
]
DUPLICATES = [
    *CAKES,
    {"_id": 6, "state": "WA", "n": 134},
    {"_id": 7, "state": "WA", "n": 134},
    {"_id": 8, "state": "WA", "n": 134},
    {"_id": 9, "state": "CA", "n": 162},
    {"_id": 10, "state": "CA", "n": None},
    {"_id": 11, "state": "CA"},
]
STATE, YEAR = "$state", {"$year": "$at"}


def _window(name, documents, spec, expected, source=PAGE, identity="_id"):
    """What the field ``r`` is for each document, in the order of the stage."""
    stages = {"$setWindowFields": spec}, {"$project": {"_id": 0, "k": f"${identity}", "r": 1}}

    def call(collection):
        return [(one["k"], one.get("r", "<missing>")) for one in aggregate(*stages)(collection)]

    return Case(f"$setWindowFields: {name}", documents, call, expected, source)


def _cakes(name, function, expected, window=None, by=STATE, sort=None, source=PAGE):
    output = {**function, **({} if window is None else {"window": window})}
    spec = {"partitionBy": by, "sortBy": sort or {"at": 1}, "output": {"r": output}}
    return _window(name, CAKES, spec, expected, source)


def _ranks(name, expected, documents=CAKES, sort=None, by=STATE):
    spec = {"partitionBy": by, "sortBy": sort or {"n": -1}, "output": {"r": {f"${name}": {}}}}
    stages = {"$setWindowFields": spec}, {"$project": {"_id": 1, "r": {"$toInt": "$r"}}}

    def call(collection):
        return [(one["_id"], one["r"]) for one in aggregate(*stages)(collection)]

    return Case(f"${name}", documents, call, expected, _page(name))


def _failing(name, spec, source=PAGE, documents=CAKES):
    """The page says that it is an error, and not which."""

    def call(collection):
        try:
            return aggregate({"$setWindowFields": spec})(collection)
        except Exception as error:
            return type(error).__name__

    return Case(f"$setWindowFields: {name}", documents, call, "OperationFailure", source)


SUM, UP_TO_NOW = {"$sum": "$n"}, {"documents": ["unbounded", "current"]}
ONE_BEFORE = {"documents": [-1, -1]}
TIED = [{"_id": 1, "n": 5}, {"_id": 2, "n": 5}, {"_id": 3, "n": 4}]
RECENT = {"$push": "$at"}
TRUCKS = [
    {"_id": number, "truck": truck, "at": _date(f"2020-05-18T14:{time}"), "miles": miles}
    for number, (truck, time, miles) in enumerate(
        [
            ("1", "10:30", 1295.1),
            ("1", "11:00", 1295.63),
            ("1", "11:30", 1296.25),
            ("1", "12:00", 1296.76),
        ]
    )
]
METERS = [
    {"_id": number, "meter": meter, "at": _date(f"2020-05-18T14:{time}"), "kw": power}
    for number, (meter, time, power) in enumerate(
        [
            ("1", "10:30", 2.95),
            ("1", "11:00", 2.7),
            ("1", "11:30", 2.6),
            ("1", "12:00", 2.98),
            ("2", "10:30", 2.5),
            ("2", "11:00", 2.25),
            ("2", "11:30", 2.75),
            ("2", "12:00", 2.82),
        ]
    )
]
PRICES = [
    {"_id": number, "stock": stock, "at": _date(f"2020-05-{day}T20:00:00"), "price": price}
    for number, (stock, day, price) in enumerate(
        [
            ("MDB", 18, 13),
            ("MDB", 19, 15.4),
            ("MDB", 20, 12),
            ("MDB", 21, 11.7),
            ("MSFT", 18, 82),
            ("MSFT", 19, 94),
            ("MSFT", 20, 112),
            ("MSFT", 21, 97.3),
        ]
    )
]
HOURS = [
    {"_id": number, "at": _date(f"2021-03-08T{9 + number:02}:00:00"), **price}
    for number, price in enumerate([{"price": 500}, {}, {"price": 515}, {}, {}, {"price": 485}])
]
INDEXED = [{"_id": number, "v": value} for number, value in enumerate([0, None, None, None, 10])]
SCORES = [
    {"_id": "2345", "a": 62, "b": 81, "c": 80},
    {"_id": "2356", "a": 60, "b": 83, "c": 79},
    {"_id": "2358", "a": 67, "b": 82, "c": 78},
    {"_id": "2367", "a": 64, "b": 72, "c": 77},
    {"_id": "2369", "a": 60, "b": 53, "c": 72},
]
MEDIAN = {"$median": {"input": "$a", "method": "approximate"}}
ORDERED = {"sortBy": {"at": 1}}


def _speed(function, window, documents=TRUCKS, by="$truck", sort=None):
    return {"partitionBy": by, "sortBy": sort or {"at": 1}, "output": {"r": {**function, "window": window}}}


CASES = [
    # Windows of documents
    _cakes("cumulative for each state", SUM, [(4, 162), (0, 282), (2, 427), (5, 134), (3, 238), (1, 378)], UP_TO_NOW),
    _cakes(
        "cumulative for each year", SUM, [(5, 134), (4, 296), (3, 104), (0, 224), (2, 145), (1, 285)], UP_TO_NOW, YEAR
    ),
    _cakes(
        "moving average",
        {"$avg": "$n"},
        [(5, 134.0), (4, 148.0), (3, 104.0), (0, 112.0), (2, 145.0), (1, 142.5)],
        {"documents": [-1, 0]},
        YEAR,
    ),
    _cakes(
        "maximum of the partition",
        {"$max": "$n"},
        [(5, 162), (4, 162), (3, 120), (0, 120), (2, 145), (1, 145)],
        {"documents": ["unbounded", "unbounded"]},
        YEAR,
    ),
    _cakes("without a window all of the partition", SUM, [(4, 427), (0, 427), (2, 427), (5, 378), (3, 378), (1, 378)]),
    # Windows of ranges
    _cakes(
        "similar prices",
        SUM,
        [(2, 265), (0, 265), (4, 162), (3, 244), (1, 244), (5, 134)],
        {"range": [-10, 10]},
        sort={"price": 1},
    ),
    _cakes(
        "up to ten months later",
        RECENT,
        [
            (4, [CAKES[4]["at"]]),
            (0, [CAKES[4]["at"], CAKES[0]["at"], CAKES[2]["at"]]),
            (2, [CAKES[4]["at"], CAKES[0]["at"], CAKES[2]["at"]]),
            (5, [CAKES[5]["at"]]),
            (3, [CAKES[5]["at"], CAKES[3]["at"]]),
            (1, [CAKES[5]["at"], CAKES[3]["at"], CAKES[1]["at"]]),
        ],
        {"range": ["unbounded", 10], "unit": "month"},
    ),
    _cakes(
        "up to ten months before",
        RECENT,
        [
            (4, []),
            (0, [CAKES[4]["at"]]),
            (2, [CAKES[4]["at"]]),
            (5, []),
            (3, [CAKES[5]["at"]]),
            (1, [CAKES[5]["at"], CAKES[3]["at"]]),
        ],
        {"range": ["unbounded", -10], "unit": "month"},
    ),
    # Empty windows, and values that do not suit
    _cakes("nothing to count", {"$count": {}}, [(4, 0), (0, 1), (2, 1), (5, 0), (3, 1), (1, 1)], ONE_BEFORE),
    _cakes("nothing to add", SUM, [(4, 0), (0, 162), (2, 120), (5, 0), (3, 134), (1, 104)], {"documents": [-1, -1]}),
    _cakes(
        "nothing to collect",
        {"$addToSet": "$n"},
        [(4, []), (0, [162]), (2, [120]), (5, []), (3, [134]), (1, [104])],
        {"documents": [-1, -1]},
    ),
    _cakes(
        "nothing is null",
        {"$max": "$n"},
        [(4, None), (0, 162), (2, 120), (5, None), (3, 134), (1, 104)],
        {"documents": [-1, -1]},
    ),
    _cakes("strings are not added", {"$sum": "$type"}, [(one, 0) for one in (4, 0, 2, 5, 3, 1)], UP_TO_NOW),
    # Ranks
    _ranks("rank", [(4, 1), (2, 2), (0, 3), (1, 1), (5, 2), (3, 3)]),
    _ranks("denseRank", [(4, 1), (2, 2), (0, 3), (1, 1), (5, 2), (3, 3)]),
    _ranks("documentNumber", [(4, 1), (2, 2), (0, 3), (1, 1), (5, 2), (3, 3)]),
    _ranks("rank", [(1, 1), (2, 1), (3, 3)], TIED, by=None),
    _ranks("denseRank", [(1, 1), (2, 1), (3, 2)], TIED, by=None),
    _ranks(
        "denseRank",
        # The page of $denseRank tells null from nothing, that of $rank does not, and nor does accumulator_rank.cpp.
        [(4, 1), (9, 1), (2, 2), (0, 3), (10, 4), (11, 4), (1, 1), (5, 2), (6, 2), (7, 2), (8, 2), (3, 3)],
        DUPLICATES,
    ),
    _ranks(
        "rank",
        [(4, 1), (9, 1), (2, 3), (0, 4), (10, 5), (11, 5), (1, 1), (5, 2), (6, 2), (7, 2), (8, 2), (3, 6)],
        DUPLICATES,
    ),
    _ranks("rank", [(1, 1), (2, 1)], [{"_id": 1, "n": [1, 9]}, {"_id": 2, "n": 9}], by=None),
    _ranks("denseRank", [(4, 1), (0, 2), (2, 3), (5, 1), (3, 2), (1, 3)], sort={"at": 1}),
    # Covariance
    _cakes(
        "$covariancePop",
        {"$covariancePop": [{"$year": "$at"}, "$n"]},
        [(4, 0.0), (0, -10.5), (2, -5.666666666666671), (5, 0.0), (3, -7.5), (1, 2.0)],
        UP_TO_NOW,
        source=_page("covariancePop"),
    ),
    _cakes(
        "$covarianceSamp",
        {"$covarianceSamp": [{"$year": "$at"}, "$n"]},
        [(4, None), (0, -21.0), (2, -8.500000000000007), (5, None), (3, -15.0), (1, 3.0)],
        UP_TO_NOW,
        source=_page("covarianceSamp"),
    ),
    # Order
    _cakes(
        "$shift to the next",
        {"$shift": {"output": "$n", "by": 1, "default": "Not available"}},
        [(4, 145), (2, 120), (0, "Not available"), (1, 134), (5, 104), (3, "Not available")],
        sort={"n": -1},
        source=_page("shift"),
    ),
    _cakes(
        "$shift to the one before",
        {"$shift": {"output": "$n", "by": -1, "default": "Not available"}},
        [(4, "Not available"), (2, 162), (0, 145), (1, "Not available"), (5, 140), (3, 134)],
        sort={"n": -1},
        source=_page("shift"),
    ),
    _cakes(
        "$shift without a default",
        {"$shift": {"output": "$n", "by": -1}},
        [(4, None), (2, 162), (0, 145), (1, None), (5, 140), (3, 134)],
        sort={"n": -1},
        source=_page("shift"),
    ),
    _cakes(
        "$first of each state",
        {"$first": "$type"},
        [(one, "strawberry") for one in (4, 0, 2, 5, 3, 1)],
        UP_TO_NOW,
        source=_page("first"),
    ),
    _cakes(
        "$last of what follows",
        {"$last": "$type"},
        [(4, "vanilla"), (0, "vanilla"), (2, "vanilla"), (5, "chocolate"), (3, "chocolate"), (1, "chocolate")],
        {"documents": ["current", "unbounded"]},
        source=_page("last"),
    ),
    # Rates
    _window(
        "$derivative in miles per hour",
        TRUCKS,
        _speed({"$derivative": {"input": "$miles", "unit": "hour"}}, {"range": [-30, 0], "unit": "second"}),
        [
            (0, None),
            (1, 63.60000000002401),
            (2, 74.3999999999869),
            (3, 61.199999999998916),
        ],
        _page("derivative"),
    ),
    _window(
        "$integral in kilowatt-hours",
        METERS,
        _speed(
            {"$integral": {"input": "$kw", "unit": "hour"}},
            {"range": ["unbounded", "current"], "unit": "hour"},
            by="$meter",
        ),
        [
            (0, 0.0),
            (1, 0.023541666666666666),
            (2, 0.045625),
            (3, 0.068875),
            (4, 0.0),
            (5, 0.019791666666666666),
            (6, 0.040625),
            (7, 0.06383333333333334),
        ],
        _page("integral"),
    ),
    _window(
        "$expMovingAvg by N",
        PRICES,
        {"partitionBy": "$stock", **ORDERED, "output": {"r": {"$expMovingAvg": {"input": "$price", "N": 2}}}},
        [
            (0, 13.0),
            (1, 14.6),
            (2, 12.866666666666667),
            (3, 12.088888888888889),
            (4, 82.0),
            (5, 90.0),
            (6, 104.66666666666667),
            (7, 99.75555555555556),
        ],
        _page("expMovingAvg"),
    ),
    _window(
        "$expMovingAvg by alpha",
        PRICES,
        {"partitionBy": "$stock", **ORDERED, "output": {"r": {"$expMovingAvg": {"input": "$price", "alpha": 0.75}}}},
        [(0, 13.0), (1, 14.8), (2, 12.7), (3, 11.95), (4, 82.0), (5, 91.0), (6, 106.75), (7, 99.6625)],
        _page("expMovingAvg"),
    ),
    # Gaps
    _window(
        "$linearFill",
        HOURS,
        {**ORDERED, "output": {"r": {"$linearFill": "$price"}}},
        [(0, 500), (1, 507.5), (2, 515), (3, 505.0), (4, 495.0), (5, 485)],
        _page("linearFill"),
    ),
    _window(
        "$linearFill of several",
        INDEXED,
        {"sortBy": {"_id": 1}, "output": {"r": {"$linearFill": "$v"}}},
        [(0, 0), (1, 2.5), (2, 5.0), (3, 7.5), (4, 10)],
        _page("linearFill"),
    ),
    _window(
        "$linearFill at the ends",
        [{"_id": number, "v": value} for number, value in enumerate([None, 1, 2, None])],
        {"sortBy": {"_id": 1}, "output": {"r": {"$linearFill": "$v"}}},
        [(0, None), (1, 1), (2, 2), (3, None)],
        _page("linearFill"),
    ),
    _window(
        "$locf",
        HOURS,
        {**ORDERED, "output": {"r": {"$locf": "$price"}}},
        [(0, 500), (1, 500), (2, 515), (3, 515), (4, 515), (5, 485)],
        _page("linearFill"),
    ),
    # Percentiles
    _window(
        "$median of similar scores",
        SCORES,
        {"sortBy": {"a": 1}, "output": {"r": {**MEDIAN, "window": {"range": [-3, 3]}}}},
        [("2356", 60.0), ("2369", 60.0), ("2345", 60.0), ("2367", 64.0), ("2358", 64.0)],
        _page("median"),
    ),
    Case(
        "$median of a group",
        SCORES,
        aggregate({"$group": {"_id": None, "m": MEDIAN}}),
        [{"_id": None, "m": 62.0}],
        _page("median"),
    ),
    Case(
        "$median of an array",
        SCORES,
        aggregate({"$project": {"m": {"$median": {"input": ["$a", "$b", "$c"], "method": "approximate"}}}}),
        [{"_id": one["_id"], "m": median} for one, median in zip(SCORES, [80.0, 79.0, 78.0, 72.0, 60.0], strict=True)],
        _page("median"),
    ),
    Case(
        "$median passes over what is no number",
        [{"_id": 1, "v": [1, "x", None, 3]}],
        aggregate({"$project": {"m": {"$median": {"input": "$v", "method": "approximate"}}}}),
        [{"_id": 1, "m": 1.0}],
        _page("median"),
    ),
    Case(
        "$percentile of a group",
        SCORES,
        aggregate(
            {"$group": {"_id": None, "p": {"$percentile": {"input": "$a", "p": [0.95], "method": "approximate"}}}}
        ),
        [{"_id": None, "p": [67.0]}],
        _page("percentile"),
    ),
    # Paths
    _window(
        "a field in a field",
        [{"_id": 1, "a": {"b": 1}}],
        {"output": {"r.c": {"$sum": "$a.b"}}},
        [(1, {"c": 1})],
    ),
    # Restrictions
    _failing("a bounded window needs an order", {"output": {"r": {**SUM, "window": UP_TO_NOW}}}),
    _failing("a rank needs an order", {"output": {"r": {"$rank": {}}}}),
    _failing("$shift needs an order", {"output": {"r": {"$shift": {"output": "$n", "by": 1}}}}),
    _failing("a rank takes no window", {**ORDERED, "output": {"r": {"$rank": {}, "window": UP_TO_NOW}}}),
    _failing(
        "$shift takes no window",
        {**ORDERED, "output": {"r": {"$shift": {"output": "$n", "by": 1}, "window": UP_TO_NOW}}},
    ),
    _failing(
        "a range of numbers needs numbers",
        {"sortBy": {"type": 1}, "output": {"r": {**SUM, "window": {"range": [-1, 1]}}}},
    ),
    _failing(
        "a range of time needs dates",
        {"sortBy": {"price": 1}, "output": {"r": {**SUM, "window": {"range": [-1, 1], "unit": "day"}}}},
    ),
    _failing(
        "a range needs one field",
        {"sortBy": {"price": 1, "n": 1}, "output": {"r": {**SUM, "window": {"range": [-1, 1]}}}},
    ),
    _failing(
        "a range needs an ascending order",
        {"sortBy": {"price": -1}, "output": {"r": {**SUM, "window": {"range": [-1, 1]}}}},
    ),
    _failing(
        "documents and a range",
        {"sortBy": {"price": 1}, "output": {"r": {**SUM, "window": {"range": [-1, 1], "documents": [-1, 1]}}}},
    ),
    _failing(
        "half an hour",
        {**ORDERED, "output": {"r": {**SUM, "window": {"range": [-1.5, 1], "unit": "hour"}}}},
    ),
    _failing("$derivative needs a window", {**ORDERED, "output": {"r": {"$derivative": {"input": "$n"}}}}),
    _failing(
        "$linearFill of repeated values",
        {"sortBy": {"a": 1}, "output": {"r": {"$linearFill": "$b"}}},
        _page("linearFill"),
        SCORES,
    ),
    _failing("N and alpha", {**ORDERED, "output": {"r": {"$expMovingAvg": {"input": "$n", "N": 1, "alpha": 0.5}}}}),
    Case("$setWindowFields: an unknown field", CAKES, aggregate({"$setWindowFields": {"x": 1}}), Error(40415),
         "server: src/mongo/db/pipeline/document_source_set_window_fields.idl (strict)"),
]  # fmt: skip
