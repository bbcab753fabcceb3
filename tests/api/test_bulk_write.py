from __future__ import annotations

from typing import Any

import bson
import pytest

from gmongo import DeleteOne, InsertOne, MongoClient, UpdateOne, WriteConcern
from gmongo.errors import BulkWriteError, DocumentTooLarge
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer

from .recording import Recorded

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


def test_unacknowledged_bulk_uses_no_session_and_one_connection() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=0))
        collection.bulk_write([InsertOne({"_id": 1}), DeleteOne({"_id": 2})], ordered=False)
        client.db.c.find_one()
        assert server.commands("insert")[0]["writeConcern"] == {"w": 0}
        assert "lsid" not in server.commands("insert")[0]
        assert server.connections_of("insert") == server.connections_of("delete") == server.connections_of("find")


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


MIB = 1 << 20


def success_reply(field: str) -> Any:
    """Return a function that returns the success reply to a write command.

    :param field: the field of the command that contains the writes.
    """
    return lambda command: {"ok": 1, "n": len(command[field]), "nModified": len(command[field])}


def test_insert_many_of_sixty_megabytes_sends_two_messages(recorded: Recorded) -> None:
    collection, recorder = recorded
    text = "x" * 20_000
    result = collection.insert_many([{"_id": n, "text": text} for n in range(3000)])
    assert result.inserted_ids == list(range(3000))
    commands = recorder.sent_commands("insert")
    assert len(commands) == 2
    size = len(bson.encode({"_id": 0, "text": text}))
    assert 47_900_000 < size * len(commands[0]["documents"]) < 48_000_000
    assert [each["_id"] for command in commands for each in command["documents"]] == list(range(3000))
    assert len({event.operation_id for event in recorder.events_named("CommandStarted")}) == 1
    assert collection.estimated_document_count() == 3000
    assert collection.find_one(2999) == {"_id": 2999, "text": text}


def reply_that_rejects_document_6(command: Any) -> dict[str, Any]:
    """Reply to an insert command.

    The insert of the document with the ``_id`` 6 fails. An ordered insert stops at this document.
    """
    numbers = [document["_id"] for document in command["documents"]]
    if 6 not in numbers:
        return {"ok": 1, "n": len(numbers)}
    index = numbers.index(6)
    errors = [{"index": index, "code": 11000, "errmsg": "duplicate"}]
    return {"ok": 1, "n": index if command["ordered"] else len(numbers) - 1, "writeErrors": errors}


@pytest.mark.parametrize(("ordered", "inserted", "sent_messages"), [(True, 6, 2), (False, 9, 3)])
def test_write_error_index_counts_documents_of_all_messages(ordered: bool, inserted: int, sent_messages: int) -> None:
    with ScriptedServer({"insert": reply_that_rejects_document_6}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client, pytest.raises(BulkWriteError) as caught:
            client.db.c.insert_many([{"_id": n, "data": b"x" * 20_000} for n in range(10)], ordered=ordered)
        (error,) = caught.value.details["writeErrors"]
        assert (error["index"], error["op"]["_id"]) == (6, 6)
        assert caught.value.details["nInserted"] == inserted
        assert [len(command["documents"]) for command in server.commands("insert")] == [4, 4, 2][:sent_messages]


def test_large_updates_and_deletes_are_split_into_messages() -> None:
    with ScriptedServer({"update": success_reply("updates"), "delete": success_reply("deletes")}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client:
            large = {"data": b"x" * 20_000}
            client.db.c.bulk_write([UpdateOne({"_id": n}, {"$set": large}) for n in range(6)])
            client.db.c.bulk_write([DeleteOne({"_id": n, **large}) for n in range(6)], ordered=False)
        assert [len(command["updates"]) for command in server.commands("update")] == [4, 2]
        assert [len(command["deletes"]) for command in server.commands("delete")] == [4, 2]


def test_largest_document_is_inserted_and_a_larger_document_raises(recorded: Recorded) -> None:
    collection, _ = recorded
    overhead = len(bson.encode({"_id": 1, "data": b""}))
    collection.insert_one({"_id": 1, "data": b"x" * (16 * MIB - overhead)})
    assert collection.find_one(1, {"_id": 1}) == {"_id": 1}
    with pytest.raises(DocumentTooLarge, match="16793601 bytes"):
        collection.insert_one({"_id": 2, "data": b"x" * (16 * MIB + 16 * 1024 - overhead + 1)})
