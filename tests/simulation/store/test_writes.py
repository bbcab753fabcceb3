"""Tests of inserts, unique indexes and bulk writes in a simulated store."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from bson import Binary, ObjectId

from gmongo.testing.command import CommandError

from .shell import replica_set, standalone


def error_code_of(call, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_insert_moves_id_to_first_field_and_generates_missing_id():
    shell = standalone()
    assert shell.insert({"x": 1, "_id": 5}, {"y": 1}) == {"n": 2}
    first, second = shell.find()
    assert list(first) == ["_id", "x"]
    assert isinstance(second["_id"], ObjectId)


def test_stored_document_is_copy_of_inserted_document():
    shell = standalone()
    document = {"_id": 1, "x": [1]}
    shell.insert(document)
    shell.update({"_id": 1}, {"$push": {"x": 2}})
    assert document == {"_id": 1, "x": [1]}
    assert shell.find() == [{"_id": 1, "x": [1, 2]}]


def test_duplicate_id_returns_duplicate_key_error():
    shell = standalone()
    reply = shell.insert({"_id": 1}, {"_id": 1.0}, {"_id": 2})
    assert reply == {
        "n": 1,
        "writeErrors": [
            {
                "index": 1,
                "code": 11000,
                "keyPattern": {"_id": 1},
                "keyValue": {"_id": 1.0},
                "errmsg": "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1.0 }",
            }
        ],
    }
    reply = shell.insert({"_id": 1}, {"_id": 2}, ordered=False)
    assert (reply["n"], [error["index"] for error in reply["writeErrors"]]) == (1, [0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Binary(bytes(15) + b"\x05", 4), 'UUID("00000000-0000-0000-0000-000000000005")'),
        (b"\x01\xab", "BinData(0, 01AB)"),
        (Binary(b"\x01", 5), "BinData(5, 01)"),
        (datetime(2020, 1, 1, tzinfo=timezone.utc), "new Date(1577836800000)"),
        ({"a": [1, "x"]}, '{ a: [ 1, "x" ] }'),
    ],
)
def test_duplicate_key_error_has_text_and_order_of_mongodb_6_0_5(value, text):
    shell = standalone()
    error = shell.insert({"_id": value}, {"_id": value})["writeErrors"][0]
    assert error["errmsg"].endswith(f"dup key: {{ _id: {text} }}")
    assert list(error) == ["index", "code", "errmsg", "keyPattern", "keyValue"]


def test_unique_index_refuses_duplicates():
    shell = standalone()
    shell("createIndexes", "c", indexes=[{"key": {"a": 1, "b": 1}, "name": "ab", "unique": True, "sparse": True}])
    shell.insert({"_id": 1, "a": [1, 2], "b": "x"}, {"_id": 2}, {"_id": 3})
    error = shell.insert({"_id": 4, "a": 2, "b": "x"})["writeErrors"][0]
    assert error["keyValue"] == {"a": 2, "b": "x"}
    assert error["errmsg"].endswith('index: ab dup key: { a: 2, b: "x" }')
    shell.update({"_id": 1}, {"$set": {"a": 9}})
    assert shell.insert({"_id": 4, "a": 2, "b": "x"}) == {"n": 1}
    assert shell.update({"_id": 4}, {"$set": {"a": 9}})["writeErrors"][0]["code"] == 11000
    shell("delete", "c", deletes=[{"q": {"_id": 1}, "limit": 1}])
    assert shell.update({"_id": 4}, {"$set": {"a": 9}})["nModified"] == 1


def run_bulk_write(shell, *ops, **options):
    return shell("bulkWrite", 1, "admin", ops=list(ops), nsInfo=[{"ns": "db.c"}, {"ns": "other.d"}], **options)


def test_bulk_write_returns_result_of_each_operation():
    shell = replica_set()
    reply = run_bulk_write(
        shell,
        {"insert": 0, "document": {"_id": 1}},
        {"insert": 1, "document": {"_id": 1}},
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"x": 1}}},
        {"update": 0, "filter": {"_id": 2}, "updateMods": {"x": 2}, "upsert": True},
        {"delete": 1, "filter": {}, "multi": True},
    )
    counts = {name: reply.pop(name) for name in list(reply) if name != "cursor"}
    assert counts == {"nErrors": 0, "nInserted": 2, "nMatched": 1, "nModified": 1, "nUpserted": 1, "nDeleted": 1}
    assert reply["cursor"] == {
        "firstBatch": [
            {"ok": 1.0, "idx": 0, "n": 1},
            {"ok": 1.0, "idx": 1, "n": 1},
            {"ok": 1.0, "idx": 2, "n": 1, "nModified": 1},
            {"ok": 1.0, "idx": 3, "n": 1, "nModified": 0, "upserted": {"_id": 2}},
            {"ok": 1.0, "idx": 4, "n": 1},
        ],
        "id": 0,
        "ns": "admin.$cmd.bulkWrite",
    }
    assert shell.find() == [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}]


@pytest.mark.parametrize(("ordered", "inserted"), [(True, 1), (False, 2)])
def test_only_ordered_bulk_write_stops_at_first_error(ordered, inserted):
    shell = replica_set()
    documents = [{"insert": 0, "document": {"_id": document_id}} for document_id in (1, 1, 2)]
    reply = run_bulk_write(shell, *documents, ordered=ordered, errorsOnly=True)
    assert (reply["nErrors"], reply["nInserted"]) == (1, inserted)
    [error] = reply["cursor"]["firstBatch"]
    assert (error["ok"], error["idx"], error["code"], error["keyValue"]) == (0.0, 1, 11000, {"_id": 1})


def test_bulk_write_cursor_has_batches_of_results():
    shell = replica_set()
    documents = [{"insert": 0, "document": {"_id": document_id}} for document_id in range(5)]
    cursor = run_bulk_write(shell, *documents, cursor={"batchSize": 2})["cursor"]
    assert len(cursor["firstBatch"]) == 2
    more = shell("getMore", cursor["id"], "admin", collection="$cmd.bulkWrite")["cursor"]
    assert [one["idx"] for one in more["nextBatch"]] == [2, 3, 4]
    assert more["id"] == 0


def test_bulk_write_command_needs_admin_database_and_version_8_0():
    body = {"ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "db.c"}]}
    assert error_code_of(replica_set(), "bulkWrite", 1, **body) == 13
    assert error_code_of(replica_set(version=(7, 0)), "bulkWrite", 1, "admin", **body) == 59
