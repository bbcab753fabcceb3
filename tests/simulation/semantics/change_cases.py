"""Updates: by operators, by pipelines, by upserts and by hints."""

from __future__ import annotations

from typing import Any

from bson import Decimal128, Int64, Regex

from .calls import after, command, stored
from .cases import Case, Error, update
from .refusals import QUERY, SPARSE, WRITE, by_name, changed, each, indexed, write_code

RANKS = [{"_id": place, "name": "Jane", "ranking": place} for place in range(4)]
BY_SORT = f"{QUERY}/update/updateOne_sort.js"
PUSHED = f"{QUERY}/push/push_sort.js"
POPPED = f"{QUERY}/update/update_modifier_pop.js"
BIT = f"{QUERY}/update/update_bit_examples.js"
ANDS = f"{QUERY}/update/upsert_and.js"
FOLDED = f"{WRITE}/update/collation_update.js"
HINTED = f"{QUERY}/update/update_hint.js"
MULTIPLY = "manual: reference/operator/update/mul"
RENAME = "manual: reference/operator/update/rename"
NUMERIC = {"locale": "en_US", "numericOrdering": True}


def _applied(document: Any, change: Any, expected: Any, source: str, filter: Any = None, **options: Any) -> Case:
    name = f"{change!r} of {document!r} matched by {filter!r}"[:150]
    return Case(name, [document] if document else [], update(filter or {}, change, **options), expected, source)


def _upserted(filter: Any, change: Any, expected: Any, source: str) -> Case:
    def call(collection: Any) -> Any:
        return by_name(update(filter, change, upsert=True)(collection))

    return Case(f"upsert {change!r} where {filter!r}"[:120], [], call, expected, source)


UPDATES = [
    _applied(
        {"_id": 2, "a": [0]},
        {"$bit": {"a.9": {"or": 0}, "a.10": {"or": 0}}},
        {"_id": 2, "a": [0, None, None, None, None, None, None, None, None, 0, 0]},
        BIT,
    ),
    _applied({"_id": 1, "a": 2}, {"$bit": {"a": {}}}, Error(2), BIT),
    _applied({"_id": 1, "a": 2}, {"$mul": {"a": 1.1}}, {"_id": 1, "a": 2.2}, f"{QUERY}/update/update_mul_examples.js"),
    _applied(
        {"_id": 1, "price": Decimal128("10.99"), "qty": 25},
        {"$mul": {"price": Decimal128("1.25"), "qty": 2}},
        {"_id": 1, "price": Decimal128("13.7375"), "qty": 50},
        MULTIPLY,
    ),
    _applied({"_id": 2}, {"$mul": {"price": Int64(100)}}, {"_id": 2, "price": Int64(0)}, MULTIPLY),
    _applied(
        {"_id": 7, "y": [{"a": 2}, {"a": 6}, {"a": [9, 1, 1]}]},
        {"$max": {"y.$.a": 7}},
        {"_id": 7, "y": [{"a": 2}, {"a": 7}, {"a": [9, 1, 1]}]},
        f"{QUERY}/update/update_min_max_examples.js",
        {"_id": 7, "y.a": 6},
    ),
    _applied({"_id": 0}, {"$pop": {"a": {"b": 1}}}, Error(9), POPPED),
    _applied(
        {"_id": 0, "a": [{"b": [1, 2, 3]}, {"b": [4, 5, 6]}]},
        {"$pop": {"a.$.b": 1}},
        {"_id": 0, "a": [{"b": [1, 2, 3]}, {"b": [4, 5]}]},
        POPPED,
        {"_id": 0, "a.b": 5},
    ),
    _applied(
        {"_id": 0, "a": [{"b": [1, 2]}, {"b": [4, 5]}, {"b": [2, 3]}]},
        {"$pop": {"a.$[i].b": -1}},
        {"_id": 0, "a": [{"b": [2]}, {"b": [4, 5]}, {"b": [3]}]},
        POPPED,
        array_filters=[{"i.b": 2}],
    ),
    _applied(
        {"_id": 4, "x": [{"a": 1}, {"a": 3}]},
        {"$push": {"x": {"$each": [{"a": 2}], "$slice": -2, "$sort": {"a": -1}}}},
        {"_id": 4, "x": [{"a": 2}, {"a": 1}]},
        PUSHED,
    ),
    _applied(
        {"_id": 8, "x": [{"a": 1}]},
        {"$push": {"x": {"$sort": {"a": -1}}}},
        {"_id": 8, "x": [{"a": 1}, {"$sort": {"a": -1}}]},
        PUSHED,
    ),
    _applied(
        {"_id": 100, "x": [{"a": 1}]},
        {"$push": {"x": {"$each": [{"a": 2}], "$slice": -2.1, "$sort": {"a": 1}}}},
        Error(2),
        PUSHED,
    ),
    _applied(
        {"_id": 1, "scores": [50, 60, 70, 100]},
        {"$push": {"scores": {"$each": [20, 30], "$position": 2}}},
        {"_id": 1, "scores": [50, 60, 20, 30, 70, 100]},
        "manual: reference/operator/update/position",
    ),
    _applied({"_id": 1, "a": 1, "b": 2}, {"$rename": {"a": "b"}}, {"_id": 1, "b": 1}, RENAME),
    _applied(
        {"_id": 0, "a": [{"b": [0, 1]}]},
        {"$set": {"a.$.b.1": 2}},
        {"_id": 0, "a": [{"b": [0, 2]}]},
        f"{QUERY}/update/update_array_offset_positional.js",
        {"_id": 0, "a.b.1": 1},
    ),
    _applied(
        {"_id": 1, "arr": [{"a": "z", "b": 1}, {"a": "abc", "b": 2}, {"a": "lmn", "b": 3}]},
        {"$inc": {"arr.$.b": 2}},
        {"_id": 1, "arr": [{"a": "z", "b": 1}, {"a": "abc", "b": 2}, {"a": "lmn", "b": 5}]},
        f"{QUERY}/update/update_positional_no_array_elem.js",
        {"arr.a": Regex("l")},
    ),
    _applied({"_id": 1, "a": 1}, {"$set": {"_id": 2}}, Error(66), f"{QUERY}/update/update_find_and_modify_id.js"),
    _upserted(
        {"_id": 1, "$and": [{"c": 1}, {"d": 1}], "a": 12},
        {"$inc": {"y": 1}},
        {"_id": 1, "a": 12, "c": 1, "d": 1, "y": 1},
        ANDS,
    ),
    _upserted(
        {"$and": [{"c": 1}, {"d": 1}], "$or": [{"x": 1}, {"x": 2}]},
        {"$setOnInsert": {"_id": 1}},
        {"_id": 1, "c": 1, "d": 1},
        ANDS,
    ),
    _upserted({"c": 2, "$and": [{"c": 1}, {"d": 1}]}, {"$setOnInsert": {"_id": 1}}, Error(54), ANDS),
    _upserted(
        {"_id": 1},
        {"$addToSet": {"a": {"$each": [1, 2, 1, 2]}}},
        {"_id": 1, "a": [1, 2]},
        f"{QUERY}/update/update_addToSet.js",
    ),
    Case(
        "an update of the first by a sort",
        RANKS,
        after(
            lambda collection: collection.update_one(
                {"name": "Jane"}, {"$set": {"ranking": 9}}, sort=[("ranking", -1)]
            ),
            each("ranking", stored),
        ),
        [0, 1, 2, 9],
        BY_SORT,
    ),
    Case(
        "an update by a sort of another direction",
        RANKS,
        write_code("update", updates=[{"q": {}, "u": {"$set": {"ranking": 100}}, "sort": {"ranking": 50}}]),
        15975,
        BY_SORT,
    ),
    Case(
        "an update of many by a sort",
        RANKS,
        write_code("update", updates=[{"q": {}, "u": {"$set": {"a": 1}}, "multi": True, "sort": {"a": -1}}]),
        9,
        BY_SORT,
    ),
    Case(
        "$pull with numbers in strings in their order",
        [{"_id": 1, "a": ["124", "1234"]}],
        changed({}, {"$pull": {"a": {"$lt": "1234"}}}, collation=NUMERIC),
        [{"_id": 1, "a": ["1234"]}],
        FOLDED,
    ),
    Case(
        "an update by an index that has only some documents",
        SPARSE,
        indexed(
            {"s": 1},
            command(
                "update",
                of=lambda reply: reply["n"],
                updates=[{"q": {}, "u": {"$set": {"s": 1}}, "hint": {"s": 1}, "multi": True}],
            ),
            sparse=True,
        ),
        2,
        HINTED,
    ),
]


CASES = [*UPDATES]
