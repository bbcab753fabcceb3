from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gmongo import DeleteMany, DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateMany, UpdateOne, WriteConcern
from gmongo.errors import BulkWriteError
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

from .recording import Recorded, ignore_error_before, recorded_collection

EMPTY = {
    "writeErrors": [],
    "writeConcernErrors": [],
    "nInserted": 0,
    "nUpserted": 0,
    "nMatched": 0,
    "nModified": 0,
    "nRemoved": 0,
    "upserted": [],
}


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        recorded.collection.insert_many([{"_id": n, "kind": n % 2} for n in range(6)])
        recorded.recorder.clear()
        yield recorded


def test_ordered_bulk_sends_one_command_per_run_of_equal_kinds(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.bulk_write(
        [
            InsertOne({"_id": "a"}),
            InsertOne({"_id": "b"}),
            DeleteOne({"_id": "a"}),
            UpdateOne({"_id": "b"}, {"$set": {"x": 1}}),
            ReplaceOne({"_id": "b"}, {"x": 2}),
            InsertOne({"_id": "c"}),
        ],
        comment="why",
        bypass_document_validation=True,
        let={"y": 1},
    )
    assert recorder.commands == ["insert", "delete", "update", "insert"]
    assert len({event.operation_id for event in recorder.events_named("CommandStarted")}) == 1
    assert len({event.request_id for event in recorder.events_named("CommandStarted")}) == 4
    for event in recorder.events_named("CommandStarted"):
        assert event.command["ordered"] is True
        assert event.command["comment"] == "why"
        # Servers reject the field `let` in an insert command.
        assert event.command.get("let") == (None if event.command_name == "insert" else {"y": 1})
        assert event.command["bypassDocumentValidation"] is True


def test_unordered_bulk_sends_one_command_per_kind(recorded: Recorded) -> None:
    collection, recorder = recorded
    writes = [
        InsertOne({"_id": "a"}),
        DeleteOne({"_id": 1}),
        InsertOne({"_id": "b"}),
        UpdateOne({"_id": "u"}, {"$set": {"x": 1}}, upsert=True),
        DeleteOne({"_id": 2}),
    ]
    result = collection.bulk_write(writes, ordered=False)
    assert recorder.commands == ["insert", "update", "delete"]
    assert all(event.command["ordered"] is False for event in recorder.events_named("CommandStarted"))
    assert result.upserted_ids == {3: "u"}
    assert (result.inserted_count, result.deleted_count) == (2, 2)


def test_bulk_write_sends_options_of_each_model(recorded: Recorded) -> None:
    collection, recorder = recorded
    common: dict[str, Any] = {"collation": {"locale": "fr"}, "hint": [("_id", 1)]}
    sent = {"collation": {"locale": "fr"}, "hint": {"_id": 1}}
    updates = [
        UpdateOne({"a": 1}, {"$set": {"b.$[x]": 1}}, array_filters=[{"x": 1}], sort={"a": 1}, **common),
        UpdateMany({"a": 1}, {"$set": {"b": 1}}, **common),
        ReplaceOne({"a": 1}, {"b": 1}, sort=[("a", -1)], **common),
    ]
    with ignore_error_before(collection, "8.0"):
        collection.bulk_write(updates)
    collection.bulk_write([DeleteOne({"a": 1}, **common), DeleteMany({"a": 1}, **common)])
    one, many, replace = recorder.command("update")["updates"]
    assert {name: one[name] for name in ("arrayFilters", "sort", *sent)} == {
        "arrayFilters": [{"x": 1}],
        "sort": {"a": 1},
        **sent,
    }
    assert (many["multi"], many["hint"], many["collation"]) == (True, {"_id": 1}, {"locale": "fr"})
    assert (replace["u"], replace["sort"], replace["hint"]) == ({"b": 1}, {"a": -1}, {"_id": 1})
    assert recorder.command("delete")["deletes"] == [
        {"q": {"a": 1}, "limit": 1, **sent},
        {"q": {"a": 1}, "limit": 0, **sent},
    ]


def test_unacknowledged_bulk_uses_no_session_and_one_connection() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=0))
        collection.bulk_write([InsertOne({"_id": 1}), DeleteOne({"_id": 2})], ordered=False)
        client.db.c.find_one()
        assert server.commands("insert")[0]["writeConcern"] == {"w": 0}
        assert "lsid" not in server.commands("insert")[0]
        assert server.connections_of("insert") == server.connections_of("delete") == server.connections_of("find")


def test_unacknowledged_ordered_bulk_stops_at_error_without_exception() -> None:
    """Check that a failed insert stops the bulk.

    In an unacknowledged ordered bulk, only the last command requests no reply.
    """
    refusal = {"ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized"}
    with ScriptedServer({"insert": refusal}) as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=0))
        result = collection.bulk_write([InsertOne({"_id": 1}), DeleteOne({"_id": 2})])
        assert not result.acknowledged
        assert server.commands("delete") == []


def test_bulk_write_batches_have_at_most_max_write_batch_size_writes() -> None:
    with ScriptedServer({"insert": lambda command: {"ok": 1, "n": len(command["documents"])}}) as server:
        server.hello_extra = {"maxWriteBatchSize": 4}
        recorder = Recorder()
        with MongoClient[Any](server.name, event_listeners=[recorder]) as client:
            result = client.db.c.bulk_write([InsertOne({"_id": n}) for n in range(10)])
            assert result.inserted_count == 10
    assert [len(command["documents"]) for command in recorder.sent_commands("insert")] == [4, 4, 2]
    assert (
        len({event.operation_id for event in recorder.events_named("CommandStarted") if event.command_name == "insert"})
        == 1
    )
    assert len({bytes(command["lsid"]["id"]) for command in recorder.sent_commands("insert")}) == 1


def duplicate_key_errors(command: Any) -> dict[str, Any]:
    documents = command["documents"]
    errors = [
        {"index": place, "code": 11000, "errmsg": "duplicate"}
        for place, document in enumerate(documents)
        if document["_id"] in (3, 5)
    ]
    return {"ok": 1, "n": len(documents) - len(errors), **({"writeErrors": errors} if errors else {})}


@pytest.mark.parametrize(("ordered", "indexes", "batches"), [(True, [3], 2), (False, [3, 5], 5)])
def test_write_error_of_second_batch_has_index_in_list_of_requests(
    ordered: bool, indexes: list[int], batches: int
) -> None:
    with ScriptedServer({"insert": duplicate_key_errors}) as server:
        server.hello_extra = {"maxWriteBatchSize": 2}
        with MongoClient[Any](server.name) as client, pytest.raises(BulkWriteError) as caught:
            client.db.c.insert_many([{"_id": n} for n in range(10)], ordered=ordered)
        errors = caught.value.details["writeErrors"]
        assert [error["index"] for error in errors] == indexes
        assert [error["op"] for error in errors] == [{"_id": index} for index in indexes]
        assert len(server.commands("insert")) == batches


def test_write_concern_errors_are_raised_after_all_batches() -> None:
    concern = {"code": 64, "errmsg": "waiting timed out", "errInfo": {"wtimeout": True}}
    with ScriptedServer({"insert": {"ok": 1, "n": 1, "writeConcernError": concern}}) as server:
        server.hello_extra = {"maxWriteBatchSize": 1}
        with MongoClient[Any](server.name) as client, pytest.raises(BulkWriteError) as caught:
            client.db.c.insert_many([{"_id": 1}, {"_id": 2}])
        assert caught.value.details == {**EMPTY, "nInserted": 2, "writeConcernErrors": [concern, concern]}
        assert caught.value.timeout


@pytest.mark.parametrize("ordered", [True, False])
def test_write_errors_of_bulk_are_sorted_by_index(ordered: bool) -> None:
    errors = [{"index": index, "code": 11000, "errmsg": "duplicate"} for index in (3, 0, 2)]
    with (
        ScriptedServer({"insert": {"ok": 1, "n": 1, "writeErrors": errors}}) as server,
        MongoClient[Any](server.name) as client,
        pytest.raises(BulkWriteError) as caught,
    ):
        client.db.c.bulk_write([InsertOne({"_id": number}) for number in range(4)], ordered=ordered)
    assert [error["index"] for error in caught.value.details["writeErrors"]] == [0, 2, 3]
    assert [error["op"]["_id"] for error in caught.value.details["writeErrors"]] == [0, 2, 3]


@pytest.mark.parametrize("labels", [[], ["One"], ["One", "Two"]])
def test_bulk_write_error_has_labels_of_write_concern_errors(labels: list[str]) -> None:
    concern = {"code": 64, "errmsg": "waiting for replication timed out"}
    reply = {"ok": 1, "n": 1, "writeConcernError": concern, "errorLabels": labels}
    with (
        ScriptedServer({"insert": reply}) as server,
        MongoClient[Any](server.name, retryWrites=False) as client,
        pytest.raises(BulkWriteError) as caught,
    ):
        client.db.c.bulk_write([InsertOne({}), InsertOne({})])
    assert {label for label in ("One", "Two", "Three") if caught.value.has_error_label(label)} == set(labels)
