"""``MongoClient.bulk_write`` sends the writes in batches, and raises errors with partial results."""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import partial
from uuid import UUID

import bson
import pytest
from bson import Binary, Int64, ObjectId
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    ClientBulkWriteException,
    ConfigurationError,
    DocumentTooLarge,
    InvalidOperation,
    OperationFailure,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.operations import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne  # noqa: F401 - the table uses all models
from gmongo.operations.client_bulk import USUAL_LIMITS, Write, check_size
from gmongo.wire.message import MORE_TO_COME
from tests.api.test_bulk_write import ROWS, SET
from tests.support.fail_points import fail
from tests.support.faults import cut_reply, send_no_reply
from tests.support.scripted_server import ScriptedServer, cursor_reply

NAMESPACE = "db.coll"


@pytest.fixture
def client(deployment, recorder):
    with MongoClient(deployment.uri, event_listeners=[recorder], retryWrites=False) as client:
        client.db.coll.drop()
        client.db.create_collection("coll")
        recorder.clear()
        yield client
        client.admin.command("configureFailPoint", "failCommand", mode="off")
        client.drop_database("db")


def insert_model(namespace=NAMESPACE, **document):
    return InsertOne(document, namespace=namespace)


@pytest.mark.parametrize("flag", ["ordered", "verbose_results"])
def test_flag_of_wrong_type_raises_type_error(client, flag):
    with pytest.raises(TypeError, match=f"{flag} must be"):
        client.bulk_write([insert_model()], **{flag: "yes"})


def test_generated_id_is_first_field_and_is_stored_in_the_document(client, recorder):
    document = {"a": 1}
    raw = RawBSONDocument(bson.encode({"_id": 7, "a": 2}))
    result = client.bulk_write(
        [InsertOne(document, namespace=NAMESPACE), InsertOne(raw, namespace="db.other")], verbose_results=True
    )
    assert isinstance(document["_id"], ObjectId)
    assert [each.inserted_id for each in result.insert_results.values()] == [document["_id"], 7]
    assert list(recorder.command("bulkWrite")["ops"][0]["document"]) == ["_id", "a"]
    assert [each["insert"] for each in recorder.command("bulkWrite")["ops"]] == [0, 1]


def bulk_write_reply(insert_count, errors=(), **fields):
    """Return the reply to a bulkWrite command with `insert_count` inserts.

    Each of the `errors` is a failed insert.
    """
    return {
        "ok": 1,
        "cursor": {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": list(errors)},
        "nErrors": len(errors),
        "nInserted": insert_count - len(errors),
        **fields,
    }


def server_with_limits(bulk_reply=lambda command: bulk_write_reply(len(command["ops"])), **hello_fields):
    """Return a scripted server that answers `bulkWrite`.

    :param hello_fields: the size limits in the hello reply.
    """
    server = ScriptedServer({"bulkWrite": bulk_reply})
    server.hello_extra = {"maxWireVersion": 25, **hello_fields}
    return server


@pytest.mark.parametrize("labels", [[], ["RetryableWriteError"], ["A", "B"]])
@pytest.mark.parametrize("source", ["write concern error", "command error"])
def test_client_bulk_write_exception_has_error_labels_of_the_reply(labels, source):
    reply = bulk_write_reply(1, writeConcernError={"code": 91, "errmsg": "down"}, errorLabels=labels)
    if source == "command error":
        reply = {"ok": 0, "code": 5, "errmsg": "no", "errorLabels": labels}
    with server_with_limits(reply) as server, MongoClient(server.name, retryWrites=False) as client:
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([InsertOne({}, namespace=NAMESPACE)])
        all_labels = ("A", "B", "RetryableWriteError")
        assert [label for label in all_labels if caught.value.has_error_label(label)] == sorted(labels)
        assert len(caught.value.write_concern_errors) == (source == "write concern error")
        client.db.c.find_one()
        assert server.commands("find")[0]["lsid"] == server.commands("bulkWrite")[0]["lsid"]


def test_client_bulk_write_errors_are_sorted_by_index():
    batch = [{"ok": 0, "idx": index, "code": 11000, "errmsg": "duplicate"} for index in (3, 0, 2)]
    with server_with_limits(bulk_write_reply(4, batch)) as server, MongoClient(server.name) as client:
        models = [insert_model() for _ in range(4)]
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write(models, ordered=False)
    assert [error["idx"] for error in caught.value.write_errors] == [0, 2, 3]


def test_bulk_write_without_server_raises_server_selection_error():
    with (
        MongoClient("localhost:1", serverSelectionTimeoutMS=50) as client,
        pytest.raises(ServerSelectionTimeoutError, match="refused"),
    ):
        client.bulk_write([insert_model()])


def test_timeout_property_is_true_after_write_concern_error_with_wtimeout(client):
    fail(client, "bulkWrite", writeConcernError={"code": 64, "errmsg": "slow", "errInfo": {"wtimeout": True}})
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert_model()])
    assert caught.value.timeout
    assert not isinstance(caught.value, WriteConcernError)


def test_message_size_includes_comment_and_each_namespace_once():
    long_names = [f"db.{letter * 1000}" for letter in "ab"]
    with server_with_limits(maxMessageSizeBytes=3000) as server, MongoClient(*server.address) as client:
        for names in (long_names[:1] * 8, long_names * 4):
            client.bulk_write([insert_model(name) for name in names])
        client.bulk_write([insert_model(text="x" * 500)] * 4, comment="x" * 500)
    assert [len(command["ops"]) for command in server.commands("bulkWrite")] == [8, *[1] * 8, 2, 2]


def test_namespace_numbers_begin_at_0_in_each_batch():
    with server_with_limits(maxWriteBatchSize=2) as server, MongoClient(*server.address) as client:
        client.bulk_write([insert_model(namespace) for namespace in ("d.a", "d.b", "d.b", "d.c")])
        sent = [
            ([op["insert"] for op in each["ops"]], [each["ns"] for each in each["nsInfo"]])
            for each in server.commands("bulkWrite")
        ]
        assert sent == [([0, 1], ["d.a", "d.b"]), ([0, 1], ["d.b", "d.c"])]


def test_network_error_after_first_batch_has_partial_result():
    with server_with_limits(maxWriteBatchSize=1) as server, MongoClient(*server.address) as client:
        server.fail("bulkWrite", lambda peer, message: peer.send(message), cut_reply(0))
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert_model(_id=1), insert_model(_id=2), insert_model(_id=3)])
        assert isinstance(caught.value.error, AutoReconnect)
        assert caught.value.partial_result.inserted_count == 1
        assert len(server.commands("bulkWrite")) == 2


def test_ordered_bulk_write_sends_no_batch_after_errors_that_were_not_read():
    cursor = {"id": Int64(7), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}
    concern_error = {"code": 189, "codeName": "PrimarySteppedDown", "errmsg": "stepped down"}
    reply = bulk_write_reply(2, cursor=cursor, nErrors=1, writeConcernError=concern_error)
    models = [UpdateMany({"a": number}, {"$set": {"b": 1}}, namespace=NAMESPACE) for number in range(4)]
    with server_with_limits(reply, maxWriteBatchSize=2) as server, MongoClient(server.name) as client:
        with pytest.raises(ClientBulkWriteException):
            client.bulk_write(models)
        assert len(server.commands("bulkWrite")) == 1


def test_time_limit_of_bulk_write_covers_end_of_results_cursor():
    reply = bulk_write_reply(1, cursor={"id": Int64(7), "ns": "admin.$cmd.bulkWrite", "firstBatch": []})
    with server_with_limits(reply) as server, MongoClient(server.name, timeoutMS=500) as client:
        server.fail("getMore", send_no_reply)
        server.fail("killCursors", send_no_reply)
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert_model(_id=1)], verbose_results=True)
        assert caught.value.error.timeout and server.commands("killCursors") == []


@pytest.mark.parametrize("excess_bytes", [0, 1])
@pytest.mark.parametrize("new_model", [InsertOne, partial(ReplaceOne, {"_id": 1})], ids=["insert", "replacement"])
def test_unacknowledged_write_raises_only_if_document_exceeds_limit_of_server(new_model, excess_bytes):
    document = {"_id": 1, "a.b": {"$c": 1}, "text": "x" * 1000}
    write = Write(0, new_model(document, namespace="db.c"), DEFAULT_CODEC_OPTIONS)
    limits = USUAL_LIMITS._replace(document_size=len(bson.encode(document)) - excess_bytes)
    with pytest.raises(DocumentTooLarge, match="at index 0 is") if excess_bytes else nullcontext():
        check_size(write, limits, DEFAULT_CODEC_OPTIONS)


def test_bulk_write_sends_all_operations_and_returns_result_of_each_write():
    batches, unique_id = [ROWS[:5], ROWS[5:]], UUID(int=7)
    counts = {"nInserted": 1, "nUpserted": 2, "nMatched": 3, "nModified": 4, "nDeleted": 5}

    def reply(command):
        results = [{"ok": 1, "idx": place, **row["result"]} for place, row in enumerate(batches.pop(0))]
        server.replies["getMore"] = cursor_reply(results[1:], field="nextBatch")
        return {**cursor_reply(results[:1], 7), **counts}

    with server_with_limits(reply, maxWriteBatchSize=5, setName="rs") as server:
        server.hello_extra |= {"hosts": [server.name], "me": server.name}
        models = [eval(row["model"]) for row in ROWS]
        for place, model in enumerate(models):
            model.namespace = f"d.{'ab'[place % 2]}"
        models[0].document["u"] = unique_id
        options = {"let": {"v": unique_id}, "comment": {"a.b": "$c"}, "bypass_document_validation": True}
        with MongoClient(server.name, uuidRepresentation="standard") as client:
            result = client.bulk_write(models, verbose_results=True, **options)
            client.db.c.find_one()
    first, second = server.commands("bulkWrite")
    assert first["ops"][0]["document"].pop("u") == Binary.from_uuid(unique_id)
    assert [*first["ops"], *second["ops"]] == [
        {row["command"]: place % 5 % 2, **row["operation"]} for place, row in enumerate(ROWS)
    ]
    # The first command contains writes that change several documents.
    assert "txnNumber" not in first and "txnNumber" in second
    assert first["lsid"] == second["lsid"] == server.commands("find")[0]["lsid"]
    fields = {"errorsOnly": False, "ordered": True, "comment": {"a.b": "$c"}, "bypassDocumentValidation": True}
    assert fields | {"let": {"v": Binary.from_uuid(unique_id)}} | first == first and fields | second == second
    assert [result.bulk_api_result[name] for name in counts] == [2, 4, 6, 8, 10]
    assert {place: each.inserted_id for place, each in result.insert_results.items()} == {0: 1, 6: 2}
    assert {place: each.deleted_count for place, each in result.delete_results.items()} == {4: 3, 5: 1}
    updates = {place: (each.modified_count, each.upserted_id) for place, each in result.update_results.items()}
    assert updates == {1: (0, 8), 2: (4, None), 3: (1, None)}


@pytest.mark.parametrize(
    ("ordered", "failed", "has_result"),
    [(True, [0], 0), (True, [1], 1), (True, [2], 1), (False, [0], 1), (False, [0, 1], 1), (False, [0, 1, 2], 0)],
)
def test_partial_result_exists_only_if_a_write_has_succeeded(ordered, failed, has_result):
    errors = [{"ok": 0, "idx": place, "code": 11000, "errmsg": "duplicate"} for place in failed]
    with server_with_limits(bulk_write_reply(3, errors)) as server, MongoClient(server.name) as client:
        models = [insert_model(_id=number) for number in range(3)]
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write(models, ordered=ordered)
        assert (caught.value.partial_result is not None) is bool(has_result)
        assert [each["op"]["document"] for each in caught.value.write_errors] == [{"_id": place} for place in failed]
        assert server.commands("bulkWrite")[0]["errorsOnly"]


def test_operation_above_message_size_raises_error_that_names_index():
    message = r"^the insert at index {} is \d+ bytes with a namespace of 7 characters, .* at most 3000 bytes$"
    with server_with_limits(maxMessageSizeBytes=3000) as server, MongoClient(server.name) as client:
        with pytest.raises(DocumentTooLarge, match=message.format(0)):
            client.bulk_write([insert_model(text="x" * 3000)])
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert_model(), insert_model(text="x" * 3000)])
    partial_result = caught.value.partial_result
    assert (partial_result.inserted_count, partial_result.deleted_count) == (1, 0)
    assert re.match(message.format(1), str(caught.value.__cause__))


def test_unacknowledged_bulk_write_requests_no_reply_and_refuses_options():
    with server_with_limits(maxBsonObjectSize=500) as server, MongoClient(server.name, w=0) as client:
        assert not client.bulk_write([insert_model(_id=1)], ordered=False).acknowledged
        client.db.c.find_one()
        (sent,) = [each for each in server.received if each.name == "bulkWrite"]
        assert sent.flags & MORE_TO_COME and sent.command["writeConcern"] == {"w": 0} and "lsid" not in sent.command
        for model, error, message in (
            (insert_model(text="x" * 500), DocumentTooLarge, "the insert at index 0 is .* at most 500 bytes"),
            (DeleteOne({}, {"locale": "en"}, namespace="d.c"), ConfigurationError, "collation cannot be used"),
            (UpdateOne({}, SET, array_filters=[], namespace="d.c"), ConfigurationError, "arrayFilters cannot be used"),
        ):
            with pytest.raises(error, match=f"^{message}"):
                client.bulk_write([model], ordered=False)
        with pytest.raises(OperationFailure, match="Cannot set bypass_document_validation"):
            client.bulk_write([insert_model()], ordered=False, bypass_document_validation=True)
        client.bulk_write([DeleteOne({"text": "x" * 500}, namespace="d.c")], ordered=False)  # stores no document
        client.db.c.find_one()
        assert len(server.commands("bulkWrite")) == 2
        # The server checks the sizes of documents in acknowledged writes.
        with MongoClient(server.name) as acknowledging_client:
            assert acknowledging_client.bulk_write([insert_model(text="x" * 500)]).inserted_count == 1


def test_bulk_write_on_old_server_raises_invalid_operation():
    with server_with_limits(maxWireVersion=24) as server, MongoClient(server.name) as client:
        with pytest.raises(InvalidOperation, match=r"^MongoClient.bulk_write requires MongoDB server version 8.0\+.$"):
            client.bulk_write([insert_model()])
        assert server.commands("bulkWrite") == []
