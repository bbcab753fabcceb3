"""Two hundred more answers, of the manual and the server's tests; they need a replica set, and follow MongoDB 8.0.

The expected value of a refused command is its code and the code's name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bson import Int64, ObjectId, Regex

from gmongo import DeleteMany, InsertOne, ReplaceOne, UpdateOne
from gmongo.errors import OperationFailure

from .calls import Call, after, command, made, stored
from .cases import Case, aggregate, evaluate, find, project, update

QUERY = "server: jstests/core/query"
WRITE = "server: jstests/core/write"
DDL = "server: jstests/core/ddl"
EXPRESSIONS = "server: jstests/aggregation/expressions"
SOURCES = "server: jstests/aggregation/sources"
STREAMS = "server: jstests/change_streams"
TRANSACTIONS = "server: jstests/core/txns"
SERIES = "server: jstests/core/timeseries/ddl/timeseries_create.js"
EVENTS = "manual: reference/change-events"
ONE = [{"_id": 1, "a": 1}]
THREE = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 3}]
BAD_VALUE = [2, "BadValue"]
UNPARSED = [9, "FailedToParse"]
MISMATCH = [14, "TypeMismatch"]
ILLEGAL = [20, "IllegalOperation"]
NO_NAMESPACE = [26, "NamespaceNotFound"]
NO_INDEX = [27, "IndexNotFound"]
NOT_CREATED = [67, "CannotCreateIndex"]
OPTIONS = [72, "InvalidOptions"]
NO_NAME = [73, "InvalidNamespace"]
ON_VIEW = [166, "CommandNotSupportedOnView"]
CONVERSION = [241, "ConversionFailure"]
NOT_IN_TRANSACTION = [263, "OperationNotSupportedInTransaction"]
MISSING_FIELD = [40414, "IDLFailedToParse"]
UNKNOWN_FIELD = [40415, "IDLUnknownField"]
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


def _update_code(filter: Any, change: Any, **fields: Any) -> Call:
    return _write_code("update", updates=[{"q": filter, "u": change, **fields}])


def _changed(filter: Any, change: Any, **fields: Any) -> Call:
    """The documents after an update by the command."""
    return after(command("update", updates=[{"q": filter, "u": change, **fields}]), stored)


def _first(name: str, **fields: Any) -> Call:
    """The first error of a write."""
    return command(name, of=lambda reply: reply["writeErrors"][0], **fields)


def _batch(name: str, **fields: Any) -> Call:
    """The first batch of a command's cursor."""
    return command(name, of=lambda reply: reply["cursor"]["firstBatch"], **fields)


def _found(**fields: Any) -> Call:
    """The values of _id that the command find returns."""
    return lambda collection: [each["_id"] for each in _batch("find", **fields)(collection)]


def _piped(*stages: Any, **fields: Any) -> Call:
    """The documents that a pipeline makes."""
    return _batch("aggregate", pipeline=list(stages), cursor={}, **fields)


def _computed(expression: Any) -> Call:
    """The refusal of an expression."""
    return _refusal(_piped({"$project": {"r": expression}}))


def _index(key: Any, **options: Any) -> Call:
    """Creates an index; its name is as drivers make it."""
    name = options.pop("name", "_".join(f"{field}_{kind}" for field, kind in key.items()))
    return command("createIndexes", indexes=[{"key": key, "name": name, **options}])


def _not_indexed(key: Any, **options: Any) -> Call:
    return _refusal(_index(key, **options))


def _listed(name: str) -> Call:
    """An index as it is listed, its fields in the order of their names."""

    def run(collection: Any) -> Any:
        (found,) = (each for each in _batch("listIndexes")(collection) if each["name"] == name)
        return _names(found)

    return run


def _create(**options: Any) -> Call:
    """Makes the collection by the command, where there is none."""
    return after(lambda collection: collection.drop(), command("create", **options))


def _view(*stages: Any) -> Call:
    """Makes ``others`` a view of the collection."""
    return lambda collection: collection.database.command(
        {"create": "others", "viewOn": collection.name, "pipeline": list(stages)}
    )


def _other(call: Call) -> Call:
    """A call on ``others``."""
    return lambda collection: call(collection.database.others)


def _admin(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command of the database ``admin``."""
    return lambda collection: of(collection.database.client.admin.command(fields))


def _database(*, of: Callable[[Any], Any] = lambda reply: reply["ok"], **fields: Any) -> Call:
    """A part of the reply of a command that names no collection."""
    return lambda collection: of(collection.database.command(fields))


def _of(call: Call, part: Callable[[Any], Any]) -> Call:
    return lambda collection: part(call(collection))


def _names(value: Any) -> Any:
    """A document with its fields in the order of their names."""
    return dict(sorted(value.items()))


def _all_names(values: Any) -> Any:
    return [_names(each) for each in values]


def _ids(values: Any) -> Any:
    return [each["_id"] for each in values]


def _events(*writes: Call, count: int, pipeline: Any = (), whole: bool = False, **options: Any) -> Call:
    """The first events after some writes; of all the database, or of the collection."""

    def run(collection: Any) -> Any:
        watched = collection.database if whole else collection
        with watched.watch(list(pipeline), max_await_time_ms=50, **options) as stream:
            for write in writes:
                write(collection)
            found: list[Any] = []
            for _ in range(40):
                event = stream.try_next()
                if event is not None:
                    found.append(event)
                if len(found) == count:
                    break
            return found

    return run


def _kinds(events: Any) -> Any:
    return [event["operationType"] for event in events]


def _insert(document: Any) -> Call:
    return lambda collection: collection.insert_one(dict(document))


def _set(filter: Any, change: Any, **options: Any) -> Call:
    return lambda collection: collection.update_one(filter, change, **options)


def _remove(filter: Any) -> Call:
    return lambda collection: collection.delete_one(filter)


def _within(call: Callable[[Any, Any], Any]) -> Call:
    """The answer, or the refusal, of a call in a transaction that is not committed."""

    def run(collection: Any) -> Any:
        with collection.database.client.start_session() as session:
            session.start_transaction()
            try:
                return call(collection, session)
            except OperationFailure as error:
                return [error.code, (error.details or {}).get("codeName")]
            finally:
                if session.in_transaction:
                    session.abort_transaction()

    return run


# Filters

NULLS = [{"_id": 1, "a": None}, {"_id": 2}, {"_id": 3, "a": 1}]
PRICES = [{"_id": 1, "price": 1.0}, {"_id": 2, "price": 2.5}, {"_id": 3}]
BUDGETS = [
    {"_id": 1, "category": "food", "budget": 400, "spent": 450},
    {"_id": 2, "category": "drinks", "budget": 100, "spent": 150},
    {"_id": 3, "category": "clothes", "budget": 100, "spent": 50},
    {"_id": 4, "category": "misc", "budget": 500, "spent": 300},
    {"_id": 5, "category": "travel", "budget": 200, "spent": 650},
]
INSTOCK = [
    {"_id": 1, "item": "journal", "instock": [{"warehouse": "A", "qty": 5}, {"warehouse": "C", "qty": 15}]},
    {"_id": 2, "item": "notebook", "instock": [{"warehouse": "C", "qty": 5}]},
    {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 15}]},
    {"_id": 4, "item": "planner", "instock": [{"warehouse": "A", "qty": 40}, {"warehouse": "B", "qty": 5}]},
    {"_id": 5, "item": "postcard", "instock": [{"warehouse": "B", "qty": 15}, {"warehouse": "C", "qty": 35}]},
]
POINTS = [
    {"_id": place, "at": {"type": "Point", "coordinates": [0, degrees]}} for place, degrees in enumerate([2, 0, 1])
]
SQUARE = {"type": "Polygon", "coordinates": [[[-1, -1], [1, -1], [1, 1.5], [-1, 1.5], [-1, -1]]]}

FIND = [
    Case("nothing is above null", NULLS, find({"a": {"$gt": None}}), [], f"{QUERY}/null_query_semantics.js"),
    Case(
        "null and what is missing are not below null",
        NULLS,
        find({"a": {"$gte": None}}),
        [1, 2],
        f"{QUERY}/null_query_semantics.js",
    ),
    Case(
        "$not takes documents without the field",
        PRICES,
        find({"price": {"$not": {"$gt": 1.99}}}),
        [1, 3],
        "manual: reference/operator/query/not",
    ),
    Case(
        "$nor takes documents without its fields",
        [{"_id": 1, "price": 1.99}, {"_id": 2, "sale": True}, {"_id": 3, "price": 2, "sale": False}, {"_id": 4}],
        find({"$nor": [{"price": 1.99}, {"sale": True}]}),
        [3, 4],
        "manual: reference/operator/query/nor",
    ),
    Case(
        "$expr compares two fields of a document",
        BUDGETS,
        find({"$expr": {"$gt": ["$spent", "$budget"]}}),
        [1, 2, 5],
        "manual: reference/operator/query/expr",
    ),
    Case(
        "$expr has what is missing below null, and null below numbers",
        [{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3, "a": None}, {"_id": 4, "a": 9}],
        find({"$expr": {"$lt": ["$a", 5]}}),
        [1, 2, 3],
        f"{EXPRESSIONS}/comparison_missing_and_key_values.js",
    ),
    Case(
        "conditions on fields of documents in an array may be met by different ones",
        INSTOCK,
        find({"instock.qty": 5, "instock.warehouse": "A"}),
        [1, 4],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "a condition on the first document in an array",
        INSTOCK,
        find({"instock.0.qty": {"$lte": 20}}),
        [1, 2, 5],
        "manual: tutorial/query-array-of-documents",
    ),
    Case(
        "a schema as a filter",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": "1"}, {"_id": 3}],
        find({"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int"}}}}),
        [1],
        "manual: reference/operator/query/jsonSchema",
    ),
    Case(
        "a filter with a variable of the command",
        THREE,
        _found(filter={"$expr": {"$eq": ["$a", "$$wanted"]}}, let={"wanted": 2}),
        [2],
        "manual: reference/command/find",
    ),
    Case(
        "a filter with a variable that there is not",
        THREE,
        _refusal(_found(filter={"$expr": {"$eq": ["$a", "$$wanted"]}})),
        _location(17276),
        "server: src/mongo/db/pipeline/variables.cpp",
    ),
    Case(
        "points within a circle on the sphere",
        POINTS,
        find({"at": {"$geoWithin": {"$centerSphere": [[0, 0], 150 / 6378.1]}}}),
        [1, 2],
        "manual: reference/operator/query/centerSphere",
    ),
    Case(
        "points in a polygon",
        POINTS,
        find({"at": {"$geoIntersects": {"$geometry": SQUARE}}}),
        [1, 2],
        "manual: reference/operator/query/geoIntersects",
    ),
    Case(
        "the nearest points first, as far as they may be",
        POINTS,
        after(
            _index({"at": "2dsphere"}),
            find(
                {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}, "$maxDistance": 150000}}},
            ),
        ),
        [1, 2],
        "manual: reference/operator/query/near",
    ),
    Case(
        "$near without an index",
        POINTS,
        _refusal(find({"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}})),
        [291, "NoQueryExecutionPlans"],
        "server: src/mongo/db/query/query_planner.cpp",
    ),
    Case(
        "$text without an index",
        ONE,
        _refusal(find({"$text": {"$search": "coffee"}})),
        NO_INDEX,
        "server: src/mongo/db/query/planner_ixselect.cpp",
    ),
    Case(
        "an operator that there is not",
        ONE,
        _refusal(find({"a": {"$above": 1}})),
        BAD_VALUE,
        "server: src/mongo/db/matcher/expression_parser.cpp",
    ),
    Case(
        "$and of no conditions",
        ONE,
        _refusal(find({"$and": []})),
        BAD_VALUE,
        "server: src/mongo/db/matcher/expression_parser.cpp",
    ),
    Case(
        "find refuses a field that it does not know",
        ONE,
        _refusal(_found(filter={}, filters={})),
        UNKNOWN_FIELD,
        "server: src/mongo/db/query/find_command.idl",
    ),
    Case(
        "find refuses a negative skip",
        ONE,
        _refusal(_found(filter={}, skip=-1)),
        _location(51024),
        "server: src/mongo/db/query/find_command.idl",
    ),
    Case(
        "a text is found by its stem, and not by a stop word",
        [{"_id": 1, "s": "I was running"}, {"_id": 2, "s": "they run"}, {"_id": 3, "s": "the walk"}],
        after(
            _index({"s": "text"}),
            lambda collection: [
                sorted(find({"$text": {"$search": words}})(collection)) for words in ("runs", "the", "WALK")
            ],
        ),
        [[1, 2], [], [3]],
        "manual: reference/operator/query/text",
    ),
]


# Projections, sorts and collations

ACCENTS = [{"_id": place, "a": word} for place, word in enumerate(["cote", "coté", "côte", "côté"])]

SHOWN = [
    Case(
        "included fields are in the order of the document",
        [{"_id": 1, "a": 1, "b": 2, "c": 3}],
        project({"c": 1, "a": 1}),
        {"_id": 1, "a": 1, "c": 3},
        "manual: tutorial/project-fields-from-query-results",
    ),
    Case(
        "find computes a field",
        [{"_id": 1, "price": 5, "quantity": 4}],
        project({"_id": 0, "total": {"$multiply": ["$price", "$quantity"]}}),
        {"total": 20},
        "manual: reference/method/db.collection.find",
    ),
    Case(
        "find shows a field by another name, and a text",
        [{"_id": 1, "a": 7}],
        project({"_id": 0, "b": "$a", "c": "text"}),
        {"b": 7, "c": "text"},
        "manual: reference/method/db.collection.find",
    ),
    Case(
        "an included path leaves out what is no document in an array",
        [{"_id": 1, "a": [{"b": 1, "c": 2}, {"b": 3}, 5]}],
        project({"a.b": 1}),
        {"_id": 1, "a": [{"b": 1}, {"b": 3}]},
        "server: src/mongo/db/exec/inclusion_projection_executor.cpp",
    ),
    Case(
        "an excluded path keeps what is no document in an array",
        [{"_id": 1, "a": [{"b": 1, "c": 2}, {"b": 3}, 5]}],
        project({"a.b": 0}),
        {"_id": 1, "a": [{"c": 2}, {}, 5]},
        "server: src/mongo/db/exec/exclusion_projection_executor.cpp",
    ),
    Case(
        "a path below one that is projected",
        ONE,
        _refusal(_found(projection={"a": 1, "a.b": 1})),
        _location(31249),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "a position in a projection that the filter does not ask for",
        [{"_id": 1, "a": [1, 2]}],
        _refusal(_found(filter={"b": 1}, projection={"a.$": 1})),
        _location(31277),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "null and what is missing are sorted alike",
        [{"_id": 1, "a": 2}, {"_id": 2}, {"_id": 3, "a": None}, {"_id": 4, "a": 1}],
        _found(sort={"a": 1, "_id": -1}),
        [3, 2, 4, 1],
        "manual: reference/bson-type-comparison-order",
    ),
    Case(
        "a page of what is sorted by two fields",
        [{"_id": place, "a": place % 2, "b": place // 2} for place in range(6)],
        _found(sort={"a": -1, "b": 1}, skip=1, limit=3),
        [3, 5, 0],
        "manual: reference/method/cursor.skip",
    ),
    Case("the last inserted first", THREE, _found(sort={"$natural": -1}), [3, 2, 1], "manual: reference/glossary"),
    Case(
        "a sort by a direction of two",
        ONE,
        _refusal(_found(sort={"a": 2})),
        _location(15975),
        "server: src/mongo/db/query/sort_pattern.cpp",
    ),
    Case(
        "numbers in texts in their order",
        [{"_id": 1, "a": "a10"}, {"_id": 2, "a": "a2"}, {"_id": 3, "a": "a1"}],
        _found(sort={"a": 1}, collation={"locale": "en", "numericOrdering": True}),
        [3, 2, 1],
        "manual: reference/collation",
    ),
    Case(
        "upper case first",
        [{"_id": 1, "a": "b"}, {"_id": 2, "a": "a"}, {"_id": 3, "a": "B"}, {"_id": 4, "a": "A"}],
        _found(sort={"a": 1}, collation={"locale": "en", "caseFirst": "upper"}),
        [4, 2, 3, 1],
        "manual: reference/collation",
    ),
    Case(
        "accents from the end of the word",
        ACCENTS,
        _found(sort={"a": 1}, collation={"locale": "fr", "backwards": True}),
        [0, 2, 1, 3],
        "manual: reference/collation",
    ),
    Case(
        "punctuation that does not count",
        [{"_id": 1, "a": "black-bird"}, {"_id": 2, "a": "black bird"}, {"_id": 3, "a": "blackbirds"}],
        _found(filter={"a": "blackbird"}, collation={"locale": "en", "alternate": "shifted"}),
        [1, 2],
        "manual: reference/collation",
    ),
    Case(
        "a collation of no language",
        ONE,
        _refusal(_found(collation={"locale": "not_a_collation"})),
        BAD_VALUE,
        "server: src/mongo/db/query/collation/collator_factory_icu.cpp",
    ),
]


# Updates

GRADES = [
    {
        "_id": 1,
        "grades": [
            {"grade": 80, "mean": 75, "std": 6},
            {"grade": 85, "mean": 90, "std": 4},
            {"grade": 85, "mean": 85, "std": 6},
        ],
    }
]
MODIFIERS = "server: src/mongo/db/update"

UPDATES = [
    Case(
        "$inc makes a long of an int that is full",
        [{"_id": 1, "a": 2147483647}],
        update({}, {"$inc": {"a": 1}}),
        {"_id": 1, "a": Int64(2147483648)},
        "server: src/mongo/util/safe_num.cpp",
    ),
    Case(
        "$mul of an int by a double",
        [{"_id": 1, "a": 2}],
        update({}, {"$mul": {"a": 1.5}}),
        {"_id": 1, "a": 3.0},
        "manual: reference/operator/update/mul",
    ),
    Case(
        "$set of the same number in another type",
        [{"_id": 1, "a": 1}],
        update({}, {"$set": {"a": 1.0}}),
        {"_id": 1, "a": 1.0},
        f"{MODIFIERS}/set_node.cpp",
    ),
    Case(
        "$set beyond the end of an array fills it with null",
        [{"_id": 1, "a": [1]}],
        update({}, {"$set": {"a.3": 9}}),
        {"_id": 1, "a": [1, None, None, 9]},
        f"{MODIFIERS}/path_support.cpp",
    ),
    Case(
        "$set makes the documents of its path",
        [{"_id": 1}],
        update({}, {"$set": {"a.b.c": 1}}),
        {"_id": 1, "a": {"b": {"c": 1}}},
        "manual: reference/operator/update/set",
    ),
    Case(
        "$unset of an element leaves null",
        [{"_id": 1, "a": [1, 2, 3]}],
        update({}, {"$unset": {"a.1": ""}}),
        {"_id": 1, "a": [1, None, 3]},
        "manual: reference/operator/update/unset",
    ),
    Case(
        "$max of a field that is missing",
        [{"_id": 1}],
        update({}, {"$max": {"a": 5}}),
        {"_id": 1, "a": 5},
        "manual: reference/operator/update/max",
    ),
    Case(
        "$rename to a field that is there",
        [{"_id": 1, "a": 1, "b": 2, "c": 3}],
        _of(update({}, {"$rename": {"a": "b"}}), _names),
        {"_id": 1, "b": 1, "c": 3},
        "manual: reference/operator/update/rename",
    ),
    Case(
        "$push at a position from the end",
        [{"_id": 1, "scores": [50, 60, 70, 100]}],
        update({}, {"$push": {"scores": {"$each": [90, 80], "$position": -2}}}),
        {"_id": 1, "scores": [50, 60, 90, 80, 70, 100]},
        "manual: reference/operator/update/position",
    ),
    Case(
        "$push with $slice of zero empties the array",
        [{"_id": 1, "a": [1, 2]}],
        update({}, {"$push": {"a": {"$each": [3], "$slice": 0}}}),
        {"_id": 1, "a": []},
        "manual: reference/operator/update/slice",
    ),
    Case(
        "$pop takes the first",
        [{"_id": 0, "a": {"b": [1, 2, 3]}}],
        update({}, {"$pop": {"a.b": -1}}),
        {"_id": 0, "a": {"b": [2, 3]}},
        f"{WRITE}/update/update_modifier_pop.js",
    ),
    Case(
        "elements by a condition on one of their fields",
        GRADES,
        update({}, {"$set": {"grades.$[each].mean": 100}}, array_filters=[{"each.grade": {"$gte": 85}}]),
        {
            "_id": 1,
            "grades": [
                {"grade": 80, "mean": 75, "std": 6},
                {"grade": 85, "mean": 100, "std": 4},
                {"grade": 85, "mean": 100, "std": 6},
            ],
        },
        "manual: reference/operator/update/positional-filtered",
    ),
    Case(
        "a pipeline computes from the fields of the document",
        [{"_id": 1, "scores": [3, 4, 5]}],
        update({}, [{"$set": {"total": {"$sum": "$scores"}}}, {"$unset": "scores"}]),
        {"_id": 1, "total": 12},
        "manual: tutorial/update-documents-with-aggregation-pipeline",
    ),
    Case(
        "an upsert takes the only value of $in and of $or",
        [],
        _of(
            _changed({"_id": 1, "x": {"$in": [7]}, "$or": [{"y": 8}]}, {"$set": {"a": 1}}, upsert=True),
            _all_names,
        ),
        [{"_id": 1, "a": 1, "x": 7, "y": 8}],
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "an upsert by a replacement takes nothing but the _id",
        [],
        _changed({"_id": 1, "x": 5}, {"a": 1}, upsert=True),
        [{"_id": 1, "a": 1}],
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "$setOnInsert leaves a document that is there",
        ONE,
        _changed({"_id": 1}, {"$set": {"a": 2}, "$setOnInsert": {"b": 3}}, upsert=True),
        [{"_id": 1, "a": 2}],
        "manual: reference/operator/update/setOnInsert",
    ),
    Case(
        "an upsert of two values for a field",
        [],
        _update_code({"$and": [{"x": 1}, {"x": 2}]}, {"$set": {"a": 1}}, upsert=True),
        54,
        f"{WRITE}/update/upsert_fields.js",
    ),
    Case(
        "an update of nothing new is a match, and no change",
        ONE,
        command(
            "update",
            of=lambda reply: [reply["n"], reply["nModified"]],
            updates=[{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}],
        ),
        [1, 0],
        "manual: reference/command/update",
    ),
    Case(
        "$set of a path below a number",
        ONE,
        _update_code({}, {"$set": {"a.b": 1}}),
        28,
        "server: src/mongo/db/update/path_support.cpp",
    ),
    Case(
        "two operators for one path",
        ONE,
        _update_code({}, {"$set": {"a": 2}, "$inc": {"a": 1}}),
        40,
        "server: src/mongo/db/update/update_object_node.cpp",
    ),
    Case("$set of another _id", ONE, _update_code({}, {"$set": {"_id": 2}}), 66, "manual: tutorial/update-documents"),
    Case(
        "a replacement with another _id",
        ONE,
        _update_code({"a": 1}, {"_id": 2}),
        66,
        f"{MODIFIERS}/object_replace_executor.cpp",
    ),
    Case(
        "an update operator that there is not",
        ONE,
        _update_code({}, {"$append": {"a": 1}}),
        9,
        f"{MODIFIERS}/update_driver.cpp",
    ),
    Case("a replacement of many", THREE, _update_code({}, {"b": 1}, multi=True), 9, f"{MODIFIERS}/update_driver.cpp"),
    Case("$push to a number", ONE, _update_code({}, {"$push": {"a": 1}}), 2, f"{MODIFIERS}/push_node.cpp"),
    Case(
        "a filter of an element that the update does not name",
        ONE,
        _update_code({}, {"$set": {"a": 2}}, arrayFilters=[{"i": 0}]),
        9,
        f"{WRITE}/update/update_arrayFilters.js",
    ),
    Case(
        "$pull of some values, and of one",
        [{"_id": 1, "fruits": ["apples", "pears", "oranges"], "vegetables": ["carrots", "celery", "carrots"]}],
        update({}, {"$pull": {"fruits": {"$in": ["apples", "oranges"]}, "vegetables": "carrots"}}),
        {"_id": 1, "fruits": ["pears"], "vegetables": ["celery"]},
        "manual: reference/operator/update/pull",
    ),
    Case(
        "$currentDate makes a date",
        ONE,
        _of(update({}, {"$currentDate": {"a": True}}), lambda found: isinstance(found["a"], datetime)),
        True,
        "manual: reference/operator/update/currentDate",
    ),
    Case(
        "an update by a version that has passed",
        [{"_id": 1, "version": 1}],
        lambda collection: [
            collection.update_one({"_id": 1, "version": 1}, {"$inc": {"version": 1}}).matched_count for _ in range(2)
        ],
        [1, 0],
        "manual: core/write-operations-atomicity",
    ),
]


# Find and modify

MODIFY = [
    Case(
        "findAndModify removes and updates",
        ONE,
        _refusal(command("findAndModify", query={}, update={"a": 2}, remove=True)),
        UNPARSED,
        f"{WRITE}/find_and_modify/find_and_modify_invalid_query_params.js",
    ),
    Case(
        "findAndModify into a duplicate",
        THREE,
        after(
            _index({"a": 1}, unique=True),
            _refusal(command("findAndModify", query={"_id": 1}, update={"$set": {"a": 2}})),
        ),
        DUPLICATE,
        "manual: reference/command/findAndModify",
    ),
    Case(
        "findAndModify by a filter of elements",
        [{"_id": 1, "a": [0, 1, 0]}],
        command(
            "findAndModify",
            of=lambda reply: reply["value"],
            query={"_id": 1},
            update={"$set": {"a.$[i]": 2}},
            arrayFilters=[{"i": 0}],
            new=True,
        ),
        {"_id": 1, "a": [2, 1, 2]},
        f"{WRITE}/update/update_arrayFilters.js",
    ),
    Case(
        "findAndModify inserts, and shows that there was nothing",
        [],
        command(
            "findAndModify",
            of=lambda reply: reply["value"],
            query={"_id": 2},
            update={"value": "new"},
            new=False,
            upsert=True,
        ),
        None,
        f"{WRITE}/find_and_modify/find_and_modify_invalid_query_params.js",
    ),
    Case(
        "the oldest is taken from a queue, once",
        [{"_id": 1, "at": 30}, {"_id": 2, "at": 10}, {"_id": 3, "at": 20, "by": "w0"}],
        lambda collection: [
            collection.find_one_and_update({"by": None}, {"$set": {"by": "w1"}}, sort=[("at", 1)]),
            collection.count_documents({"by": "w1"}),
        ],
        [{"_id": 2, "at": 10}, 1],
        "manual: reference/method/db.collection.findOneAndUpdate",
    ),
]


# Inserts, bulks, deletes, distinct


def _bulk(collection: Any) -> Any:
    result = collection.bulk_write(
        [
            UpdateOne({"_id": 1}, {"$set": {"a": 5}}),
            UpdateOne({"_id": "x"}, {"$set": {"a": 5}}, upsert=True),
            ReplaceOne({"_id": "y"}, {"a": 6}, upsert=True),
            InsertOne({"_id": "z"}),
            DeleteMany({"a": 5}),
        ]
    )
    counts = [result.inserted_count, result.matched_count, result.modified_count, result.deleted_count]
    return [counts, result.upserted_count, dict(result.upserted_ids or {})]


WRITES = [
    Case(
        "a duplicate of two fields is told with both",
        [{"_id": 1, "a": 1, "b": 2}],
        after(
            _index({"a": 1, "b": 1}, unique=True),
            _of(
                _first("insert", documents=[{"_id": 2, "a": 1, "b": 2}]),
                lambda error: [error["index"], error["code"], error["keyPattern"], error["keyValue"]],
            ),
        ),
        [0, 11000, {"a": 1, "b": 1}, {"a": 1, "b": 2}],
        "server: src/mongo/db/storage/duplicate_key_error_info.cpp",
    ),
    Case(
        "a duplicate in an array is told by its element",
        [{"_id": 1, "tags": ["y"]}],
        after(
            _index({"tags": 1}, unique=True),
            _of(_first("insert", documents=[{"_id": 2, "tags": ["x", "y"]}]), lambda error: error["keyValue"]),
        ),
        {"tags": "y"},
        "server: src/mongo/db/storage/duplicate_key_error_info.cpp",
    ),
    Case(
        "a duplicate of what is missing is told as null",
        [{"_id": 1}],
        after(
            _index({"email": 1}, unique=True),
            _of(_first("insert", documents=[{"_id": 2}]), lambda error: error["keyValue"]),
        ),
        {"email": None},
        "manual: core/index-unique",
    ),
    Case(
        "an update into a duplicate is told by its path",
        [{"_id": 1, "a": {"b": 1}}, {"_id": 2, "a": {"b": 2}}],
        after(
            _index({"a.b": 1}, unique=True),
            _of(
                _first("update", updates=[{"q": {"_id": 2}, "u": {"$set": {"a.b": 1}}}]),
                lambda error: [error["code"], error["keyPattern"], error["keyValue"]],
            ),
        ),
        [11000, {"a.b": 1}, {"a.b": 1}],
        "server: src/mongo/db/storage/duplicate_key_error_info.cpp",
    ),
    Case(
        "a bulk tells the IDs that it upserts by their places",
        ONE,
        _bulk,
        [[1, 1, 1, 2], 2, {1: "x", 2: "y"}],
        "manual: reference/method/db.collection.bulkWrite",
    ),
    Case(
        "a field that begins with a dollar is inserted",
        [],
        after(command("insert", documents=[{"_id": 1, "$price": 5}]), stored),
        [{"_id": 1, "$price": 5}],
        "manual: core/dot-dollar-considerations",
    ),
    Case(
        "a field with a dot in its name is not found by a path",
        [],
        after(command("insert", documents=[{"_id": 1, "a.b": 5}]), find({"a.b": 5})),
        [],
        "manual: core/dot-dollar-considerations",
    ),
    Case(
        "a field of an _id that begins with a dollar",
        [],
        _write_code("insert", documents=[{"_id": {"$oid": "507f191e810c19729de860ea"}}]),
        52,
        "server: src/mongo/db/update/storage_validation.cpp",
    ),
    Case(
        "insert refuses a field that it does not know",
        [],
        _refusal(command("insert", documents=[{"_id": 1}], document={"_id": 2})),
        UNKNOWN_FIELD,
        "server: src/mongo/db/ops/write_ops.idl",
    ),
    Case(
        "a delete tells how many there were",
        THREE,
        command("delete", of=lambda reply: reply["n"], deletes=[{"q": {"a": {"$gte": 2}}, "limit": 0}]),
        2,
        "manual: reference/command/delete",
    ),
    Case(
        "distinct looks into arrays, and passes over what is missing",
        [{"_id": 1, "a": [1, 2]}, {"_id": 2, "a": 2}, {"_id": 3}, {"_id": 4, "a": []}],
        command("distinct", of=lambda reply: sorted(reply["values"]), key="a"),
        [1, 2],
        "manual: reference/command/distinct",
    ),
]


# Indexes

INDEXES = [
    Case(
        "documents expire by one field alone",
        ONE,
        _not_indexed({"a": 1, "b": 1}, expireAfterSeconds=100),
        NOT_CREATED,
        f"{DDL}/ttl_index_options.js",
    ),
    Case(
        "an index by which documents expire is listed",
        ONE,
        after(_index({"at": 1}, expireAfterSeconds=3600), _listed("at_1")),
        {"expireAfterSeconds": 3600, "key": {"at": 1}, "name": "at_1", "v": 2},
        "manual: core/index-ttl",
    ),
    Case(
        "the same index with another time to expire",
        ONE,
        after(_index({"at": 1}, expireAfterSeconds=3600), _not_indexed({"at": 1}, expireAfterSeconds=60)),
        [85, "IndexOptionsConflict"],
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "the same index, now unique",
        ONE,
        after(_index({"a": 1}), _not_indexed({"a": 1}, unique=True)),
        [86, "IndexKeySpecsConflict"],
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "an index of a kind that there is not",
        ONE,
        _not_indexed({"a": "invalid_index_type"}),
        NOT_CREATED,
        f"{DDL}/create_indexes.js",
    ),
    Case(
        "a partial index that is sparse",
        ONE,
        _not_indexed({"a": 1}, sparse=True, partialFilterExpression={"a": {"$gt": 1}}),
        NOT_CREATED,
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "a partial index of what is not equal",
        ONE,
        _not_indexed({"a": 1}, partialFilterExpression={"a": {"$ne": 1}}),
        NOT_CREATED,
        "manual: core/index-partial",
    ),
    Case(
        "more indexes than there may be",
        ONE,
        _refusal(command("createIndexes", indexes=[{"key": {f"i{n}": 1}, "name": f"i{n}"} for n in range(64)])),
        NOT_CREATED,
        f"{DDL}/index_create_too_many.js",
    ),
    Case(
        "an index of places is listed with its version",
        [],
        after(_index({"at": "2dsphere"}), _listed("at_2dsphere")),
        {"2dsphereIndexVersion": 3, "key": {"at": "2dsphere"}, "name": "at_2dsphere", "v": 2},
        "manual: core/indexes/index-types/geospatial/2dsphere",
    ),
    Case(
        "an index of places takes no other document",
        [],
        after(
            _index({"at": "2dsphere"}),
            _write_code("insert", documents=[{"_id": 1, "at": {"type": "Point", "coordinates": [500, 500]}}]),
        ),
        16755,
        "server: src/mongo/db/index/expression_keys_private.cpp",
    ),
    Case(
        "all indexes but that of the _id are dropped",
        ONE,
        after(
            _index({"a": 1}),
            _index({"b": -1}, name="of_b"),
            command("dropIndexes", index="*"),
            lambda collection: [each["name"] for each in _batch("listIndexes")(collection)],
        ),
        ["_id_"],
        "manual: reference/command/dropIndexes",
    ),
]


# Collections, views, time series

SEEN = [{"_id": 1, "a": 1, "b": "x"}, {"_id": 2, "a": 5, "b": "y"}, {"_id": 3, "a": 9, "b": "z"}]

COLLECTIONS = [
    Case(
        "a view filters, projects and is filtered again",
        SEEN,
        after(
            _view({"$match": {"a": {"$gt": 1}}}, {"$project": {"b": 1}}),
            lambda collection: list(collection.database.others.find({"b": "z"})),
        ),
        [{"_id": 3, "b": "z"}],
        "manual: core/views",
    ),
    Case(
        "a view is counted",
        SEEN,
        after(_view({"$match": {"a": {"$gt": 1}}}), _other(command("count", of=lambda reply: int(reply["n"])))),
        2,
        "server: jstests/core/views/views_count.js",
    ),
    Case(
        "the distinct values of a view",
        SEEN,
        after(
            _view({"$match": {"a": {"$gt": 1}}}),
            _other(command("distinct", key="b", of=lambda reply: sorted(reply["values"]))),
        ),
        ["y", "z"],
        "server: jstests/core/views/views_distinct.js",
    ),
    Case(
        "an insert into a view",
        SEEN,
        after(_view(), _other(_write_code("insert", documents=[{"_id": 4}]))),
        166,
        "manual: core/views",
    ),
    Case(
        "an index of a view",
        SEEN,
        after(_view(), _refusal(_other(_index({"a": 1})))),
        ON_VIEW,
        "manual: core/views",
    ),
    Case(
        "a view by the name of a collection",
        SEEN,
        _refusal(_view()),
        [48, "NamespaceExists"],
        "server: jstests/core/views/views_creation.js",
        others=ONE,
    ),
    Case(
        "drop tells how many indexes there were",
        ONE,
        after(_index({"a": 1}), command("drop", of=lambda reply: reply["nIndexesWas"])),
        2,
        "manual: reference/command/drop",
    ),
    Case(
        "a collection is made capped",
        ONE,
        after(command("convertToCapped", size=4096), lambda collection: collection.options()["capped"]),
        True,
        "manual: reference/command/convertToCapped",
    ),
    Case(
        "a plain collection does not expire",
        [],
        _refusal(_create(expireAfterSeconds=60)),
        OPTIONS,
        "server: src/mongo/db/commands/create_command.cpp",
    ),
    Case(
        "a clustered collection is listed with its index",
        [],
        after(
            _create(clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "by id"}),
            lambda collection: _names(collection.options()["clusteredIndex"]),
        ),
        {"key": {"_id": 1}, "name": "by id", "unique": True, "v": 2},
        "manual: core/clustered-collections",
    ),
    Case(
        "a time series by a field in a document",
        [],
        _refusal(_create(timeseries={"timeField": "sub.time"})),
        OPTIONS,
        SERIES,
    ),
    Case(
        "a measurement without a time",
        [],
        after(_create(timeseries={"timeField": "time"}), _write_code("insert", documents=[{"_id": 1, "a": 1}])),
        2,
        "server: jstests/noPassthrough/timeseries_insert_invalid_timefield.js",
    ),
    Case(
        "a time series without its field of time",
        [],
        _refusal(_create(timeseries={"metaField": "meta"})),
        MISSING_FIELD,
        "server: src/mongo/db/timeseries/timeseries.idl",
    ),
    Case(
        "measurements of a time series by their sensor",
        [],
        after(
            _create(timeseries={"timeField": "at", "metaField": "sensor"}),
            lambda collection: collection.insert_many(
                [{"_id": n, "at": datetime(2024, 1, 1, n), "sensor": n % 2, "t": n * 10} for n in range(4)]
            ),
            aggregate({"$group": {"_id": "$sensor", "most": {"$max": "$t"}}}, {"$sort": {"_id": 1}}),
        ),
        [{"_id": 0, "most": 20}, {"_id": 1, "most": 30}],
        "manual: core/timeseries-collections",
    ),
]


# Validators

AGED = {"$jsonSchema": {"required": ["age"], "properties": {"age": {"bsonType": "int", "minimum": 0}}}}

VALIDATORS = [
    Case(
        "a document that fails is named",
        [],
        after(
            made(validator=AGED),
            _of(
                _first("insert", documents=[{"_id": 1, "age": 3}, {"_id": 2}]),
                lambda error: [error["index"], error["code"], error["errInfo"]["failingDocumentId"]],
            ),
        ),
        [1, 121, 2],
        "manual: core/schema-validation/handle-invalid-documents",
    ),
    Case(
        "an update that would fail",
        [],
        after(made(validator=AGED), _insert({"_id": 1, "age": 3}), _update_code({"_id": 1}, {"$inc": {"age": -9}})),
        121,
        "manual: core/schema-validation",
    ),
    Case(
        "a document that fails already may be updated, if that is moderate",
        [{"_id": 1, "age": "old"}],
        after(
            command("collMod", validator=AGED, validationLevel="moderate"),
            _changed({"_id": 1}, {"$set": {"name": "x"}}),
        ),
        [{"_id": 1, "age": "old", "name": "x"}],
        "manual: core/schema-validation/specify-validation-level",
    ),
    Case(
        "a document that fails is inserted past the validator",
        [],
        after(made(validator=AGED), command("insert", documents=[{"_id": 1}], bypassDocumentValidation=True), stored),
        [{"_id": 1}],
        "manual: core/schema-validation/bypass-document-validation",
    ),
    Case(
        "a validator of operators",
        [],
        after(made(validator={"$or": [{"a": {"$gt": 5}}, {"b": Regex("^x")}]}), _write_code("insert", documents=[{}])),
        121,
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "a schema without further properties counts the _id",
        [],
        after(
            made(validator={"$jsonSchema": {"properties": {"a": {}}, "additionalProperties": False}}),
            _write_code("insert", documents=[{"_id": 1, "a": 1}]),
        ),
        121,
        "manual: core/schema-validation/specify-json-schema/json-schema-tips",
    ),
    Case(
        "a schema with a type of JSON Schema that is not supported",
        [],
        _refusal(made(validator={"$jsonSchema": {"properties": {"a": {"type": "integer"}}}})),
        UNPARSED,
        "manual: reference/operator/query/jsonSchema",
    ),
]


# Stages

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

STAGES = [
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
        _refusal(_piped({"$group": {"n": {"$sum": 1}}})),
        _location(15955),
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
        _refusal(_piped({"$lookup": {"from": "others", "localField": "a", "as": "all"}})),
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
        _refusal(_piped({"$unwind": "a"})),
        _location(28818),
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
        _refusal(_piped({"$replaceRoot": {"newRoot": "$b"}})),
        _location(40228),
        "manual: reference/operator/aggregation/replaceRoot",
    ),
    Case(
        "$denseRank leaves no gap, $documentNumber takes no ties",
        [{"_id": 1, "a": 10}, {"_id": 2, "a": 20}, {"_id": 3, "a": 10}, {"_id": 4, "a": 30}],
        _of(
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
        _of(
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
        _refusal(_piped({"$graphLookup": LOOKED_UP})),
        _location(40105),
        f"{SOURCES}/graphLookup/error.js",
    ),
    Case(
        "$merge keeps what is there",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}],
        after(
            aggregate({"$merge": {"into": "others", "whenMatched": "keepExisting", "whenNotMatched": "insert"}}),
            _other(stored),
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
            _other(stored),
        ),
        [{"_id": 1, "a": 1}],
        "manual: reference/operator/aggregation/merge",
        others=[{"_id": 1, "b": 9}],
    ),
    Case(
        "$geoNear without an index",
        POINTS,
        _refusal(_piped({"$geoNear": NEAR})),
        NO_INDEX,
        f"{SOURCES}/geonear/requires_geo_index.js",
    ),
    Case(
        "aggregate without a cursor",
        ONE,
        _refusal(command("aggregate", pipeline=[])),
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


# Expressions

MOMENT = [{"_id": 1, "at": datetime(2014, 1, 1, 8, 15, 39, 736000)}]
TEXT = [{"_id": 1, "s": "cafétéria", "n": None, "a": [1, 2], "m": {"x": 1, "y": 20, "z": 30}}]
SOME_DAY = datetime(2020, 11, 1, 18, 23, 36)

COMPUTATIONS = [
    Case(
        "$dateToString in a time zone, and by weeks",
        MOMENT,
        evaluate(
            [
                {"$dateToString": {"format": "%H:%M:%S:%L%z", "date": "$at", "timezone": "America/New_York"}},
                {"$dateToString": {"format": "%Z", "date": "$at", "timezone": "America/New_York"}},
                {"$dateToString": {"format": "%j %G-W%V-%u", "date": "$at"}},
                {"$dateToString": {"format": "%Y", "date": "$none", "onNull": "never"}},
            ]
        ),
        ["03:15:39:736-0500", "-300", "001 2014-W01-3", "never"],
        "manual: reference/operator/aggregation/dateToString",
    ),
    Case(
        "$dateTrunc to weeks begins with Sunday, or on another day, in twos",
        ONE,
        evaluate(
            [
                {"$dateTrunc": {"date": datetime(2021, 2, 15, 18, 23, 36), "unit": "week"}},
                {
                    "$dateTrunc": {
                        "date": datetime(2000, 1, 30, 18),
                        "unit": "week",
                        "binSize": 2,
                        "timezone": "America/New_York",
                        "startOfWeek": "mon",
                    }
                },
            ]
        ),
        [datetime(2021, 2, 14), datetime(2000, 1, 17, 5)],
        f"{EXPRESSIONS}/date_trunc.js",
    ),
    Case(
        "$dateTrunc to some hours of a time zone",
        ONE,
        evaluate(
            {
                "$dateTrunc": {
                    "date": datetime(2021, 12, 1, 18, 23, 36),
                    "unit": "hour",
                    "binSize": 4,
                    "timezone": "America/New_York",
                }
            }
        ),
        datetime(2021, 12, 1, 17),
        f"{EXPRESSIONS}/date_trunc.js",
    ),
    Case(
        "$dateDiff counts the weeks that begin between",
        ONE,
        evaluate(
            [
                {
                    "$dateDiff": {
                        "startDate": datetime(2021, 1, 24, 18, 23, 36),
                        "endDate": datetime(2021, 1, 25, 2, 23, 36),
                        "unit": "week",
                        "startOfWeek": start,
                    }
                }
                for start in ("MONDAY", "sunday")
            ]
        ),
        [Int64(1), Int64(0)],
        f"{EXPRESSIONS}/date_diff.js",
    ),
    Case(
        "$dateAdd of a day is no day of 24 hours",
        ONE,
        evaluate(
            [
                {"$dateAdd": {"startDate": datetime(2020, 10, 24, 18, 10), "timezone": "Europe/Paris", **amount}}
                for amount in ({"unit": "hour", "amount": 24}, {"unit": "day", "amount": 1})
            ]
        ),
        [datetime(2020, 10, 25, 18, 10), datetime(2020, 10, 25, 19, 10)],
        f"{EXPRESSIONS}/date_add_subtract.js",
    ),
    Case(
        "$dateSubtract of months ends on the last day there is",
        ONE,
        evaluate({"$dateSubtract": {"startDate": datetime(2021, 1, 31, 3), "unit": "month", "amount": 2}}),
        datetime(2020, 11, 30, 3),
        f"{EXPRESSIONS}/date_add_subtract.js",
    ),
    Case(
        "$dateToParts in a time zone",
        ONE,
        evaluate({"$dateToParts": {"date": datetime(2017, 1, 1, 1, 29, 9, 123000), "timezone": "America/New_York"}}),
        {"year": 2016, "month": 12, "day": 31, "hour": 20, "minute": 29, "second": 9, "millisecond": 123},
        "manual: reference/operator/aggregation/dateToParts",
    ),
    Case(
        "$dateFromParts carries months",
        ONE,
        evaluate(
            [
                {"$dateFromParts": {"year": 2017, "month": 14, "day": 1, "hour": 12}},
                {"$dateFromParts": {"year": 2017, "month": 0, "day": 1, "hour": 12}},
            ]
        ),
        [datetime(2018, 2, 1, 12), datetime(2016, 12, 1, 12)],
        "manual: reference/operator/aggregation/dateFromParts",
    ),
    Case(
        "$dateFromString in a time zone",
        ONE,
        evaluate({"$dateFromString": {"dateString": "2017-07-06T12:35:37", "timezone": "Asia/Tokyo"}}),
        datetime(2017, 7, 6, 3, 35, 37),
        f"{EXPRESSIONS}/date_from_string.js",
    ),
    Case(
        "$dateFromString of no date",
        ONE,
        _computed({"$dateFromString": {"dateString": "tomorrow or so"}}),
        CONVERSION,
        f"{EXPRESSIONS}/date_from_string.js",
    ),
    Case(
        "a time zone that there is not",
        MOMENT,
        _computed({"$hour": {"date": "$at", "timezone": "America/Invalid"}}),
        _location(40485),
        f"{EXPRESSIONS}/date_expressions_with_timezones.js",
    ),
    Case(
        "$add makes a long of ints",
        [{"_id": 1, "a": 2147483647}],
        evaluate([{"$add": ["$a", 1]}, {"$multiply": ["$a", 2]}]),
        [Int64(2147483648), Int64(4294967294)],
        f"{EXPRESSIONS}/arith_overflow.js",
    ),
    Case(
        "$reduce to a document",
        ONE,
        evaluate(
            {
                "$reduce": {
                    "input": [1, 2, 3, 4],
                    "initialValue": {"sum": 5, "product": 2},
                    "in": {
                        "sum": {"$add": ["$$value.sum", "$$this"]},
                        "product": {"$multiply": ["$$value.product", "$$this"]},
                    },
                }
            }
        ),
        {"sum": 15, "product": 48},
        "manual: reference/operator/aggregation/reduce",
    ),
    Case(
        "$sortArray by a field, and of numbers",
        [{"_id": 1, "team": [{"name": "pat"}, {"name": "dallas"}, {"name": "charlie"}]}],
        evaluate(
            [
                {"$sortArray": {"input": "$team.name", "sortBy": 1}},
                {"$first": {"$sortArray": {"input": "$team", "sortBy": {"name": -1}}}},
                {"$sortArray": {"input": [1, 4, 1, 6, 12, 5], "sortBy": -1}},
            ]
        ),
        [["charlie", "dallas", "pat"], {"name": "pat"}, [12, 6, 5, 4, 1, 1]],
        "manual: reference/operator/aggregation/sortArray",
    ),
    Case(
        "$filter with a limit",
        ONE,
        evaluate({"$filter": {"input": [1, 5, 7, 9], "as": "n", "cond": {"$gt": ["$$n", 2]}, "limit": 2}}),
        [5, 7],
        "manual: reference/operator/aggregation/filter",
    ),
    Case(
        "fields of a document by their values",
        TEXT,
        evaluate(
            {
                "$arrayToObject": {
                    "$filter": {"input": {"$objectToArray": "$m"}, "cond": {"$gt": ["$$this.v", 10]}},
                }
            }
        ),
        {"y": 20, "z": 30},
        "manual: reference/operator/aggregation/objectToArray",
    ),
    Case(
        "$regexFindAll with a group that need not match",
        ONE,
        evaluate({"$regexFindAll": {"input": "hello world", "regex": "o(r)?"}}),
        [{"match": "o", "idx": 4, "captures": [None]}, {"match": "or", "idx": 7, "captures": ["r"]}],
        "manual: reference/operator/aggregation/regexFindAll",
    ),
    Case(
        "the length of a text in bytes and in characters",
        TEXT,
        evaluate([{"$strLenBytes": "$s"}, {"$strLenCP": "$s"}]),
        [11, 9],
        "manual: reference/operator/aggregation/strLenCP",
    ),
    Case(
        "$concat of a number",
        TEXT,
        _computed({"$concat": ["$s", 1]}),
        _location(16702),
        f"{EXPRESSIONS}/concat_error.js",
    ),
    Case(
        "$ifNull takes the first that there is",
        TEXT,
        evaluate({"$ifNull": ["$none", "$n", 3]}),
        3,
        "manual: reference/operator/aggregation/ifNull",
    ),
    Case(
        "$switch with no branch for it",
        ONE,
        _computed({"$switch": {"branches": [{"case": {"$eq": ["$a", 2]}, "then": "two"}]}}),
        _location(40066),
        "manual: reference/operator/aggregation/switch",
    ),
    Case(
        "$convert by the number of a type, of null, and of what is no number",
        TEXT,
        evaluate(
            [
                {"$convert": {"input": "7", "to": 16}},
                {"$convert": {"input": "$none", "to": "int", "onNull": "none"}},
                {"$convert": {"input": "$s", "to": "int", "onError": "wrong"}},
                {"$toDate": ObjectId("0123456789abcdef01234567")},
            ]
        ),
        [7, "none", "wrong", datetime(1970, 8, 9, 22, 25, 43)],
        f"{EXPRESSIONS}/convert.js",
    ),
    Case(
        "$toObjectId of another text",
        TEXT,
        _computed({"$toObjectId": "$s"}),
        CONVERSION,
        "manual: reference/operator/aggregation/toObjectId",
    ),
    Case(
        "$size of what is no array",
        TEXT,
        _computed({"$size": "$s"}),
        _location(17124),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    Case(
        "$dateFromString by a format",
        ONE,
        evaluate({"$dateFromString": {"dateString": "06-15-2018", "format": "%m-%d-%Y"}}),
        datetime(2018, 6, 15),
        "manual: reference/operator/aggregation/dateFromString",
    ),
    Case(
        "$replaceAll and $toLower",
        ONE,
        evaluate({"$toLower": {"$replaceAll": {"input": "A New Title", "find": " ", "replacement": "-"}}}),
        "a-new-title",
        "manual: reference/operator/aggregation/replaceAll",
    ),
    Case(
        "$setIsSubset counts no value twice, $anyElementTrue takes null for false",
        ONE,
        evaluate([{"$setIsSubset": [["a", "a"], ["b", "a"]]}, {"$anyElementTrue": [[None, False, 0]]}]),
        [True, False],
        "manual: reference/operator/aggregation/setIsSubset",
    ),
    Case(
        "$mergeObjects passes over null and what is missing",
        TEXT,
        evaluate({"$mergeObjects": [{"a": 1}, "$n", "$none", {"b": 2}]}),
        {"a": 1, "b": 2},
        "manual: reference/operator/aggregation/mergeObjects",
    ),
]


# Transactions and sessions


def _committed(collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        outside = _ids(stored(collection))
        inside = _ids(collection.find({}, session=session))
        session.commit_transaction()
    return [outside, inside, _ids(stored(collection))]


def _committed_after_an_error(collection: Any) -> Any:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        refused = None
        try:
            collection.insert_one({"_id": 1}, session=session)
        except OperationFailure as error:
            refused = error.code
        try:
            session.commit_transaction()
        except OperationFailure as error:
            return [refused, error.code, _ids(stored(collection))]
    return None


IN_TRANSACTIONS = [
    Case(
        "what a transaction inserts is seen outside when it is committed",
        ONE,
        _committed,
        [[1], [1, 2], [1, 2]],
        "manual: core/transactions",
    ),
    Case(
        "a duplicate ends the transaction",
        ONE,
        _committed_after_an_error,
        [11000, 251, [1]],
        "server: src/mongo/db/ops/write_ops_exec.cpp",
    ),
    Case(
        "the command count in a transaction",
        ONE,
        _within(lambda collection, session: collection.database.command({"count": collection.name}, session=session)),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/commands_not_allowed_in_txn.js",
    ),
    Case(
        "drop in a transaction",
        ONE,
        _within(lambda collection, session: collection.database.command({"drop": collection.name}, session=session)),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/commands_not_allowed_in_txn.js",
    ),
    Case(
        "an index of documents that are there, in a transaction",
        ONE,
        _within(
            lambda collection, session: collection.database.command(
                {"createIndexes": collection.name, "indexes": [{"key": {"a": 1}, "name": "a_1"}]}, session=session
            )
        ),
        NOT_IN_TRANSACTION,
        f"{TRANSACTIONS}/create_indexes.js",
    ),
    Case(
        "$out in a transaction",
        ONE,
        _within(lambda collection, session: list(collection.aggregate([{"$out": "others"}], session=session))),
        NOT_IN_TRANSACTION,
        "manual: core/transactions-operations",
    ),
    Case(
        "a session ends after half an hour without use",
        [],
        _database(startSession=1, of=lambda reply: int(reply["timeoutMinutes"])),
        30,
        "manual: reference/command/startSession",
    ),
]


# Change streams


def _resumed(collection: Any) -> Any:
    first = _events(_insert({"_id": 1}), _insert({"_id": 2}), _insert({"_id": 3}), count=1)(collection)[0]
    return [
        event["documentKey"]["_id"]
        for event in _events(_insert({"_id": 4}), count=3, resume_after=first["_id"])(collection)
    ]


def _in_a_transaction(collection: Any) -> None:
    with collection.database.client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        collection.insert_one({"_id": 2}, session=session)
        session.commit_transaction()


CHANGES = [
    Case(
        "writes of four kinds as events",
        [],
        _of(
            _events(
                _insert({"_id": 1, "a": 1}),
                _set({"_id": 1}, {"$set": {"a": 2}}),
                lambda collection: collection.replace_one({"_id": 1}, {"b": 3}),
                _remove({"_id": 1}),
                count=4,
            ),
            _kinds,
        ),
        ["insert", "update", "replace", "delete"],
        f"{STREAMS}/change_stream.js",
    ),
    Case(
        "a delete as an event has the key of the document alone",
        ONE,
        _of(
            _events(_remove({"_id": 1}), count=1),
            lambda found: [found[0]["documentKey"], "fullDocument" in found[0], "updateDescription" in found[0]],
        ),
        [{"_id": 1}, False, False],
        f"{EVENTS}/delete",
    ),
    Case(
        "an update as an event tells what is set by its path, and what is removed",
        [{"_id": 1, "a": {"b": 1, "c": 2}, "d": 3}],
        _of(
            _events(_set({"_id": 1}, {"$set": {"a.b": 5}, "$unset": {"d": ""}}), count=1),
            lambda found: [found[0]["updateDescription"][field] for field in ("updatedFields", "removedFields")],
        ),
        [{"a.b": 5}, ["d"]],
        f"{EVENTS}/update",
    ),
    Case(
        "the document of an update is looked up as it is then",
        ONE,
        _of(
            _events(
                _set({"_id": 1}, {"$set": {"a": 2}}),
                _set({"_id": 1}, {"$set": {"b": 3}}),
                count=1,
                full_document="updateLookup",
            ),
            lambda found: found[0]["fullDocument"],
        ),
        {"_id": 1, "a": 2, "b": 3},
        "manual: changeStreams",
    ),
    Case(
        "an upsert as an event is an insert",
        [],
        _of(
            _events(_set({"_id": 2}, {"$set": {"a": 4}}, upsert=True), count=1),
            lambda found: [found[0]["operationType"], found[0]["fullDocument"]],
        ),
        ["insert", {"_id": 2, "a": 4}],
        f"{STREAMS}/change_stream.js",
    ),
    Case(
        "a pipeline takes deletes alone",
        ONE,
        _of(
            _events(
                _insert({"_id": 2}),
                _set({"_id": 2}, {"$set": {"a": 1}}),
                _remove({"_id": 2}),
                count=1,
                pipeline=[{"$match": {"operationType": "delete"}}],
            ),
            lambda found: [[event["operationType"], event["documentKey"]] for event in found],
        ),
        [["delete", {"_id": 2}]],
        "manual: changeStreams",
    ),
    Case(
        "a rename as an event tells the new name, and ends the stream",
        ONE,
        _of(
            _events(lambda collection: collection.rename("others"), count=2),
            lambda found: [[event["operationType"], event.get("to", {}).get("coll")] for event in found],
        ),
        [["rename", "others"], ["invalidate", None]],
        f"{STREAMS}/metadata_notifications.js",
    ),
    Case(
        "a stream of the database tells of all its collections",
        [],
        _of(
            _events(_insert({"_id": 1}), _other(_insert({"_id": 2})), count=2, whole=True),
            lambda found: [event["ns"]["coll"] for event in found],
        ),
        ["cases", "others"],
        "manual: changeStreams",
    ),
    Case(
        "indexes as events, if that is asked",
        ONE,
        _of(
            _events(
                _index({"a": 1}),
                lambda collection: collection.drop_index("a_1"),
                count=2,
                show_expanded_events=True,
            ),
            lambda found: [
                [event["operationType"], event["operationDescription"]["indexes"][0]["name"]] for event in found
            ],
        ),
        [["createIndexes", "a_1"], ["dropIndexes", "a_1"]],
        f"{STREAMS}/ddl_create_drop_index_events.js",
    ),
    Case(
        "events of a transaction have its number",
        [{"_id": 0}],
        _of(
            _events(_in_a_transaction, count=2),
            lambda found: [[event["documentKey"]["_id"], "txnNumber" in event, "lsid" in event] for event in found],
        ),
        [[1, True, True], [2, True, True]],
        f"{EVENTS}/insert",
    ),
    Case("a stream goes on after an event", [], _resumed, [2, 3, 4], f"{STREAMS}/change_stream.js"),
    Case(
        "a stream that is grouped",
        ONE,
        _refusal(_piped({"$changeStream": {}}, {"$group": {"_id": "$_id"}})),
        ILLEGAL,
        f"{STREAMS}/allowlist.js",
    ),
    Case(
        "a stream that is not first",
        ONE,
        _refusal(_piped({"$match": {}}, {"$changeStream": {}})),
        _location(40602),
        "server: src/mongo/db/pipeline/pipeline.cpp",
    ),
    Case(
        "a stream of a view",
        ONE,
        after(_view(), _refusal(_other(_piped({"$changeStream": {}})))),
        ON_VIEW,
        f"{STREAMS}/ban_from_views.js",
    ),
]


# Cursors


def _got(collection: Any) -> Any:
    database = collection.database
    with database.client.start_session() as session:
        first = database.command({"find": collection.name, "sort": {"_id": 1}, "batchSize": 2}, session=session)
        cursor = first["cursor"]["id"]
        more = database.command({"getMore": Int64(cursor), "collection": collection.name}, session=session)
    return [
        _ids(first["cursor"]["firstBatch"]),
        cursor != 0,
        _ids(more["cursor"]["nextBatch"]),
        int(more["cursor"]["id"]),
    ]


def _tailed(collection: Any) -> Any:
    database = collection.database
    with database.client.start_session() as session:
        first = database.command({"find": collection.name, "tailable": True}, session=session)["cursor"]
        more = {"getMore": Int64(first["id"]), "collection": collection.name}
        empty = database.command(more, session=session)["cursor"]
        collection.insert_one({"_id": 2})
        found = database.command(more, session=session)["cursor"]
    return [_ids(first["firstBatch"]), first["id"] != 0, empty["nextBatch"], empty["id"] != 0, _ids(found["nextBatch"])]


CURSORS = [
    Case(
        "batches to the end of a cursor",
        [{"_id": place} for place in range(5)],
        _got,
        [[0, 1], True, [2, 3, 4], 0],
        "manual: reference/command/getMore",
    ),
    Case(
        "a tailable cursor waits for what comes",
        [],
        after(made(capped=True, size=4096), _insert({"_id": 1}), _tailed),
        [[1], True, [], True, [2]],
        "manual: core/tailable-cursors",
    ),
    Case(
        "a cursor that waits, and is not tailable",
        ONE,
        _refusal(_found(awaitData=True)),
        UNPARSED,
        "server: src/mongo/db/query/tailable_mode.cpp",
    ),
]


# Administration

ADMINISTRATION = [
    Case("ping", [], _admin(ping=1), 1.0, "manual: reference/command/ping"),
    Case(
        "hello of the primary",
        [],
        _admin(hello=1, of=lambda reply: [reply["isWritablePrimary"], reply["secondary"], reply["readOnly"]]),
        [True, False, False],
        "manual: reference/command/hello",
    ),
    Case(
        "the users of a connection that needs none",
        [],
        _database(
            connectionStatus=1,
            of=lambda reply: [reply["authInfo"][part] for part in ("authenticatedUsers", "authenticatedUserRoles")],
        ),
        [[], []],
        "manual: reference/command/connectionStatus",
    ),
    Case(
        "collStats counts documents and indexes",
        THREE,
        after(
            _index({"a": 1}),
            command(
                "collStats",
                of=lambda reply: [int(reply["count"]), int(reply["nindexes"]), sorted(reply["indexSizes"])],
            ),
        ),
        [3, 2, ["_id_", "a_1"]],
        "manual: reference/command/collStats",
    ),
    Case(
        "databases by a name that there is not",
        [],
        _admin(listDatabases=1, filter={"name": "there_is_no_such_database"}, of=lambda reply: reply["databases"]),
        [],
        "manual: reference/command/listDatabases",
    ),
    Case(
        "a parameter that is set, and that there is not",
        [],
        _refusal(_admin(setParameter=1, thereIsNoSuchParameter=1)),
        OPTIONS,
        "server: src/mongo/db/commands/parameters.cpp",
    ),
    Case(
        "validate of a collection that is not there",
        [],
        _refusal(command("validate")),
        NO_NAMESPACE,
        "server: src/mongo/db/catalog/collection_validation.cpp",
    ),
    Case(
        "a query that an index covers reads no document",
        THREE,
        after(
            _index({"a": 1}),
            lambda collection: [
                int(
                    collection.database.command(
                        {
                            "explain": {"find": collection.name, "filter": {"a": 2}, "projection": {"_id": 0, "a": 1}},
                            "verbosity": "executionStats",
                        }
                    )["executionStats"][part]
                )
                for part in ("nReturned", "totalKeysExamined", "totalDocsExamined")
            ],
        ),
        [1, 1, 0],
        "manual: core/query-optimization",
    ),
]

CASES = [
    *FIND,
    *SHOWN,
    *UPDATES,
    *MODIFY,
    *WRITES,
    *INDEXES,
    *COLLECTIONS,
    *VALIDATORS,
    *STAGES,
    *COMPUTATIONS,
    *IN_TRANSACTIONS,
    *CHANGES,
    *CURSORS,
    *ADMINISTRATION,
]
