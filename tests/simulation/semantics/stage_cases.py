"""Stages of pipelines."""

from __future__ import annotations

from bson import Int64

from .cases import Case, Error, aggregate


def _page(name):
    return f"manual: reference/operator/aggregation/{name}"


LOOKUP_TESTS = "server: jstests/aggregation/sources/lookup/lookup_equijoin_semantics_lib.js"
GRAPH = {"from": "others", "startWith": "$n", "connectFromField": "z", "connectToField": "n", "as": "r"}


def _joined(local, foreign, local_field="a", foreign_field="b"):
    """The ``_id`` of the documents that are joined to the first one."""
    stage = {"$lookup": {"from": "others", "localField": local_field, "foreignField": foreign_field, "as": "r"}}
    documents = [{"_id": 1, **local}]
    others = [{"_id": number, **one} for number, one in enumerate(foreign, 1)]
    return documents, aggregate(stage, {"$project": {"_id": 0, "r": "$r._id"}}), others


def _lookup(name, local, foreign, expected, local_field="a", foreign_field="b"):
    documents, call, others = _joined(local, foreign, local_field, foreign_field)
    return Case(f"$lookup: {name}", documents, call, [{"r": expected}], LOOKUP_TESTS, others)


NUMBERS = [{"_id": number, "v": value} for number, value in enumerate([5, 15, 25, 45, "x"], 1)]
MEDALS = [{"_id": 1, "g": "a", "v": 3}, {"_id": 2, "g": "a", "v": 1}, {"_id": 3, "g": "a", "v": 2}]
GAMES = [{"_id": n, "g": "ab"[n % 2], "v": v} for n, v in enumerate([9, 8, 7, 4, 5])]
AS_MANY = {"$cond": [{"$eq": ["$g", "b"]}, 1, 3]}

CASES = [
    _lookup(
        "a path through an array", {"items": [{"p": 1}, {"p": 2}]}, [{"b": 1}, {"b": 2}, {"b": 3}], [1, 2], "items.p"
    ),
    _lookup("an array does not join as null", {"items": [{"p": 1}]}, [{"k": 9}], [], "items.p", "k"),
    _lookup("missing joins null and missing", {}, [{"b": None}, {}, {"b": 1}], [1, 2]),
    _lookup("null joins null and missing", {"a": None}, [{"b": None}, {}, {"b": 1}], [1, 2]),
    _lookup("an array joins its elements", {"a": [1, 3]}, [{"b": 1}, {"b": 2}, {"b": [3]}], [1, 3]),
    _lookup(
        "a foreign path through an array",
        {"a": 1},
        [{"b": [{"c": 1}, {"c": 2}]}, {"b": {"c": 1}}, {"b": [1]}],
        [1, 2],
        "a",
        "b.c",
    ),
    _lookup("numbers of different types", {"a": 1}, [{"b": 1.0}, {"b": Int64(1)}, {"b": "1"}], [1, 2]),
    Case(
        "$lookup with a pipeline",
        [{"_id": 1, "a": 2}],
        aggregate(
            {
                "$lookup": {
                    "from": "others",
                    "let": {"x": "$a"},
                    "pipeline": [{"$match": {"$expr": {"$gte": ["$b", "$$x"]}}}, {"$project": {"_id": 0}}],
                    "as": "r",
                }
            }
        ),
        [{"_id": 1, "a": 2, "r": [{"b": 2}, {"b": 3}]}],
        _page("lookup"),
        [{"b": 1}, {"b": 2}, {"b": 3}],
    ),
    Case(
        "$lookup without 'as'",
        [],
        aggregate({"$lookup": {"from": "o", "localField": "a", "foreignField": "b"}}),
        Error(9),
        "server: src/mongo/db/pipeline/document_source_lookup.cpp",
    ),
    Case(
        "$graphLookup to an array",
        [{"_id": 1, "n": "A"}],
        aggregate({"$graphLookup": GRAPH}, {"$project": {"r": "$r._id"}}),
        [{"_id": 1, "r": [1]}],
        _page("graphLookup"),
        [{"_id": 1, "n": ["A"]}, {"_id": 2}],
    ),
    Case(
        "$graphLookup from a missing field",
        [{"_id": 1, "n": "A"}],
        aggregate({"$graphLookup": GRAPH}, {"$project": {"r": "$r._id"}}),
        [{"_id": 1, "r": [1]}],
        "server: src/mongo/db/pipeline/document_source_graph_lookup.cpp",
        [{"_id": 1, "n": "A"}, {"_id": 2}],
    ),
    Case(
        "$graphLookup from a path through an array",
        [{"_id": 1, "n": "A"}],
        aggregate(
            {"$graphLookup": {**GRAPH, "connectFromField": "to.n", "depthField": "d"}},
            {"$unwind": "$r"},
            {"$project": {"_id": 0, "i": "$r._id", "d": "$r.d"}},
            {"$sort": {"i": 1}},
        ),
        [{"i": 1, "d": Int64(0)}, {"i": 2, "d": Int64(1)}, {"i": 3, "d": Int64(1)}],
        _page("graphLookup"),
        [{"_id": 1, "n": "A", "to": [{"n": "B"}, {"n": "C"}]}, {"_id": 2, "n": "B"}, {"_id": 3, "n": "C"}],
    ),
    Case(
        "$bucket begins with _id",
        NUMBERS,
        aggregate({"$bucket": {"groupBy": "$v", "boundaries": [0, 20, 50], "default": "other"}}),
        [{"_id": 0, "count": 2}, {"_id": 20, "count": 2}, {"_id": "other", "count": 1}],
        _page("bucket"),
    ),
    Case(
        "$bucket without a place",
        NUMBERS,
        aggregate({"$bucket": {"groupBy": "$v", "boundaries": [0, 20]}}),
        Error(40066),
        _page("bucket"),
    ),
    Case(
        "$bucket of unsorted boundaries",
        [],
        aggregate({"$bucket": {"groupBy": "$v", "boundaries": [20, 0]}}),
        Error(40194),
        _page("bucket"),
    ),
    Case(
        "$unwind counts in longs",
        [{"_id": 1, "a": [7]}],
        aggregate({"$unwind": {"path": "$a", "includeArrayIndex": "i"}}),
        [{"_id": 1, "a": 7, "i": Int64(0)}],
        _page("unwind"),
    ),
    Case(
        "$unwind keeps what is empty",
        [{"_id": 1, "a": []}, {"_id": 2, "a": None}, {"_id": 3}, {"_id": 4, "a": 5}],
        aggregate({"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": True}}),
        [{"_id": 1}, {"_id": 2, "a": None}, {"_id": 3}, {"_id": 4, "a": 5}],
        _page("unwind"),
    ),
    Case(
        "$group with a dotted name",
        MEDALS,
        aggregate({"$group": {"_id": "$g", "a.b": {"$sum": 1}}}),
        Error(40235),
        "server: src/mongo/db/pipeline/document_source_group.cpp",
    ),
    Case(
        "$group of missing and null",
        [{"_id": 1}, {"_id": 2, "g": None}],
        aggregate({"$group": {"_id": "$g", "n": {"$sum": 1}}}),
        [{"_id": None, "n": 2}],
        _page("group"),
    ),
    Case(
        "$group with $topN, as many as the group says",
        GAMES,
        aggregate(
            {"$group": {"_id": {"g": "$g"}, "t": {"$topN": {"n": AS_MANY, "sortBy": {"v": -1}, "output": "$v"}}}},
            {"$sort": {"_id": 1}},
        ),
        [{"_id": {"g": "a"}, "t": [9, 7, 5]}, {"_id": {"g": "b"}, "t": [8]}],
        _page("topN"),
    ),
    Case(
        "$group with $minN, as many as the group says",
        GAMES,
        aggregate(
            {"$group": {"_id": {"g": "$g"}, "t": {"$minN": {"n": AS_MANY, "input": "$v"}}}}, {"$sort": {"_id": 1}}
        ),
        [{"_id": {"g": "a"}, "t": [5, 7, 9]}, {"_id": {"g": "b"}, "t": [4]}],
        _page("minN"),
    ),
    Case(
        "$group with $topN",
        MEDALS,
        aggregate({"$group": {"_id": "$g", "t": {"$topN": {"n": 2, "sortBy": {"v": -1}, "output": "$v"}}}}),
        [{"_id": "a", "t": [3, 2]}],
        _page("topN"),
    ),
    Case(
        "$group with $bottom",
        MEDALS,
        aggregate({"$group": {"_id": "$g", "t": {"$bottom": {"sortBy": {"v": -1}, "output": ["$v", "$_id"]}}}}),
        [{"_id": "a", "t": [1, 2]}],
        _page("bottom"),
    ),
    Case(
        "$group with $firstN, $lastN, $maxN, $minN",
        MEDALS,
        aggregate(
            {
                "$group": {
                    "_id": "$g",
                    **{name[1:]: {name: {"n": 2, "input": "$v"}} for name in ("$firstN", "$lastN", "$maxN", "$minN")},
                }
            }
        ),
        [{"_id": "a", "firstN": [3, 1], "lastN": [1, 2], "maxN": [3, 2], "minN": [1, 2]}],
        _page("firstN"),
    ),
    Case(
        "$group with $stdDevPop",
        MEDALS,
        aggregate({"$group": {"_id": None, "s": {"$stdDevSamp": "$v"}}}),
        [{"_id": None, "s": 1.0}],
        _page("stdDevSamp"),
    ),
    Case(
        "$redact",
        [{"_id": 1, "l": 1, "s": {"l": 5, "x": 1}, "t": {"l": 1, "y": 2}}],
        aggregate({"$redact": {"$cond": [{"$gt": ["$l", 3]}, "$$PRUNE", "$$DESCEND"]}}),
        [{"_id": 1, "l": 1, "t": {"l": 1, "y": 2}}],
        _page("redact"),
    ),
    Case("$sortByCount", MEDALS, aggregate({"$sortByCount": "$g"}), [{"_id": "a", "count": 3}], _page("sortByCount")),
    Case(
        "$unionWith",
        [{"_id": 1}],
        aggregate({"$unionWith": {"coll": "others", "pipeline": [{"$set": {"o": 1}}]}}),
        [{"_id": 1}, {"_id": 2, "o": 1}],
        _page("unionWith"),
        [{"_id": 2}],
    ),
    Case(
        "$facet",
        MEDALS,
        aggregate({"$facet": {"n": [{"$count": "c"}], "e": [{"$match": {"_id": 9}}]}}),
        [{"n": [{"c": 3}], "e": []}],
        _page("facet"),
    ),
    Case("$addFields of nothing", [], aggregate({"$addFields": {}}), Error(40177), _page("addFields")),
    Case("an empty sub-projection", [], aggregate({"$project": {"a": {}}}), Error(51270), _page("project")),
    Case("$count with a dollar sign", [], aggregate({"$count": "$a"}), Error(40158), _page("count")),
    Case("$unset of no names", [], aggregate({"$unset": [1]}), Error(31120), _page("unset")),
    Case(
        "$merge by a field without an index",
        [{"_id": 1, "a": 1}],
        aggregate({"$merge": {"into": "others", "on": "a"}}),
        Error(51183),
        _page("merge"),
        [{"_id": 1}],
    ),
    Case("$limit of zero", [], aggregate({"$limit": 0}), Error(15958), _page("limit")),
    Case("$sort by a string", [], aggregate({"$sort": {"a": "x"}}), Error(15974), _page("sort")),
    Case("$sort by two", [], aggregate({"$sort": {"a": 2}}), Error(15975), _page("sort")),
    Case("$match of no object", [], aggregate({"$match": 1}), Error(15959), _page("match")),
    Case(
        "$replaceRoot of a number",
        MEDALS,
        aggregate({"$replaceRoot": {"newRoot": "$v"}}),
        Error(40228),
        _page("replaceRoot"),
    ),
    Case(
        "an unknown stage",
        [],
        aggregate({"$nope": 1}),
        Error(40324),
        "server: src/mongo/db/pipeline/document_source.cpp",
    ),
    Case(
        "an unknown accumulator with nothing to group",
        [],
        aggregate({"$group": {"_id": 1, "x": {"$nope": 1}}}),
        Error(15952),
        "server: src/mongo/db/pipeline/accumulation_statement.cpp",
    ),
]
