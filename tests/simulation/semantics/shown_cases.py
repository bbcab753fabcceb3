"""Projections, sorts, collations and searches for texts."""

from __future__ import annotations

from typing import Any

from .calls import after, command
from .cases import Case, find, project
from .refusals import (
    INDEX,
    NOT_CREATED,
    ONE,
    QUERY,
    batch,
    each,
    indexed,
    listed_collections,
    location,
    make,
    make_index,
    piped,
    refusal,
)


def _projected(document: Any, projection: Any, expected: Any, source: str) -> Case:
    return Case(f"{projection!r} of {document!r}"[:120], [document], project(projection), expected, source)


MATCHED = f"{QUERY}/elemmatch/elemmatch_projection.js"
COMPUTED = f"{QUERY}/project/computed_projections.js"
NESTED = [[{"y": 1}, {"y": 2}], {"y": 3}, {"y": 4}, [[[{"y": 5}]]], {"y": 6}]
CASED = [{"_id": 1, "a": "A"}, {"_id": 2, "a": "B"}, {"_id": 3, "a": "b"}, {"_id": 4, "a": "a"}]
COLLATIONS = f"{QUERY}/collation/collation.js"
FOLDING = {"locale": "en_US", "strength": 2}
FRENCH = {
    "locale": "fr_CA",
    "caseLevel": False,
    "caseFirst": "off",
    "strength": 3,
    "numericOrdering": False,
    "alternate": "non-ignorable",
    "maxVariable": "punct",
    "normalization": False,
    "backwards": True,
    "version": "57.1",
}
TEXTS = [
    {"_id": 0, "a": "textual content"},
    {"_id": 1, "a": "additional content"},
    {"_id": 2, "a": "irrelevant content"},
]
SCORED = f"{INDEX}/fts/fts_score_sort.js"
SCORE = {"score": {"$meta": "textScore"}}
SORTED = f"{QUERY}/sort/sort_array.js"

SHOWN = [
    _projected(
        {"_id": 1, "x": [{"a": 1, "b": 1}, {"a": 1, "b": 2}]},
        {"x": {"$elemMatch": {"a": {"$gt": 0, "$lt": 2}}}},
        {"_id": 1, "x": [{"a": 1, "b": 1}]},
        MATCHED,
    ),
    _projected(
        {"_id": 1, "x": ["string", 123, [1, 2, 3], {"a": 1}]},
        {"x": {"$elemMatch": {}}},
        {"_id": 1, "x": [[1, 2, 3]]},
        MATCHED,
    ),
    _projected(
        {"_id": 1, "x": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]},
        {"x": {"$elemMatch": {"$elemMatch": {"$gt": 5, "$lt": 7}}}},
        {"_id": 1, "x": [[4, 5, 6]]},
        MATCHED,
    ),
    _projected(
        {"_id": 1, "x": {"a": 123}, "d": 456}, {"x": {"$elemMatch": {"$gt": 2}}, "d": 1}, {"_id": 1, "d": 456}, MATCHED
    ),
    _projected({"_id": 18, "x": NESTED}, {"foo": "$x.y"}, {"_id": 18, "foo": [3, 4, 6]}, COMPUTED),
    _projected({"_id": 18, "x": NESTED}, {"x.y": 1}, {"_id": 18, "x": NESTED}, COMPUTED),
    Case(
        "find refuses to project $abs of a string",
        [{"_id": 25, "s": "string"}],
        refusal(batch("find", projection={"abs_s": {"$abs": "$s"}})),
        location(28765),
        COMPUTED,
    ),
    Case(
        "find refuses to project unknown metadata",
        ONE,
        refusal(batch("find", projection={"score": {"$meta": "some garbage"}})),
        location(17308),
        f"{QUERY}/find/find_projection_meta_errors.js",
    ),
    Case(
        "an ascending sort takes an array's least element, whatever the filter",
        [{"_id": 0, "a": [3, 0, 1]}, {"_id": 1, "a": [8, 4, -1]}],
        find({"a": {"$gte": 2}}, sort=[("a", 1)]),
        [1, 0],
        SORTED,
    ),
    Case(
        "a sort by two paths into one array",
        [
            {"_id": 1, "x": [{"y": 1, "z": 7}, {"y": 0, "z": [8, 6]}]},
            {"_id": 0, "x": [{"y": [4, 0, 1], "z": 7}, {"y": 0, "z": 9}]},
        ],
        find({}, sort=[("x.y", 1), ("x.z", -1)]),
        [0, 1],
        SORTED,
    ),
    Case(
        "a sort by a path into an array that the filter matches elsewhere",
        [
            {"_id": 2, "a": [{"b": 1, "c": 2}, {"b": 2, "c": 3}]},
            {"_id": 0, "a": [{"b": 2, "c": 0}, {"b": 1, "c": 4}]},
            {"_id": 1, "a": [{"b": 1, "c": 5}, {"b": 2, "c": 1}]},
        ],
        find({"a.b": 1}, sort=[("a.c", 1)]),
        [0, 1, 2],
        SORTED,
    ),
    Case(
        "a sort with a collation, beside an index without",
        CASED,
        indexed(
            {"a": 1}, each("a", batch("find", sort={"a": 1}, collation={"locale": "en_US", "strength": 3})), name="a"
        ),
        ["a", "A", "b", "B"],
        COLLATIONS,
    ),
    Case(
        "count with a collation that folds case",
        [{"_id": 1, "str": "foo"}, {"_id": 2, "str": "bar"}],
        command("count", of=lambda reply: reply["n"], query={"str": "FOO"}, collation=FOLDING),
        1,
        COLLATIONS,
    ),
    Case(
        "distinct with a collation that folds case",
        [{"_id": 1, "str": "foo"}, {"_id": 2, "str": "FOO"}],
        command("distinct", of=lambda reply: len(reply["values"]), key="str", collation=FOLDING),
        1,
        COLLATIONS,
    ),
    Case(
        "a collection's collation is listed in full",
        [],
        after(
            make(collation={"locale": "fr_CA"}),
            lambda collection: listed_collections({"name": collection.name})(collection)[0]["options"],
        ),
        {"collation": FRENCH},
        COLLATIONS,
    ),
    Case(
        "create refuses a collation of another version",
        [],
        refusal(make(collation={"locale": "en", "version": "unknownVersion"})),
        [161, "IncompatibleCollationVersion"],
        COLLATIONS,
    ),
    Case(
        "a text index is not created with a collation",
        [],
        refusal(make_index({"a": "text"}, collation={"locale": "en"})),
        NOT_CREATED,
        COLLATIONS,
    ),
    Case(
        "text with a word to leave out, by its score",
        TEXTS,
        indexed(
            {"a": "text"},
            batch("find", filter={"$text": {"$search": "textual content -irrelevant"}}, projection=SCORE, sort=SCORE),
        ),
        [{"_id": 0, "a": "textual content", "score": 1.5}, {"_id": 1, "a": "additional content", "score": 0.75}],
        SCORED,
    ),
    Case("a sort by the text's score without a text", TEXTS, refusal(piped({"$sort": SCORE})), location(40218), SCORED),
]


CASES = [*SHOWN]
