"""Specifications that stages refuse, and what $graphLookup, $merge, $lookup and their like make."""

from __future__ import annotations

import datetime

from bson import Int64

from .calls import after, attempt
from .cases import Case, Error, aggregate

GRAPH = "server: jstests/aggregation/sources/graphLookup/error.js"
FILL = "server: jstests/aggregation/sources/fill/fill_parse.js"
DENSIFY = "server: jstests/aggregation/sources/densify/libs/parse_util.js"
FACET = "server: jstests/aggregation/sources/facet/facet_validate_pipelines.js"
FACETS = "server: src/mongo/db/pipeline/document_source_facet.cpp"
WINDOW = "server: jstests/aggregation/sources/setWindowFields/parse.js"
UNION = "server: jstests/aggregation/sources/unionWith/unionWith_invalid_usage.js"
DOCUMENTS = "server: jstests/aggregation/sources/documents/basics.js"
ON = "server: jstests/aggregation/sources/merge/on_fields_validation.js"
MERGE = "manual: reference/operator/aggregation/merge"
LOOKUP = "manual: reference/operator/aggregation/lookup"
SAMPLE = "server: src/mongo/db/pipeline/document_source_sample.cpp"
UNWIND = "server: src/mongo/db/pipeline/document_source_unwind.cpp"
ONE = [{"_id": 1, "a": 1}]
NEW_YEAR = datetime.datetime(2020, 1, 1)
EDGES = {"from": "others", "startWith": 0, "connectToField": "a", "connectFromField": "b", "as": "output"}
PEOPLE = [
    {"_id": 1, "name": "Dev"},
    {"_id": 2, "name": "Eliot", "reportsTo": "Dev"},
    {"_id": 3, "name": "Ron", "reportsTo": "Eliot"},
    {"_id": 4, "name": "Asya", "reportsTo": "Ron"},
]
SOURCE = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 3}]
TARGET = [{"_id": 1, "b": 1}, {"_id": 3, "b": 3}]


def _refused(source, stage, *pairs):
    return [
        Case(f"{stage}: {specification!r}"[:170], ONE, aggregate({stage: specification}), Error(code), source)
        for specification, code in pairs
    ]


def _without(name):
    return {key: value for key, value in EDGES.items() if key != name}


def _range(**fields):
    return {"field": "a", "range": {"step": 1.0, **fields}}


def _others(collection):
    return list(collection.database.others.find({}, sort=[("_id", 1)]))


def _merged(expected, source=MERGE, **options):
    """What a $merge leaves in the other collection; a failure does not undo what was merged."""
    return Case(
        f"$merge with {options!r}"[:170],
        SOURCE,
        after(attempt(aggregate({"$merge": {"into": "others", **options}})), _others),
        expected,
        source,
        TARGET,
    )


def _unique_others(collection):
    collection.database.others.create_index("z", unique=True)


CASES: list[Case] = [
    *_refused(
        GRAPH,
        "$graphLookup",
        (4, 9),
        ({**EDGES, "maxDepth": "string"}, 40100),
        ({**EDGES, "maxDepth": -1}, 40101),
        ({**EDGES, "maxDepth": 2.3}, 40102),
        ({**EDGES, "as": 0}, 40103),
        ({**EDGES, "notAField": "foo"}, 40104),
        (_without("connectToField"), 40105),
        ({**EDGES, "restrictSearchWithMatch": "notamatch"}, 40185),
    ),
    Case(
        "$graphLookup tells the depth",
        [PEOPLE[3]],
        aggregate(
            {
                "$graphLookup": {
                    "from": "others",
                    "startWith": "$reportsTo",
                    "connectFromField": "reportsTo",
                    "connectToField": "name",
                    "as": "r",
                    "depthField": "depth",
                }
            },
            {"$unwind": "$r"},
            {"$sort": {"r.depth": 1}},
            {"$project": {"_id": 0, "name": "$r.name", "depth": "$r.depth"}},
        ),
        [
            {"name": "Ron", "depth": Int64(0)},
            {"name": "Eliot", "depth": Int64(1)},
            {"name": "Dev", "depth": Int64(2)},
        ],
        "manual: reference/operator/aggregation/graphLookup",
        PEOPLE,
    ),
    Case(
        "$graphLookup under a schema",
        [{"_id": 1, "starting": 0}],
        aggregate(
            {
                "$graphLookup": {
                    "from": "others",
                    "startWith": "$starting",
                    "connectFromField": "n",
                    "connectToField": "_id",
                    "as": "r",
                    "restrictSearchWithMatch": {"$jsonSchema": {"properties": {"_id": {"maximum": 4}}}},
                }
            },
            {"$project": {"_id": 0, "r": {"$size": "$r"}}},
        ),
        [{"r": 5}],
        "server: jstests/core/query/json_schema/misc_validation.js",
        [{"_id": number, "n": [number - 1, number + 1]} for number in range(10)],
    ),
    *_refused(
        FILL,
        "$fill",
        ("test", 9),
        ({}, 40414),
        ({"output": {}}, 6050203),
        ({"output": {"test": "random"}}, 6050200),
        ({"output": {"test": {"method": "locf", "second": "locf"}}}, 40415),
    ),
    *_refused(
        DENSIFY,
        "$densify",
        (_range(), 40414),
        ({**_range(bounds="full"), "field": 1.0}, 14),
        (_range(bounds=[NEW_YEAR], unit="second"), 5733403),
        ({"field": "a", "range": {"step": -1.0, "bounds": [0, 1]}}, 5733401),
        (_range(bounds="partition"), 5733408),
        (_range(bounds=[2, 1]), 5733402),
        (_range(bounds=[1, NEW_YEAR]), 5733406),
    ),
    *_refused(
        FACET,
        "$facet",
        ({"x": [{"$facet": {"y": []}}]}, 40600),
        ({"x": [{"$unionWith": {"coll": "others", "pipeline": [{"$facet": {"y": [{"$match": {}}]}}]}}]}, 40600),
    ),
    *_refused(FACETS, "$facet", ({}, 40169), ({"x": 1}, 40170), ({"x": [1]}, 40171)),
    *_refused(
        WINDOW,
        "$setWindowFields",
        ("invalid", 9),
        ({"sortBy": "invalid"}, 14),
        ({"partitionBy": {"$notAnOperator": 1}, "output": {}}, 168),
        ({"sortBy": {"t": 1}, "output": {"v": {"$sum": "$a", "window": {"documents": [1, -1]}}}}, 5339900),
        ({"sortBy": {"t": 1}, "output": {"v": {"$sum": "$a", "window": {"range": ["current", -1]}}}}, 5339900),
        ({"output": {"v": {"$mergeObjects": "$a"}}}, 9),
        ({"output": {"a": {"$sum": 1}, "a.b": {"$sum": 1}}}, 6307900),
    ),
    *_refused(UNION, "$unionWith", ({"coll": "others", "pipeline": [{"$changeStream": {}}]}, 31441)),
    *_refused(DOCUMENTS, "$documents", ([{"a": 1}], 73)),
    *_refused(DOCUMENTS, "$unionWith", ({"pipeline": [{"$project": {"a": 1}}]}, 9)),
    Case(
        "$documents after another stage",
        ONE,
        aggregate({"$project": {"a": 1}}, {"$documents": [{"a": 1}]}),
        Error(40602),
        DOCUMENTS,
    ),
    Case(
        "$documents of a database",
        [],
        lambda collection: list(collection.database.aggregate([{"$documents": [{"a": 1}, {"a": 2}]}])),
        [{"a": 1}, {"a": 2}],
        DOCUMENTS,
    ),
    Case(
        "$documents of numbers",
        [],
        lambda collection: list(collection.database.aggregate([{"$documents": [1, 2]}])),
        Error(40228),
        DOCUMENTS,
    ),
    Case(
        "$lookup in $documents",
        [{"_id": 0}, {"_id": 1}],
        aggregate(
            {"$lookup": {"localField": "_id", "foreignField": "x", "pipeline": [{"$documents": [{"x": 1}]}], "as": "r"}}
        ),
        [{"_id": 0, "r": []}, {"_id": 1, "r": [{"x": 1}]}],
        DOCUMENTS,
    ),
    *_refused(SAMPLE, "$sample", (1, 28745), ({"size": "x"}, 28746), ({"size": -1}, 28747), ({}, 28749)),
    *_refused(
        UNWIND,
        "$unwind",
        (1, 15981),
        ({}, 28812),
        ("a", 28818),
        ({"path": "$a", "includeArrayIndex": "$x"}, 28822),
        ({"path": "$a", "x": 1}, 28811),
    ),
    *_refused(
        "server: src/mongo/db/pipeline/document_source_count.cpp", "$count", (1, 40156), ("", 40157), ("a.b", 40160)
    ),
    *_refused("server: src/mongo/db/pipeline/document_source_group.cpp", "$group", ({"a": {"$sum": 1}}, 15955)),
    *_refused(
        ON,
        "$merge",
        ({"into": "others", "on": 3.14}, 51186),
        ({"into": "others", "on": []}, 51187),
        ({"into": "others", "on": ["hashed", 1]}, 51134),
    ),
    Case(
        "$merge without the field that it merges on",
        ONE,
        after(_unique_others, aggregate({"$merge": {"into": "others", "on": "z"}})),
        Error(51132),
        ON,
        TARGET[:1],
    ),
    Case(
        "$merge on an array",
        [{"_id": 1, "z": [1, 2]}],
        after(_unique_others, aggregate({"$merge": {"into": "others", "on": "z"}})),
        Error(51185),
        ON,
        TARGET[:1],
    ),
    Case(
        "$merge where nothing matches, and that fails",
        SOURCE,
        aggregate({"$merge": {"into": "others", "whenNotMatched": "fail"}}),
        Error(13113),
        "server: jstests/aggregation/sources/merge/mode_merge_fail.js",
        TARGET,
    ),
    _merged(
        [{"_id": 1, "b": 1, "a": 1}, {"_id": 3, "b": 3, "a": 3}],
        "server: jstests/aggregation/sources/merge/mode_merge_fail.js",
        whenMatched="merge",
        whenNotMatched="fail",
    ),
    _merged([{"_id": 1, "b": 1}, {"_id": 2, "a": 2}, {"_id": 3, "b": 3}], whenMatched="keepExisting"),
    _merged([{"_id": 1, "a": 1}, {"_id": 3, "a": 3}], whenMatched="replace", whenNotMatched="discard"),
    _merged(
        [{"_id": 1, "b": 1, "s": 2}, {"_id": 3, "b": 3, "s": 6}],
        whenMatched=[{"$set": {"s": {"$add": ["$b", "$$new.a"]}}}],
        whenNotMatched="discard",
    ),
    Case(
        "$lookup by a field and a pipeline",
        [{"_id": 1, "a": 1}],
        aggregate(
            {
                "$lookup": {
                    "from": "others",
                    "localField": "a",
                    "foreignField": "a",
                    "let": {"low": 2},
                    "pipeline": [{"$match": {"$expr": {"$gte": ["$x", "$$low"]}}}, {"$project": {"_id": 0, "x": 1}}],
                    "as": "r",
                }
            }
        ),
        [{"_id": 1, "a": 1, "r": [{"x": 2}, {"x": 3}]}],
        LOOKUP,
        [
            {"_id": 1, "a": 1, "x": 1},
            {"_id": 2, "a": 1, "x": 2},
            {"_id": 3, "a": 2, "x": 2},
            {"_id": 4, "a": 1, "x": 3},
        ],
    ),
]
