"""Indexes, validators and collations: what a collection keeps, and what it refuses."""

from __future__ import annotations

import re

from bson import Int64

from gmongo import InsertOne, UpdateOne

from .cases import BULK_WRITE_ERRORS, Case, Error

FOLDING = {"locale": "en", "strength": 2}
CREATE_INDEX = "manual: reference/method/db.collection.createIndex"
PARTIAL = "manual: core/index-partial"
CATALOG = "server: src/mongo/db/catalog/index_catalog_impl.cpp"
COLLATION = "manual: reference/collation"
VALIDATION = "manual: core/schema-validation/specify-validation-level"
ID_INDEX = "server: src/mongo/db/catalog/index_key_validate.cpp"


def _made(call, **options):
    """The answer of a call on a collection that is made with options."""

    def run(collection):
        collection.drop()
        return call(collection.database.create_collection(collection.name, **options))

    return run


def _indexed(call, *keys, **options):
    def run(collection):
        collection.create_index(*keys, **options)
        return call(collection)

    return run


def _create(*keys, **options):
    return lambda collection: collection.create_index(*keys, **options)


def _insert(*documents):
    def run(collection):
        try:
            collection.bulk_write([InsertOne(document) for document in documents])
        except BULK_WRITE_ERRORS as error:
            return Error(error.details["writeErrors"][0]["code"])
        return collection.count_documents({})

    return run


def _shown(collection):
    """What listIndexes shows of the last index's collation, but for its version."""
    found = list(collection.list_indexes())[-1].get("collation")
    return found and {name: found[name] for name in ("locale", "strength", "caseLevel")}


def _updated(change, **options):
    """The answer of an update of a document that was stored before there was a validator."""

    def run(collection):
        collection.database.command("collMod", "cases", validator={"n": {"$gt": 0}}, **options)
        try:
            collection.bulk_write([UpdateOne({"_id": 1}, change)])
        except BULK_WRITE_ERRORS as error:
            return Error(error.details["writeErrors"][0]["code"])
        return collection.find_one({"_id": 1})["n"]

    return run


def _then(*calls):
    def run(collection):
        return [call(collection) for call in calls][-1]

    return run


def _views(*views, **options):
    """The answer when views are made, each of a name, what it reads and a pipeline; the last one may be changed."""

    def run(collection):
        database = collection.database
        for name in ("v", "w"):
            database.drop_collection(name)
        for name, read, pipeline in views:
            database.create_collection(name, viewOn=read, pipeline=pipeline)
        if options:
            database.command("collMod", views[0][0], **options)
        return len(views)

    return run


def _of_a_view(call, **options):
    def run(collection):
        database = collection.database
        database.drop_collection("v")
        return call(database.create_collection("v", viewOn="cases", pipeline=[], **options))

    return run


def _merged(source, target):
    """What another collection has after a ``$merge`` by ``_id``, under the collations of the two."""

    def run(collection):
        database = collection.database
        for name, collation in (("others", target), ("cases", source)):
            database.drop_collection(name)
            database.create_collection(name, **({"collation": collation} if collation else {}))
        database.others.insert_one({"_id": "x", "n": 2})
        collection.insert_one({"_id": "X", "n": 1})
        collection.aggregate([{"$merge": {"into": "others", "whenMatched": [{"$set": {"n": 1}}]}}])
        return list(database.others.find(sort={"_id": 1}))

    return run


UPPER_AND_LOWER = ({"a": "X"}, {"a": "x"})


def _options(collection):
    """What listCollections shows of the collection."""
    (found,) = collection.database.list_collections(filter={"name": collection.name})
    return found["options"]


CASES = [
    *(
        Case(
            f"a capped collection of {size!r}",
            [],
            _made(_options, capped=True, size=size, max=9.0),
            {"capped": True, "size": 100000, "max": 9},
            "server: src/mongo/db/commands/create.idl (safeInt64)",
        )
        for size in (100000, 100000.0, Int64(100000))
    ),
    # A collation is the collection's, where nothing else is said.
    Case(
        "a unique index inherits the collation",
        [],
        _made(_indexed(_insert(*UPPER_AND_LOWER), "a", unique=True), collation=FOLDING),
        Error(11000),
        COLLATION,
    ),
    Case(
        "a unique index of the simple collation",
        [],
        _made(_indexed(_insert(*UPPER_AND_LOWER), "a", unique=True, collation={"locale": "simple"}), collation=FOLDING),
        2,
        COLLATION,
    ),
    Case(
        "a unique index of a collation of its own",
        [],
        _indexed(_insert(*UPPER_AND_LOWER), "a", unique=True, collation=FOLDING),
        Error(11000),
        COLLATION,
    ),
    Case(
        "_id under the collation of the collection",
        [],
        _made(_insert({"_id": "X"}, {"_id": "x"}), collation=FOLDING),
        Error(11000),
        COLLATION,
    ),
    Case(
        "_id is found under the collation of the collection",
        [],
        _made(_then(_insert({"_id": "X"}), lambda collection: collection.find_one({"_id": "x"})), collation=FOLDING),
        {"_id": "X"},
        COLLATION,
    ),
    Case(
        "_id is found under another collation",
        [],
        _made(
            _then(
                _insert({"_id": "X"}),
                lambda collection: collection.find_one({"_id": "x"}, collation={"locale": "simple"}),
            ),
            collation=FOLDING,
        ),
        None,
        COLLATION,
    ),
    Case(
        "an update under the collation of the collection",
        [],
        _made(
            _then(
                _insert({"_id": 1, "a": "X"}),
                lambda collection: collection.update_one({"a": "x"}, {"$set": {"b": 1}}).matched_count,
            ),
            collation=FOLDING,
        ),
        1,
        COLLATION,
    ),
    Case(
        "distinct under the collation of the collection",
        [],
        _made(_then(_insert(*UPPER_AND_LOWER), lambda collection: collection.distinct("a")), collation=FOLDING),
        ["X"],
        COLLATION,
    ),
    Case(
        "a validator under the collation of the collection",
        [],
        _made(_insert({"a": "YES"}), collation=FOLDING, validator={"a": "yes"}),
        1,
        COLLATION,
    ),
    Case(
        "a partial index under the collation of the collection",
        [],
        _made(
            _indexed(
                _insert({"a": 1, "k": "YES"}, {"a": 1, "k": "yes"}),
                "a",
                unique=True,
                partialFilterExpression={"k": "yes"},
            ),
            collation=FOLDING,
        ),
        Error(11000),
        COLLATION,
    ),
    Case(
        "an index shows the collation that it inherits",
        [],
        _made(_indexed(_shown, "a"), collation=FOLDING),
        {**FOLDING, "caseLevel": False},
        COLLATION,
    ),
    Case(
        "the index of _id shows the collation that it inherits",
        [],
        _made(_shown, collation=FOLDING),
        {**FOLDING, "caseLevel": False},
        COLLATION,
    ),
    Case(
        "an index does not show the simple collation",
        [],
        _made(_indexed(_shown, "a", collation={"locale": "simple"}), collation=FOLDING),
        None,
        COLLATION,
    ),
    Case("a text index with a collation", [], _made(_create([("a", "text")]), collation=FOLDING), Error(67), COLLATION),
    Case(
        "a text index with the simple collation",
        [],
        _made(_create([("a", "text")], collation={"locale": "simple"}), collation=FOLDING),
        "a_text",
        COLLATION,
    ),
    Case(
        "the same index, its collation said again",
        [],
        _made(_indexed(_create("a", collation=FOLDING), "a"), collation=FOLDING),
        "a_1",
        CATALOG,
    ),
    *(
        Case(
            f"$merge from a collection of {source} into one of {target}",
            [],
            _merged(source, target),
            expected,
            "manual: reference/operator/aggregation/merge",
        )
        for source, target, expected in [
            (None, None, [{"_id": "X", "n": 1}, {"_id": "x", "n": 2}]),
            (FOLDING, FOLDING, [{"_id": "x", "n": 1}]),
            (None, FOLDING, Error(51183)),
            (FOLDING, None, Error(51183)),
        ]
    ),
    # The conditions of partial indexes
    *(
        Case(
            f"a partial index of {condition!r}",
            [],
            _create("a", partialFilterExpression=condition),
            expected,
            PARTIAL,
        )
        for condition, expected in [
            *(({"a": {name: 1}}, "a_1") for name in ("$eq", "$gt", "$gte", "$lt", "$lte")),
            ({"a": 1}, "a_1"),
            ({"a": {"$exists": True}}, "a_1"),
            ({"a": {"$type": "string"}}, "a_1"),
            ({"a": {"$in": [1, 2]}}, "a_1"),
            ({"$and": [{"a": 1}, {"$or": [{"b": 1}, {"c": {"$gt": 1}}]}]}, "a_1"),
            ({"$or": [{"a": 1}, {"b": 1}]}, "a_1"),
            ({"a": {"$ne": 1}}, Error(67)),
            ({"a": {"$nin": [1]}}, Error(67)),
            ({"a": {"$not": {"$gt": 1}}}, Error(67)),
            ({"a": {"$exists": False}}, Error(67)),
            ({"a": {"$regex": "x"}}, Error(67)),
            ({"a": re.compile("x")}, Error(67)),
            ({"a": {"$in": [re.compile("x")]}}, Error(67)),
            ({"a": {"$mod": [2, 0]}}, Error(67)),
            ({"a": {"$size": 1}}, Error(67)),
            ({"a": {"$elemMatch": {"$gt": 1}}}, Error(67)),
            ({"a": {"$bitsAllSet": 1}}, Error(67)),
            ({"a": {"$gt": 1, "$ne": 5}}, Error(67)),
            ({"$nor": [{"a": 1}]}, Error(67)),
            ({"$and": [{"a": 1}, {"b": {"$ne": 1}}]}, Error(67)),
            ({"$or": [{"a": 1}, {"b": {"$exists": False}}]}, Error(67)),
        ]
    ),
    # An index that is there already
    *(
        Case(f"{first!r}, then {second!r}", [], _indexed(_create("a", **second), "a", **first), expected, CATALOG)
        for first, second, expected in [
            ({}, {}, "a_1"),
            ({"expireAfterSeconds": 5}, {"expireAfterSeconds": 5}, "a_1"),
            ({"expireAfterSeconds": 5}, {"expireAfterSeconds": 6}, Error(85)),
            ({"expireAfterSeconds": 5}, {}, Error(85)),
            ({}, {"expireAfterSeconds": 5}, Error(85)),
            ({}, {"name": "b"}, Error(85)),
            ({}, {"name": "b", "expireAfterSeconds": 5}, Error(85)),
            ({}, {"unique": True}, Error(86)),
            ({"unique": True}, {}, Error(86)),
            ({}, {"unique": True, "name": "b"}, "b"),
            ({}, {"unique": False}, "a_1"),
            ({}, {"sparse": True}, Error(86)),
            ({}, {"sparse": True, "name": "b"}, "b"),
            ({}, {"collation": FOLDING}, Error(86)),
            ({}, {"collation": FOLDING, "name": "b"}, "b"),
            ({}, {"collation": {"locale": "simple"}}, "a_1"),
            ({}, {"partialFilterExpression": {"a": 1}}, Error(86)),
            ({}, {"partialFilterExpression": {"a": 1}, "name": "b"}, "b"),
            ({}, {"hidden": True}, Error(85)),
            ({}, {"background": True}, "a_1"),
        ]
    ),
    Case("another key of the same name", [], _indexed(_create("b", name="n"), "a", name="n"), Error(86), CATALOG),
    # The index of _id
    Case("an index of _id", [{"_id": 1}], _create("_id"), "_id_1", ID_INDEX),
    *(
        Case(f"an index of _id with {option}", [{"_id": 1}], _create("_id", **{option: value}), Error(197), ID_INDEX)
        for option, value in [
            ("expireAfterSeconds", 5),
            ("sparse", True),
            ("unique", True),
            ("partialFilterExpression", {"_id": 1}),
        ]
    ),
    *(
        Case(
            f"a wildcard index with {option}",
            [],
            _create("$**", **{option: 5}),
            Error(67),
            "manual: core/index-wildcard",
        )
        for option in ("expireAfterSeconds", "unique")
    ),
    Case(
        "a hint of a hidden index",
        [{"_id": 1, "a": 1}],
        _indexed(lambda collection: collection.find_one({"a": 1}, hint="a_1"), "a", hidden=True),
        Error(2),
        "manual: core/index-hidden",
    ),
    # Views
    Case("a view of a view", [], _views(("v", "cases", []), ("w", "v", [])), 2, "manual: core/views"),
    *(
        Case(name, [], call, Error(5), "server: src/mongo/db/views/view_graph.cpp")
        for name, call in [
            ("a view of itself", _views(("v", "v", []))),
            ("views of each other", _views(("v", "w", []), ("w", "v", []))),
            ("views that join each other", _views(("v", "cases", [{"$unionWith": "w"}]), ("w", "v", []))),
            (
                "views that join each other, deep within",
                _views(
                    ("v", "cases", [{"$facet": {"f": [{"$limit": 1}]}}, {"$unionWith": {"coll": "w"}}]), ("w", "v", [])
                ),
            ),
            ("a view that comes to read itself", _views(("v", "cases", []), ("w", "v", []), viewOn="w", pipeline=[])),
        ]
    ),
    *(
        Case(
            f"a view with {stage!r}", [], _views(("v", "cases", [stage])), Error(167), "manual: core/views/create-view"
        )
        for stage in ({"$out": "others"}, {"$merge": "others"})
    ),
    *(
        Case(
            f"{name} of a view with another collation", [{"_id": 1, "a": "X"}], _of_a_view(call), Error(167), COLLATION
        )
        for name, call in [
            ("find", lambda view: view.find_one({}, collation=FOLDING)),
            ("aggregate", lambda view: list(view.aggregate([], collation=FOLDING))),
            ("count", lambda view: view.count_documents({}, collation=FOLDING)),
            ("distinct", lambda view: view.distinct("a", collation=FOLDING)),
        ]
    ),
    Case(
        "find of a view with its collation",
        [{"_id": 1, "a": "X"}],
        _of_a_view(lambda view: view.find_one({"a": "x"}, collation=FOLDING), collation=FOLDING),
        {"_id": 1, "a": "X"},
        COLLATION,
    ),
    Case(
        "a view of a view with another collation",
        [],
        _then(
            _views(("v", "cases", [])),
            lambda collection: (
                collection.database.create_collection("w", viewOn="v", pipeline=[], collation=FOLDING).name
            ),
        ),
        Error(167),
        COLLATION,
    ),
    # Levels of validation
    *(
        Case(
            f"{level} validation of {before} that becomes {after}",
            [{"_id": 1, "n": before}],
            _updated({"$set": {"n": after}}, validationLevel=level),
            expected,
            VALIDATION,
        )
        for level, before, after, expected in [
            ("strict", -1, -2, Error(121)),
            ("strict", 1, -2, Error(121)),
            ("strict", -1, 2, 2),
            ("moderate", -1, -2, -2),
            ("moderate", 1, -2, Error(121)),
            ("moderate", -1, 2, 2),
            ("off", 1, -2, -2),
        ]
    ),
    *(
        Case(
            f"a schema with {name} {wanted!r}",
            [],
            _made(_insert({"n": 1}), validator={"$jsonSchema": {"properties": {"n": {name: wanted}}}}),
            expected,
            "manual: reference/operator/query/jsonSchema",
        )
        for name, wanted, expected in [
            ("type", "number", 1),
            ("bsonType", "int", 1),
            ("bsonType", ["string", "number"], 1),
            ("type", "integer", Error(9)),
            ("bsonType", "integer", Error(9)),
            ("type", "int", Error(2)),
            ("bsonType", "nope", Error(2)),
        ]
    ),
    Case(
        "moderate validation of an insert",
        [],
        _made(_insert({"n": -1}), validator={"n": {"$gt": 0}}, validationLevel="moderate"),
        Error(121),
        VALIDATION,
    ),
]
