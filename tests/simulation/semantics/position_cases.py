"""Positions and slices in projections, projections that conflict, and what ``$bucket`` and ``$bucketAuto`` refuse."""

from __future__ import annotations

from .calls import attempt
from .cases import Case, Error, aggregate, project

POSITION = "server: jstests/core/query/project/positional_projection.js"
SLICES = "server: jstests/core/query/project/slice1.js"
CONFLICTS = "server: jstests/core/query/project/projection_conflicts.js"
BUCKET = "server: src/mongo/db/pipeline/document_source_bucket.cpp"
AUTO = "server: src/mongo/db/pipeline/document_source_bucket_auto.cpp"
ONE = [{"_id": 1, "a": 1}]
DEEP = [{"b": {"c": [4, 5, 6]}}, {"b": {"c": [7, 8, 9]}}]


def _position(query, projection, document, expected):
    return Case(
        f"{projection!r} of what {query!r} found in {document!r}"[:170],
        [{"_id": 1, **document}],
        project({**projection, "_id": 0}, query),
        expected,
        POSITION,
    )


def _slice(projection, document, expected):
    return Case(
        f"{projection!r} of {document!r}"[:170],
        [{"_id": 1, **document}],
        project({**projection, "_id": 0}),
        expected,
        SLICES,
    )


def _refused(source, stage, *pairs):
    return [
        Case(f"{stage}: {specification!r}"[:170], ONE, aggregate({stage: specification}), Error(code), source)
        for specification, code in pairs
    ]


def _conflict(projection):
    """Either of two codes, as the order of the paths has it."""
    return Case(
        f"the projection {projection!r}",
        ONE,
        lambda collection: attempt(project(projection))(collection) in (31249, 31250),
        True,
        CONFLICTS,
    )


CASES: list[Case] = [
    _position({"x.a": 2}, {"x.$": 1}, {"x": [{"a": 1}, {"a": 2, "c": 3}]}, {"x": [{"a": 2, "c": 3}]}),
    _position(
        {"x.y.a": 1}, {"x.y.$": 1}, {"x": {"y": [{"a": 1, "b": 1}, {"a": 1, "b": 2}]}}, {"x": {"y": [{"a": 1, "b": 1}]}}
    ),
    _position({}, {"g.$": 1}, {"x": [{"a": 1}]}, {}),
    _position({"x": 1}, {"a.$": 1}, {"x": 1}, {}),
    _position(
        {"x": {"$gt": 0}},
        {"a.b.c.$": 1},
        {"x": [-1, 1, 2], "a": {"b": {"d": [1, 2, 3], "f": 456}, "e": 123}},
        {"a": {"b": {}}},
    ),
    _position({"x": {"$gt": 0}}, {"a.b.c.$": 1}, {"x": [-1, 1, 2], "a": {"b": {"c": 123}}}, {"a": {"b": {"c": 123}}}),
    _position(
        {"x.y.z": 1},
        {"a.b.c.$": 1},
        {"x": {"y": {"z": [0, 1, 2]}}, "a": {"b": {"c": [1, 2, 3]}}},
        {"a": {"b": {"c": [2]}}},
    ),
    _position(
        {"x.y.z": 1},
        {"a.b.c.$": 1},
        {"x": {"y": {"z": [0, 1, 2]}}, "a": [{"b": {"c": [1, 2, 3]}}, *DEEP]},
        {"a": [{"b": {"c": [4, 5, 6]}}]},
    ),
    _position({"x": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, {"x.$": 1}, {"x": [1, 2, 3]}, {"x": [2]}),
    _position(
        {"a": {"$elemMatch": {"$elemMatch": {"$eq": 3}}}},
        {"b.$": 1},
        {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]},
        {"b": [[7, 8]]},
    ),
    _position(
        {"a": {"$elemMatch": {"p": {"$elemMatch": {"$eq": 6}}}}},
        {"b.$": 1},
        {"a": [{"p": [1, 2]}, {"p": [5, 6]}], "b": [11, 12]},
        {"b": [12]},
    ),
    _position({"$and": [{"a": 1}, {"a": 2}, {"a": 3}]}, {"b.$": 1}, {"a": [1, 2, 3], "b": [4, 5, 6]}, {"b": [6]}),
    _position({"a": {"$in": [2, 3]}}, {"b.$": 1}, {"a": [1, 2, 3], "b": [4, 5, 6]}, {"b": [5]}),
    _position({"$or": [{"a": 2}, {"a": 3}]}, {"b.$": 1}, {"a": [1, 2, 3], "b": [4, 5, 6]}, {"b": [5]}),
    _position(
        {"a": {"$elemMatch": {"y": {"$type": ["array"]}}}}, {"a.$": 1}, {"a": [{"y": 1}, {"y": []}]}, {"a": [{"y": []}]}
    ),
    *[
        Case(
            f"the projection {projection!r} of what {query!r} found",
            [{"_id": 1, "x": [1], "y": [1], "b": [4, 5, 6]}],
            project(projection, query),
            Error(code),
            POSITION,
        )
        for query, projection, code in (
            ({"x": 1}, {"x.$": {"$slice": 1}}, 31271),
            ({"x": 1}, {"x.$": 1, "y": 0}, 31254),
            ({"x": 1, "y": 1}, {"x.$": 1, "y.$": 1}, 31276),
            ({}, {"x.$": 1}, 51246),
            ({"b": [4, 5, 6]}, {"x.$": 1}, 51246),
            ({"$or": [{"x": 1}, {"b": 5}]}, {"x.$": 1}, 51246),
            ({"$nor": [{"x": -1}, {"x": -2}]}, {"x.$": 1}, 51246),
            ({}, {".$": 1}, 5392900),
        )
    ],
    _slice({"a": {"$slice": [-5, 4]}}, {"a": [0, 1, -5, -4, -3, -2, -1]}, {"a": [-5, -4, -3, -2]}),
    _slice({"a": {"$slice": 3}, "b": False}, {"a": [0, 1, 2, 3], "b": 1, "c": 1}, {"a": [0, 1, 2], "c": 1}),
    _slice({"a": {"$slice": 3}, "b": True}, {"a": [0, 1, 2, 3], "b": 1, "c": 1}, {"a": [0, 1, 2], "b": 1}),
    _slice({"a": {"b": {"$slice": [1, 1]}}}, {"a": [{"b": [1, 2, 3]}]}, {"a": [{"b": [2]}]}),
    _slice({"a": {"b": {"$slice": [1, 1]}}}, {"a": [[{"b": [1, 2, 3]}]]}, {"a": [[{"b": [1, 2, 3]}]]}),
    _slice(
        {"a.b.c.d.e": {"$slice": [1, 1]}},
        {"a": [{"b": [{"c": [{"d": [{"e": [1, 2, 3]}]}]}]}]},
        {"a": [{"b": [{"c": [{"d": [{"e": [2]}]}]}]}]},
    ),
    _slice({"a": {"$slice": 1}, "d": 0}, {"a": {"c": 123}, "d": 456}, {"a": {"c": 123}}),
    _slice({"a": {"$slice": 1}, "d": 1}, {"b": {"e": 123}, "d": 456}, {"d": 456}),
    _slice(
        {"e": 1, "a.b": {"$slice": 1}},
        {"e": 123, "a": [[[{"b": [1, 2, 3], "d": 4, "f": 5}]]]},
        {"e": 123, "a": [[[{"b": [1, 2, 3]}]]]},
    ),
    *[
        _conflict(projection)
        for projection in (
            {"a.b": 1, "a": {"b": "$$REMOVE"}},
            {"a": {"b": {"c": 1}}, "a.b": 1},
            {"a": 1, "a.b": 1},
            {"a.b": 1, "a": 1},
            {"a.b": 0, "a.b.c": 0},
        )
    ],
    *_refused(
        BUCKET,
        "$bucket",
        (1, 40201),
        ({"groupBy": "a", "boundaries": [0, 1]}, 40202),
        ({"groupBy": "$a", "boundaries": 1}, 40200),
        ({"groupBy": "$a", "boundaries": ["$a", 1]}, 40191),
        ({"groupBy": "$a", "boundaries": [1]}, 40192),
        ({"groupBy": "$a", "boundaries": [1, "x"]}, 40193),
        ({"groupBy": "$a", "boundaries": [1, 1]}, 40194),
        ({"groupBy": "$a", "boundaries": [0, 1], "default": "$a"}, 40195),
        ({"groupBy": "$a", "boundaries": [0, 1], "output": 1}, 40196),
        ({"groupBy": "$a", "boundaries": [0, 1], "x": 1}, 40197),
        ({"groupBy": "$a"}, 40198),
        ({"groupBy": "$a", "boundaries": [0, 3], "default": 1}, 40199),
    ),
    *_refused(
        AUTO,
        "$bucketAuto",
        (1, 40240),
        ({"groupBy": "$a", "buckets": "x"}, 40241),
        ({"groupBy": "$a", "buckets": 1.5}, 40242),
        ({"groupBy": "$a", "buckets": -1}, 40243),
        ({"groupBy": "$a", "buckets": 1, "output": 1}, 40244),
        ({"groupBy": "$a", "buckets": 1, "x": 1}, 40245),
        ({"groupBy": "$a"}, 40246),
        ({"groupBy": "$a", "buckets": 1, "granularity": 1}, 40261),
    ),
]
