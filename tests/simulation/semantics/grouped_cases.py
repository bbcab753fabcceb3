"""Stages that group, join and reshape."""

from __future__ import annotations

from bson import Int64

from .calls import after, command, stored
from .cases import Case, aggregate
from .refusals import NO_INDEX, ONE, SOURCES, THREE, UNPARSED, location, of, of_others, piped, refusal

POINTS = [
    {"_id": place, "at": {"type": "Point", "coordinates": [0, degrees]}} for place, degrees in enumerate([2, 0, 1])
]
SCORES = [
    {"_id": place, "player": player, "game": game, "score": score}
    for place, (player, game, score) in enumerate(
        [
            ("A", "G1", 31),
            ("B", "G1", 33),
            ("C", "G1", 99),
            ("D", "G1", 1),
            ("A", "G2", 10),
            ("B", "G2", 14),
            ("C", "G2", 66),
            ("D", "G2", 80),
        ]
    )
]
EMPLOYEES = [
    {"_id": 1, "name": "Dev"},
    {"_id": 2, "name": "Eliot", "reportsTo": "Dev"},
    {"_id": 3, "name": "Ron", "reportsTo": "Eliot"},
    {"_id": 4, "name": "Andrew", "reportsTo": "Eliot"},
    {"_id": 5, "name": "Asya", "reportsTo": "Ron"},
]
NEAR = {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "far"}
LOOKED_UP = {"from": "cases", "startWith": "$a", "connectFromField": "a", "connectToField": "b"}

CASES = [
    Case(
        "$group with $top",
        SCORES,
        aggregate(
            {"$group": {"_id": "$game", "best": {"$top": {"output": ["$player", "$score"], "sortBy": {"score": -1}}}}},
            {"$sort": {"_id": 1}},
        ),
        [{"_id": "G1", "best": ["C", 99]}, {"_id": "G2", "best": ["D", 80]}],
        "manual: reference/operator/aggregation/top",
    ),
    Case(
        "$group with $mergeObjects",
        [
            {"_id": 1, "item": "A", "quantity": {"2017Q1": 500, "2017Q2": 500}},
            {"_id": 2, "item": "A", "quantity": {"2016Q1": 400, "2017Q2": 300}},
        ],
        aggregate({"$sort": {"_id": 1}}, {"$group": {"_id": "$item", "all": {"$mergeObjects": "$quantity"}}}),
        [{"_id": "A", "all": {"2017Q1": 500, "2017Q2": 300, "2016Q1": 400}}],
        "manual: reference/operator/aggregation/mergeObjects",
    ),
    Case(
        "$group adds up, and averages, no texts",
        [{"_id": 1, "a": "x", "b": 2}, {"_id": 2, "a": "y", "b": "z"}],
        aggregate(
            {"$group": {"_id": None, "sum": {"$sum": "$a"}, "average": {"$avg": "$a"}, "some": {"$avg": "$b"}}},
            {"$project": {"_id": 0}},
        ),
        [{"sum": 0, "average": None, "some": 2.0}],
        "manual: reference/operator/aggregation/avg",
    ),
    Case(
        "$group by a document leaves out what is missing in it",
        [{"_id": 1, "x": 1, "y": 2}, {"_id": 2, "x": 1}],
        aggregate({"$group": {"_id": {"x": "$x", "y": "$y"}}}, {"$sort": {"_id": 1}}),
        [{"_id": {"x": 1}}, {"_id": {"x": 1, "y": 2}}],
        f"{SOURCES}/group/groupMissing.js",
    ),
    Case(
        "$group with each value once",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 1}, {"_id": 4}],
        lambda collection: sorted(
            aggregate({"$group": {"_id": None, "all": {"$addToSet": "$a"}}})(collection)[0]["all"]
        ),
        [1, 2],
        "manual: reference/operator/aggregation/addToSet",
    ),
    Case(
        "$group without an _id",
        ONE,
        refusal(piped({"$group": {"n": {"$sum": 1}}})),
        location(15955),
        "server: src/mongo/db/pipeline/document_source_group_base.cpp",
    ),
    Case(
        "$lookup in a collection that is not there",
        ONE,
        aggregate({"$lookup": {"from": "nowhere", "localField": "a", "foreignField": "b", "as": "all"}}),
        [{"_id": 1, "a": 1, "all": []}],
        "manual: reference/operator/aggregation/lookup",
    ),
    Case(
        "$lookup by a field of one side",
        ONE,
        refusal(piped({"$lookup": {"from": "others", "localField": "a", "as": "all"}})),
        UNPARSED,
        "server: src/mongo/db/pipeline/document_source_lookup.cpp",
    ),
    Case(
        "$unwind of one value, with no place for it",
        [{"_id": 1, "a": ["x", "y"]}, {"_id": 2, "a": "z"}, {"_id": 3}],
        aggregate({"$unwind": {"path": "$a", "includeArrayIndex": "i"}}),
        [
            {"_id": 1, "a": "x", "i": Int64(0)},
            {"_id": 1, "a": "y", "i": Int64(1)},
            {"_id": 2, "a": "z", "i": None},
        ],
        "manual: reference/operator/aggregation/unwind",
    ),
    Case(
        "$unwind of a name without a dollar",
        ONE,
        refusal(piped({"$unwind": "a"})),
        location(28818),
        "server: src/mongo/db/pipeline/document_source_unwind.cpp",
    ),
    Case(
        "$unionWith through a pipeline",
        ONE,
        aggregate(
            {"$unionWith": {"coll": "others", "pipeline": [{"$match": {"a": 3}}, {"$set": {"from": "others"}}]}},
        ),
        [{"_id": 1, "a": 1}, {"_id": 3, "a": 3, "from": "others"}],
        "manual: reference/operator/aggregation/unionWith",
        others=THREE,
    ),
    Case(
        "$sample takes no more than it is to",
        THREE,
        lambda collection: len(aggregate({"$sample": {"size": 2}})(collection)),
        2,
        "manual: reference/operator/aggregation/sample",
    ),
    Case(
        "$count of nothing",
        ONE,
        aggregate({"$match": {"a": 7}}, {"$count": "n"}),
        [],
        "manual: reference/operator/aggregation/count",
    ),
    Case(
        "$addFields to each document in an array",
        [{"_id": 1, "a": [{"x": 1}, {"x": 2}]}],
        aggregate({"$addFields": {"a.y": 0}}),
        [{"_id": 1, "a": [{"x": 1, "y": 0}, {"x": 2, "y": 0}]}],
        f"{SOURCES}/addFields/dotted_paths.js",
    ),
    Case(
        "$set takes away a field by a condition",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 0}],
        aggregate({"$set": {"a": {"$cond": [{"$eq": ["$a", 0]}, "$$REMOVE", "$a"]}}}),
        [{"_id": 1, "a": 1}, {"_id": 2}],
        "manual: reference/aggregation-variables",
    ),
    Case(
        "$replaceWith defaults for what is missing",
        [{"_id": 1, "name": "x"}, {"_id": 2, "name": "y", "email": "e"}],
        aggregate({"$replaceWith": {"$mergeObjects": [{"_id": "", "name": "", "email": ""}, "$$ROOT"]}}),
        [{"_id": 1, "name": "x", "email": ""}, {"_id": 2, "name": "y", "email": "e"}],
        "manual: reference/operator/aggregation/replaceWith",
    ),
    Case(
        "$replaceRoot by what is missing",
        ONE,
        refusal(piped({"$replaceRoot": {"newRoot": "$b"}})),
        location(40228),
        "manual: reference/operator/aggregation/replaceRoot",
    ),
    Case(
        "$denseRank leaves no gap, $documentNumber takes no ties",
        [{"_id": 1, "a": 10}, {"_id": 2, "a": 20}, {"_id": 3, "a": 10}, {"_id": 4, "a": 30}],
        of(
            aggregate(
                {
                    "$setWindowFields": {
                        "sortBy": {"a": 1},
                        "output": {"rank": {"$denseRank": {}}, "place": {"$documentNumber": {}}},
                    }
                }
            ),
            lambda found: [[int(each["rank"]), int(each["place"])] for each in found],
        ),
        [[1, 1], [1, 2], [2, 3], [3, 4]],
        "manual: reference/operator/aggregation/denseRank",
    ),
    Case(
        "$graphLookup up to the top",
        EMPLOYEES,
        of(
            aggregate(
                {"$match": {"name": "Asya"}},
                {
                    "$graphLookup": {
                        "from": "cases",
                        "startWith": "$reportsTo",
                        "connectFromField": "reportsTo",
                        "connectToField": "name",
                        "as": "above",
                    }
                },
            ),
            lambda found: sorted(each["name"] for each in found[0]["above"]),
        ),
        ["Dev", "Eliot", "Ron"],
        "manual: reference/operator/aggregation/graphLookup",
    ),
    Case(
        "$graphLookup without a field for its results",
        ONE,
        refusal(piped({"$graphLookup": LOOKED_UP})),
        location(40105),
        f"{SOURCES}/graphLookup/error.js",
    ),
    Case(
        "$merge keeps what is there",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}],
        after(
            aggregate({"$merge": {"into": "others", "whenMatched": "keepExisting", "whenNotMatched": "insert"}}),
            of_others(stored),
        ),
        [{"_id": 1, "b": 9}, {"_id": 2, "a": 2}],
        "manual: reference/operator/aggregation/merge",
        others=[{"_id": 1, "b": 9}],
    ),
    Case(
        "$merge replaces what is there, and nothing else",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}],
        after(
            aggregate({"$merge": {"into": "others", "whenMatched": "replace", "whenNotMatched": "discard"}}),
            of_others(stored),
        ),
        [{"_id": 1, "a": 1}],
        "manual: reference/operator/aggregation/merge",
        others=[{"_id": 1, "b": 9}],
    ),
    Case(
        "$geoNear without an index",
        POINTS,
        refusal(piped({"$geoNear": NEAR})),
        NO_INDEX,
        f"{SOURCES}/geonear/requires_geo_index.js",
    ),
    Case(
        "aggregate without a cursor",
        ONE,
        refusal(command("aggregate", pipeline=[])),
        UNPARSED,
        "manual: reference/command/aggregate",
    ),
    Case(
        "the most frequent tags",
        [{"_id": 1, "tags": ["a", "b"]}, {"_id": 2, "tags": ["b", "c", "b"]}, {"_id": 3, "tags": []}],
        aggregate(
            {"$unwind": "$tags"},
            {"$group": {"_id": "$tags", "n": {"$sum": 1}}},
            {"$sort": {"n": -1, "_id": 1}},
            {"$limit": 2},
        ),
        [{"_id": "b", "n": 3}, {"_id": "a", "n": 1}],
        "manual: reference/operator/aggregation/sortByCount",
    ),
    Case(
        "a page, and how many there are",
        THREE,
        aggregate(
            {"$facet": {"page": [{"$sort": {"a": -1}}, {"$skip": 1}, {"$limit": 1}], "all": [{"$count": "n"}]}},
        ),
        [{"page": [{"_id": 2, "a": 2}], "all": [{"n": 3}]}],
        "manual: reference/operator/aggregation/facet",
    ),
]
