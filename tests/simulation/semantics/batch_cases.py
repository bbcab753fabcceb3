"""Find-and-modify, inserts, bulks and deletes, and cursors that are read on."""

from __future__ import annotations

from typing import Any

from bson import Int64

from gmongo import DeleteMany, InsertOne, ReplaceOne, UpdateOne

from .calls import after, attempt, command, made, stored
from .cases import Case, find
from .refusals import (
    DUPLICATE,
    ONE,
    THREE,
    UNPARSED,
    WRITE,
    first_error,
    found,
    ids,
    inserted,
    make_index,
    of,
    refusal,
    write_code,
)

MODIFY = [
    Case(
        "findAndModify removes and updates",
        ONE,
        refusal(command("findAndModify", query={}, update={"a": 2}, remove=True)),
        UNPARSED,
        f"{WRITE}/find_and_modify/find_and_modify_invalid_query_params.js",
    ),
    Case(
        "findAndModify into a duplicate",
        THREE,
        after(
            make_index({"a": 1}, unique=True),
            refusal(command("findAndModify", query={"_id": 1}, update={"$set": {"a": 2}})),
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
            make_index({"a": 1, "b": 1}, unique=True),
            of(
                first_error("insert", documents=[{"_id": 2, "a": 1, "b": 2}]),
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
            make_index({"tags": 1}, unique=True),
            of(first_error("insert", documents=[{"_id": 2, "tags": ["x", "y"]}]), lambda error: error["keyValue"]),
        ),
        {"tags": "y"},
        "server: src/mongo/db/storage/duplicate_key_error_info.cpp",
    ),
    Case(
        "a duplicate of what is missing is told as null",
        [{"_id": 1}],
        after(
            make_index({"email": 1}, unique=True),
            of(first_error("insert", documents=[{"_id": 2}]), lambda error: error["keyValue"]),
        ),
        {"email": None},
        "manual: core/index-unique",
    ),
    Case(
        "an update into a duplicate is told by its path",
        [{"_id": 1, "a": {"b": 1}}, {"_id": 2, "a": {"b": 2}}],
        after(
            make_index({"a.b": 1}, unique=True),
            of(
                first_error("update", updates=[{"q": {"_id": 2}, "u": {"$set": {"a.b": 1}}}]),
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
        write_code("insert", documents=[{"_id": {"$oid": "507f191e810c19729de860ea"}}]),
        52,
        "server: src/mongo/db/update/storage_validation.cpp",
    ),
    Case(
        "insert refuses a field that it does not know",
        [],
        attempt(command("insert", documents=[{"_id": 1}], document={"_id": 2})),
        40415,
        "server: src/mongo/db/ops/write_ops.idl (the code; its name is not compared)",
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


def _got(collection: Any) -> Any:
    database = collection.database
    with database.client.start_session() as session:
        first = database.command({"find": collection.name, "sort": {"_id": 1}, "batchSize": 2}, session=session)
        cursor = first["cursor"]["id"]
        more = database.command({"getMore": Int64(cursor), "collection": collection.name}, session=session)
    return [
        ids(first["cursor"]["firstBatch"]),
        cursor != 0,
        ids(more["cursor"]["nextBatch"]),
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
    return [ids(first["firstBatch"]), first["id"] != 0, empty["nextBatch"], empty["id"] != 0, ids(found["nextBatch"])]


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
        after(made(capped=True, size=4096), inserted({"_id": 1}), _tailed),
        [[1], True, [], True, [2]],
        "manual: core/tailable-cursors",
    ),
    Case(
        "a cursor that waits, and is not tailable",
        ONE,
        refusal(found(awaitData=True)),
        UNPARSED,
        "server: src/mongo/db/query/tailable_mode.cpp",
    ),
]

CASES = [*MODIFY, *WRITES, *CURSORS]
