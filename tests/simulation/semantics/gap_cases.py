"""``$bucketAuto``, ``$densify`` and ``$fill``."""

from __future__ import annotations

import datetime

from bson import Decimal128

from .cases import Case, Error, aggregate


def _page(name):
    return f"manual: reference/operator/aggregation/{name}"


def _hour(hour):
    return datetime.datetime(2021, 5, 18, hour)


# Buckets

THINGS = [{"_id": number} for number in range(100)]
ART = [
    {"_id": 1, "title": "The Pillars of Society", "year": 1926, "price": Decimal128("199.99"), "h": 39, "w": 21},
    {"_id": 2, "title": "Melancholy III", "year": 1902, "price": Decimal128("280.00"), "h": 49, "w": 32},
    {"_id": 3, "title": "Dancer", "year": 1925, "price": Decimal128("76.04"), "h": 25, "w": 20},
    {"_id": 4, "title": "The Great Wave off Kanagawa", "price": Decimal128("167.30"), "h": 24, "w": 36},
    {"_id": 5, "title": "The Persistence of Memory", "year": 1931, "price": Decimal128("483.00"), "h": 20, "w": 24},
    {"_id": 6, "title": "Composition VII", "year": 1913, "price": Decimal128("385.00"), "h": 30, "w": 46},
    {"_id": 7, "title": "The Scream", "price": Decimal128("159.00"), "h": 24, "w": 18},
    {"_id": 8, "title": "Blue Flower", "year": 1918, "price": Decimal128("118.42"), "h": 24, "w": 20},
]


def _buckets(name, documents, spec, expected):
    """The boundaries and the counts."""

    def call(collection):
        found = aggregate({"$bucketAuto": spec})(collection)
        return [[one["_id"]["min"], one["_id"]["max"], one["count"]] for one in found]

    return Case(f"$bucketAuto: {name}", documents, call, expected, _page("bucketAuto"))


def _granular(granularity, expected):
    """The numbers as they are shown, whatever their type."""

    def call(collection):
        spec = {"groupBy": "$_id", "buckets": 5, "granularity": granularity}
        found = aggregate({"$bucketAuto": spec})(collection)
        return [[int(one["_id"]["min"]), int(one["_id"]["max"]), one["count"]] for one in found]

    return Case(f"$bucketAuto: {granularity}", THINGS, call, expected, _page("bucketAuto"))


# Gaps

WEATHER = [{"_id": number, "at": _hour(hour), "temp": 11} for number, hour in enumerate([0, 4, 8, 12])]
COFFEE = [
    {"_id": 1, "altitude": 600, "variety": "Arabica Typica"},
    {"_id": 2, "altitude": 750, "variety": "Arabica Typica"},
    {"_id": 3, "altitude": 950, "variety": "Arabica Typica"},
    {"_id": 4, "altitude": 1250, "variety": "Gesha"},
    {"_id": 5, "altitude": 1700, "variety": "Gesha"},
]


def _dense(name, documents, spec, expected, field="altitude"):
    """The values of a field, by partition, since the order is not guaranteed; ``True`` for documents that are new."""

    def call(collection):
        found = aggregate({"$densify": spec})(collection)
        shown = [(one.get("variety", ""), one.get(field), "_id" not in one) for one in found]
        return sorted(shown, key=lambda one: (one[0], one[1] is not None, one[1] if one[1] is not None else 0))

    return Case(f"$densify: {name}", documents, call, expected, _page("densify"))


def _failing(stage, name, spec, documents):
    """The page says that it is an error, and not which."""

    def call(collection):
        try:
            return aggregate({stage: spec})(collection)
        except Exception as error:
            return type(error).__name__

    return Case(f"{stage}: {name}", documents, call, "OperationFailure", _page(stage[1:]))


def _hourly(step, bounds, **more):
    return {"field": "at", "range": {"step": step, "unit": "hour", "bounds": bounds, **more}}


ARABICA, GESHA = "Arabica Typica", "Gesha"
STEP = {"step": 200, "bounds": "full"}
HEIGHT = {"field": "altitude", "range": STEP}
LOCF = {"sortBy": {"time": 1}, "output": {"price": {"method": "locf"}}}

# Values

SALES = [
    {"_id": 1, "boots": 10, "sandals": 20, "sneakers": 12},
    {"_id": 2, "boots": 7, "sneakers": 18},
    {"_id": 3, "sneakers": 5},
]
STOCK = [
    {"_id": number, "time": _hour(9 + number), **price}
    for number, price in enumerate([{"price": 500}, {}, {"price": 515}, {}, {}, {"price": 485}])
]
REVIEWS = [
    {"_id": number, "date": _hour(number), **score}
    for number, score in enumerate([{"score": 90}, {"score": 92}, {}, {}, {"score": 85}, {}])
]
RESTAURANTS = [
    {"_id": number, "r": name, "date": _hour(number), **score}
    for number, (name, score) in enumerate(
        [("a", {"score": 90}), ("b", {}), ("a", {}), ("b", {"score": 80}), ("a", {"score": None}), ("b", {})]
    )
]


def _filled(name, documents, spec, field, expected):
    stages = {"$fill": spec}, {"$sort": {"_id": 1}}

    def call(collection):
        return [one.get(field, "<missing>") for one in aggregate(*stages)(collection)]

    return Case(f"$fill: {name}", documents, call, expected, _page("fill"))


CASES = [
    _buckets(
        "as many in each",
        THINGS,
        {"groupBy": "$_id", "buckets": 5},
        [[0, 20, 20], [20, 40, 20], [40, 60, 20], [60, 80, 20], [80, 99, 20]],
    ),
    _granular("R20", [[0, 20, 20], [20, 40, 20], [40, 63, 23], [63, 90, 27], [90, 100, 10]]),
    _granular("E24", [[0, 20, 20], [20, 43, 23], [43, 68, 25], [68, 91, 23], [91, 100, 9]]),
    _granular("1-2-5", [[0, 20, 20], [20, 50, 30], [50, 100, 50]]),
    _granular("POWERSOF2", [[0, 32, 32], [32, 64, 32], [64, 128, 36]]),
    _buckets(
        "decimals",
        ART,
        {"groupBy": "$price", "buckets": 4},
        [
            [Decimal128("76.04"), Decimal128("159.00"), 2],
            [Decimal128("159.00"), Decimal128("199.99"), 2],
            [Decimal128("199.99"), Decimal128("385.00"), 2],
            [Decimal128("385.00"), Decimal128("483.00"), 2],
        ],
    ),
    _buckets(
        "missing counts as null",
        ART,
        {"groupBy": "$year", "buckets": 3},
        [[None, 1913, 3], [1913, 1926, 3], [1926, 1931, 2]],
    ),
    _buckets(
        "equal values stay together",
        ART,
        {"groupBy": {"$multiply": ["$h", "$w"]}, "buckets": 4},
        [[432, 500, 3], [500, 864, 2], [864, 1568, 2], [1568, 1568, 1]],
    ),
    Case(
        "$bucketAuto: an output",
        ART,
        aggregate(
            {
                "$bucketAuto": {
                    "groupBy": {"$multiply": ["$h", "$w"]},
                    "buckets": 4,
                    "output": {"count": {"$sum": 1}, "titles": {"$push": "$title"}},
                }
            },
            {"$skip": 2},
        ),
        [
            {
                "_id": {"min": 864, "max": 1568},
                "count": 2,
                "titles": ["The Great Wave off Kanagawa", "Composition VII"],
            },
            {"_id": {"min": 1568, "max": 1568}, "count": 1, "titles": ["Melancholy III"]},
        ],
        _page("bucketAuto"),
    ),
    _buckets(
        "fewer documents than buckets",
        ART[:2],
        {"groupBy": "$year", "buckets": 5},
        [[1902, 1926, 1], [1926, 1926, 1]],
    ),
    _buckets(
        "fewer values than buckets",
        [{"_id": 1, "v": 1}, {"_id": 2, "v": 1}],
        {"groupBy": "$v", "buckets": 2},
        [[1, 1, 2]],
    ),
    _buckets("no documents", [], {"groupBy": "$v", "buckets": 2}, []),
    _failing("$bucketAuto", "no buckets", {"groupBy": "$_id", "buckets": 0}, THINGS),
    _failing("$bucketAuto", "text with a granularity", {"groupBy": "$title", "buckets": 2, "granularity": "R5"}, ART),
    _failing("$bucketAuto", "NaN with a granularity", {"groupBy": "$v", "buckets": 2, "granularity": "R5"},
             [{"_id": 1, "v": float("nan")}]),
    _failing("$bucketAuto", "an unknown granularity", {"groupBy": "$_id", "buckets": 2, "granularity": "R7"}, THINGS),
    _dense(
        "hours within bounds",
        WEATHER,
        _hourly(1, [_hour(0), _hour(8)]),
        [("", _hour(hour), hour % 4 != 0) for hour in range(9)] + [("", _hour(12), False)],
        "at",
    ),
    _dense(
        "the full range for each partition",
        COFFEE,
        {"field": "altitude", "partitionByFields": ["variety"], "range": STEP},
        [
            (ARABICA, 600, False),
            (ARABICA, 750, False),
            (ARABICA, 800, True),
            (ARABICA, 950, False),
            (ARABICA, 1000, True),
            (ARABICA, 1200, True),
            (ARABICA, 1400, True),
            (ARABICA, 1600, True),
            (GESHA, 600, True),
            (GESHA, 800, True),
            (GESHA, 1000, True),
            (GESHA, 1200, True),
            (GESHA, 1250, False),
            (GESHA, 1400, True),
            (GESHA, 1600, True),
            (GESHA, 1700, False),
        ],
    ),
    _dense(
        "the range of each partition",
        COFFEE,
        {"field": "altitude", "partitionByFields": ["variety"], "range": {"step": 200, "bounds": "partition"}},
        [
            (ARABICA, 600, False),
            (ARABICA, 750, False),
            (ARABICA, 800, True),
            (ARABICA, 950, False),
            (GESHA, 1250, False),
            (GESHA, 1450, True),
            (GESHA, 1650, True),
            (GESHA, 1700, False),
        ],
    ),
    _dense(
        "the upper bound is exclusive, the lower one inclusive",
        [{"_id": 1, "altitude": 2}],
        {"field": "altitude", "range": {"step": 1, "bounds": [0, 4]}},
        [("", 0, True), ("", 1, True), ("", 2, False), ("", 3, True)],
    ),
    _dense(
        "documents outside of the bounds stay",
        [{"_id": 1, "altitude": -5}, {"_id": 2, "altitude": 9}],
        {"field": "altitude", "range": {"step": 1, "bounds": [0, 2]}},
        [("", -5, False), ("", 0, True), ("", 1, True), ("", 9, False)],
    ),
    _dense(
        "documents without the field pass",
        [{"_id": 1}, {"_id": 2, "altitude": 1}, {"_id": 3, "altitude": 3}],
        {"field": "altitude", "range": {"step": 1, "bounds": "full"}},
        [("", None, False), ("", 1, False), ("", 2, True), ("", 3, False)],
    ),
    _dense(
        "months",
        [{"_id": 1, "at": datetime.datetime(2021, 1, 31)}, {"_id": 2, "at": datetime.datetime(2021, 4, 1)}],
        {"field": "at", "range": {"step": 1, "unit": "month", "bounds": "full"}},
        [
            ("", datetime.datetime(2021, 1, 31), False),
            ("", datetime.datetime(2021, 2, 28), True),
            ("", datetime.datetime(2021, 3, 31), True),
            ("", datetime.datetime(2021, 4, 1), False),
        ],
        "at",
    ),
    _failing("$densify", "dates without a unit", {"field": "at", "range": {"step": 1, "bounds": "full"}}, WEATHER),
    _failing("$densify", "numbers with a unit", {**_hourly(1, "full"), "field": "temp"}, WEATHER),
    _failing("$densify", "a field with a dollar", {"field": "$at", "range": {"step": 1, "bounds": "full"}}, WEATHER),
    _failing("$densify", "half an hour", _hourly(0.5, "full"), WEATHER),
    _failing("$densify", "a partition by a number", {**HEIGHT, "partitionByFields": [1]}, COFFEE),
    _failing("$densify", "a partition with a dollar", {**HEIGHT, "partitionByFields": ["$v"]}, COFFEE),
    _filled("a value", SALES, {"output": {"sandals": {"value": 0}}}, "sandals", [20, 0, 0]),
    Case(
        "$fill: values are appended",
        SALES[2:],
        aggregate({"$fill": {"output": {"boots": {"value": 0}, "sandals": {"value": 0}, "sneakers": {"value": 0}}}}),
        [{"_id": 3, "sneakers": 5, "boots": 0, "sandals": 0}],
        _page("fill"),
    ),
    _filled(
        "linear",
        STOCK,
        {"sortBy": {"time": 1}, "output": {"price": {"method": "linear"}}},
        "price",
        [500, 507.5, 515, 505.0, 495.0, 485],
    ),
    _filled(
        "locf",
        REVIEWS,
        {"sortBy": {"date": 1}, "output": {"score": {"method": "locf"}}},
        "score",
        [90, 92, 92, 92, 85, 85],
    ),
    _filled(
        "for each partition",
        RESTAURANTS,
        {"sortBy": {"date": 1}, "partitionBy": "$r", "output": {"score": {"method": "locf"}}},
        "score",
        [90, None, 90, 80, 90, 80],
    ),
    _filled(
        "for each partition by fields",
        RESTAURANTS,
        {"sortBy": {"date": 1}, "partitionByFields": ["r"], "output": {"score": {"method": "locf"}}},
        "score",
        [90, None, 90, 80, 90, 80],
    ),
    _filled("null is filled", [{"_id": 1, "v": None}], {"output": {"v": {"value": {"$add": [1, 1]}}}}, "v", [2]),
    _failing("$fill", "a method needs an order", {"output": {"price": {"method": "linear"}}}, STOCK),
    _failing("$fill", "an unknown method", {"sortBy": {"time": 1}, "output": {"price": {"method": "x"}}}, STOCK),
    _failing("$fill", "two kinds of partitions", {**LOCF, "partitionBy": "$a", "partitionByFields": ["a"]}, STOCK),
    _failing("$fill", "a partition by a number", {**LOCF, "partitionByFields": [1]}, STOCK),
    Case("$fill: an unknown field", STOCK, aggregate({"$fill": {"x": 1}}), Error(40415),
         "server: src/mongo/db/pipeline/document_source_fill.idl (strict)"),
]  # fmt: skip
