"""``MongoClient.bulk_write`` sends the writes in batches, and raises errors with partial results."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import bson
import pytest
from bson import Int64, ObjectId
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    ClientBulkWriteException,
    DocumentTooLarge,
    WriteConcernError,
)
from gmongo.operations import InsertOne, ReplaceOne, UpdateMany
from gmongo.operations.client_bulk import USUAL_LIMITS, Write, check_size
from tests.support.fail_points import fail
from tests.support.faults import cut_reply, send_no_reply
from tests.support.scripted_server import ScriptedServer

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
        [InsertOne(document, namespace=NAMESPACE), InsertOne(raw, namespace=NAMESPACE)],
        verbose_results=True,
    )
    assert isinstance(document["_id"], ObjectId)
    assert [each.inserted_id for each in result.insert_results.values()] == [document["_id"], 7]
    assert list(recorder.command("bulkWrite")["ops"][0]["document"]) == ["_id", "a"]


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
    write_concern_error = {"code": 91, "errmsg": "down"}
    reply = {"ok": 1, "cursor": {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}, "nErrors": 0,
             "nInserted": 1, "nUpserted": 0, "nMatched": 0, "nModified": 0, "nDeleted": 0,
             "writeConcernError": write_concern_error, "errorLabels": labels}  # fmt: skip
    if source == "command error":
        reply = {"ok": 0, "code": 5, "errmsg": "no", "errorLabels": labels}
    with ScriptedServer({"bulkWrite": reply}) as server:
        server.hello_extra = {"maxWireVersion": 25}
        with MongoClient(server.name, retryWrites=False) as client:
            with pytest.raises(ClientBulkWriteException) as caught:
                client.bulk_write([InsertOne({}, namespace=NAMESPACE)])
            assert [
                label for label in ("A", "B", "RetryableWriteError") if caught.value.has_error_label(label)
            ] == sorted(labels)
            assert len(caught.value.write_concern_errors) == (source == "write concern error")


def test_client_bulk_write_errors_are_sorted_by_index():
    batch = [{"ok": 0, "idx": index, "code": 11000, "errmsg": "duplicate"} for index in (3, 0, 2)]
    cursor = {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": batch}
    with ScriptedServer({"bulkWrite": {"ok": 1, "nErrors": 3, "nInserted": 1, "cursor": cursor}}) as server:
        server.hello_extra["maxWireVersion"] = 25
        with MongoClient(server.name) as client, pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert_model() for _ in range(4)], ordered=False)
    assert [error["idx"] for error in caught.value.write_errors] == [0, 2, 3]


def test_timeout_property_is_true_after_write_concern_error_with_wtimeout(client):
    fail(
        client,
        "bulkWrite",
        writeConcernError={"code": 64, "errmsg": "slow", "errInfo": {"wtimeout": True}},
    )
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert_model()])
    assert caught.value.timeout
    assert not isinstance(caught.value, WriteConcernError)


def test_message_size_includes_each_namespace_once():
    long_names = [f"db.{letter * 1000}" for letter in "ab"]
    with server_with_limits(maxMessageSizeBytes=3000) as server, MongoClient(*server.address) as client:
        for names in (long_names[:1] * 8, long_names * 4):
            client.bulk_write([insert_model(name) for name in names])
    assert [len(command["ops"]) for command in server.commands("bulkWrite")] == [8, *[1] * 8]


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
    def reply(command):
        write_concern_error = {
            "code": 189,
            "codeName": "PrimarySteppedDown",
            "errmsg": "stepped down",
        }
        fields = {
            "cursor": {"id": Int64(7), "ns": "admin.$cmd.bulkWrite", "firstBatch": []},
            "nErrors": 1,
        }
        return {
            **bulk_write_reply(len(command["ops"])),
            **fields,
            "writeConcernError": write_concern_error,
        }

    models = [UpdateMany({"a": number}, {"$set": {"b": 1}}, namespace=NAMESPACE) for number in range(4)]
    with server_with_limits(reply, maxWriteBatchSize=2) as server, MongoClient(server.name) as client:
        with pytest.raises(ClientBulkWriteException):
            client.bulk_write(models)
        assert len(server.commands("bulkWrite")) == 1


def test_time_limit_of_bulk_write_covers_end_of_results_cursor():
    def reply(command):
        cursor = {"id": Int64(7), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}
        return {**bulk_write_reply(len(command["ops"])), "cursor": cursor}

    with server_with_limits(reply) as server, MongoClient(server.name, timeoutMS=500) as client:
        server.fail("getMore", send_no_reply)
        server.fail("killCursors", send_no_reply)
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert_model(_id=1)], verbose_results=True)
        assert caught.value.error.timeout and server.commands("killCursors") == []


@pytest.mark.parametrize("excess_bytes", [0, 1])
@pytest.mark.parametrize("new_model", [InsertOne, partial(ReplaceOne, {"_id": 1})], ids=["insert", "replacement"])
def test_unacknowledged_write_raises_only_if_document_exceeds_limit_of_server(new_model, excess_bytes):
    document = {"_id": 1, "text": "x" * 1000}
    write = Write(0, new_model(document, namespace="db.c"), DEFAULT_CODEC_OPTIONS)
    limits = USUAL_LIMITS._replace(document_size=len(bson.encode(document)) - excess_bytes)
    with pytest.raises(DocumentTooLarge, match="at index 0 is") if excess_bytes else nullcontext():
        check_size(write, limits, DEFAULT_CODEC_OPTIONS)
