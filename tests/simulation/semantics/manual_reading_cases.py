"""Reading, as the manual describes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bson import MaxKey, MinKey, ObjectId, Regex, Timestamp

from .calls import after
from .cases import (
    Case,
    find,
    project,
)
from .manual_calls import date, insert, made, page, plainly, refused

_BIRDS = [
    {"_id": 1, "t": "black bird"},
    {"_id": 2, "t": "black-bird"},
    {"_id": 3, "t": "blackbird"},
    {"_id": 4, "t": "blackbirds"},
]


_CAFES = [{"_id": 1, "c": "cafe"}, {"_id": 2, "c": "café"}, {"_id": 3, "c": "Cafe"}, {"_id": 4, "c": "CAFÉ"}]


def _found(filter: Any, **options: Any) -> Callable[[Any], Any]:
    """The ids that a find returns, in their order."""
    return find(filter, sort=[("_id", 1)], **options)


CASES = [
    Case(
        "values of all types are sorted by the order of their types",
        [
            {"_id": "date", "v": date(2020, 1, 1)},
            {"_id": "regex", "v": Regex("a")},
            {"_id": "text", "v": "a"},
            {"_id": "max", "v": MaxKey()},
            {"_id": "bool", "v": False},
            {"_id": "null", "v": None},
            {"_id": "id", "v": ObjectId("0123456789abcdef01234567")},
            {"_id": "number", "v": 5},
            {"_id": "stamp", "v": Timestamp(1, 1)},
            {"_id": "document", "v": {"a": 1}},
            {"_id": "bytes", "v": b"a"},
            {"_id": "min", "v": MinKey()},
        ],
        find({}, sort=[("v", 1)]),
        ["min", "null", "number", "text", "document", "bytes", "id", "bool", "date", "stamp", "regex", "max"],
        page("reference/bson-type-comparison-order"),
    ),
    Case(
        "arrays are sorted by their least element, and downwards by their greatest",
        [{"_id": 1, "a": [3, 9]}, {"_id": 2, "a": 5}, {"_id": 3, "a": [1, 6]}, {"_id": 4, "a": [4]}],
        lambda c: [[d["_id"] for d in c.find({}, sort=[("a", way)])] for way in (1, -1)],
        [[3, 1, 4, 2], [1, 3, 2, 4]],
        page("reference/bson-type-comparison-order"),
    ),
    Case(
        "an empty array is sorted before null",
        [{"_id": 1, "a": None}, {"_id": 2, "a": []}, {"_id": 3, "a": -5}],
        find({}, sort=[("a", 1)]),
        [2, 1, 3],
        page("reference/bson-type-comparison-order"),
    ),
    Case(
        "null is equal to what is missing, its type is not",
        [{"_id": 1, "a": None}, {"_id": 2}, {"_id": 3, "a": 0}],
        lambda c: [_found(filter)(c) for filter in ({"a": None}, {"a": {"$type": 10}}, {"a": {"$exists": False}})],
        [[1, 2], [1], [2]],
        page("tutorial/query-for-null-fields"),
    ),
    Case(
        "what is missing differs from any value",
        [{"_id": 1, "q": 20}, {"_id": 2}, {"_id": 3, "q": None}, {"_id": 4, "q": [20, 5]}],
        lambda c: [_found({"q": {"$ne": 20}})(c), _found({"q": {"$nin": [20, None]}})(c)],
        [[2, 3], []],
        page("reference/operator/query/nin"),
    ),
    Case(
        "a negated comparison finds what lacks the field",
        [{"_id": 1, "price": 2.5}, {"_id": 2, "price": 1.99}, {"_id": 3}, {"_id": 4, "price": "x"}],
        _found({"price": {"$not": {"$gt": 1.99}}}),
        [2, 3, 4],
        page("reference/operator/query/not"),
    ),
    Case(
        "conditions on elements of an array are met by one or by several",
        [{"_id": 1, "r": [82, 85, 88]}, {"_id": 2, "r": [75, 88, 89]}, {"_id": 3, "r": [70, 90]}],
        lambda c: [
            _found({"r": {"$elemMatch": {"$gte": 80, "$lt": 85}}})(c),
            _found({"r": {"$gte": 80, "$lt": 85}})(c),
        ],
        [[1], [1, 2, 3]],
        page("reference/operator/query/elemMatch"),
    ),
    Case(
        "all listed values are in the array, or are the one value",
        [{"_id": 1, "t": ["a", "b", "c"]}, {"_id": 2, "t": ["a"]}, {"_id": 3, "t": "a"}, {"_id": 4, "t": ["b", "a"]}],
        lambda c: [_found({"t": {"$all": ["a", "b"]}})(c), _found({"t": {"$all": ["a"]}})(c)],
        [[1, 4], [1, 2, 3, 4]],
        page("reference/operator/query/all"),
    ),
    Case(
        "an embedded document is equal in its order of fields only",
        [{"_id": 1, "s": {"h": 14, "w": 21}}, {"_id": 2, "s": {"w": 21, "h": 14}}, {"_id": 3, "s": {"h": 14}}],
        lambda c: [_found({"s": {"h": 14, "w": 21}})(c), _found({"s.h": 14, "s.w": 21})(c)],
        [[1], [1, 2]],
        page("tutorial/query-embedded-documents"),
    ),
    Case(
        "an array is equal as a whole or holds the array",
        [{"_id": 1, "t": ["x", "y"]}, {"_id": 2, "t": ["y", "x"]}, {"_id": 3, "t": [["x", "y"], "z"]}],
        _found({"t": ["x", "y"]}),
        [1, 3],
        page("reference/operator/query/eq"),
    ),
    Case(
        "a comparison finds values of its own type",
        [
            {"_id": 1, "a": 10},
            {"_id": 2, "a": "10"},
            {"_id": 3, "a": None},
            {"_id": 4, "a": 4.5},
            {"_id": 5, "a": True},
        ],
        lambda c: [_found({"a": {"$gte": 4}})(c), _found({"a": {"$lt": "2"}})(c)],
        [[1, 4], [2]],
        page("reference/operator/query/gte"),
    ),
    Case(
        "bits are tested by their positions",
        [{"_id": 1, "a": 54}, {"_id": 2, "a": 20}, {"_id": 3, "a": 20.0}, {"_id": 4, "a": "54"}],
        lambda c: [
            _found({"a": {"$bitsAllSet": [1, 5]}})(c),
            _found({"a": {"$bitsAnySet": [1, 2]}})(c),
            _found({"a": {"$bitsAllClear": 35}})(c),
            _found({"a": {"$bitsAnyClear": [1, 5]}})(c),
        ],
        [[1], [1, 2, 3], [2, 3], [2, 3]],
        page("reference/operator/query/bitsAllSet"),
    ),
    Case(
        "none of several conditions holds",
        [{"_id": 1, "p": 1.99, "s": True}, {"_id": 2, "p": 2, "s": False}, {"_id": 3, "s": False}, {"_id": 4}],
        _found({"$nor": [{"p": 1.99}, {"s": True}, {"p": {"$exists": False}}]}),
        [2],
        page("reference/operator/query/nor"),
    ),
    Case(
        "a pattern matches the starts of lines, in any case of letters",
        [{"_id": 1, "d": "Single LINE"}, {"_id": 2, "d": "First\nsecond"}, {"_id": 3, "d": "no such"}],
        _found({"d": {"$regex": "^s", "$options": "im"}}),
        [1, 2],
        page("reference/operator/query/regex"),
    ),
    Case(
        "a projection slices an array from either side",
        [{"_id": 1, "a": [1, 2, 3, 4, 5]}],
        lambda c: [project({"a": {"$slice": part}})(c)["a"] for part in (2, -2, [1, 2], [-3, 2], [9, 1])],
        [[1, 2], [4, 5], [2, 3], [3, 4], []],
        page("reference/operator/projection/slice"),
    ),
    Case(
        "a projection has the first element that matches",
        [{"_id": 1, "zip": 1, "s": [{"n": "a", "age": 10}, {"n": "b", "age": 12}, {"n": "c", "age": 12}]}],
        lambda c: [
            project({"s": {"$elemMatch": {"age": 12}}})(c),
            project({"s.$": 1}, {"s.age": {"$gt": 10}})(c),
            project({"s": {"$elemMatch": {"age": 99}}})(c),
        ],
        [{"_id": 1, "s": [{"n": "b", "age": 12}]}, {"_id": 1, "s": [{"n": "b", "age": 12}]}, {"_id": 1}],
        page("reference/operator/projection/elemMatch"),
    ),
    Case(
        "a projection does not include some fields and exclude others",
        [{"_id": 1, "a": 1, "b": 2}],
        lambda c: [refused(project({"a": 1, "b": 0}))(c), project({"a": 1, "_id": 0})(c)],
        ["refused", {"a": 1}],
        page("tutorial/project-fields-from-query-results"),
    ),
    Case(
        "a projection computes fields",
        [{"_id": 1, "name": {"first": "Al", "last": "Bo"}, "n": 3}],
        plainly(project({"_id": 0, "full": {"$concat": ["$name.last", ", ", "$name.first"]}, "five": {"$literal": 5}})),
        {"five": 5, "full": "Bo, Al"},
        page("reference/method/db.collection.find"),
    ),
    Case(
        "letters of both cases, or with accents, are the same to a weaker collation",
        _CAFES,
        lambda c: [
            _found({"c": "cafe"}, collation={"locale": "en", "strength": strength})(c) for strength in (1, 2, 3)
        ],
        [[1, 2, 3, 4], [1, 3], [1]],
        page("reference/collation"),
    ),
    Case(
        "a collation of base letters may still tell their case",
        _CAFES,
        _found({"c": "cafe"}, collation={"locale": "en", "strength": 1, "caseLevel": True}),
        [1, 2],
        page("reference/collation"),
    ),
    Case(
        "numbers within texts are ordered as numbers",
        [
            {"_id": 1, "a": "16 apples"},
            {"_id": 2, "a": "84 oranges"},
            {"_id": 3, "a": "179 bananas"},
            {"_id": 4, "a": "9 figs"},
        ],
        lambda c: [
            [d["_id"] for d in c.find({}, sort=[("a", 1)])],
            [d["_id"] for d in c.find({}, sort=[("a", 1)], collation={"locale": "en", "numericOrdering": True})],
        ],
        [[1, 3, 2, 4], [4, 1, 2, 3]],
        page("reference/collation"),
    ),
    Case(
        "a collation that shifts punctuation overlooks it",
        _BIRDS,
        lambda c: [
            _found({"t": "blackbird"}, collation={"locale": "en", "alternate": "shifted"})(c),
            _found({"t": "blackbird"}, collation={"locale": "en", "alternate": "shifted", "maxVariable": "space"})(c),
            _found({"t": "blackbird"}, collation={"locale": "en", "alternate": "shifted", "strength": 4})(c),
        ],
        [[1, 2, 3], [1, 3], [3]],
        page("reference/collation"),
    ),
    Case(
        "capital letters come first where a collation says so",
        [{"_id": 1, "a": "b"}, {"_id": 2, "a": "A"}, {"_id": 3, "a": "a"}, {"_id": 4, "a": "B"}],
        lambda c: [
            [d["_id"] for d in c.find({}, sort=[("a", 1)], collation={"locale": "en", "caseFirst": first})]
            for first in ("upper", "lower")
        ],
        [[2, 3, 4, 1], [3, 2, 1, 4]],
        page("reference/collation"),
    ),
    Case(
        "a collection has the collation that it was made with",
        [],
        made(
            "collated",
            after(
                insert(*_CAFES),
                lambda c: [
                    _found({"c": "CAFE"})(c),
                    _found({"c": "CAFE"}, collation={"locale": "simple"})(c),
                    len(c.distinct("c")),
                    _found({"c": {"$regex": "^cafe$"}})(c),
                ],
            ),
            collation={"locale": "en", "strength": 2},
        ),
        [[1, 3], [], 2, [1]],
        page("reference/collation"),
    ),
]
