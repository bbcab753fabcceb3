"""Random documents and calls."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from typing import Any

from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp

from gmongo.errors import OperationFailure

from .notation import to_json

REFUSED = {"code": 115}

FIELDS = ("a", "b", "c", "a.b", "a.c", "b.0", "a.b.c")
SCALARS = [
    None,
    True,
    False,
    0,
    1,
    2,
    -3,
    1.0,
    2.5,
    float("nan"),
    Int64(1),
    Int64(2**40),
    Decimal128("1"),
    Decimal128("2.5"),
    "",
    "a",
    "b",
    "ab",
    "Ab",
    "é",
    "5",
    datetime.datetime(2020, 1, 1),
    datetime.datetime(2021, 6, 30, 12),
    ObjectId("0123456789abcdef01234567"),
    Timestamp(1, 1),
    Binary(b"a"),
    Regex("^a"),
]
_COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
_UNARY = (
    "$abs",
    "$ceil",
    "$toLower",
    "$toUpper",
    "$toString",
    "$toInt",
    "$toBool",
    "$type",
    "$isArray",
    "$size",
    "$not",
    "$year",
    "$week",
    "$dayOfWeek",
    "$reverseArray",
    "$first",
    "$last",
    "$strLenCP",
    "$isNumber",
    "$sum",
    "$avg",
    "$max",
    "$objectToArray",
    "$anyElementTrue",
    "$toDouble",
    "$sqrt",
)
_BINARY = (
    *_COMPARISONS,
    "$cmp",
    "$add",
    "$subtract",
    "$multiply",
    "$divide",
    "$mod",
    "$pow",
    "$concat",
    "$in",
    "$arrayElemAt",
    "$setUnion",
    "$setIntersection",
    "$setDifference",
    "$ifNull",
    "$and",
    "$or",
    "$slice",
    "$split",
    "$indexOfArray",
    "$concatArrays",
    "$mergeObjects",
    "$indexOfCP",
    "$max",
    "$min",
    "$range",
    "$strcasecmp",
)


@dataclass(frozen=True)
class Call:
    """A call.

    :param kind: ``find``, ``sort``, ``update``, ``expression``, ``group`` or ``distinct``.
    :param operand: what it is called with.
    """

    kind: str
    operand: Any


def value(chance: random.Random, depth: int = 2) -> Any:
    """A random value."""
    kind = chance.random()
    if depth and kind < 0.2:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if depth and kind < 0.4:
        return {name: value(chance, depth - 1) for name in chance.sample("abc", chance.randrange(1, 3))}
    return chance.choice(SCALARS)


def documents(chance: random.Random) -> list[dict[str, Any]]:
    """Random documents."""
    return [
        {"_id": number, **{name: value(chance) for name in chance.sample("abc", chance.randrange(4))}}
        for number in range(chance.randrange(1, 9))
    ]


def query(chance: random.Random, depth: int = 1) -> Any:
    """A random filter."""
    if depth and chance.random() < 0.2:
        return {chance.choice(("$and", "$or", "$nor")): [query(chance, depth - 1) for _ in range(2)]}
    if chance.random() < 0.1:
        return {"$expr": expression(chance, 2)}
    return {path: condition(chance) for path in chance.sample(FIELDS, chance.choice((1, 1, 2)))}


def condition(chance: random.Random, depth: int = 1) -> Any:
    """A random condition on a field."""
    kind = chance.randrange(10)
    if kind < 2:
        return value(chance)
    if kind < 5:
        return {name: value(chance, 1) for name in chance.sample(_COMPARISONS, chance.choice((1, 1, 2)))}
    if kind == 5:
        return {chance.choice(("$in", "$nin", "$all")): [value(chance, 1) for _ in range(chance.randrange(3))]}
    if kind == 6 and depth:
        return {"$not": {"$gt": value(chance, 0)}}
    if kind == 7 and depth:
        return {"$elemMatch": condition(chance, 0) if chance.random() < 0.5 else {"b": condition(chance, 0)}}
    return chance.choice(
        [
            {"$exists": True},
            {"$exists": False},
            {"$size": 1},
            {"$type": "number"},
            {"$mod": [2, 1]},
            {"$regex": "^a"},
            {"$regex": "b$", "$options": "i"},
            {"$bitsAllSet": 1},
            {"$type": "array"},
        ]
    )


def expression(chance: random.Random, depth: int) -> Any:
    """A random expression."""
    if not depth or chance.random() < 0.25:
        return chance.choice([f"${chance.choice('abc')}", "$a.b", {"$literal": value(chance, 1)}, "$none"])
    kind = chance.random()
    if kind < 0.4:
        return {chance.choice(_UNARY): expression(chance, depth - 1)}
    if kind < 0.9:
        return {chance.choice(_BINARY): [expression(chance, depth - 1) for _ in range(2)]}
    return {"$cond": [expression(chance, depth - 1) for _ in range(3)]}


def modification(chance: random.Random) -> Any:
    """A random update."""
    name = chance.choice(
        ("$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull", "$pop", "$rename")
    )
    path = chance.choice(FIELDS)
    operands = {
        "$inc": chance.choice([1, 2.5, Int64(5)]),
        "$mul": 2,
        "$pop": chance.choice([1, -1]),
        "$rename": "d",
        "$pull": condition(chance, 0),
    }
    return {name: {path: operands.get(name, value(chance, 1))}}


def random_call(chance: random.Random) -> Call:
    """A random call."""
    kind = chance.choice(("find", "find", "sort", "update", "expression", "expression", "group", "distinct"))
    make = {
        "find": lambda: query(chance),
        "sort": lambda: {path: chance.choice((1, -1)) for path in chance.sample(FIELDS, chance.choice((1, 2)))},
        "update": lambda: (query(chance, 0), modification(chance)),
        "expression": lambda: expression(chance, 3),
        "group": lambda: expression(chance, 1),
        "distinct": lambda: chance.choice(FIELDS),
    }
    return Call(kind, make[kind]())


def answer(database: Any, stored: list[dict[str, Any]], call: Call) -> Any:
    """Return the answer of a server in the notation of the data files; results without an order are sorted."""
    collection = database.calls
    collection.delete_many({})
    collection.insert_many([dict(document) for document in stored])
    try:
        return to_json(_RUN[call.kind](collection, call.operand))
    except OperationFailure as error:
        return {"code": error.code}


def _sort(collection: Any, operand: Any) -> Any:
    return [document["_id"] for document in collection.find({}, sort=[*operand.items(), ("_id", 1)])]


def _update(collection: Any, operand: Any) -> Any:
    found = collection.update_many(*operand)
    return found.matched_count, found.modified_count, list(collection.find(sort=[("_id", 1)]))


def _expression(collection: Any, operand: Any) -> Any:
    return list(collection.aggregate([{"$sort": {"_id": 1}}, {"$project": {"r": operand}}]))


def _group(collection: Any, operand: Any) -> Any:
    stages = [{"$group": {"_id": operand, "n": {"$push": "$_id"}, "m": {"$max": "$a"}}}, {"$sort": {"n": 1}}]
    return list(collection.aggregate(stages))


_RUN = {
    "find": lambda collection, operand: sorted(document["_id"] for document in collection.find(operand)),
    "sort": _sort,
    "update": _update,
    "expression": _expression,
    "group": _group,
    "distinct": lambda collection, operand: sorted(map(repr, collection.distinct(operand))),
}
