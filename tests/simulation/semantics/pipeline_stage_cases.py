"""Stages of pipelines, with the documents that they make."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Int64

from .calls import Call, after
from .cases import Case, aggregate
from .refusals import (
    DUPLICATE,
    EXPRESSIONS,
    NO_INDEX,
    ONE,
    SOURCES,
    UNPARSED,
    each,
    floats,
    integers,
    location,
    other_documents,
    piped,
    refusal,
)

SALES = [
    {"_id": 1, "price": 10, "quantity": 2},
    {"_id": 2, "price": 20, "quantity": 1},
    {"_id": 3, "price": 5, "quantity": 10},
    {"_id": 4, "price": 5, "quantity": 20},
    {"_id": 5, "price": 10, "quantity": 10},
]
DAYS = [
    {"_id": 0, "date": datetime(2017, 6, 16), "sales": 1},
    {"_id": 1, "date": datetime(2017, 6, 16, 12, 2, 21, 13000), "sales": 2},
    {"_id": 2, "date": datetime(2017, 6, 17), "sales": 2},
    {"_id": 3, "date": datetime(2017, 6, 17, 12, 2, 21, 13000), "sales": 2},
    {"_id": 4, "date": datetime(2017, 6, 17, 15, 0, 33, 101000), "sales": 2},
]
CAKES = [
    {"_id": 0, "orderDate": datetime(2020, 5, 18), "state": "CA", "quantity": 120},
    {"_id": 1, "orderDate": datetime(2021, 3, 20), "state": "WA", "quantity": 140},
    {"_id": 2, "orderDate": datetime(2021, 1, 11), "state": "CA", "quantity": 145},
    {"_id": 3, "orderDate": datetime(2020, 2, 8), "state": "WA", "quantity": 104},
    {"_id": 4, "orderDate": datetime(2019, 5, 18), "state": "CA", "quantity": 162},
    {"_id": 5, "orderDate": datetime(2019, 1, 8), "state": "WA", "quantity": 134},
]
ARTISTS = [
    {"_id": 1, "name": "Emil Bernard", "born": 1868},
    {"_id": 2, "name": "Joszef Rippl-Ronai", "born": 1861},
    {"_id": 3, "name": "Anna Ostroumova", "born": 1871},
    {"_id": 4, "name": "Vincent Van Gogh", "born": 1853},
    {"_id": 5, "name": "Alfred Maurer", "born": 1868},
    {"_id": 6, "name": "Edvard Munch", "born": 1863},
    {"_id": 7, "name": "Odilon Redon", "born": 1840},
    {"_id": 8, "name": "Edvard Diriks", "born": 1855},
]
LEFT = [{"_id": 0, "a": 1}, {"_id": 1, "a": None}, {"_id": 2}]
RIGHT = [{"_id": 0, "b": 1}, {"_id": 1, "b": None}, {"_id": 2}]
GRAPH = [{"_id": number, "neighbors": [number - 1, number + 1]} for number in range(20)]
DOUBLES = [{"_id": number, "double": number // 2} for number in range(4)]
RANGES = [{"_id": place, "x": x} for place, x in enumerate([0, 1, 1.5, 2, 3, 100, 100, 101])]
SCORES = [
    {"_id": "2345", "test01": 62},
    {"_id": "2356", "test01": 60},
    {"_id": "2358", "test01": 67},
    {"_id": "2367", "test01": 64},
    {"_id": "2369", "test01": 60},
]
FORECAST = {
    "_id": 1,
    "tags": ["G", "STLW"],
    "subsections": [
        {"subtitle": "Section 1: Overview", "tags": ["SI", "G"]},
        {"subtitle": "Section 2: Analysis", "tags": ["STLW"]},
        {"subtitle": "Section 3: Budgeting", "tags": ["TK"], "content": {"tags": ["HCS"]}},
    ],
}
RANK = f"{SOURCES}/setWindowFields/rank.js"
SHIFT = f"{SOURCES}/setWindowFields/shift.js"
LOOKUP = f"{SOURCES}/lookup/lookup.js"
MERGED = f"{SOURCES}/merge/mode_pipeline_insert.js"
LEAST = "server: jstests/aggregation/accumulators/min_n_max_n.js"
SAME = {"from": "others", "localField": "a", "foreignField": "b", "as": "same"}


def _windows(output: Any, sort: Any = None) -> Any:
    by = {"sortBy": sort} if sort else {}
    return {"$setWindowFields": {**by, "output": {"r": output}}}


def _no_stage(stage: Any, expected: Any, source: str, documents: Any = tuple(ONE)) -> Case:
    return Case(f"aggregate refuses {stage!r}"[:120], list(documents), refusal(piped(stage)), expected, source)


def _merging(**options: Any) -> Call:
    return piped({"$merge": {"into": "others", **options}})


STAGES = [
    Case(
        "$group of all documents",
        SALES,
        aggregate(
            {
                "$group": {
                    "_id": None,
                    "totalPrice": {"$sum": {"$multiply": ["$price", "$quantity"]}},
                    "averageQuantity": {"$avg": "$quantity"},
                    "count": {"$sum": 1},
                }
            }
        ),
        [{"_id": None, "totalPrice": 290, "averageQuantity": 8.6, "count": 5}],
        "manual: reference/operator/aggregation/group",
    ),
    Case(
        "$group by the days of a time zone",
        DAYS,
        aggregate(
            {
                "$group": {
                    "_id": {"day": {"$dayOfMonth": {"date": "$date", "timezone": "America/New_York"}}},
                    "totalSales": {"$sum": "$sales"},
                }
            },
            {"$sort": {"_id.day": 1}},
        ),
        [
            {"_id": {"day": 15}, "totalSales": 1},
            {"_id": {"day": 16}, "totalSales": 4},
            {"_id": {"day": 17}, "totalSales": 4},
        ],
        f"{EXPRESSIONS}/date_expressions_with_timezones.js",
    ),
    Case(
        "$setWindowFields adds up in each partition",
        CAKES,
        each(
            "r",
            aggregate(
                {
                    "$setWindowFields": {
                        "partitionBy": "$state",
                        "sortBy": {"orderDate": 1},
                        "output": {"r": {"$sum": "$quantity", "window": {"documents": ["unbounded", "current"]}}},
                    }
                },
                {"$sort": {"_id": 1}},
            ),
        ),
        [282, 378, 427, 238, 162, 134],
        "manual: reference/operator/aggregation/setWindowFields",
    ),
    Case(
        "$rank of ties",
        DOUBLES,
        each("r", aggregate(_windows({"$rank": {}}, {"double": 1})), integers),
        [1, 1, 3, 3],
        RANK,
    ),
    _no_stage(_windows({"$rank": {}}), location(5371602), RANK),
    _no_stage(_windows({"$rank": {}, "window": {"documents": [-1, 1]}}, {"_id": 1}), location(5371601), RANK),
    Case(
        "$shift to the one before",
        DOUBLES,
        each("r", aggregate(_windows({"$shift": {"by": -1, "output": "$_id", "default": -10}}, {"_id": 1}))),
        [-10, 0, 1, 2],
        SHIFT,
    ),
    _no_stage(_windows({"$shift": {"output": "$one"}}, {"one": 1}), UNPARSED, SHIFT),
    Case(
        "$linearFill between numbers",
        [{"_id": 1, "v": 1}, {"_id": 2, "v": None}, {"_id": 3, "v": None}, {"_id": 5, "v": 5}, {"_id": 6, "v": None}],
        each("r", aggregate(_windows({"$linearFill": "$v"}, {"_id": 1})), floats),
        [1.0, 2.0, 3.0, 5.0, None],
        f"{SOURCES}/setWindowFields/linear_fill.js",
    ),
    Case(
        "a range takes those that tie with the document",
        RANGES,
        each("r", aggregate(_windows({"$push": "$x", "window": {"range": [-1, 0]}}, {"x": 1}))),
        [[0], [0, 1], [1, 1.5], [1, 1.5, 2], [2, 3], [100, 100], [100, 100], [100, 100, 101]],
        f"{SOURCES}/setWindowFields/range.js",
    ),
    _no_stage({"$group": {"_id": None, "r": {"$minN": {"input": "$a", "n": 3.2}}}}, location(5787903), LEAST),
    Case(
        "$percentile of several points",
        SCORES,
        each(
            "r",
            aggregate(
                {
                    "$group": {
                        "_id": None,
                        "r": {
                            "$percentile": {"input": "$test01", "p": [0.5, 0.75, 0.9, 0.95], "method": "approximate"}
                        },
                    }
                }
            ),
            lambda values: floats(next(iter(values))),
        ),
        [62.0, 64.0, 67.0, 67.0],
        "manual: reference/operator/aggregation/percentile",
    ),
    Case(
        "$lookup takes a missing field for null",
        LEFT,
        aggregate({"$lookup": SAME}, {"$project": {"same": "$same._id"}}, {"$sort": {"_id": 1}}),
        [{"_id": 0, "same": [0]}, {"_id": 1, "same": [1, 2]}, {"_id": 2, "same": [1, 2]}],
        LOOKUP,
        RIGHT,
    ),
    Case(
        "$lookup and $unwind that keeps those without",
        LEFT,
        aggregate(
            {"$lookup": {**SAME, "localField": "_id"}},
            {"$unwind": {"path": "$same", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "index"}},
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": 0, "a": 1, "index": None},
            {"_id": 1, "a": None, "same": {"_id": 0, "b": 1}, "index": Int64(0)},
            {"_id": 2, "index": None},
        ],
        LOOKUP,
        RIGHT,
    ),
    Case(
        "$lookup with variables and a pipeline",
        [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}],
        aggregate(
            {
                "$lookup": {
                    "from": "others",
                    "let": {"var1": "$_id"},
                    "pipeline": [{"$match": {"$expr": {"$lt": ["$_id", "$$var1"]}}}],
                    "as": "c",
                }
            },
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": 1, "x": 1, "c": []},
            {"_id": 2, "x": 2, "c": [{"_id": 1}]},
            {"_id": 3, "x": 3, "c": [{"_id": 1}, {"_id": 2}]},
        ],
        f"{SOURCES}/lookup/lookup_subpipeline.js",
        [{"_id": 1}, {"_id": 2}, {"_id": 3}],
    ),
    _no_stage(
        {"$lookup": {"from": "others", "as": "as", "let": {"v": "$x"}, "pipeline": [{"$project": {"m": "$$not"}}]}},
        location(17276),
        f"{SOURCES}/lookup/lookup_subpipeline.js",
    ),
    _no_stage(
        {"$lookup": {"from": "others", "localField": "x", "as": "result"}},
        UNPARSED,
        f"{SOURCES}/lookup/lookup_invalid_input.js",
    ),
    Case(
        "$graphLookup as deep as it may, with the depths",
        [{"_id": 0, "starting": 10}],
        lambda collection: sorted(
            [each["_id"], int(each["distance"])]
            for each in aggregate(
                {
                    "$graphLookup": {
                        "from": "others",
                        "startWith": "$starting",
                        "connectFromField": "neighbors",
                        "connectToField": "_id",
                        "maxDepth": 2,
                        "depthField": "distance",
                        "as": "integers",
                    }
                }
            )(collection)[0]["integers"]
        ),
        [[8, 2], [9, 1], [10, 0], [11, 1], [12, 2]],
        f"{SOURCES}/graphLookup/basic.js",
        GRAPH,
    ),
    Case(
        "$bucket, and those that hold more than three",
        ARTISTS,
        aggregate(
            {
                "$bucket": {
                    "groupBy": "$born",
                    "boundaries": [1840, 1850, 1860, 1870, 1880],
                    "default": "Other",
                    "output": {"count": {"$sum": 1}, "artists": {"$push": "$name"}},
                }
            },
            {"$match": {"count": {"$gt": 3}}},
        ),
        [{"_id": 1860, "count": 4, "artists": ["Emil Bernard", "Joszef Rippl-Ronai", "Alfred Maurer", "Edvard Munch"]}],
        "manual: reference/operator/aggregation/bucket",
    ),
    Case(
        "$redact at each level",
        [FORECAST],
        aggregate(
            {
                "$redact": {
                    "$cond": {
                        "if": {"$gt": [{"$size": {"$setIntersection": ["$tags", ["STLW", "G"]]}}, 0]},
                        "then": "$$DESCEND",
                        "else": "$$PRUNE",
                    }
                }
            }
        ),
        [{**FORECAST, "subsections": FORECAST["subsections"][:2]}],
        "manual: reference/operator/aggregation/redact",
    ),
    _no_stage(
        {"$replaceRoot": {"newRoot": "$a"}},
        location(40228),
        "server: src/mongo/db/pipeline/document_source_replace_root.cpp",
    ),
    _no_stage(
        {"$geoNear": {"near": [0, 0], "distanceField": "distance", "spherical": True}},
        NO_INDEX,
        f"{SOURCES}/geonear/requires_geo_index.js",
    ),
    Case(
        "$merge by a pipeline, or as an insert of the document itself (since 4.4)",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}],
        after(_merging(whenMatched=[{"$addFields": {"x": {"$add": ["$b", 1]}}}]), other_documents),
        [{"_id": 1, "b": 1, "x": 2}, {"_id": 2, "a": 2}],
        MERGED,
        [{"_id": 1, "b": 1}],
    ),
    Case(
        "$merge on a field that a document has not",
        [{"_id": 1}],
        after(
            lambda collection: collection.database.others.create_index([("z", 1)], unique=True),
            refusal(
                piped(
                    {"$project": {"_id": 0}},
                    {"$merge": {"into": "others", "on": "z", "whenMatched": [{"$addFields": {"z": 1}}]}},
                )
            ),
        ),
        location(51132),
        MERGED,
    ),
    Case(
        "$merge that is to fail for those that are there",
        [{"_id": 1}],
        refusal(_merging(whenMatched="fail", whenNotMatched="insert")),
        DUPLICATE,
        f"{SOURCES}/merge/mode_fail_insert.js",
        [{"_id": 1}],
    ),
    Case(
        "$out keeps the indexes of what it replaces",
        [{"_id": 0, "a": 0}],
        after(
            lambda collection: collection.database.others.create_index([("a", 1)], unique=True),
            piped({"$out": "others"}),
            lambda collection: [other_documents(collection), sorted(collection.database.others.index_information())],
        ),
        [[{"_id": 0, "a": 0}], ["_id_", "a_1"]],
        f"{SOURCES}/out/replace_collection.js",
        [{"_id": 1, "a": 0}],
    ),
    Case(
        "$out that is not the last",
        ONE,
        refusal(piped({"$out": "others"}, {"$match": {"x": True}})),
        location(40601),
        f"{SOURCES}/out/required_last_position.js",
    ),
]


CASES = [*STAGES]
