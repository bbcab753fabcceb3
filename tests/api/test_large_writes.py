"""Writes that are too large for one message, and documents that are too large at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bson
import pytest

from gmongo import DeleteOne, InsertOne, MongoClient, UpdateOne
from gmongo.errors import BulkWriteError, DocumentTooLarge
from tests.support.server import ScriptedServer

from .recording import Recorded, recorded_collection

MIB = 1 << 20


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


def counting(field: str) -> Any:
    """A reply that says that all was done."""
    return lambda command: {"ok": 1, "n": len(command[field]), "nModified": len(command[field])}


def test_sixty_megabytes_go_out_in_two_messages(recorded: Recorded) -> None:
    collection, recorder = recorded
    text = "x" * 20_000
    result = collection.insert_many([{"_id": n, "text": text} for n in range(3000)])
    assert result.inserted_ids == list(range(3000))
    commands = recorder.sent("insert")
    assert len(commands) == 2
    size = len(bson.encode({"_id": 0, "text": text}))
    assert 47_900_000 < size * len(commands[0]["documents"]) < 48_000_000
    assert [each["_id"] for command in commands for each in command["documents"]] == list(range(3000))
    assert len({event.operation_id for event in recorder.of("CommandStarted")}) == 1
    assert collection.estimated_document_count() == 3000
    assert collection.find_one(2999) == {"_id": 2999, "text": text}


def refusing_six(command: Any) -> dict[str, Any]:
    """A reply that refuses the document 6, and in an ordered insert those after it."""
    numbers = [document["_id"] for document in command["documents"]]
    if 6 not in numbers:
        return {"ok": 1, "n": len(numbers)}
    place = numbers.index(6)
    errors = [{"index": place, "code": 11000, "errmsg": "duplicate"}]
    return {"ok": 1, "n": place if command["ordered"] else len(numbers) - 1, "writeErrors": errors}


@pytest.mark.parametrize(("ordered", "inserted", "messages"), [(True, 6, 2), (False, 9, 3)])
def test_the_index_of_an_error_counts_from_the_first_message(ordered: bool, inserted: int, messages: int) -> None:
    with ScriptedServer({"insert": refusing_six}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client, pytest.raises(BulkWriteError) as caught:
            client.db.c.insert_many([{"_id": n, "data": b"x" * 20_000} for n in range(10)], ordered=ordered)
        (error,) = caught.value.details["writeErrors"]
        assert (error["index"], error["op"]["_id"]) == (6, 6)
        assert caught.value.details["nInserted"] == inserted
        assert [len(command["documents"]) for command in server.commands("insert")] == [4, 4, 2][:messages]


def test_updates_and_deletes_are_split_too() -> None:
    with ScriptedServer({"update": counting("updates"), "delete": counting("deletes")}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client:
            large = {"data": b"x" * 20_000}
            client.db.c.bulk_write([UpdateOne({"_id": n}, {"$set": large}) for n in range(6)])
            client.db.c.bulk_write([DeleteOne({"_id": n, **large}) for n in range(6)], ordered=False)
        assert [len(command["updates"]) for command in server.commands("update")] == [4, 2]
        assert [len(command["deletes"]) for command in server.commands("delete")] == [4, 2]


def test_every_message_stays_below_the_limit_of_the_server() -> None:
    with ScriptedServer({"insert": counting("documents")}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client:
            documents = [{"_id": n, "data": b"x" * (n * 531 % 30_000)} for n in range(100)]
            assert client.db.c.insert_many(documents).inserted_ids == list(range(100))
        commands = server.commands("insert")
        assert [each["_id"] for command in commands for each in command["documents"]] == list(range(100))
        assert all(sum(len(bson.encode(each)) for each in command["documents"]) < 100_000 for command in commands)
        assert len(commands) > 10


def test_a_document_of_the_largest_size_is_taken(recorded: Recorded) -> None:
    collection, _ = recorded
    overhead = len(bson.encode({"_id": 1, "data": b""}))
    collection.insert_one({"_id": 1, "data": b"x" * (16 * MIB - overhead)})
    found = collection.find_one(1, {"_id": 1})
    assert found == {"_id": 1}
    with pytest.raises(DocumentTooLarge, match="16793601 bytes"):
        collection.insert_one({"_id": 2, "data": b"x" * (16 * MIB + 16 * 1024 - overhead + 1)})


@pytest.mark.parametrize("ordered", [True, False])
def test_a_document_that_fits_no_message_is_refused_after_those_before_it(recorded: Recorded, ordered: bool) -> None:
    collection, recorder = recorded
    writes = [InsertOne({"_id": 1}), InsertOne({"_id": 2, "data": b"x" * (49 * MIB)}), InsertOne({"_id": 3})]
    with pytest.raises(DocumentTooLarge, match="51380"):
        collection.bulk_write(writes, ordered=ordered)
    assert len(recorder.sent("insert")) == 1
    assert collection.count_documents({}) == 1
    (stats,) = collection.database.client.pool_stats()
    assert stats["in_use"] == 0


def test_a_filter_that_is_too_large_is_refused_before_it_is_sent(recorded: Recorded) -> None:
    collection, recorder = recorded
    for use in (
        lambda: collection.find_one({"data": b"x" * (17 * MIB)}),
        lambda: collection.delete_one({"data": b"x" * (17 * MIB)}),
        lambda: collection.update_one({}, {"$set": {"data": b"x" * (17 * MIB)}}),
    ):
        with pytest.raises(DocumentTooLarge, match="178"):
            use()
    assert recorder.commands == []
