"""Two hundred further answers, over all that applications use; they need a replica set, and follow MongoDB 8.0.

The expected value of a refused command is its code and the code's name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bson import Decimal128, Int64, Regex, Timestamp

from gmongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from gmongo.errors import BulkWriteError, OperationFailure
from gmongo.read_concern import ReadConcern

from .calls import Call, after, attempt, command, made, stored
from .cases import Case, Error, aggregate, evaluate, find, project, update

QUERY = "server: jstests/core/query"
WRITE = "server: jstests/core/write"
DDL = "server: jstests/core/ddl"
CATALOG = "server: jstests/core/catalog"
INDEX = "server: jstests/core/index"
EXPRESSIONS = "server: jstests/aggregation/expressions"
SOURCES = "server: jstests/aggregation/sources"
TRANSACTIONS = "server: jstests/core/txns"
ONE = [{"_id": 1, "a": 1}]
BAD_VALUE = [2, "BadValue"]
UNPARSED = [9, "FailedToParse"]
UNAUTHORIZED = [13, "Unauthorized"]
MISMATCH = [14, "TypeMismatch"]
NO_NAMESPACE = [26, "NamespaceNotFound"]
NO_INDEX = [27, "IndexNotFound"]
NOT_CREATED = [67, "CannotCreateIndex"]
OPTIONS = [72, "InvalidOptions"]
DUPLICATE = [11000, "DuplicateKey"]


# What the calls are made of


def _refusal(call: Call) -> Call:
    """The code of a refusal, and its name; None if there is none."""

    def run(collection: Any) -> Any:
        try:
            call(collection)
        except OperationFailure as error:
            return [error.code, (error.details or {}).get("codeName")]
        return None

    return run


def _location(code: int) -> list[Any]:
    """A code without a name of its own."""
    return [code, f"Location{code}"]


def _write_code(name: str, **fields: Any) -> Call:
    """The code with which a write, or the whole command, is refused."""

    def run(collection: Any) -> Any:
        try:
            reply = collection.database.command({name: collection.name, **fields})
        except OperationFailure as error:
            return error.code
        return reply["writeErrors"][0]["code"] if reply.get("writeErrors") else None

    return run


def _batch(name: str, **fields: Any) -> Call:
    """The first batch of a command's cursor."""
    return command(name, of=lambda reply: reply["cursor"]["firstBatch"], **fields)


def _piped(*stages: Any, **fields: Any) -> Call:
    """The documents that a pipeline makes; other collections are named by strings."""
    return _batch("aggregate", pipeline=list(stages), cursor={}, **fields)


def _computed(expression: Any) -> Call:
    """The refusal of an expression."""
    return _refusal(_piped({"$project": {"r": expression}}))


def _index(key: Any, **options: Any) -> Call:
    """Creates an index; its name is as drivers make it."""
    name = options.pop("name", "_".join(f"{field}_{kind}" for field, kind in key.items()))
    return command("createIndexes", indexes=[{"key": key, "name": name, **options}])


def _indexed(key: Any, call: Call, **options: Any) -> Call:
    return after(_index(key, **options), call)


def _changed(filter: Any, change: Any, **fields: Any) -> Call:
    """The documents after an update by the command."""
    return after(command("update", updates=[{"q": filter, "u": change, **fields}]), stored)


def _admin(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command of the database ``admin``."""
    return lambda collection: of(collection.database.client.admin.command(fields))


def _database(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command that names no collection."""
    return lambda collection: of(collection.database.command(fields))


def _create(**options: Any) -> Call:
    """Makes the collection by the command, where there is none."""
    return after(lambda collection: collection.drop(), command("create", **options))


def _others(collection: Any) -> Any:
    return stored(collection.database.others)


def _names(value: Any) -> Any:
    """A document with its fields in the order of their names."""
    return dict(sorted(value.items()))


def _integers(value: Any) -> Any:
    """Numbers as plain ones, where their type is not documented."""
    return [int(each) for each in value]


def _floats(value: Any) -> Any:
    return [float(each) if each is not None else None for each in value]


def _each(field: str, call: Call, made_of: Callable[[Any], Any] = list) -> Call:
    """The values of one field of all documents."""
    return lambda collection: made_of(each.get(field) for each in call(collection))


# Filters

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
    return Case(f"find refuses {filter!r}"[:110], ONE, _refusal(_batch("find", filter=filter)), expected, source)


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
    _no_filter({"a": {"$regex": "^hello.*", "$options": "g"}}, _location(51108), f"{QUERY}/regex/regex_options.js"),
    _no_filter({"$expr": {"$eq": ["$a", "$$unbound"]}}, _location(17276), f"{QUERY}/expr/expr.js"),
    _no_filter({"$text": {"$search": "a"}}, NO_INDEX, "manual: reference/operator/query/text"),
]


# Projections, sorts, collations and text


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
        _refusal(_batch("find", projection={"abs_s": {"$abs": "$s"}})),
        _location(28765),
        COMPUTED,
    ),
    Case(
        "find refuses to project unknown metadata",
        ONE,
        _refusal(_batch("find", projection={"score": {"$meta": "some garbage"}})),
        _location(17308),
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
        _indexed(
            {"a": 1}, _each("a", _batch("find", sort={"a": 1}, collation={"locale": "en_US", "strength": 3})), name="a"
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
            _create(collation={"locale": "fr_CA"}),
            lambda collection: _listing({"name": collection.name})(collection)[0]["options"],
        ),
        {"collation": FRENCH},
        COLLATIONS,
    ),
    Case(
        "create refuses a collation of another version",
        [],
        _refusal(_create(collation={"locale": "en", "version": "unknownVersion"})),
        [161, "IncompatibleCollationVersion"],
        COLLATIONS,
    ),
    Case(
        "a text index is not created with a collation",
        [],
        _refusal(_index({"a": "text"}, collation={"locale": "en"})),
        NOT_CREATED,
        COLLATIONS,
    ),
    Case(
        "text with a word to leave out, by its score",
        TEXTS,
        _indexed(
            {"a": "text"},
            _batch("find", filter={"$text": {"$search": "textual content -irrelevant"}}, projection=SCORE, sort=SCORE),
        ),
        [{"_id": 0, "a": "textual content", "score": 1.5}, {"_id": 1, "a": "additional content", "score": 0.75}],
        SCORED,
    ),
    Case(
        "a sort by the text's score without a text", TEXTS, _refusal(_piped({"$sort": SCORE})), _location(40218), SCORED
    ),
]


# Updates

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
SPARSE = [{"_id": 1, "x": 1}, {"_id": 2, "x": 1}, {"_id": 3, "x": 1, "s": 0}, {"_id": 4, "x": 1, "s": 0}]


def _applied(document: Any, change: Any, expected: Any, source: str, filter: Any = None, **options: Any) -> Case:
    name = f"{change!r} of {document!r} matched by {filter!r}"[:150]
    return Case(name, [document] if document else [], update(filter or {}, change, **options), expected, source)


def _upserted(filter: Any, change: Any, expected: Any, source: str) -> Case:
    def call(collection: Any) -> Any:
        return _names(update(filter, change, upsert=True)(collection))

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
            _each("ranking", stored),
        ),
        [0, 1, 2, 9],
        BY_SORT,
    ),
    Case(
        "an update by a sort of another direction",
        RANKS,
        _write_code("update", updates=[{"q": {}, "u": {"$set": {"ranking": 100}}, "sort": {"ranking": 50}}]),
        15975,
        BY_SORT,
    ),
    Case(
        "an update of many by a sort",
        RANKS,
        _write_code("update", updates=[{"q": {}, "u": {"$set": {"a": 1}}, "multi": True, "sort": {"a": -1}}]),
        9,
        BY_SORT,
    ),
    Case(
        "$pull with numbers in strings in their order",
        [{"_id": 1, "a": ["124", "1234"]}],
        _changed({}, {"$pull": {"a": {"$lt": "1234"}}}, collation=NUMERIC),
        [{"_id": 1, "a": ["1234"]}],
        FOLDED,
    ),
    Case(
        "an update by an index that has only some documents",
        SPARSE,
        _indexed(
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


# Find and modify

MODIFIED = f"{WRITE}/find_and_modify/find_and_modify_hint.js"
POSITIONS = f"{WRITE}/find_and_modify/find_and_modify_server6865.js"
EMPTIED = f"{WRITE}/find_and_modify/find_and_modify_empty_update.js"
PIPED = f"{WRITE}/find_and_modify/find_and_modify_pipeline_update.js"


def _modified(name: str, documents: list[Any], fields: Any, expected: Any, source: str) -> Case:
    """The document that the command returns."""
    return Case(name, documents, command("findAndModify", of=lambda reply: reply["value"], **fields), expected, source)


MODIFY = [
    _modified(
        "findAndModify shows an element as it is afterwards",
        [{"_id": 1, "a": [{"x": 1, "y": 1}, {"x": 1, "y": 2}]}],
        {"query": {"_id": 1}, "fields": {"a": {"$elemMatch": {"x": 1}}}, "update": {"$pop": {"a": -1}}, "new": True},
        {"_id": 1, "a": [{"x": 1, "y": 2}]},
        POSITIONS,
    ),
    _modified(
        "findAndModify shows the element that matched of what it removes",
        [{"_id": 42, "a": [1, 2]}],
        {"query": {"a": 2}, "fields": {"a.$": 1}, "remove": True},
        {"_id": 42, "a": [2]},
        POSITIONS,
    ),
    _modified(
        "findAndModify with an empty document keeps the _id alone",
        [{"_id": 0, "a": 1}],
        {"query": {"a": 1}, "update": {}, "new": True},
        {"_id": 0},
        EMPTIED,
    ),
    _modified(
        "findAndModify inserts of an empty document the _id alone",
        [],
        {"query": {"_id": 0, "a": 1}, "update": {}, "upsert": True, "sort": {"a": 1}, "new": True},
        {"_id": 0},
        EMPTIED,
    ),
    _modified(
        "findAndModify with a pipeline and a sort",
        [{"_id": 0, "x": "b"}, {"_id": 1, "x": "d"}, {"_id": 2, "x": "a"}, {"_id": 3, "x": "c"}],
        {"update": [{"$set": {"foo": "bar"}}], "sort": {"x": -1}, "new": True},
        {"_id": 1, "x": "d", "foo": "bar"},
        PIPED,
    ),
    Case(
        "findAndModify refuses filters of arrays for a pipeline",
        ONE,
        _refusal(
            command("findAndModify", query={"_id": 1}, update=[{"$set": {"y": 1}}], arrayFilters=[{"i.x": 4}]),
        ),
        UNPARSED,
        PIPED,
    ),
    Case(
        "findAndModify by an index without the document inserts another",
        [{"_id": 0, "x": 2}, {"_id": 2, "x": 1, "s": 0}],
        _indexed(
            {"s": 1},
            command(
                "findAndModify",
                of=lambda reply: [_names(reply["lastErrorObject"]), _names(reply["value"])],
                query={"x": 2},
                update={"$set": {"_id": 3, "y": 1}},
                hint={"s": 1},
                upsert=True,
                new=True,
            ),
            sparse=True,
        ),
        [{"n": 1, "updatedExisting": False, "upserted": 3}, {"_id": 3, "x": 2, "y": 1}],
        MODIFIED,
    ),
    Case(
        "findAndModify refuses a hint of no index",
        ONE,
        _refusal(command("findAndModify", query={"_id": 1}, update={"$set": {"y": 1}}, hint={"badHint": 1})),
        BAD_VALUE,
        MODIFIED,
    ),
]


# Inserts, bulks and deletes


def _many(collection: Any) -> Any:
    result = collection.bulk_write(
        [
            InsertOne({"a": 1}),
            UpdateOne({"a": 1}, {"$set": {"b": 1}}),
            UpdateOne({"a": 1}, {"$set": {"b": 1}}),
            UpdateOne({"a": 2}, {"$set": {"b": 2}}, upsert=True),
            InsertOne({"a": 3}),
            UpdateMany({"a": 3}, {"$set": {"b": 1}}),
            UpdateMany({"a": 3}, {"$set": {"b": 2}}, upsert=True),
            UpdateMany({"a": 10}, {"$set": {"b": 2}}, upsert=True),
            ReplaceOne({"a": 2}, {"a": 11}),
            DeleteOne({"a": 11}),
            DeleteMany({"a": 3}),
        ]
    )
    return [
        result.inserted_count,
        result.upserted_count,
        result.matched_count,
        result.modified_count,
        result.deleted_count,
        sorted(result.upserted_ids),
    ]


def _stopped(collection: Any) -> Any:
    collection.create_index([("a", 1)], unique=True)
    try:
        collection.bulk_write(
            [
                InsertOne({"b": 1, "a": 1}),
                UpdateOne({"b": 2}, {"$set": {"a": 1}}, upsert=True),
                UpdateOne({"b": 3}, {"$set": {"a": 2}}, upsert=True),
                InsertOne({"b": 4, "a": 3}),
            ]
        )
    except BulkWriteError as error:
        return [error.details["nInserted"], [[each["index"], each["code"]] for each in error.details["writeErrors"]]]
    return None


def _inserted(reply: Any) -> Any:
    return [reply["n"], [[each["index"], each["code"]] for each in reply.get("writeErrors", [])]]


KITS = [{"_id": number} for number in (10, 11, 11, 12, 13, 13, 14)]
PARALLEL = f"{WRITE}/insert/insert_illegal_doc.js"
CRUD = f"{WRITE}/crud_api.js"
THREE = [{"_id": 1, "x": 11}, {"_id": 2, "x": 22}, {"_id": 3, "x": 33}]

WRITES = [
    Case("a bulk of all kinds of writes", [], _many, [2, 2, 5, 4, 2, [3, 7]], f"{WRITE}/bulk/bulk_api_ordered.js"),
    Case("an ordered bulk stops at an error", [], _stopped, [1, [[1, 11000]]], f"{WRITE}/bulk/bulk_api_ordered.js"),
    Case(
        "an ordered insert stops at a duplicate",
        [],
        command("insert", of=_inserted, documents=[{"_id": 13}, {"_id": 13}, {"_id": 14}]),
        [1, [[1, 11000]]],
        "manual: reference/method/db.collection.insertMany",
    ),
    Case(
        "an insert in any order goes on after duplicates",
        [],
        command("insert", of=_inserted, documents=KITS, ordered=False),
        [5, [[2, 11000], [5, 11000]]],
        "manual: reference/method/db.collection.insertMany",
    ),
    Case(
        "an insert of two arrays into one index",
        [],
        _indexed(
            {"a": 1, "b": 1}, lambda collection: collection.insert_one({"_id": 1, "a": [1, 2, 3], "b": [4, 5, 6]})
        ),
        Error(171),
        PARALLEL,
    ),
    Case(
        "a field with a number for a name in an array of an index",
        [{"_id": 0, "a": [{}]}],
        _indexed({"a.0.c": 1}, update({"_id": 0}, {"$set": {"a.0.0": 1}})),
        Error(16746),
        f"{QUERY}/update/update_numeric_field_name.js",
    ),
    Case(
        "an _id that is an array",
        [],
        lambda collection: collection.insert_one({"_id": [1]}),
        Error(53),
        "manual: core/document",
    ),
    Case(
        "a delete by an index that has only some documents",
        SPARSE,
        _indexed(
            {"s": 1},
            command("delete", of=lambda reply: reply["n"], deletes=[{"q": {}, "limit": 0, "hint": {"s": 1}}]),
            sparse=True,
        ),
        2,
        f"{WRITE}/delete/delete_hint.js",
    ),
    Case(
        "deletes before one that cannot be parsed are done",
        [{"_id": 0}, {"_id": 1}],
        command(
            "delete", of=_inserted, deletes=[{"q": {"_id": 0}, "limit": 1}, {"q": {"$expr": "$$unbound"}, "limit": 1}]
        ),
        [1, [[1, 17276]]],
        f"{QUERY}/expr/expr.js",
    ),
    Case(
        "a replaced document as it was, the first by a sort",
        THREE,
        lambda collection: [
            collection.find_one_and_replace({"_id": {"$gt": 1}}, {"x": 32}, {"x": 1, "_id": 0}, sort=[("x", 1)]),
            stored(collection),
        ],
        [{"x": 22}, [{"_id": 1, "x": 11}, {"_id": 2, "x": 32}, {"_id": 3, "x": 33}]],
        CRUD,
    ),
]


# Distinct and count

TENS = [{"_id": number, "a": 1} for number in range(10)]
SHIRTS = [
    {"_id": 1, "dept": "A", "item": {"sku": "111", "color": "red"}, "sizes": ["S", "M"]},
    {"_id": 2, "dept": "A", "item": {"sku": "111", "color": "blue"}, "sizes": ["M", "L"]},
    {"_id": 3, "dept": "B", "item": {"sku": "222", "color": "blue"}, "sizes": "S"},
    {"_id": 4, "dept": "A", "item": {"sku": "333", "color": "black"}, "sizes": ["S"]},
]


def _count(
    name: str, fields: Any, expected: Any, source: str = "server: jstests/core/query/explain/explain_count.js"
) -> Case:
    return Case(name, TENS, command("count", of=lambda reply: reply["n"], **fields), expected, source)


COUNTS = [
    _count("count with a negative limit and a skip", {"limit": -3, "skip": 4}, 3),
    _count("count of a query with a skip", {"query": {"a": 1}, "skip": 3}, 7),
    Case(
        "count by an index that has no document",
        TENS,
        _indexed({"x": 1}, command("count", of=lambda reply: reply["n"], hint={"x": 1}), sparse=True),
        0,
        f"{QUERY}/count/count_hint.js",
    ),
    Case(
        "distinct of a field in documents, with a query",
        SHIRTS,
        command("distinct", of=lambda reply: sorted(reply["values"]), key="item.sku", query={"dept": "A"}),
        ["111", "333"],
        "manual: reference/command/distinct",
    ),
    Case(
        "distinct refuses a key that is a document",
        ONE,
        _refusal(command("distinct", key={"a": 1})),
        MISMATCH,
        f"{QUERY}/distinct/distinct_syntax.js",
    ),
]


# Indexes

WILD = f"{INDEX}/wildcard/compound_wildcard_index_validation.js"
REPLIES = f"{DDL}/create_indexes_response_fields.js"
PREPARED = f"{DDL}/index_prepareUnique.js"
FULL_TEXT = f"{INDEX}/fts/fts_index.js"
PAIR = [{"_id": 1, "a": 100, "b": 1}, {"_id": 2, "a": 100, "b": 2}]


def _not_indexed(key: Any, expected: Any, source: str, **options: Any) -> Case:
    return Case(
        f"an index {key!r} {options!r} is refused"[:110], ONE, _refusal(_index(key, **options)), expected, source
    )


def _violations(collection: Any) -> Any:
    by = {"keyPattern": {"a": 1}}
    _index({"a": 1})(collection)
    command("collMod", index={**by, "prepareUnique": True})(collection)
    try:
        command("collMod", index={**by, "unique": True})(collection)
    except OperationFailure as error:
        details = error.details or {}
        return [error.code, details["codeName"], [sorted(each["ids"]) for each in details["violations"]]]
    return None


def _listed(name: str) -> Call:
    """One index as it is listed."""
    return lambda collection: next(each for each in _batch("listIndexes")(collection) if each["name"] == name)


INDEXES = [
    Case(
        "an index creates its collection",
        [],
        command(
            "createIndexes",
            of=lambda reply: [
                reply["createdCollectionAutomatically"],
                reply["numIndexesAfter"] - reply["numIndexesBefore"],
                "note" in reply,
            ],
            indexes=[{"key": {"x": 1}, "name": "x_1"}],
        ),
        [True, 1, False],
        REPLIES,
    ),
    Case(
        "indexes that are there already are noted",
        ONE,
        after(
            _index({"x": 1}),
            command(
                "createIndexes",
                of=lambda reply: [reply["numIndexesAfter"] - reply["numIndexesBefore"], "note" in reply],
                indexes=[{"key": {"x": 1}, "name": "x_1"}],
            ),
        ),
        [0, True],
        REPLIES,
    ),
    Case(
        "an index is listed with its options",
        [],
        _indexed({"a": 1}, _listed("a_1"), unique=True, sparse=True),
        {"v": 2, "key": {"a": 1}, "name": "a_1", "unique": True, "sparse": True},
        "manual: reference/command/listIndexes",
    ),
    Case(
        "a text index is listed with what it takes by default",
        [],
        _indexed(
            {"a": "text"},
            lambda collection: [
                _listed("a_text")(collection)[field]
                for field in ("key", "weights", "default_language", "language_override", "textIndexVersion")
            ],
        ),
        [{"_fts": "text", "_ftsx": 1}, {"a": 1}, "english", "language", 3],
        "manual: reference/method/db.collection.getIndexes",
    ),
    Case(
        "an index of the same keys by another name",
        [],
        after(_index({"x": 1}, name="x_1"), _refusal(_index({"x": 1}, name="x_2"))),
        [85, "IndexOptionsConflict"],
        f"{DDL}/create_index_same_spec_different_name.js",
    ),
    Case(
        "a second text index",
        [],
        _indexed({"a": 1, "b": "text", "c": 1}, _refusal(_index({"a": 1, "b": 1, "c": "text"}))),
        NOT_CREATED,
        FULL_TEXT,
    ),
    _not_indexed({"a": 1, "a.$**": 1}, _location(7246204), WILD),
    _not_indexed({"a.$**": 1, "b.$**": 1}, _location(7246201), WILD),
    _not_indexed({"a": 1, "$**": 1}, NOT_CREATED, WILD),
    _not_indexed({"a": 1, "b": 1}, BAD_VALUE, WILD, wildcardProjection={"c": 1}),
    _not_indexed(
        {f"f{number}": 1 for number in range(33)},
        _location(13103),
        f"{INDEX}/compound_index_max_fields.js",
        name="many",
    ),
    _not_indexed({"a": 1}, NOT_CREATED, PREPARED, unique=True, prepareUnique=True),
    Case(
        "an index that is prepared to be unique takes no further duplicates",
        [{"_id": 0, "a": 1}, {"_id": 1, "a": 1}],
        _indexed({"a": 1}, lambda collection: collection.insert_one({"_id": 2, "a": 1}), prepareUnique=True),
        Error(11000),
        PREPARED,
    ),
    Case(
        "an index that cannot become unique says what is not",
        PAIR,
        _violations,
        [359, "CannotConvertIndexToUnique", [[1, 2]]],
        f"{DDL}/coll_mod_convert_to_unique_violations.js",
    ),
    Case(
        "an array in a hashed index",
        [],
        _indexed({"a": "hashed"}, lambda collection: collection.insert_one({"_id": 1, "a": []})),
        Error(16766),
        f"{QUERY}/null_query_semantics.js",
    ),
    Case(
        "the indexes of a collection that is not there",
        [],
        _refusal(_batch("listIndexes")),
        NO_NAMESPACE,
        f"{CATALOG}/list_indexes_non_existent_ns.js",
    ),
]


# Collections, views and time series

SERIES = "server: jstests/core/timeseries/ddl/timeseries_create.js"
FILTERED = f"{CATALOG}/list_collections_filter.js"
RENAMED = f"{DDL}/rename_collection.js"


def _no_series(expected: Any, options: Any = None, **more: Any) -> Case:
    series = {"timeField": "time"} if options is None else options
    name = f"a time series of {options!r} with {more!r} is refused"[:110]
    return Case(name, [], _refusal(_create(timeseries=series, **more)), expected, SERIES)


def _listing(filter: Any, **options: Any) -> Call:
    """The collections that are listed."""
    return _database(of=lambda reply: reply["cursor"]["firstBatch"], listCollections=1, filter=filter, **options)


def _view(collection: Any) -> Any:
    collection.database.drop_collection("others")
    collection.database.command({"create": "others", "viewOn": collection.name, "pipeline": [{"$match": {"a": 1}}]})


def _rename(source: str, target: str, **options: Any) -> Call:
    """Renames one of the two collections; the names are of this database."""

    def run(collection: Any) -> Any:
        database = collection.database
        names = {"renameCollection": f"{database.name}.{source}", "to": f"{database.name}.{target}"}
        return database.client.admin.command({**names, **options})["ok"]

    return run


COLLECTIONS = [
    _no_series(OPTIONS, {"timeField": "sub.time"}),
    _no_series(OPTIONS, {"timeField": "time", "metaField": "time"}),
    _no_series(OPTIONS, {"timeField": "time", "metaField": "meta", "bucketMaxSpanSeconds": 10}),
    _no_series(MISMATCH, {"timeField": 100}),
    _no_series(OPTIONS, expireAfterSeconds=Int64(-10)),
    Case(
        "a time series with an unknown option",
        [],
        attempt(_create(timeseries={"timeField": "time", "invalidOption": {}})),
        40415,
        SERIES,
    ),
    Case(
        "a time series is listed with its granularity",
        [],
        after(
            _create(timeseries={"timeField": "time"}),
            lambda collection: [
                [each["type"], each["info"], _names(each["options"]["timeseries"])]
                for each in _listing({"name": collection.name})(collection)
            ],
        ),
        [
            [
                "timeseries",
                {"readOnly": False},
                {"bucketMaxSpanSeconds": 3600, "granularity": "seconds", "timeField": "time"},
            ]
        ],
        "server: jstests/core/timeseries/ddl/timeseries_list_collections.js",
    ),
    Case(
        "collections are listed by an expression",
        ONE,
        _each("name", _listing({"$expr": {"$eq": ["$name", "cases"]}})),
        ["cases"],
        FILTERED,
        ONE,
    ),
    Case(
        "collections are listed by names and patterns",
        ONE,
        _each("name", _listing({"name": {"$in": ["cases", Regex("^oth"), "", 1234]}}), sorted),
        ["cases", "others"],
        FILTERED,
        ONE,
    ),
    Case(
        "collections are listed by their names alone",
        ONE,
        _listing({"name": "cases"}, nameOnly=True),
        [{"name": "cases", "type": "collection"}],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a collection is listed with its index of _id",
        ONE,
        lambda collection: [
            [each["type"], each["options"], each["info"]["readOnly"], each["idIndex"]]
            for each in _listing({"name": "cases"})(collection)
        ],
        [["collection", {}, False, {"v": 2, "key": {"_id": 1}, "name": "_id_"}]],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a view is listed with its pipeline",
        ONE,
        after(_view, _listing({"name": "others"})),
        [
            {
                "name": "others",
                "type": "view",
                "options": {"viewOn": "cases", "pipeline": [{"$match": {"a": 1}}]},
                "info": {"readOnly": True},
            }
        ],
        "manual: reference/command/listCollections",
    ),
    Case(
        "a view is not renamed",
        ONE,
        after(_view, _refusal(_rename("others", "more"))),
        [166, "CommandNotSupportedOnView"],
        f"{DDL}/rename_collection_view.js",
    ),
    Case(
        "a collection takes the place of another, with its indexes",
        [{"_id": 1}, {"_id": 2}],
        after(
            _index({"a": 1}),
            _rename("cases", "others", dropTarget=True),
            lambda collection: [_others(collection), sorted(collection.database.others.index_information())],
        ),
        [[{"_id": 1}, {"_id": 2}], ["_id_", "a_1"]],
        RENAMED,
        [{"_id": 9}],
    ),
    Case(
        "drop of a collection that is not there",
        [],
        command("drop"),
        1.0,
        f"{DDL}/drop_collection.js",
    ),
    Case(
        "a collection that is not there is not made capped",
        ONE,
        _refusal(_database(convertToCapped="foo", size=1024)),
        NO_NAMESPACE,
        f"{DDL}/convert_to_capped_non_existent.js",
    ),
    Case(
        "a capped collection keeps the newest",
        [],
        after(
            _create(capped=True, size=100000, max=2),
            lambda collection: collection.insert_many([{"_id": 1}, {"_id": 2}, {"_id": 3}]),
            find({}),
        ),
        [2, 3],
        "manual: core/capped-collections",
    ),
]


# Validators

VALIDATED = "manual: core/schema-validation/specify-json-schema"
RULES = "server: src/mongo/db/matcher/doc_validation_error.cpp"


def _broken(schema: Any, document: Any) -> Call:
    """The rules that a document breaks, as an error lists them."""

    def run(collection: Any) -> Any:
        made(validator={"$jsonSchema": schema})(collection)
        (error,) = command("insert", of=lambda reply: reply["writeErrors"], documents=[document])(collection)
        return [error["code"], error["errInfo"]["failingDocumentId"], error["errInfo"]["details"]]

    return run


def _breaking(name: str, schema: Any, document: Any, *rules: Any, source: str = RULES) -> Case:
    title = {"title": schema["title"]} if "title" in schema else {}
    expected = [121, 1, {"operatorName": "$jsonSchema", **title, "schemaRulesNotSatisfied": list(rules)}]
    return Case(name, [], _broken(schema, {"_id": 1, **document}), expected, source)


VALIDATORS = [
    _breaking(
        "a property of another type",
        {
            "bsonType": "object",
            "title": "Student Object Validation",
            "required": ["name"],
            "properties": {
                "name": {"bsonType": "string"},
                "gpa": {"bsonType": ["double"], "description": "'gpa' must be a double if the field exists"},
            },
        },
        {"name": "Alice", "gpa": 3},
        {
            "operatorName": "properties",
            "propertiesNotSatisfied": [
                {
                    "propertyName": "gpa",
                    "description": "'gpa' must be a double if the field exists",
                    "details": [
                        {
                            "operatorName": "bsonType",
                            "specifiedAs": {"bsonType": ["double"]},
                            "reason": "type did not match",
                            "consideredValue": 3,
                            "consideredType": "int",
                        }
                    ],
                }
            ],
        },
        source=VALIDATED,
    ),
    _breaking(
        "a property that is missing",
        {"required": ["a", "b"]},
        {"a": 1},
        {"operatorName": "required", "specifiedAs": {"required": ["a", "b"]}, "missingProperties": ["b"]},
    ),
    _breaking(
        "a value that is too small",
        {"properties": {"a": {"minimum": 5}}},
        {"a": 1},
        {
            "operatorName": "properties",
            "propertiesNotSatisfied": [
                {
                    "propertyName": "a",
                    "details": [
                        {
                            "operatorName": "minimum",
                            "specifiedAs": {"minimum": 5},
                            "reason": "comparison failed",
                            "consideredValue": 1,
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        "a schema with a type that there is not",
        [],
        _refusal(_create(validator={"$jsonSchema": {"properties": {"a": {"type": "integer"}}}})),
        UNPARSED,
        "manual: reference/operator/query/jsonSchema",
    ),
]


# Stages

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
    return Case(f"aggregate refuses {stage!r}"[:120], list(documents), _refusal(_piped(stage)), expected, source)


def _merging(**options: Any) -> Call:
    return _piped({"$merge": {"into": "others", **options}})


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
        _each(
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
        _each("r", aggregate(_windows({"$rank": {}}, {"double": 1})), _integers),
        [1, 1, 3, 3],
        RANK,
    ),
    _no_stage(_windows({"$rank": {}}), _location(5371602), RANK),
    _no_stage(_windows({"$rank": {}, "window": {"documents": [-1, 1]}}, {"_id": 1}), _location(5371601), RANK),
    Case(
        "$shift to the one before",
        DOUBLES,
        _each("r", aggregate(_windows({"$shift": {"by": -1, "output": "$_id", "default": -10}}, {"_id": 1}))),
        [-10, 0, 1, 2],
        SHIFT,
    ),
    _no_stage(_windows({"$shift": {"output": "$one"}}, {"one": 1}), UNPARSED, SHIFT),
    Case(
        "$linearFill between numbers",
        [{"_id": 1, "v": 1}, {"_id": 2, "v": None}, {"_id": 3, "v": None}, {"_id": 5, "v": 5}, {"_id": 6, "v": None}],
        _each("r", aggregate(_windows({"$linearFill": "$v"}, {"_id": 1})), _floats),
        [1.0, 2.0, 3.0, 5.0, None],
        f"{SOURCES}/setWindowFields/linear_fill.js",
    ),
    Case(
        "a range takes those that tie with the document",
        RANGES,
        _each("r", aggregate(_windows({"$push": "$x", "window": {"range": [-1, 0]}}, {"x": 1}))),
        [[0], [0, 1], [1, 1.5], [1, 1.5, 2], [2, 3], [100, 100], [100, 100], [100, 100, 101]],
        f"{SOURCES}/setWindowFields/range.js",
    ),
    _no_stage({"$group": {"_id": None, "r": {"$minN": {"input": "$a", "n": 3.2}}}}, _location(5787903), LEAST),
    Case(
        "$percentile of several points",
        SCORES,
        _each(
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
            lambda values: _floats(next(iter(values))),
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
        _location(17276),
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
        _location(40228),
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
        after(_merging(whenMatched=[{"$addFields": {"x": {"$add": ["$b", 1]}}}]), _others),
        [{"_id": 1, "b": 1, "x": 2}, {"_id": 2, "a": 2}],
        MERGED,
        [{"_id": 1, "b": 1}],
    ),
    Case(
        "$merge on a field that a document has not",
        [{"_id": 1}],
        after(
            lambda collection: collection.database.others.create_index([("z", 1)], unique=True),
            _refusal(
                _piped(
                    {"$project": {"_id": 0}},
                    {"$merge": {"into": "others", "on": "z", "whenMatched": [{"$addFields": {"z": 1}}]}},
                )
            ),
        ),
        _location(51132),
        MERGED,
    ),
    Case(
        "$merge that is to fail for those that are there",
        [{"_id": 1}],
        _refusal(_merging(whenMatched="fail", whenNotMatched="insert")),
        DUPLICATE,
        f"{SOURCES}/merge/mode_fail_insert.js",
        [{"_id": 1}],
    ),
    Case(
        "$out keeps the indexes of what it replaces",
        [{"_id": 0, "a": 0}],
        after(
            lambda collection: collection.database.others.create_index([("a", 1)], unique=True),
            _piped({"$out": "others"}),
            lambda collection: [_others(collection), sorted(collection.database.others.index_information())],
        ),
        [[{"_id": 0, "a": 0}], ["_id_", "a_1"]],
        f"{SOURCES}/out/replace_collection.js",
        [{"_id": 1, "a": 0}],
    ),
    Case(
        "$out that is not the last",
        ONE,
        _refusal(_piped({"$out": "others"}, {"$match": {"x": True}})),
        _location(40601),
        f"{SOURCES}/out/required_last_position.js",
    ),
]


# Expressions


def _values(file: str, *pairs: tuple[Any, Any], documents: Any = tuple(ONE)) -> list[Case]:
    """Values of expressions, for the first document."""
    source = f"{EXPRESSIONS}/{file}"
    return [
        Case(f"{expression!r}"[:110], list(documents), evaluate(expression), value, source)
        for expression, value in pairs
    ]


def _refused(file: str, *pairs: tuple[Any, int]) -> list[Case]:
    source = f"{EXPRESSIONS}/{file}"
    return [
        Case(f"{expression!r} refused"[:110], ONE, _computed(expression), _location(code), source)
        for expression, code in pairs
    ]


NEW_YORK = {"date": datetime(2017, 6, 19, 15, 13, 25, 713000), "timezone": "America/New_York"}
MIXED = [{"_id": 0, "a": [datetime(2020, 1, 1), None, 0, False, Decimal128("1"), [], {"c": 3}]}]
CLOCK = {"minute": 13, "second": 25, "millisecond": 713}

COMPUTATIONS = [
    *_values("expression_mod.js", ({"$mod": [138.5, 3]}, 0.5)),
    *_values("indexof_codepoints.js", ({"$indexOfCP": ["∫aƒ", "ƒ"]}, 2), ({"$indexOfCP": ["abc", "b", 3]}, -1)),
    *_refused("indexof_codepoints.js", ({"$indexOfCP": [3, "s"]}, 40093)),
    *_refused("in.js", ({"$in": [1, "$notAField"]}, 40081)),
    *_values(
        "date_to_parts.js",
        ({"$dateToParts": NEW_YORK}, {"year": 2017, "month": 6, "day": 19, "hour": 11, **CLOCK}),
        (
            {"$dateToParts": {**NEW_YORK, "iso8601": True}},
            {"isoWeekYear": 2017, "isoWeek": 25, "isoDayOfWeek": 1, "hour": 11, **CLOCK},
        ),
    ),
    *_refused("date_to_parts.js", ({"$dateToParts": {**NEW_YORK, "timezone": "DoesNot/Exist"}}, 40485)),
    *_values(
        "round_trunc.js",
        ({"$round": [1.298, 1]}, 1.3),
        ({"$round": [2147483647, -1]}, Int64(2147483650)),
        ({"$trunc": [Decimal128("23.298"), -1]}, Decimal128("2E+1")),
    ),
    *_refused("round_trunc.js", ({"$round": [1, 101]}, 51083)),
    *_values("split.js", ({"$split": ["abc abc cba abc", "abc"]}, ["", " ", " cba ", ""])),
    *_refused("split.js", ({"$split": ["abc", ""]}, 40087)),
    *_refused("range.js", ({"$range": [0, 10, 0]}, 34449)),
    *_values(
        "merge_objects.js",
        ({"$mergeObjects": [{"a": "defaultValue"}, "$$ROOT"]}, {"a": 0, "_id": 3, "b": 1}),
        documents=[{"_id": 3, "a": 0, "b": 1}],
    ),
    *_refused("merge_objects.js", ({"$mergeObjects": ["$a", {"a": "newString"}]}, 40400)),
    *_values(
        "filter.js",
        (
            {"$filter": {"input": "$a", "as": "x", "cond": "$$x"}},
            [datetime(2020, 1, 1), Decimal128("1"), [], {"c": 3}],
        ),
        documents=MIXED,
    ),
    *_refused("filter.js", ({"$filter": {"input": "$a", "as": "x"}}, 28650)),
    *_values("log_pow_exp.js", ({"$pow": [3, 35]}, Int64(50031545098999707))),
    *_refused("log_pow_exp.js", ({"$log": [5, 1]}, 28759)),
    *_values("divide.js", ({"$divide": [10, Decimal128("2.5")]}, Decimal128("4"))),
    *_refused("objectToArray.js", ({"$objectToArray": "$a"}, 40390)),
    *_refused("size.js", ({"$size": "$a"}, 17124)),
    Case(
        "$tsSecond of a timestamp",
        [{"_id": 1, "t": Timestamp(100, 5)}],
        evaluate({"$tsSecond": "$t"}),
        Int64(100),
        "manual: reference/operator/aggregation/tsSecond",
    ),
]


# Transactions


def _transaction(run: Callable[[Any, Any], Any], **options: Any) -> Call:
    """What is found in a transaction, which is aborted unless the call ends it."""

    def call(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction(**options)
            try:
                return run(collection, session)
            finally:
                if session.in_transaction:
                    session.abort_transaction()

    return call


def _second(fields: Any) -> Call:
    """The refusal of a command that is not the first of its transaction."""

    def run(collection: Any, session: Any) -> Any:
        collection.insert_one({"_id": "first"}, session=session)
        return _refusal(lambda _: collection.database.command(fields, session=session))(collection)

    return _transaction(run)


def _existing(collection: Any, session: Any) -> Any:
    refused = _refusal(lambda _: collection.database.command({"create": "cases"}, session=session))
    counted = _refusal(lambda _: collection.database.command({"find": "cases"}, session=session))
    return [refused(collection), counted(collection)]


def _abandoned(collection: Any, session: Any) -> Any:
    collection.database.command({"create": "others"}, session=session)
    collection.database.others.insert_one({"_id": 1}, session=session)
    session.abort_transaction()
    return _listing({"name": "others"})(collection)


def _isolated(collection: Any, session: Any) -> Any:
    counts = []

    def count() -> None:
        (found,) = collection.aggregate([{"$count": "n"}], session=session)
        counts.append(found["n"])

    count()
    collection.insert_one({"_id": "outside"})
    count()
    collection.insert_one({"_id": "inside"}, session=session)
    count()
    return counts


def _killed(collection: Any, session: Any) -> Any:
    database = collection.database
    opened = [database.command({"find": "cases", "batchSize": 2}, session=session)["cursor"]["id"] for _ in range(2)]
    database.command({"killCursors": "cases", "cursors": opened[:1]})
    rest = database.command({"getMore": opened[1], "collection": "cases"}, session=session)["cursor"]["nextBatch"]
    collection.insert_one({"_id": 4}, session=session)
    session.commit_transaction()
    return [rest, len(stored(collection))]


FOUR = [{"_id": number} for number in range(4)]
CONCERNS = f"{TRANSACTIONS}/no_read_or_write_concern_inside_txn.js"

IN_TRANSACTIONS = [
    Case(
        "a write concern within a transaction",
        ONE,
        _second({"insert": "cases", "documents": [{"_id": 7}], "writeConcern": {"w": "majority"}}),
        OPTIONS,
        CONCERNS,
    ),
    Case(
        "a read concern within a transaction",
        ONE,
        _second({"find": "cases", "filter": {"_id": 1}, "readConcern": {"level": "majority"}}),
        OPTIONS,
        CONCERNS,
    ),
    Case(
        "a collection that is there ends a transaction that creates it",
        ONE,
        _transaction(_existing),
        [[48, "NamespaceExists"], [251, "NoSuchTransaction"]],
        f"{TRANSACTIONS}/create_collection.js",
    ),
    Case(
        "a collection of a transaction that is aborted",
        ONE,
        _transaction(_abandoned),
        [],
        f"{TRANSACTIONS}/create_collection.js",
    ),
    Case(
        "a transaction counts what it sees",
        ONE,
        _transaction(_isolated, read_concern=ReadConcern("snapshot")),
        [1, 1, 2],
        f"{TRANSACTIONS}/aggregation_in_transaction.js",
    ),
    Case(
        "a cursor that is killed from outside leaves its transaction alone",
        FOUR,
        _transaction(_killed),
        [[{"_id": 2}, {"_id": 3}], 5],
        f"{TRANSACTIONS}/kill_txn_cursor.js",
    ),
]


# Cursors


def _without_first(collection: Any) -> Any:
    first = collection.database.command({"find": "cases", "batchSize": 0})["cursor"]
    more = collection.database.command({"getMore": first["id"], "collection": "cases"})["cursor"]
    return [first["firstBatch"], first["id"] != 0, len(more["nextBatch"]), more["id"]]


def _kill(collection: Any) -> Any:
    opened = collection.database.command({"find": "cases", "batchSize": 2})["cursor"]["id"]
    reply = collection.database.command({"killCursors": "cases", "cursors": [opened, Int64(12345)]})
    lists = ["cursorsKilled", "cursorsNotFound", "cursorsAlive", "cursorsUnknown"]
    gone = _refusal(_database(getMore=opened, collection="cases"))(collection)
    return [reply["cursorsKilled"] == [opened], *(reply[each] for each in lists[1:]), gone]


CURSORS = [
    Case("a first batch of none", ONE, _without_first, [[], True, 1, Int64(0)], f"{QUERY}/expr/expr.js"),
    Case(
        "cursors that are killed, and one that is not there",
        FOUR,
        _kill,
        [True, [Int64(12345)], [], [], [43, "CursorNotFound"]],
        "manual: reference/command/killCursors",
    ),
    Case(
        "a tailable cursor of a collection that is not capped",
        ONE,
        _refusal(_batch("find", tailable=True)),
        BAD_VALUE,
        f"{QUERY}/awaitdata_getmore_cmd.js",
    ),
    Case(
        "a tailable cursor of a collection that is not there",
        [],
        command("find", of=lambda reply: [reply["cursor"]["id"], reply["cursor"]["firstBatch"]], tailable=True),
        [Int64(0), []],
        f"{QUERY}/awaitdata_getmore_cmd.js",
    ),
]


# Administration

VERSIONED = f"{QUERY}/api/api_version_parameters.js"
EXPLAINED = f"{QUERY}/explain"


def _explain(fields: Any, of: Callable[[Any], Any], verbosity: str = "executionStats") -> Call:
    return lambda collection: of(collection.database.command({"explain": fields, "verbosity": verbosity}))


def _of_database(collection: Any) -> Any:
    client, name = collection.database.client, f"{collection.database.name}_sizes"
    client.drop_database(name)
    try:
        client[name].sizes.create_index([("x", 1)])
        client[name].sizes.insert_one({"_id": 1, "x": 1})
        found = client[name].command({"dbStats": 1})
        fields = ["collections", "views", "objects", "avgObjSize", "dataSize", "indexes", "scaleFactor"]
        return [found["db"] == name, *(float(found[field]) for field in fields)]
    finally:
        client.drop_database(name)


ADMINISTRATION = [
    Case(
        "dbStats of one document",
        [],
        _of_database,
        [True, 1.0, 0.0, 1.0, 21.0, 21.0, 2.0, 1.0],
        f"{CATALOG}/db_stats.js",
    ),
    Case(
        "dbStats refuses a scale of zero",
        ONE,
        _refusal(_database(dbStats=1, scale=0)),
        BAD_VALUE,
        f"{CATALOG}/db_stats.js",
    ),
    Case(
        "databases are listed by their names alone",
        ONE,
        lambda collection: _admin(
            of=lambda reply: [each == {"name": collection.database.name} for each in reply["databases"]],
            listDatabases=1,
            nameOnly=True,
            filter={"name": collection.database.name},
        )(collection),
        [True],
        f"{CATALOG}/list_databases.js",
    ),
    Case(
        "databases are not listed by another than admin",
        ONE,
        _refusal(_database(listDatabases=1)),
        UNAUTHORIZED,
        "manual: reference/command/listDatabases",
    ),
    Case(
        "hello says the limits",
        ONE,
        _admin(
            of=lambda reply: [
                reply["isWritablePrimary"],
                reply["maxBsonObjectSize"],
                reply["maxMessageSizeBytes"],
                reply["maxWriteBatchSize"],
                reply["logicalSessionTimeoutMinutes"],
                reply["readOnly"],
            ],
            hello=1,
        ),
        [True, 16777216, 48000000, 100000, 30, False],
        "manual: reference/command/hello",
    ),
    Case(
        "buildInfo says the version in numbers too",
        ONE,
        _admin(
            of=lambda reply: [
                reply["version"].split("-")[0] == ".".join(map(str, reply["versionArray"][:3])),
                len(reply["versionArray"]),
                reply["maxBsonObjectSize"],
                reply["bits"],
            ],
            buildInfo=1,
        ),
        [True, 4, 16777216, 64],
        "manual: reference/command/buildInfo",
    ),
    Case(
        "an unknown command",
        ONE,
        _refusal(_database(noSuchCommandAtAll=1)),
        [59, "CommandNotFound"],
        "server: src/mongo/base/error_codes.yml",
    ),
    Case(
        "a parameter that there is not",
        ONE,
        _refusal(_admin(setParameter=1, noSuchParameter=1)),
        OPTIONS,
        "server: src/mongo/db/commands/parameters.cpp",
    ),
    Case(
        "a version of the API that there is not",
        ONE,
        _refusal(_database(ping=1, apiVersion="2")),
        [322, "APIVersionError"],
        VERSIONED,
    ),
    Case(
        "a command that the API has not",
        ONE,
        _refusal(_database(buildInfo=1, apiVersion="1", apiStrict=True)),
        [323, "APIStrictError"],
        VERSIONED,
    ),
    Case(
        "explain of a scan",
        TENS,
        _explain(
            {"find": "cases", "filter": {"b": 1}},
            lambda found: [
                found["queryPlanner"]["winningPlan"]["stage"],
                found["queryPlanner"]["namespace"].split(".")[-1],
                found["executionStats"]["executionSuccess"],
                *_integers(
                    found["executionStats"][field] for field in ("nReturned", "totalKeysExamined", "totalDocsExamined")
                ),
            ],
        ),
        ["COLLSCAN", "cases", True, 0, 0, 10],
        "manual: reference/explain-results",
    ),
    Case(
        "explain of an index",
        TENS,
        _indexed(
            {"a": 1},
            _explain(
                {"find": "cases", "filter": {"a": 1}},
                lambda found: [
                    found["queryPlanner"]["winningPlan"]["stage"],
                    *(
                        found["queryPlanner"]["winningPlan"]["inputStage"][field]
                        for field in ("stage", "keyPattern", "indexName", "isMultiKey", "direction", "indexBounds")
                    ),
                ],
                "queryPlanner",
            ),
        ),
        ["FETCH", "IXSCAN", {"a": 1}, "a_1", False, "forward", {"a": ["[1, 1]"]}],
        "manual: reference/explain-results",
    ),
    Case(
        "explain of a count",
        TENS,
        _indexed(
            {"a": 1, "_id": 1},
            _explain(
                {"count": "cases", "query": {"a": 1}, "skip": 3},
                lambda found: [
                    found["executionStats"]["executionStages"]["stage"],
                    int(found["executionStats"]["executionStages"]["nCounted"]),
                ],
            ),
        ),
        ["COUNT", 7],
        f"{EXPLAINED}/explain_count.js",
    ),
    Case(
        "explain of an upsert makes no collection",
        [],
        after(
            _explain(
                {"update": "cases", "updates": [{"q": {"a": 1}, "u": {"a": 1}, "upsert": True}]},
                lambda found: found["ok"],
            ),
            _listing({"name": "cases"}),
        ),
        [],
        f"{EXPLAINED}/explain_upsert.js",
    ),
]

CASES = [
    *FIND,
    *SHOWN,
    *UPDATES,
    *MODIFY,
    *WRITES,
    *COUNTS,
    *INDEXES,
    *COLLECTIONS,
    *VALIDATORS,
    *STAGES,
    *COMPUTATIONS,
    *IN_TRANSACTIONS,
    *CURSORS,
    *ADMINISTRATION,
]
