"""What create takes, schemas and what an error says of them, and views."""

from __future__ import annotations

from bson import Int64

from .calls import after, attempt, command, made, stored
from .cases import WRITE_ERRORS, Case, Error, aggregate, find

CREATE = "server: jstests/core/ddl/create_collection.js"
SCHEMA = "server: jstests/core/query/json_schema/json_schema.js"
DEPENDENCIES = "server: jstests/core/query/json_schema/dependencies.js"
MISC = "server: jstests/core/query/json_schema/misc_validation.js"
ERRORS = "server: jstests/core/doc_validation/doc_validation_error.js"
BYPASS = "server: jstests/core/doc_validation/bypass_doc_validation.js"
VIEWS = "server: jstests/core/views/views_creation.js"
COMMANDS = "server: jstests/core/views/views_all_commands.js"
CHANGE = "server: jstests/core/views/views_change.js"
KEYWORDS = "manual: reference/operator/query/jsonSchema"
NUMBERS = [
    {"_id": 0, "num": 3},
    {"_id": 1, "num": -3},
    {"_id": 2, "num": 2},
    {"_id": 3, "num": -2},
    {"_id": 4, "num": Int64(1)},
    {"_id": 5, "num": Int64(-1)},
    {"_id": 6, "num": {}},
    {"_id": 7, "num": "str"},
    {"_id": 8, "num": "string"},
    {"_id": 9},
]
OBJECTS = [
    {"_id": 0},
    {"_id": 1, "foo": 1},
    {"_id": 2, "bar": 1},
    {"_id": 3, "foo": 1, "bar": 1},
    {"_id": 4, "foo": 1, "bar": 1, "baz": 1},
]


def _create(**options):
    """Makes a collection where there is none."""
    return after(lambda collection: collection.drop(), command("create", **options))


def _schema(documents, schema, found, source):
    return Case(f"the schema {schema!r}"[:110], documents, find({"$jsonSchema": schema}), found, source)


def _num(restriction, found):
    return _schema(NUMBERS, {"properties": {"num": restriction}}, found, SCHEMA)


def _sorted(value):
    """The order of fields is not documented."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _explained(validator, document):
    """What a write error says of a document that a validator refuses."""

    def run(collection):
        made(validator=validator)(collection)
        try:
            collection.insert_one(document)
        except WRITE_ERRORS as error:
            return _sorted(error.details["errInfo"]["details"])
        return None

    return run


def _viewed(pipeline, call, **options):
    """The answer of a call on a view of the collection."""

    def run(collection):
        database = collection.database
        database.drop_collection("viewed")
        database.create_collection("viewed", viewOn=collection.name, pipeline=pipeline, **options)
        try:
            return call(database["viewed"])
        finally:
            database.drop_collection("viewed")

    return run


def _required(call):
    """The answer of a call on a collection that requires ``a``, which one document does not have."""
    return after(command("collMod", validator={"$jsonSchema": {"required": ["a"]}}), call)


BARE = [{"_id": 1}]
CASES: list[Case] = [
    Case("create with an unknown option", [], _create(unknown=1), Error(40415), CREATE),
    Case("create of a capped collection without a size", [], _create(capped=True), Error(72), CREATE),
    Case("create of a capped collection with a maximum alone", [], _create(capped=True, max=10), Error(72), CREATE),
    Case("create with a size and not capped", [], _create(capped=False, size=256), Error(72), CREATE),
    Case(
        "create with an idIndex of another key",
        [],
        _create(idIndex={"key": {"a": 1}, "name": "_id_"}),
        Error(2),
        CREATE,
    ),
    Case("create with an empty idIndex", [], _create(idIndex={}), Error(9), CREATE),
    Case(
        "create with a sparse idIndex",
        [],
        _create(idIndex={"key": {"_id": 1}, "name": "_id_", "sparse": True}),
        Error(197),
        CREATE,
    ),
    Case(
        "create with an idIndex of another name",
        [],
        after(
            _create(idIndex={"key": {"_id": 1}, "name": "a_1"}),
            lambda collection: [index["name"] for index in collection.list_indexes()],
        ),
        ["_id_"],
        CREATE,
    ),
    Case("create again", [], after(_create(), command("create")), 1.0, CREATE),
    Case(
        "create again with other options",
        [],
        after(_create(), command("create", collation={"locale": "fr"})),
        Error(48),
        CREATE,
    ),
    Case(
        "create with a name that is too long",
        [],
        lambda collection: collection.database.command({"create": "a" * 255}),
        Error(73),
        CREATE,
    ),
    _num({"type": "number"}, [0, 1, 2, 3, 4, 5, 9]),
    _num({"bsonType": "long"}, [4, 5, 9]),
    _num({"maximum": 0}, [1, 3, 5, 6, 7, 8, 9]),
    _num({"type": "string", "minLength": 4}, [8, 9]),
    _num({"type": "string", "pattern": "ing"}, [8, 9]),
    _schema(NUMBERS, {"type": "string"}, [], SCHEMA),
    _schema(OBJECTS, {"dependencies": {"foo": ["bar", "baz"]}}, [0, 2, 4], DEPENDENCIES),
    _schema(
        OBJECTS,
        {"dependencies": {"foo": {"required": ["bar"], "properties": {"baz": {"type": "string"}}}}},
        [0, 2, 3],
        DEPENDENCIES,
    ),
    _schema(OBJECTS, {"properties": {"_id": {}, "foo": {}}, "additionalProperties": False}, [0, 1], KEYWORDS),
    _schema(OBJECTS, {"patternProperties": {"^ba": {"type": "string"}}}, [0, 1], KEYWORDS),
    _schema(OBJECTS, {"minProperties": 3}, [3, 4], KEYWORDS),
    _schema(OBJECTS, {"oneOf": [{"required": ["foo"]}, {"required": ["bar"]}]}, [1, 2], KEYWORDS),
    _schema(OBJECTS, {"not": {"required": ["foo"]}}, [0, 2], KEYWORDS),
    _schema(
        [{"_id": 1, "a": [1, "x"]}, {"_id": 2, "a": ["x"]}, {"_id": 3, "a": [1, 2, 3]}, {"_id": 4, "a": 5}],
        {"properties": {"a": {"items": [{"type": "number"}], "additionalItems": {"type": "number"}}}},
        [3, 4],
        KEYWORDS,
    ),
    Case("a schema with an unknown keyword", NUMBERS, find({"$jsonSchema": {"invalid": {}}}), Error(9), MISC),
    Case("a schema that requires nothing", NUMBERS, find({"$jsonSchema": {"required": []}}), Error(9), KEYWORDS),
    Case(
        "a schema looks past the collation",
        [{"_id": 1, "a": "str"}],
        lambda collection: [
            collection.count_documents(filter, collation={"locale": "en_US", "strength": 1})
            for filter in ({"$jsonSchema": {"properties": {"a": {"enum": ["STR"]}}}}, {"a": "STR"})
        ],
        [0, 1],
        MISC,
    ),
    Case(
        "an error tells which property has the wrong type",
        [],
        _explained(
            {"$jsonSchema": {"properties": {"children": {"bsonType": ["array"], "description": "must be an array"}}}},
            {"_id": 1, "children": 2},
        ),
        _sorted(
            {
                "operatorName": "$jsonSchema",
                "schemaRulesNotSatisfied": [
                    {
                        "operatorName": "properties",
                        "propertiesNotSatisfied": [
                            {
                                "propertyName": "children",
                                "description": "must be an array",
                                "details": [
                                    {
                                        "operatorName": "bsonType",
                                        "specifiedAs": {"bsonType": ["array"]},
                                        "reason": "type did not match",
                                        "consideredValue": 2,
                                        "consideredType": "int",
                                    }
                                ],
                            }
                        ],
                    }
                ],
            }
        ),
        ERRORS,
    ),
    Case(
        "an error tells which properties are missing",
        [],
        _explained({"$jsonSchema": {"required": ["name", "year"]}}, {"_id": 1, "year": 2}),
        _sorted(
            {
                "operatorName": "$jsonSchema",
                "schemaRulesNotSatisfied": [
                    {
                        "operatorName": "required",
                        "specifiedAs": {"required": ["name", "year"]},
                        "missingProperties": ["name"],
                    }
                ],
            }
        ),
        ERRORS,
    ),
    Case(
        "an error tells which clauses of $or did not match",
        [],
        _explained(
            {"$or": [{"phone": {"$type": "string"}}, {"status": {"$in": ["Unknown", "Incomplete"]}}]},
            {"_id": 1},
        ),
        _sorted(
            {
                "operatorName": "$or",
                "clausesNotSatisfied": [
                    {
                        "index": 0,
                        "details": {
                            "operatorName": "$type",
                            "specifiedAs": {"phone": {"$type": "string"}},
                            "reason": "field was missing",
                        },
                    },
                    {
                        "index": 1,
                        "details": {
                            "operatorName": "$in",
                            "specifiedAs": {"status": {"$in": ["Unknown", "Incomplete"]}},
                            "reason": "field was missing",
                        },
                    },
                ],
            }
        ),
        ERRORS,
    ),
    Case(
        "an error tells what was compared",
        [],
        _explained({"a": 1}, {"_id": 1, "a": 2}),
        _sorted({"operatorName": "$eq", "specifiedAs": {"a": 1}, "reason": "comparison failed", "consideredValue": 2}),
        "server: jstests/core/doc_validation/doc_validation_options.js",
    ),
    Case(
        "a validator that warns",
        [],
        after(
            made(validator={"a": 1}, validationAction="warn"),
            lambda collection: collection.insert_one({"_id": 1}),
            stored,
        ),
        [{"_id": 1}],
        "server: jstests/core/doc_validation/doc_validation_options.js",
    ),
    Case(
        "$out into a collection with a validator",
        [{"_id": 1}],
        after(
            lambda collection: collection.database.create_collection("others", validator={"a": {"$exists": True}}),
            aggregate({"$out": "others"}),
        ),
        Error(121),
        BYPASS,
    ),
    Case(
        "findAndModify past a validator",
        BARE,
        _required(
            command(
                "findAndModify",
                update={"$set": {"b": 1}},
                new=True,
                bypassDocumentValidation=True,
                of=lambda reply: reply["value"],
            )
        ),
        {"_id": 1, "b": 1},
        BYPASS,
    ),
    Case(
        "an update by a pipeline under a validator",
        BARE,
        _required(lambda collection: collection.update_one({}, [{"$set": {"b": 1}}])),
        Error(121),
        BYPASS,
    ),
    Case(
        "a view as it is listed",
        BARE,
        _viewed(
            [{"$match": {}}],
            lambda view: list(view.database.list_collections(filter={"name": "viewed"})),
        ),
        [
            {
                "name": "viewed",
                "type": "view",
                "options": {"viewOn": "cases", "pipeline": [{"$match": {}}]},
                "info": {"readOnly": True},
            }
        ],
        VIEWS,
    ),
    Case(
        "a pipeline without what it views",
        [],
        lambda collection: collection.database.command({"create": "viewed", "pipeline": []}),
        Error(72),
        "server: src/mongo/db/commands/create_command.cpp",
    ),
    Case(
        "a view with an idIndex",
        [],
        lambda collection: collection.database.command(
            {"create": "viewed", "viewOn": "cases", "idIndex": {"key": {"_id": 1}, "name": "_id_"}}
        ),
        Error(72),
        CREATE,
    ),
    Case(
        "a view with $out within $facet",
        BARE,
        _viewed([{"$facet": {"output": [{"$out": "others"}]}}], lambda view: None),
        Error(40600),
        VIEWS,
    ),
    *[
        Case(f"{name} of a view", BARE, _viewed([], call), Error(166), COMMANDS)
        for name, call in (
            ("an insert", lambda view: view.insert_one({})),
            ("a delete", lambda view: view.delete_one({"_id": 1})),
            ("findAndModify", lambda view: view.find_one_and_update({}, {"$set": {"a": 2}})),
            ("createIndexes", lambda view: view.create_index("a")),
            ("dropIndexes", lambda view: view.drop_indexes()),
        )
    ],
    Case(
        "a view whose pipeline is changed",
        [{"_id": 1, "a": 1}, {"_id": 2, "a": 7}],
        _viewed(
            [{"$match": {"a": 1}}],
            after(command("collMod", viewOn="cases", pipeline=[{"$match": {"a": {"$gt": 4}}}]), stored),
        ),
        [{"_id": 2, "a": 7}],
        CHANGE,
    ),
    Case(
        "a view whose collection is dropped",
        BARE,
        _viewed([], after(lambda view: view.database.drop_collection("cases"), stored)),
        [],
        CHANGE,
    ),
    Case(
        "a cursor of a view has the view's name",
        [{"_id": 1}, {"_id": 2}],
        _viewed([], command("find", batchSize=1, of=lambda reply: reply["cursor"]["ns"].split(".")[1])),
        "viewed",
        COMMANDS,
    ),
    Case(
        "a validator that is no document",
        [],
        after(
            attempt(_create(validator=7)),
            lambda collection: collection.name in collection.database.list_collection_names(),
        ),
        False,
        "server: jstests/core/doc_validation/doc_validation_invalid_validators.js",
    ),
]
