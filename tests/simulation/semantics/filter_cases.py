"""Filters: which documents a find selects, and which filters it refuses."""

from __future__ import annotations

from typing import Any

from bson import Decimal128, Int64, Regex

from .cases import Case, find
from .refusals import BAD_VALUE, NO_INDEX, ONE, QUERY, batch, location, refusal

NULLS = [
    {"_id": 0, "a": {}},
    {"_id": 1, "a": None},
    {"_id": 2, "a": 4},
    {"_id": 3, "a": {"b": "hi"}},
    {"_id": 4, "a": {"b": None}},
    {"_id": 5},
]
ARRAYS = [
    {"_id": 6, "a": [[]]},
    {"_id": 7, "a": []},
    {"_id": 8, "a": [{"b": 1}, {"b": 3}, {"b": "string"}]},
    {"_id": 9, "a": [{"b": None}, {"b": 3}, {"b": None}]},
    {"_id": 10, "a": [{"b": 3}, {}]},
    {"_id": 11, "a": [None, None]},
    {"_id": 12, "a": [1, "string", 4]},
    {"_id": 13, "a": [1, "string", None, 4]},
]
BITS = [{"_id": place, "a": bits} for place, bits in enumerate([0, 1, 54, 88, 255, Int64(10**18)])]
TYPES = [
    {"_id": place, "a": value}
    for place, value in enumerate([[1, 2, 3], [1, "foo", 3], [], [[]], [[[]]], 1, "foo"], start=1)
]
ALL = [
    {"_id": place, "a": value} for place, value in enumerate([[1, 2, 3], [1, 2, 4], [1, 8, 5], [], None, [2, 2], [[2]]])
]
SIZES = [
    {"_id": place, "a": value}
    for place, value in enumerate([[{"b": [1, 2, 3]}, {"b": 1}], [1, [2], [3]], [1, [2]], [[1, [1]]], [[[1]]], 1, {}])
]
MODS = [
    {"_id": 1, "a": 14.5},
    {"_id": 2, "a": 14.50001},
    {"_id": 3, "a": 15.01},
    {"_id": 4, "a": Decimal128("14.5")},
    {"_id": 5, "a": Decimal128("14.50001")},
    {"_id": 6, "a": Decimal128("15.01")},
    {"_id": 7, "a": 24},
    {"_id": 8, "a": Int64(34)},
]
SURVEY = [
    {"_id": 1, "results": [{"product": "abc", "score": 10}, {"product": "xyz", "score": 5}]},
    {"_id": 2, "results": [{"product": "abc", "score": 8}, {"product": "xyz", "score": 7}]},
    {"_id": 3, "results": [{"product": "abc", "score": 7}, {"product": "xyz", "score": 8}]},
    {"_id": 4, "results": [{"product": "abc", "score": 7}, {"product": "def", "score": 8}]},
]
INVENTORY = [
    {"_id": 1, "item": "journal", "size": {"h": 14, "w": 21, "uom": "cm"}},
    {"_id": 2, "item": "paper", "size": {"h": 8.5, "w": 11, "uom": "in"}},
    {"_id": 3, "item": "postcard", "size": {"h": 10, "w": 15.25, "uom": "cm"}},
]


def _filters(source: str, documents: list[Any], *pairs: tuple[Any, Any]) -> list[Case]:
    return [
        Case(f"find {filter!r} of {len(documents)}"[:110], documents, find(filter), expected, source)
        for filter, expected in pairs
    ]


def _no_filter(filter: Any, expected: Any, source: str) -> Case:
    return Case(f"find refuses {filter!r}"[:110], ONE, refusal(batch("find", filter=filter)), expected, source)


FIND = [
    *_filters(
        f"{QUERY}/null_query_semantics.js",
        NULLS + ARRAYS,
        ({"a": {"$eq": None}}, [1, 5, 11, 13]),
        ({"a": {"$ne": None}}, [0, 2, 3, 4, 6, 7, 8, 9, 10, 12]),
    ),
    *_filters(
        f"{QUERY}/null_query_semantics.js",
        NULLS,
        ({"a.b": {"$eq": None}}, [0, 1, 2, 4, 5]),
        ({"a": {"$nin": [None, Regex("^hi.*")]}}, [0, 2, 3, 4]),
    ),
    *_filters(
        f"{QUERY}/bittest.js",
        BITS,
        ({"a": {"$bitsAllSet": 54}}, [2, 4]),
        ({"a": {"$bitsAnyClear": [1, 4]}}, [0, 1, 3, 5]),
    ),
    *_filters(
        f"{QUERY}/type/type_array.js",
        TYPES,
        ({"a": {"$type": "number"}}, [1, 2, 6]),
        ({"a.0": {"$type": "array"}}, [4, 5]),
    ),
    *_filters(f"{QUERY}/all/all.js", ALL, ({"a": {"$all": [2]}}, [0, 1, 5]), ({"a": {"$all": []}}, [])),
    *_filters(f"{QUERY}/find/find_size.js", SIZES, ({"a": {"$size": 1}}, [3, 4])),
    *_filters(f"{QUERY}/mod/mod_special_values.js", MODS, ({"a": {"$mod": [10, 4]}}, [1, 2, 4, 5, 7, 8])),
    *_filters(
        "manual: reference/operator/query/elemMatch",
        SURVEY,
        ({"results": {"$elemMatch": {"product": "xyz", "score": {"$gte": 8}}}}, [3]),
        ({"results": {"$elemMatch": {"product": {"$ne": "xyz"}}}}, [1, 2, 3, 4]),
    ),
    *_filters(
        "manual: tutorial/query-embedded-documents",
        INVENTORY,
        ({"size": {"w": 21, "h": 14, "uom": "cm"}}, []),
    ),
    _no_filter({"a": {"$mod": [float("nan"), 1]}}, BAD_VALUE, f"{QUERY}/mod/mod_special_values.js"),
    _no_filter({"a": {"$regex": "^hello.*", "$options": "g"}}, location(51108), f"{QUERY}/regex/regex_options.js"),
    _no_filter({"$expr": {"$eq": ["$a", "$$unbound"]}}, location(17276), f"{QUERY}/expr/expr.js"),
    _no_filter({"$text": {"$search": "a"}}, NO_INDEX, "manual: reference/operator/query/text"),
]


CASES = [*FIND]
