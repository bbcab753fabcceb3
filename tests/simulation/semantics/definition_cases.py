"""Definitions of indexes, collections, views and validators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bson import Regex

from .calls import Call, after, attempt, command, made, stored
from .cases import Case, aggregate
from .refusals import (
    DDL,
    NOT_CREATED,
    ON_VIEW,
    ONE,
    OPTIONS,
    UNPARSED,
    batch,
    by_name,
    changed,
    first_error,
    inserted,
    make,
    make_index,
    not_indexed,
    of,
    of_others,
    refusal,
    update_code,
    view,
    write_code,
)

SERIES = "server: jstests/core/timeseries/ddl/timeseries_create.js"


def _listed(name: str) -> Call:
    """An index as it is listed, its fields in the order of their names."""

    def run(collection: Any) -> Any:
        (found,) = (each for each in batch("listIndexes")(collection) if each["name"] == name)
        return by_name(found)

    return run


INDEXES = [
    Case(
        "documents expire by one field alone",
        ONE,
        not_indexed({"a": 1, "b": 1}, expireAfterSeconds=100),
        NOT_CREATED,
        f"{DDL}/ttl_index_options.js",
    ),
    Case(
        "an index by which documents expire is listed",
        ONE,
        after(make_index({"at": 1}, expireAfterSeconds=3600), _listed("at_1")),
        {"expireAfterSeconds": 3600, "key": {"at": 1}, "name": "at_1", "v": 2},
        "manual: core/index-ttl",
    ),
    Case(
        "the same index with another time to expire",
        ONE,
        after(make_index({"at": 1}, expireAfterSeconds=3600), not_indexed({"at": 1}, expireAfterSeconds=60)),
        [85, "IndexOptionsConflict"],
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "the same index, now unique",
        ONE,
        after(make_index({"a": 1}), not_indexed({"a": 1}, unique=True)),
        [86, "IndexKeySpecsConflict"],
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "an index of a kind that there is not",
        ONE,
        not_indexed({"a": "invalid_index_type"}),
        NOT_CREATED,
        f"{DDL}/create_indexes.js",
    ),
    Case(
        "a partial index that is sparse",
        ONE,
        not_indexed({"a": 1}, sparse=True, partialFilterExpression={"a": {"$gt": 1}}),
        NOT_CREATED,
        "server: src/mongo/db/catalog/index_catalog_impl.cpp",
    ),
    Case(
        "a partial index of what is not equal",
        ONE,
        not_indexed({"a": 1}, partialFilterExpression={"a": {"$ne": 1}}),
        NOT_CREATED,
        "manual: core/index-partial",
    ),
    Case(
        "more indexes than there may be",
        ONE,
        refusal(command("createIndexes", indexes=[{"key": {f"i{n}": 1}, "name": f"i{n}"} for n in range(64)])),
        NOT_CREATED,
        f"{DDL}/index_create_too_many.js",
    ),
    Case(
        "an index of places is listed with its version",
        [],
        after(make_index({"at": "2dsphere"}), _listed("at_2dsphere")),
        {"2dsphereIndexVersion": 3, "key": {"at": "2dsphere"}, "name": "at_2dsphere", "v": 2},
        "manual: core/indexes/index-types/geospatial/2dsphere",
    ),
    Case(
        "an index of places takes no other document",
        [],
        after(
            make_index({"at": "2dsphere"}),
            write_code("insert", documents=[{"_id": 1, "at": {"type": "Point", "coordinates": [500, 500]}}]),
        ),
        16755,
        "server: src/mongo/db/index/expression_keys_private.cpp",
    ),
    Case(
        "all indexes but that of the _id are dropped",
        ONE,
        after(
            make_index({"a": 1}),
            make_index({"b": -1}, name="of_b"),
            command("dropIndexes", index="*"),
            lambda collection: [each["name"] for each in batch("listIndexes")(collection)],
        ),
        ["_id_"],
        "manual: reference/command/dropIndexes",
    ),
]
SEEN = [{"_id": 1, "a": 1, "b": "x"}, {"_id": 2, "a": 5, "b": "y"}, {"_id": 3, "a": 9, "b": "z"}]

COLLECTIONS = [
    Case(
        "a view filters, projects and is filtered again",
        SEEN,
        after(
            view({"$match": {"a": {"$gt": 1}}}, {"$project": {"b": 1}}),
            lambda collection: list(collection.database.others.find({"b": "z"})),
        ),
        [{"_id": 3, "b": "z"}],
        "manual: core/views",
    ),
    Case(
        "a view is counted",
        SEEN,
        after(view({"$match": {"a": {"$gt": 1}}}), of_others(command("count", of=lambda reply: int(reply["n"])))),
        2,
        "server: jstests/core/views/views_count.js",
    ),
    Case(
        "the distinct values of a view",
        SEEN,
        after(
            view({"$match": {"a": {"$gt": 1}}}),
            of_others(command("distinct", key="b", of=lambda reply: sorted(reply["values"]))),
        ),
        ["y", "z"],
        "server: jstests/core/views/views_distinct.js",
    ),
    Case(
        "an insert into a view",
        SEEN,
        after(view(), of_others(write_code("insert", documents=[{"_id": 4}]))),
        166,
        "manual: core/views",
    ),
    Case(
        "an index of a view",
        SEEN,
        after(view(), refusal(of_others(make_index({"a": 1})))),
        ON_VIEW,
        "manual: core/views",
    ),
    Case(
        "a view by the name of a collection",
        SEEN,
        refusal(view()),
        [48, "NamespaceExists"],
        "server: jstests/core/views/views_creation.js",
        others=ONE,
    ),
    Case(
        "drop tells how many indexes there were",
        ONE,
        after(make_index({"a": 1}), command("drop", of=lambda reply: reply["nIndexesWas"])),
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
        refusal(make(expireAfterSeconds=60)),
        OPTIONS,
        "server: src/mongo/db/commands/create_command.cpp",
    ),
    Case(
        "a clustered collection is listed with its index",
        [],
        after(
            make(clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "by id"}),
            lambda collection: by_name(collection.options()["clusteredIndex"]),
        ),
        {"key": {"_id": 1}, "name": "by id", "unique": True, "v": 2},
        "manual: core/clustered-collections",
    ),
    Case(
        "a time series by a field in a document",
        [],
        refusal(make(timeseries={"timeField": "sub.time"})),
        OPTIONS,
        SERIES,
    ),
    Case(
        "a measurement without a time",
        [],
        after(make(timeseries={"timeField": "time"}), write_code("insert", documents=[{"_id": 1, "a": 1}])),
        2,
        "server: jstests/noPassthrough/timeseries_insert_invalid_timefield.js",
    ),
    Case(
        "a time series without its field of time",
        [],
        attempt(make(timeseries={"metaField": "meta"})),
        40414,
        "server: src/mongo/db/timeseries/timeseries.idl (the code; its name is not compared)",
    ),
    Case(
        "measurements of a time series by their sensor",
        [],
        after(
            make(timeseries={"timeField": "at", "metaField": "sensor"}),
            lambda collection: collection.insert_many(
                [{"_id": n, "at": datetime(2024, 1, 1, n), "sensor": n % 2, "t": n * 10} for n in range(4)]
            ),
            aggregate({"$group": {"_id": "$sensor", "most": {"$max": "$t"}}}, {"$sort": {"_id": 1}}),
        ),
        [{"_id": 0, "most": 20}, {"_id": 1, "most": 30}],
        "manual: core/timeseries-collections",
    ),
]
AGED = {"$jsonSchema": {"required": ["age"], "properties": {"age": {"bsonType": "int", "minimum": 0}}}}

VALIDATORS = [
    Case(
        "a document that fails is named",
        [],
        after(
            made(validator=AGED),
            of(
                first_error("insert", documents=[{"_id": 1, "age": 3}, {"_id": 2}]),
                lambda error: [error["index"], error["code"], error["errInfo"]["failingDocumentId"]],
            ),
        ),
        [1, 121, 2],
        "manual: core/schema-validation/handle-invalid-documents",
    ),
    Case(
        "an update that would fail",
        [],
        after(made(validator=AGED), inserted({"_id": 1, "age": 3}), update_code({"_id": 1}, {"$inc": {"age": -9}})),
        121,
        "manual: core/schema-validation",
    ),
    Case(
        "a document that fails already may be updated, if that is moderate",
        [{"_id": 1, "age": "old"}],
        after(
            command("collMod", validator=AGED, validationLevel="moderate"),
            changed({"_id": 1}, {"$set": {"name": "x"}}),
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
        after(made(validator={"$or": [{"a": {"$gt": 5}}, {"b": Regex("^x")}]}), write_code("insert", documents=[{}])),
        121,
        "manual: core/schema-validation/specify-query-expression-rules",
    ),
    Case(
        "a schema without further properties counts the _id",
        [],
        after(
            made(validator={"$jsonSchema": {"properties": {"a": {}}, "additionalProperties": False}}),
            write_code("insert", documents=[{"_id": 1, "a": 1}]),
        ),
        121,
        "manual: core/schema-validation/specify-json-schema/json-schema-tips",
    ),
    Case(
        "a schema with a type of JSON Schema that is not supported",
        [],
        refusal(made(validator={"$jsonSchema": {"properties": {"a": {"type": "integer"}}}})),
        UNPARSED,
        "manual: reference/operator/query/jsonSchema",
    ),
]

CASES = [*INDEXES, *COLLECTIONS, *VALIDATORS]
