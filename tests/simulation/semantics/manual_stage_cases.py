"""Stages of pipelines, as the manual describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import Int64

from .cases import (
    Case,
    aggregate,
    evaluate,
)
from .manual_calls import date, everything, indexes, page, plain, plainly, refused, tried

_AIRPORTS = [
    {"_id": 0, "airport": "JFK", "connects": ["BOS", "ORD"]},
    {"_id": 1, "airport": "BOS", "connects": ["JFK", "PWM"]},
    {"_id": 2, "airport": "ORD", "connects": ["JFK"]},
    {"_id": 3, "airport": "PWM", "connects": ["BOS", "LHR"]},
    {"_id": 4, "airport": "LHR", "connects": ["PWM"]},
]


_COFFEE = [
    {"_id": 1, "altitude": 600, "variety": "A"},
    {"_id": 2, "altitude": 750, "variety": "A"},
    {"_id": 3, "altitude": 950, "variety": "A"},
    {"_id": 4, "altitude": 1250, "variety": "G"},
    {"_id": 5, "altitude": 1700, "variety": "G"},
]


ONE = [{"_id": 1}]


def values(field: str, *stages: Any) -> Callable[[Any], Any]:
    """The values of a field of what a pipeline makes, with a null where it is missing."""
    return lambda collection: plain([d.get(field) for d in collection.aggregate(list(stages))])


def _densified(bounds: Any, variety: str) -> Callable[[Any], Any]:
    return values(
        "altitude",
        {"$densify": {"field": "altitude", "partitionByFields": ["variety"], "range": {"bounds": bounds, "step": 200}}},
        {"$match": {"variety": variety}},
        {"$sort": {"altitude": 1}},
    )


def _windowed(output: Any, **options: Any) -> Callable[[Any], Any]:
    """The values of ``w`` in windows, in order of ids."""
    return values("w", {"$setWindowFields": {**options, "output": {"w": output}}}, {"$sort": {"_id": 1}})


def _merged(**options: Any) -> Callable[[Any], Any]:
    """The other collection after documents have been merged into it."""

    def run(collection: Any) -> Any:
        list(collection.aggregate([{"$merge": {"into": "others", **options}}]))
        return everything(collection.database["others"])

    return run


def each(*expressions: Any) -> Callable[[Any], Any]:
    """The values of several expressions."""
    return lambda collection: plain([evaluate(expression)(collection) for expression in expressions])


CASES = [
    Case(
        "buckets end on numbers of a preferred series",
        [{"_id": n} for n in range(100)],
        plainly(aggregate({"$bucketAuto": {"groupBy": "$_id", "buckets": 5, "granularity": "1-2-5"}})),
        [
            {"_id": {"max": 20.0, "min": 0}, "count": 20},
            {"_id": {"max": 50.0, "min": 20.0}, "count": 30},
            {"_id": {"max": 100.0, "min": 50.0}, "count": 50},
        ],
        "server: src/mongo/db/pipeline/granularity_rounder_preferred_numbers.cpp",
    ),
    Case(
        "buckets share documents evenly, the last one includes its end",
        [{"_id": n, "v": n * 10} for n in range(1, 7)],
        plainly(aggregate({"$bucketAuto": {"groupBy": "$v", "buckets": 3, "output": {"ids": {"$push": "$_id"}}}})),
        [
            {"_id": {"max": 30, "min": 10}, "ids": [1, 2]},
            {"_id": {"max": 50, "min": 30}, "ids": [3, 4]},
            {"_id": {"max": 60, "min": 50}, "ids": [5, 6]},
        ],
        page("reference/operator/aggregation/bucketAuto"),
    ),
    Case(
        "what is in no bucket is in the default one",
        [{"_id": 1, "y": 1800}, {"_id": 2, "y": 1850}, {"_id": 3, "y": 1899}, {"_id": 4, "y": 1900}, {"_id": 5}],
        plainly(
            aggregate(
                {"$bucket": {"groupBy": "$y", "boundaries": [1800, 1850, 1900], "default": "Other"}},
                {"$sort": {"_id": 1}},
            )
        ),
        [{"_id": 1800, "count": 1}, {"_id": 1850, "count": 2}, {"_id": "Other", "count": 2}],
        page("reference/operator/aggregation/bucket"),
    ),
    Case(
        "a value in no bucket without a default is an error",
        [{"_id": 1, "y": 5}],
        refused(aggregate({"$bucket": {"groupBy": "$y", "boundaries": [0, 5]}})),
        "refused",
        page("reference/operator/aggregation/bucket"),
    ),
    Case(
        "gaps are filled over the range of all partitions",
        _COFFEE,
        lambda c: [_densified("full", "A")(c), _densified("full", "G")(c)],
        [
            [600, 750, 800, 950, 1000, 1200, 1400, 1600],
            [600, 800, 1000, 1200, 1250, 1400, 1600, 1700],
        ],
        page("reference/operator/aggregation/densify"),
    ),
    Case(
        "gaps are filled within each partition",
        _COFFEE,
        lambda c: [_densified("partition", "A")(c), _densified("partition", "G")(c)],
        [[600, 750, 800, 950], [1250, 1450, 1650, 1700]],
        page("reference/operator/aggregation/densify"),
    ),
    Case(
        "dates are filled up to a bound, and those beyond it are kept",
        [{"_id": 1, "at": date(2021, 5, 18, 1)}, {"_id": 2, "at": date(2021, 5, 18, 9)}],
        values(
            "at",
            {
                "$densify": {
                    "field": "at",
                    "range": {"step": 2, "unit": "hour", "bounds": [date(2021, 5, 18, 1), date(2021, 5, 18, 7)]},
                }
            },
            {"$sort": {"at": 1}},
        ),
        [date(2021, 5, 18, hour) for hour in (1, 3, 5, 9)],
        page("reference/operator/aggregation/densify"),
    ),
    Case(
        "equal bounds make no document",
        [{"_id": 1, "n": 3}],
        values("n", {"$densify": {"field": "n", "range": {"step": 1, "bounds": [10, 10]}}}),
        [3],
        page("reference/operator/aggregation/densify"),
    ),
    Case(
        "missing prices lie on the lines between known ones",
        [
            {"_id": 9, "p": 500},
            {"_id": 10},
            {"_id": 11, "p": 515},
            {"_id": 12},
            {"_id": 13, "p": None},
            {"_id": 14, "p": 485},
        ],
        lambda c: [
            float(price)
            for price in values(
                "p", {"$fill": {"sortBy": {"_id": 1}, "output": {"p": {"method": "linear"}}}}, {"$sort": {"_id": 1}}
            )(c)
        ],
        [500.0, 507.5, 515.0, 505.0, 495.0, 485.0],
        page("reference/operator/aggregation/fill"),
    ),
    Case(
        "the last known score of a partition is carried on",
        [
            {"_id": 1, "r": "x", "s": 90},
            {"_id": 2, "r": "y", "s": None},
            {"_id": 3, "r": "x"},
            {"_id": 4, "r": "y", "s": 60},
            {"_id": 5, "r": "y"},
            {"_id": 6, "r": "x", "s": 85},
            {"_id": 7, "r": "x", "s": None},
        ],
        values(
            "s",
            {"$fill": {"partitionBy": "$r", "sortBy": {"_id": 1}, "output": {"s": {"method": "locf"}}}},
            {"$sort": {"_id": 1}},
        ),
        [90, None, 90, 60, 60, 85, 85],
        page("reference/operator/aggregation/fill"),
    ),
    Case(
        "a window sums a partition up to the current document",
        [
            {"_id": 1, "s": "CA", "q": 162},
            {"_id": 2, "s": "WA", "q": 134},
            {"_id": 3, "s": "CA", "q": 120},
            {"_id": 4, "s": "WA", "q": 104},
        ],
        _windowed(
            {"$sum": "$q", "window": {"documents": ["unbounded", "current"]}}, partitionBy="$s", sortBy={"_id": 1}
        ),
        [162, 134, 282, 238],
        page("reference/operator/aggregation/setWindowFields"),
    ),
    Case(
        "a window has the documents whose values are near",
        [
            {"_id": 1, "p": 10, "q": 1},
            {"_id": 2, "p": 20, "q": 2},
            {"_id": 3, "p": 35, "q": 4},
            {"_id": 4, "p": 31, "q": 8},
        ],
        _windowed({"$sum": "$q", "window": {"range": [-10, 10]}}, sortBy={"p": 1}),
        [3, 3, 12, 12],
        page("reference/operator/aggregation/setWindowFields"),
    ),
    Case(
        "a value comes from the next document, or is the default",
        [{"_id": 1, "q": 162}, {"_id": 2, "q": 145}, {"_id": 3, "q": 120}],
        _windowed({"$shift": {"output": "$q", "by": 1, "default": "none"}}, sortBy={"q": -1}),
        [145, 120, "none"],
        page("reference/operator/aggregation/shift"),
    ),
    Case(
        "equal documents share their rank",
        [{"_id": 1, "q": 7}, {"_id": 2, "q": 9}, {"_id": 3, "q": 9}, {"_id": 4, "q": 5}],
        lambda c: [_windowed({name: {}}, sortBy={"q": -1})(c) for name in ("$rank", "$denseRank")],
        [[3, 1, 1, 4], [2, 1, 1, 3]],
        page("reference/operator/aggregation/denseRank"),
    ),
    Case(
        "a moving average weighs what is past by its decay",
        [{"_id": 1, "p": 82}, {"_id": 2, "p": 94}, {"_id": 3, "p": 112}],
        lambda c: list(map(float, _windowed({"$expMovingAvg": {"input": "$p", "alpha": 0.75}}, sortBy={"_id": 1})(c))),
        [82.0, 91.0, 106.75],
        page("reference/operator/aggregation/expMovingAvg"),
    ),
    Case(
        "a window needs an order for its bounds",
        ONE,
        refused(_windowed({"$sum": "$_id", "window": {"documents": [-1, 0]}})),
        "refused",
        page("reference/operator/aggregation/setWindowFields"),
    ),
    Case(
        "flights are followed to a depth",
        [{"_id": 1, "nearest": "JFK"}, {"_id": 3, "nearest": "BOS"}],
        lambda c: [
            sorted((int(d["_id"]), int(d["n"])) for d in document["to"])
            for document in c.aggregate(
                [
                    {
                        "$graphLookup": {
                            "from": "others",
                            "startWith": "$nearest",
                            "connectFromField": "connects",
                            "connectToField": "airport",
                            "maxDepth": 2,
                            "depthField": "n",
                            "as": "to",
                        }
                    },
                    {"$sort": {"_id": 1}},
                ]
            )
        ],
        [[(0, 0), (1, 1), (2, 1), (3, 2)], [(0, 1), (1, 0), (2, 2), (3, 1), (4, 2)]],
        page("reference/operator/aggregation/graphLookup"),
        _AIRPORTS,
    ),
    Case(
        "a lookup takes what is missing on either side for null",
        [{"_id": 1, "item": "almonds"}, {"_id": 2, "item": "pecans"}, {"_id": 3}],
        lambda c: [
            sorted(d["_id"] for d in found)
            for found in values(
                "docs",
                {"$lookup": {"from": "others", "localField": "item", "foreignField": "sku", "as": "docs"}},
                {"$sort": {"_id": 1}},
            )(c)
        ],
        [[1], [4], [5, 6]],
        page("reference/operator/aggregation/lookup"),
        [
            {"_id": 1, "sku": "almonds"},
            {"_id": 2, "sku": "bread"},
            {"_id": 4, "sku": "pecans"},
            {"_id": 5, "sku": None},
            {"_id": 6},
        ],
    ),
    Case(
        "a lookup with a pipeline joins by equality and by an expression",
        [{"_id": 1, "item": "a", "ordered": 2}, {"_id": 2, "item": "b", "ordered": 60}],
        values(
            "stock",
            {
                "$lookup": {
                    "from": "others",
                    "localField": "item",
                    "foreignField": "stock_item",
                    "let": {"wanted": "$ordered"},
                    "pipeline": [
                        {"$match": {"$expr": {"$gte": ["$instock", "$$wanted"]}}},
                        {"$sort": {"_id": 1}},
                        {"$project": {"warehouse": 1, "_id": 0}},
                    ],
                    "as": "stock",
                }
            },
            {"$sort": {"_id": 1}},
        ),
        [[{"warehouse": "A"}, {"warehouse": "B"}], [{"warehouse": "A"}]],
        page("reference/operator/aggregation/lookup"),
        [
            {"_id": 1, "stock_item": "a", "warehouse": "A", "instock": 120},
            {"_id": 2, "stock_item": "a", "warehouse": "B", "instock": 60},
            {"_id": 3, "stock_item": "b", "warehouse": "B", "instock": 40},
            {"_id": 4, "stock_item": "b", "warehouse": "A", "instock": 80},
        ],
    ),
    Case(
        "documents are merged field by field unless told otherwise",
        [{"_id": 1, "b": 5, "z": 1}, {"_id": 2, "a": 9}],
        _merged(),
        [{"_id": 1, "a": 1, "b": 5, "z": 1}, {"_id": 2, "a": 9}],
        page("reference/operator/aggregation/merge"),
        [{"_id": 1, "a": 1, "b": 1}],
    ),
    Case(
        "existing documents are replaced, and new ones discarded",
        [{"_id": 1, "b": 5}, {"_id": 2, "a": 9}],
        _merged(whenMatched="replace", whenNotMatched="discard"),
        [{"_id": 1, "b": 5}],
        page("reference/operator/aggregation/merge"),
        [{"_id": 1, "a": 1, "b": 1}],
    ),
    Case(
        "a pipeline merges the new document into the old one",
        [{"_id": 1, "up": 3}, {"_id": 2, "up": 4}],
        _merged(whenMatched=[{"$set": {"up": {"$add": ["$up", "$$new.up"]}}}], whenNotMatched="insert"),
        [{"_id": 1, "up": 10}, {"_id": 2, "up": 4}],
        page("reference/operator/aggregation/merge"),
        [{"_id": 1, "up": 7}],
    ),
    Case(
        "merging by fields needs a unique index of them",
        [{"_id": 1, "k": "x", "v": 1}],
        lambda c: [
            refused(_merged(on="k"))(c),
            c.database["others"].create_index("k", unique=True),
            list(c.aggregate([{"$unset": "_id"}, {"$merge": {"into": "others", "on": "k"}}])),
            everything(c.database["others"]),
        ],
        ["refused", "k_1", [], [{"_id": 7, "k": "x", "old": 1, "v": 1}]],
        page("reference/operator/aggregation/merge"),
        [{"_id": 7, "k": "x", "old": 1}],
    ),
    Case(
        "merging by other fields changes no identifier",
        [{"_id": 1, "k": "x", "v": 1}],
        lambda c: [
            c.database["others"].create_index("k", unique=True),
            *(
                tried(lambda c, mode=mode: list(c.aggregate([{"$merge": {"into": "others", "on": "k", **mode}}])), c)
                for mode in ({}, {"whenMatched": "replace"}, {"whenMatched": [{"$set": {"_id": "$$new._id"}}]})
            ),
            list(c.aggregate([{"$unset": "_id"}, {"$merge": {"into": "others", "on": "k", "whenMatched": "replace"}}])),
            everything(c.database["others"]),
        ],
        ["k_1", ("code", 66), ("code", 66), ("code", 66), [], [{"_id": 7, "k": "x", "v": 1}]],
        page("reference/operator/aggregation/merge"),
        [{"_id": 7, "k": "x", "old": 1}],
    ),
    Case(
        "an output takes the place of a collection, with its indexes",
        [{"_id": 1, "k": 1}, {"_id": 2, "k": 2}],
        lambda c: [
            c.database["others"].create_index("k"),
            list(c.aggregate([{"$match": {"k": 2}}, {"$out": "others"}])),
            everything(c.database["others"]),
            sorted(indexes(c.database["others"])),
        ],
        ["k_1", [], [{"_id": 2, "k": 2}], ["_id_", "k_1"]],
        page("reference/operator/aggregation/out"),
        [{"_id": 9, "k": 9}],
    ),
    Case(
        "an output that fails leaves the collection as it was",
        [{"_id": 1, "k": 1}, {"_id": 2, "k": 1}],
        lambda c: [
            c.database["others"].create_index("k", unique=True),
            refused(aggregate({"$out": "others"}))(c),
            everything(c.database["others"]),
        ],
        ["k_1", "refused", [{"_id": 9, "k": 9}]],
        page("reference/operator/aggregation/out"),
        [{"_id": 9, "k": 9}],
    ),
    Case(
        "a union keeps what both collections have",
        [{"_id": 1, "name": "a"}, {"_id": 2, "name": "b"}],
        lambda c: sorted(
            values(
                "name", {"$project": {"_id": 0}}, {"$unionWith": {"coll": "others", "pipeline": [{"$match": {"n": 1}}]}}
            )(c)
        ),
        ["a", "a", "b"],
        page("reference/operator/aggregation/unionWith"),
        [{"_id": 1, "name": "a", "n": 1}, {"_id": 2, "name": "c", "n": 2}],
    ),
    Case(
        "several pipelines work on the same documents",
        [{"_id": 1, "tags": ["x", "y"], "p": 5}, {"_id": 2, "tags": ["x"], "p": 15}, {"_id": 3, "p": 9}],
        plainly(
            aggregate(
                {
                    "$facet": {
                        "byTag": [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}],
                        "dear": [{"$match": {"p": {"$gt": 6}}}, {"$count": "n"}],
                        "none": [{"$match": {"p": 99}}, {"$count": "n"}],
                    }
                }
            )
        ),
        [{"byTag": [{"_id": "x", "count": 2}, {"_id": "y", "count": 1}], "dear": [{"n": 2}], "none": []}],
        page("reference/operator/aggregation/facet"),
    ),
    Case(
        "what has no elements is unwound where it is to be preserved",
        [{"_id": 1, "s": ["S", "M"]}, {"_id": 2, "s": []}, {"_id": 3, "s": "L"}, {"_id": 4}, {"_id": 5, "s": None}],
        lambda c: [
            [
                (d["_id"], d.get("s", "-"), d.get("i"))
                for d in c.aggregate([{"$unwind": spec}, {"$sort": {"_id": 1, "i": 1}}])
            ]
            for spec in (
                {"path": "$s", "includeArrayIndex": "i"},
                {"path": "$s", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": True},
            )
        ],
        [
            [(1, "S", Int64(0)), (1, "M", Int64(1)), (3, "L", None)],
            [(1, "S", Int64(0)), (1, "M", Int64(1)), (2, "-", None), (3, "L", None), (4, "-", None), (5, None, None)],
        ],
        page("reference/operator/aggregation/unwind"),
    ),
    Case(
        "documents of a level are pruned, with all that is in them",
        [
            {
                "_id": 1,
                "level": 1,
                "cc": {"level": 5, "addr": [{"level": 3, "city": "X"}]},
                "kin": [{"level": 5, "a": 1}, {"level": 2, "b": {"level": 5}, "c": 3}],
            }
        ],
        aggregate({"$redact": {"$cond": {"if": {"$eq": ["$level", 5]}, "then": "$$PRUNE", "else": "$$DESCEND"}}}),
        [{"_id": 1, "level": 1, "kin": [{"level": 2, "c": 3}]}],
        page("reference/operator/aggregation/redact"),
    ),
    Case(
        "documents are replaced by embedded ones, and by nothing else",
        [{"_id": 1, "name": {"first": "A"}, "pets": 3}],
        lambda c: [
            aggregate({"$replaceWith": "$name"})(c),
            refused(aggregate({"$replaceWith": "$pets"}))(c),
            refused(aggregate({"$replaceRoot": {"newRoot": "$none"}}))(c),
        ],
        [[{"first": "A"}], "refused", "refused"],
        page("reference/operator/aggregation/replaceRoot"),
    ),
]
