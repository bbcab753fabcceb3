"""The driver splits writes above the message size limit into several messages.

A document above the document size limit raises an error.
"""

from __future__ import annotations

from typing import Any

import bson
import pytest

from gmongo import DeleteOne, MongoClient, UpdateOne
from gmongo.errors import BulkWriteError, DocumentTooLarge
from tests.support.server import ScriptedServer

from .recording import Recorded

MIB = 1 << 20


def success_reply(field: str) -> Any:
    """Return a function that replies to a write command that all writes have succeeded.

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

    The document with the ``_id`` 6 fails with a write error, at which an ordered insert stops.
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
