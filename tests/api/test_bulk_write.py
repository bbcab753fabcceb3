from __future__ import annotations

from typing import Any

import pytest

from gmongo import DeleteMany, DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateMany, UpdateOne, WriteConcern  # noqa: F401 - the table uses all models
from gmongo.errors import BulkWriteError
from gmongo.wire.message import MORE_TO_COME
from tests.support.cases import rows
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer


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


SET = {"$set": {"a": 1}}
ROWS = rows(__file__, "models")
FIELDS = {"insert": "documents", "update": "updates", "delete": "deletes"}


@pytest.mark.parametrize(
    ("ordered", "places"),
    [
        (True, [[0], [1, 2], [3], [4, 5], [6]]),
        (False, [[0, 6], [1, 2], [3], [4, 5]]),
        (True, [[0], [1, 3], [5], [6]]),  # without models that change several documents
    ],
)
def test_bulk_write_sends_statements_in_batches_and_adds_up_replies(ordered: bool, places: list[list[int]]) -> None:
    recorder = Recorder()
    with ScriptedReplicaSet(1) as replicas:
        (server,) = replicas.members
        client = MongoClient[Any](server.name, event_listeners=[recorder])
        server.hello_extra = {"maxWriteBatchSize": 2}
        server.replies["delete"] = {"ok": 1, "n": 5}
        server.replies["update"] = lambda command: {
            "ok": 1, "n": 3, "nModified": 1, "upserted": [{"index": len(command["updates"]) - 1, "_id": 7}]
        }  # fmt: skip
        sent_places = sorted(place for batch in places for place in batch)
        models = [eval(ROWS[place]["model"]) for place in sent_places]
        fields = {"let": {"v": 1}, "comment": "why", "bypass_document_validation": True}
        result = client.db.c.bulk_write(models, ordered=ordered, **fields)
        client.db.c.find_one()
        client.close()
        commands = [(each.name, each.command) for each in server.received if each.name in FIELDS]
    assert [(name, command[FIELDS[name]]) for name, command in commands] == [
        (ROWS[batch[0]]["command"], [ROWS[place]["statement"] for place in batch]) for batch in places
    ]
    for name, command in commands:
        assert ("txnNumber" in command) is (name == "insert" or len(models) < len(ROWS))
        assert (command["ordered"], command["comment"], command["bypassDocumentValidation"]) == (ordered, "why", True)
        assert command.get("let") == (None if name == "insert" else {"v": 1})
        assert command["lsid"] == server.commands("find")[0]["lsid"]
    assert len({event.operation_id for event in recorder.events_named("CommandStarted")[: len(commands)]}) == 1
    upserted_places = [sent_places.index(batch[-1]) for batch in places if ROWS[batch[0]]["command"] == "update"]
    assert result.bulk_api_result["upserted"] == [{"index": place, "_id": 7} for place in upserted_places]
    counts = (result.inserted_count, result.upserted_count, result.matched_count, result.modified_count)
    assert counts == (2, len(upserted_places), 2 * len(upserted_places), len(upserted_places))
    assert result.deleted_count == 5 * sum(name == "delete" for name, _ in commands)


@pytest.mark.parametrize(
    ("ordered", "models", "has_error", "sent"),
    [
        (False, [InsertOne({}), DeleteOne({}), DeleteOne({})], False, ["insert w=0", "delete w=0", "delete w=0"]),
        (True, [InsertOne({}), DeleteOne({}), DeleteOne({})], False, ["insert", "delete", "delete w=0"]),
        (True, [InsertOne({}), DeleteOne({}), DeleteOne({})], True, ["insert", "delete"]),
    ],
)
def test_ordered_bulk_write_with_w_0_requests_reply_to_all_statements_except_the_last(
    ordered: bool, models: list[Any], has_error: bool, sent: list[str]
) -> None:
    errors = [{"index": 0, "code": 1, "errmsg": "no"}] if has_error else []
    with ScriptedServer({"delete": {"ok": 1, "n": 1, "writeErrors": errors}}) as server:
        server.hello_extra = {"maxWriteBatchSize": 1}
        with MongoClient[Any](server.name, w=0) as client:
            assert not client.db.c.bulk_write(models, ordered=ordered).acknowledged
            client.db.c.find_one()
        received = [each for each in server.received if each.name in FIELDS]
        assert [each.name + (" w=0" if each.flags & MORE_TO_COME else "") for each in received] == sent
        assert ["writeConcern" in each.command for each in received] == [name.endswith("w=0") for name in sent]
        assert not any("lsid" in each.command for each in received)
