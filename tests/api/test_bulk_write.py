from __future__ import annotations

from typing import Any

import pytest

from gmongo import DeleteOne, InsertOne, MongoClient, UpdateOne, WriteConcern
from gmongo.errors import BulkWriteError
from tests.support.server import ScriptedServer


def test_unacknowledged_bulk_uses_no_session_and_one_connection() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=0))
        collection.bulk_write([InsertOne({"_id": 1}), DeleteOne({"_id": 2})], ordered=False)
        client.db.c.find_one()
        assert server.commands("insert")[0]["writeConcern"] == {"w": 0}
        assert "lsid" not in server.commands("insert")[0]
        assert server.connections_of("insert") == server.connections_of("delete") == server.connections_of("find")


def reply_with_duplicate_key_errors(command: Any) -> dict[str, Any]:
    documents = command["documents"]
    errors = [
        {"index": place, "code": 11000, "errmsg": "duplicate"}
        for place, document in enumerate(documents)
        if document["_id"] in (3, 5)
    ]
    return {"ok": 1, "n": len(documents) - len(errors), **({"writeErrors": errors} if errors else {})}


@pytest.mark.parametrize(("ordered", "indexes", "batch_count"), [(True, [3], 2), (False, [3, 5], 5)])
def test_write_error_of_second_batch_has_index_in_list_of_requests(
    ordered: bool, indexes: list[int], batch_count: int
) -> None:
    with ScriptedServer({"insert": reply_with_duplicate_key_errors}) as server:
        server.hello_extra = {"maxWriteBatchSize": 2}
        with MongoClient[Any](server.name) as client, pytest.raises(BulkWriteError) as caught:
            client.db.c.insert_many([{"_id": n} for n in range(10)], ordered=ordered)
        errors = caught.value.details["writeErrors"]
        assert [error["index"] for error in errors] == indexes
        assert [error["op"] for error in errors] == [{"_id": index} for index in indexes]
        assert len(server.commands("insert")) == batch_count


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


def success_replier(field: str) -> Any:
    """Return a function that returns the success reply to a write command.

    :param field: the field of the command that contains the writes.
    """
    return lambda command: {"ok": 1, "n": len(command[field]), "nModified": len(command[field])}


def test_large_updates_and_deletes_are_split_into_messages() -> None:
    with ScriptedServer({"update": success_replier("updates"), "delete": success_replier("deletes")}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client:
            large = {"data": b"x" * 20_000}
            client.db.c.bulk_write([UpdateOne({"_id": n}, {"$set": large}) for n in range(6)])
            client.db.c.bulk_write([DeleteOne({"_id": n, **large}) for n in range(6)], ordered=False)
        assert [len(command["updates"]) for command in server.commands("update")] == [4, 2]
        assert [len(command["deletes"]) for command in server.commands("delete")] == [4, 2]


def test_message_with_large_comment_stays_below_message_size_of_server() -> None:
    with ScriptedServer({"insert": success_replier("documents")}) as server:
        server.hello_extra = {"maxMessageSizeBytes": 100_000}
        with MongoClient[Any](server.name) as client:
            client.db.c.insert_many([{"data": b"x" * 20_000} for _ in range(4)], comment="c" * 50_000)
        sizes = [len(each.payload) for each in server.received if each.name == "insert"]
        assert len(sizes) == 2 and max(sizes) < 100_000
