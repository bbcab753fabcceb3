"""Index specifications, what dropIndexes and collMod say of indexes, and unique keys."""

from __future__ import annotations

from .calls import after, attempt, command, made
from .cases import Case, Error

CREATE = "server: jstests/core/ddl/create_indexes.js"
KEYS = "server: src/mongo/db/catalog/index_key_validate.cpp"
TTL = "server: jstests/core/ddl/ttl_index_options.js"
WILDCARD = "server: jstests/core/index/wildcard/wildcard_index_validindex.js"
PARTIAL = "server: jstests/core/index/index_partial_create_drop.js"
UNKNOWN = "server: jstests/core/ddl/create_indexes_with_unknown_field_names.js"
HIDDEN = "server: jstests/core/index/hidden_index.js"
DROP = "server: jstests/core/ddl/drop_indexes.js"
COLLMOD = "server: jstests/core/ddl/collmod.js"
CONVERT = "server: jstests/core/ddl/collmod_convert_index_uniqueness.js"
UNIQUE = "manual: core/index-unique"
X = {"key": {"x": 1}, "name": "x"}
ONE = [{"_id": 1, "x": 1}]


def _create(*specifications, **options):
    return command("createIndexes", indexes=list(specifications), **options)


def _names(collection):
    return sorted(index["name"] for index in collection.list_indexes())


def _last(*names):
    """What listIndexes says of the last index."""

    def run(collection):
        index = list(collection.list_indexes())[-1]
        return [index.get(name) for name in names]

    return run


def _insert(*documents):
    return lambda collection: len(collection.insert_many([dict(each) for each in documents]).inserted_ids)


def _insert_each(*documents):
    """The codes with which single inserts fail."""
    return lambda collection: [
        attempt(lambda collection, each=each: collection.insert_one(dict(each)))(collection) for each in documents
    ]


def _mod(index, **options):
    return command("collMod", index=index, **options)


def _refused(source, *pairs):
    return [
        Case(f"an index of {specification!r}"[:110], ONE, _create(specification), Error(code), source)
        for specification, code in pairs
    ]


CASES: list[Case] = [
    Case(
        "an index makes the collection",
        [],
        command(
            "createIndexes",
            indexes=[X],
            of=lambda reply: [
                reply["numIndexesAfter"] - reply["numIndexesBefore"],
                reply["createdCollectionAutomatically"],
            ],
        ),
        [1, True],
        CREATE,
    ),
    Case(
        "an index that is there",
        ONE,
        after(
            _create(X),
            command(
                "createIndexes",
                indexes=[X],
                of=lambda reply: [reply["numIndexesAfter"] - reply["numIndexesBefore"], "note" in reply],
            ),
        ),
        [0, True],
        CREATE,
    ),
    Case(
        "two indexes, of which one is there",
        ONE,
        after(
            _create(X),
            command(
                "createIndexes",
                indexes=[X, {"key": {"y": 1}, "name": "y"}],
                of=lambda reply: reply["numIndexesAfter"] - reply["numIndexesBefore"],
            ),
        ),
        1,
        CREATE,
    ),
    Case("no index", ONE, _create(), Error(2), CREATE),
    Case("one wrong index of two", ONE, after(attempt(_create({}, X)), _names), ["_id_"], CREATE),
    Case(
        "two indexes of one name",
        ONE,
        _create(X, {"key": {"y": 1}, "name": "x"}),
        Error(86),
        CREATE,
    ),
    Case("an unknown field of createIndexes", ONE, _create(X, invalidField=1), Error(40415), CREATE),
    *_refused(
        CREATE,
        ({}, 9),
        ({"key": {"x": "invalid_index_type"}, "name": "x"}, 67),
        ({"key": {"x": 1}, "name": ""}, 67),
        ({"key": {"x": 1}, "name": "x", "v": 2, "invalidField": 1}, 197),
        ({"key": {"x": 1}, "name": "*"}, 2),
        ({"key": {"x": ""}, "name": "x"}, 67),
    ),
    *_refused(
        KEYS,
        ({"key": {"x": 1}}, 9),
        ({"key": {}, "name": "x"}, 67),
        ({"key": {"x": 0}, "name": "x"}, 67),
        ({"key": {"x": True}, "name": "x"}, 67),
        ({"key": {"x..y": 1}, "name": "x"}, 67),
        ({"key": {"x.$y": 1}, "name": "x"}, 67),
        ({"key": {"_fts": 1}, "name": "x"}, 67),
        ({"key": {"x": "hashed", "y": "text"}, "name": "x"}, 67),
        ({"key": 1, "name": "x"}, 14),
        ({"key": {"x": 1}, "name": 5}, 14),
        ({**X, "unique": "x"}, 14),
        ({**X, "partialFilterExpression": 5}, 14),
        ({**X, "collation": {}}, 2),
        ({**X, "weights": {"x": 5}}, 67),
    ),
    *_refused(
        TTL,
        ({**X, "expireAfterSeconds": -1}, 67),
        ({**X, "expireAfterSeconds": 999999999999999}, 67),
        ({**X, "expireAfterSeconds": "invalidOption"}, 67),
        ({"key": {"x": 1, "y": 1}, "name": "x", "expireAfterSeconds": 100}, 67),
    ),
    *_refused(
        WILDCARD,
        ({"key": {"$**": 0}, "name": "x"}, 67),
        ({"key": {"$**": 1}, "name": "x", "sparse": True}, 67),
        ({"key": {"$**": "hashed"}, "name": "x"}, 67),
        ({"key": {"a.$**.$**": 1}, "name": "x"}, 67),
        ({"key": {"$**": 1}, "name": "x", "wildcardProjection": {}}, 9),
        ({"key": {"$**": 1}, "name": "x", "wildcardProjection": {"a": 1, "b": 0}}, 31254),
        ({"key": {"a": 1}, "name": "x", "wildcardProjection": {"a": 1}}, 2),
        ({"key": {"a.$**": 1}, "name": "x", "wildcardProjection": {"a": 1}}, 9),
    ),
    *_refused(
        "server: src/mongo/db/index/expression_params.cpp",
        ({"key": {"x": "hashed"}, "name": "x", "unique": True}, 16764),
        ({"key": {"x": "hashed", "y": "hashed"}, "name": "x"}, 31303),
    ),
    *_refused(
        PARTIAL,
        ({**X, "sparse": True, "partialFilterExpression": {"a": 1}}, 67),
        ({**X, "partialFilterExpression": {"$and": [{"$and": [{"$and": [{"$and": [{"x": 3}]}]}]}]}}, 67),
    ),
    Case(
        "a partial filter that is not too deep",
        ONE,
        after(_create({**X, "partialFilterExpression": {"$and": [{"$and": [{"$and": [{"x": 3}]}]}]}}), _names),
        ["_id_", "x"],
        PARTIAL,
    ),
    Case(
        "two partial indexes of one key are dropped by it",
        ONE,
        after(
            _create({**X, "partialFilterExpression": {"a": {"$lt": 5}}}),
            _create({"key": {"x": 1}, "name": "y", "partialFilterExpression": {"a": {"$gte": 5}}}),
            command("dropIndexes", index={"x": 1}),
        ),
        Error(181),
        PARTIAL,
    ),
    Case(
        "unknown options of an index are ignored if that is asked",
        ONE,
        after(
            _create({**X, "someField": 1}, ignoreUnknownIndexOptions=True),
            lambda collection: sorted(list(collection.list_indexes())[-1]),
        ),
        ["key", "name", "v"],
        UNKNOWN,
    ),
    Case(
        "whether unknown options are ignored is no string",
        ONE,
        _create(X, ignoreUnknownIndexOptions="badValue"),
        Error(14),
        UNKNOWN,
    ),
    Case(
        "a hidden index that is made again as a shown one",
        ONE,
        after(_create({**X, "hidden": True}), _create({**X, "hidden": False})),
        Error(85),
        HIDDEN,
    ),
    Case("hidden false is not kept", ONE, after(_create({**X, "hidden": False}), _last("hidden")), [None], HIDDEN),
    Case(
        "a second text index",
        ONE,
        after(_create({"key": {"x": "text"}, "name": "x"}), _create({"key": {"z": 1, "y": "text"}, "name": "y"})),
        Error(67),
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "an array under a hashed index",
        ONE,
        after(_create({"key": {"x": "hashed"}, "name": "x"}), lambda collection: collection.insert_one({"x": []})),
        Error(16766),
        "server: jstests/core/index/hashed/hashed_index_with_arrays.js",
    ),
    Case("_id_ is dropped", ONE, command("dropIndexes", index="_id_"), Error(72), DROP),
    Case(
        "_id_ is dropped beside another",
        ONE,
        after(_create(X), attempt(command("dropIndexes", index=["x", "_id_"])), _names),
        ["_id_", "x"],
        DROP,
    ),
    Case(
        "an index is dropped by a number",
        ONE,
        after(_create(X), command("dropIndexes", index=["x", 123])),
        Error(14),
        DROP,
    ),
    Case(
        "an unknown index is dropped",
        ONE,
        command("dropIndexes", index="y"),
        Error(27),
        "manual: reference/command/dropIndexes",
    ),
    Case(
        "how many indexes there were",
        ONE,
        after(_create(X), command("dropIndexes", index="*", of=lambda reply: reply["nIndexesWas"])),
        2,
        "manual: reference/command/dropIndexes",
    ),
    Case(
        "a unique index over values that are not",
        [{"_id": 1, "x": 1}, {"_id": 2, "x": 1.0}],
        _create({**X, "unique": True}),
        Error(11000),
        UNIQUE,
    ),
    Case(
        "a unique index stores null for what is missing",
        [],
        after(_create({**X, "unique": True}), _insert_each({"y": 1}, {"x": None})),
        [None, 11000],
        UNIQUE,
    ),
    Case(
        "a unique sparse index passes over what is missing",
        [],
        after(
            _create({**X, "unique": True, "sparse": True}), _insert_each({"y": 1}, {"y": 2}, {"x": None}, {"x": None})
        ),
        [None, None, None, 11000],
        "manual: core/index-sparse",
    ),
    Case(
        "a unique partial index looks at what its filter takes",
        [],
        after(
            _create({**X, "unique": True, "partialFilterExpression": {"age": {"$gte": 21}}}),
            _insert_each({"x": 1, "age": 20}, {"x": 1}, {"x": 1, "age": 30}, {"x": 1, "age": 22}),
        ),
        [None, None, None, 11000],
        "manual: core/index-partial",
    ),
    Case(
        "a unique index over the elements of one array",
        [],
        after(_create({**X, "unique": True}), _insert_each({"x": [1, 1]}, {"x": [2, 1]})),
        [None, 11000],
        UNIQUE,
    ),
    Case(
        "a hint of no index",
        ONE,
        lambda collection: list(collection.find({"x": 1}, hint="none")),
        Error(2),
        "manual: reference/method/cursor.hint",
    ),
    Case(
        "collMod by name and key",
        ONE,
        after(
            _create({**X, "expireAfterSeconds": 50}),
            _mod({"name": "x", "keyPattern": {"x": 1}, "expireAfterSeconds": 9}),
        ),
        Error(72),
        "server: src/mongo/db/catalog/coll_mod.cpp",
    ),
    Case("collMod of an unknown index", ONE, _mod({"name": "y", "expireAfterSeconds": 9}), Error(27), COLLMOD),
    Case(
        "collMod of an index with nothing to change",
        ONE,
        after(_create(X), _mod({"keyPattern": {"x": 1}})),
        Error(72),
        "server: src/mongo/db/catalog/coll_mod.cpp",
    ),
    Case(
        "collMod of an index with an unknown option",
        ONE,
        after(
            _create({**X, "expireAfterSeconds": 9}), _mod({"name": "x", "expireAfterSeconds": 5, "invalidOption": 1})
        ),
        Error(40415),
        "server: jstests/core/ddl/collMod_index_invalid_option.js",
    ),
    Case(
        "collMod tells the time before and after",
        ONE,
        after(
            _create({**X, "expireAfterSeconds": 50}),
            _mod(
                {"keyPattern": {"x": 1}, "expireAfterSeconds": 100},
                of=lambda reply: [int(reply["expireAfterSeconds_old"]), int(reply["expireAfterSeconds_new"])],
            ),
        ),
        [50, 100],
        "manual: reference/command/collMod",
    ),
    Case(
        "collMod hides an index and changes its time",
        ONE,
        after(
            _create({**X, "expireAfterSeconds": 10}),
            _mod({"name": "x", "expireAfterSeconds": 1, "hidden": True}),
            lambda collection: [
                (int(index["expireAfterSeconds"]), index["hidden"])
                for index in collection.list_indexes()
                if index["name"] == "x"
            ],
        ),
        [(1, True)],
        HIDDEN,
    ),
    Case(
        "collMod tells whether an index was hidden",
        ONE,
        after(
            _create(X),
            _mod({"name": "x", "hidden": True}, of=lambda reply: [reply["hidden_old"], reply["hidden_new"]]),
        ),
        [False, True],
        "manual: reference/command/collMod",
    ),
    Case(
        "collMod hides _id_",
        ONE,
        _mod({"name": "_id_", "hidden": True}),
        Error(2),
        "server: src/mongo/db/catalog/coll_mod.cpp",
    ),
    Case("collMod of no collection", [], _mod({"name": "x", "hidden": True}), Error(26), CONVERT),
    Case(
        "collMod to unique without a preparation",
        ONE,
        after(_create(X), _mod({"name": "x", "unique": True})),
        Error(72),
        CONVERT,
    ),
    Case(
        "an index that is prepared to be unique takes no more duplicates",
        ONE,
        after(
            _create(X),
            _mod({"name": "x", "prepareUnique": True}),
            lambda collection: collection.insert_one({"x": 1}),
        ),
        Error(11000),
        "manual: reference/command/collMod",
    ),
    Case(
        "collMod to unique over duplicates",
        [{"_id": 1, "x": 1}, {"_id": 2, "x": 1}],
        after(_create(X), _mod({"name": "x", "prepareUnique": True}), _mod({"name": "x", "unique": True})),
        Error(359),
        CONVERT,
    ),
    Case(
        "collMod to unique",
        ONE,
        after(
            _create(X),
            _mod({"name": "x", "prepareUnique": True}),
            _mod({"name": "x", "unique": True}),
            _last("unique"),
        ),
        [True],
        CONVERT,
    ),
    Case(
        "two indexes in a new collection",
        [],
        after(made(), _create(X, {"key": {"y": -1}, "name": "y"}), _names),
        ["_id_", "x", "y"],
        "manual: reference/command/createIndexes",
    ),
]
