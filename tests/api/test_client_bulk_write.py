"""MongoClient.bulk_write: the prose tests of the CRUD specification, and what else it promises."""

from __future__ import annotations

import bson
import gevent
import pytest
from bson import Int64, ObjectId
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    ClientBulkWriteException,
    ConfigurationError,
    DocumentTooLarge,
    InvalidOperation,
    OperationFailure,
    WriteConcernError,
)
from gmongo.operations import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from gmongo.results import ClientBulkWriteResult
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern
from tests.support.fail_points import fail
from tests.support.faults import cut
from tests.support.recorder import Recorder
from tests.support.single import ScriptedServer

NAMESPACE = "db.coll"
MAX_WRITES = 1000  # of the scripted server
MAX_DOCUMENT = 16 * 1024 * 1024
MAX_MESSAGE = 48_000_000
UNACKNOWLEDGED = WriteConcern(w=0)


@pytest.fixture(scope="module")
def deployment():
    with Deployment.replica_set(log=False) as deployment:
        yield deployment


@pytest.fixture
def client(deployment, recorder):
    with MongoClient(deployment.uri, event_listeners=[recorder], retryWrites=False) as client:
        client.db.coll.drop()
        client.db.create_collection("coll")
        recorder.forget()
        yield client
        client.admin.command("configureFailPoint", "failCommand", mode="off")
        client.drop_database("db")


def insert(namespace=NAMESPACE, **document):
    return InsertOne(document, namespace=namespace)


# What it does


def test_writes_on_several_collections(client, recorder):
    client.db.coll.insert_many([{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}])
    result = client.bulk_write(
        [
            insert(_id=4),
            UpdateOne({"_id": 1}, {"$set": {"x": 10}}, namespace=NAMESPACE),
            insert("db.other", _id=1),
            UpdateMany({"x": {"$gt": 1}}, {"$inc": {"x": 1}}, namespace=NAMESPACE),
            ReplaceOne({"_id": 9}, {"y": 1}, upsert=True, namespace="db.other"),
            DeleteOne({"_id": 2}, namespace=NAMESPACE),
            DeleteMany({}, namespace="db.none"),
        ],
        verbose_results=True,
    )
    counts = (result.inserted_count, result.matched_count, result.modified_count, result.deleted_count)
    assert (counts, result.upserted_count) == ((2, 4, 4, 1), 1)
    assert {index: each.inserted_id for index, each in result.insert_results.items()} == {0: 4, 2: 1}
    assert result.update_results[3].modified_count == 3
    assert result.update_results[4].upserted_id == 9
    assert not result.update_results[1].did_upsert
    assert {index: each.deleted_count for index, each in result.delete_results.items()} == {5: 1, 6: 0}
    command = recorder.command("bulkWrite")
    assert command["nsInfo"] == [{"ns": "db.coll"}, {"ns": "db.other"}, {"ns": "db.none"}]
    assert [next(iter(op.values())) for op in command["ops"]] == [0, 0, 1, 0, 1, 0, 2]
    assert (command["errorsOnly"], command["ordered"], command["$db"]) == (False, True, "admin")
    assert list(client.db.other.find()) == [{"_id": 1}, {"_id": 9, "y": 1}]


def test_summary_only_by_default(client):
    result = client.bulk_write([insert(_id=1)])
    assert (result.inserted_count, result.acknowledged, result.has_verbose_results) == (1, True, False)
    with pytest.raises(InvalidOperation, match="verbose_results"):
        result.insert_results  # noqa: B018


def test_options_of_models_and_command(client, recorder):
    client.db.coll.create_index("a")
    client.db.coll.insert_one({"_id": 1, "a": 1, "l": [1, 2]})
    client.bulk_write(
        [
            UpdateOne(
                {"a": 1},
                {"$set": {"l.$[e]": 5}},
                array_filters=[{"e": 2}],
                hint="a_1",
                sort={"a": 1},
                collation={"locale": "en"},
                upsert=False,
                namespace=NAMESPACE,
            ),
            DeleteOne(
                {"$expr": {"$eq": ["$a", "$$v"]}}, hint={"a": 1}, collation={"locale": "en"}, namespace=NAMESPACE
            ),
        ],
        comment="why",
        let={"v": 1},
        bypass_document_validation=False,
        write_concern=WriteConcern(w="majority"),
    )
    command = recorder.command("bulkWrite")
    update, delete = command["ops"]
    assert update == {
        "update": 0,
        "filter": {"a": 1},
        "updateMods": {"$set": {"l.$[e]": 5}},
        "multi": False,
        "upsert": False,
        "collation": {"locale": "en"},
        "arrayFilters": [{"e": 2}],
        "hint": "a_1",
        "sort": {"a": 1},
    }
    assert (delete["hint"], delete["collation"], delete["multi"]) == ({"a": 1}, {"locale": "en"}, False)
    assert (command["comment"], command["let"], command["bypassDocumentValidation"]) == ("why", {"v": 1}, False)
    assert command["writeConcern"] == {"w": "majority"}
    assert client.db.coll.count_documents({}) == 0


def test_generated_ids_come_first_and_into_the_document(client, recorder):
    document = {"a": 1}
    raw = RawBSONDocument(bson.encode({"_id": 7, "a": 2}))
    result = client.bulk_write(
        [InsertOne(document, namespace=NAMESPACE), InsertOne(raw, namespace=NAMESPACE)], verbose_results=True
    )
    assert isinstance(document["_id"], ObjectId)
    assert [each.inserted_id for each in result.insert_results.values()] == [document["_id"], 7]
    assert list(recorder.command("bulkWrite")["ops"][0]["document"]) == ["_id", "a"]


def test_a_session_is_used(client, recorder):
    with client.start_session() as session:
        client.bulk_write([insert()], session=session)
        assert recorder.command("bulkWrite")["lsid"] == session.session_id


def test_in_a_transaction(client, recorder):
    with client.start_session() as session, session.start_transaction():
        client.bulk_write([insert(_id=1)], session=session)
        assert recorder.command("bulkWrite")["autocommit"] is False
        with pytest.raises(InvalidOperation, match="write concern"):
            client.bulk_write([insert(_id=2)], session=session, write_concern=WriteConcern(w=1))
    assert client.db.coll.count_documents({}) == 1


# Prose tests 3 to 16


def reply(count, errors=(), **fields):
    """What the server replies to a bulkWrite of so many inserts."""
    return {
        "ok": 1,
        "cursor": {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": list(errors)},
        "nErrors": len(errors),
        "nInserted": count - len(errors),
        **fields,
    }


def scripted(answer=lambda command: reply(len(command["ops"])), **limits):
    """A server that has these limits, lower ones than real servers have."""
    server = ScriptedServer({"bulkWrite": answer})
    server.hello_extra = {"maxWireVersion": 25, **limits}
    return server


def test_splits_by_the_number_of_writes(recorder):
    with (
        scripted(maxWriteBatchSize=MAX_WRITES) as server,
        MongoClient(*server.address, event_listeners=[recorder]) as client,
    ):
        result = client.bulk_write([insert(a="b") for _ in range(MAX_WRITES + 1)])
    assert result.inserted_count == MAX_WRITES + 1
    assert [len(each["ops"]) for each in recorder.sent("bulkWrite")] == [MAX_WRITES, 1]
    first, second = (event for event in recorder.of("CommandStarted") if event.command_name == "bulkWrite")
    assert first.operation_id == second.operation_id


def test_splits_by_the_size_of_the_message(client, recorder):
    count = MAX_MESSAGE // MAX_DOCUMENT + 1
    result = client.bulk_write([insert(a="b" * (MAX_DOCUMENT - 500)) for _ in range(count)])
    assert result.inserted_count == count
    assert [len(each["ops"]) for each in recorder.sent("bulkWrite")] == [count - 1, 1]


def test_collects_write_concern_errors_of_all_batches():
    concern = {"code": 91, "errmsg": "Replication is being shut down"}
    with (
        scripted(
            lambda command: reply(len(command["ops"]), writeConcernError=concern), maxWriteBatchSize=MAX_WRITES
        ) as server,
        MongoClient(*server.address) as client,
        pytest.raises(ClientBulkWriteException) as caught,
    ):
        client.bulk_write([insert(a="b") for _ in range(MAX_WRITES + 1)])
    error = caught.value
    assert [each["code"] for each in error.write_concern_errors] == [91, 91]
    assert error.partial_result.inserted_count == MAX_WRITES + 1
    assert (error.error, error.write_errors) == (None, [])
    assert len(server.commands("bulkWrite")) == 2


@pytest.mark.parametrize("labels", [[], ["RetryableWriteError"], ["A", "B"]])
@pytest.mark.parametrize("where", ["batches", "the whole command"])
def test_the_error_has_the_labels_of_what_went_wrong(labels, where):
    concern = {"code": 91, "errmsg": "down"}
    reply = {"ok": 1, "cursor": {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}, "nErrors": 0,
             "nInserted": 1, "nUpserted": 0, "nMatched": 0, "nModified": 0, "nDeleted": 0,
             "writeConcernError": concern, "errorLabels": labels}  # fmt: skip
    if where == "the whole command":
        reply = {"ok": 0, "code": 5, "errmsg": "no", "errorLabels": labels}
    with ScriptedServer({"bulkWrite": reply}) as server:
        server.hello_extra = {"maxWireVersion": 25}
        with MongoClient(server.name, retryWrites=False) as client:
            with pytest.raises(ClientBulkWriteException) as caught:
                client.bulk_write([InsertOne({}, namespace=NAMESPACE)])
            assert [
                label for label in ("A", "B", "RetryableWriteError") if caught.value.has_error_label(label)
            ] == sorted(labels)
            assert len(caught.value.write_concern_errors) == (where == "batches")


@pytest.mark.parametrize(("ordered", "errors", "commands"), [(False, MAX_WRITES + 1, 2), (True, 1, 1)])
def test_collects_write_errors_of_all_batches(ordered, errors, commands):
    def answer(command):
        failed = 1 if command["ordered"] else len(command["ops"])
        duplicates = [{"ok": 0, "idx": index, "code": 11000, "errmsg": "duplicate", "n": 0} for index in range(failed)]
        return reply(failed, duplicates)

    with (
        scripted(answer, maxWriteBatchSize=MAX_WRITES) as server,
        MongoClient(*server.address) as client,
        pytest.raises(ClientBulkWriteException) as caught,
    ):
        client.bulk_write([insert(_id=1) for _ in range(MAX_WRITES + 1)], ordered=ordered)
    assert len(caught.value.write_errors) == errors
    assert [each["idx"] for each in caught.value.write_errors] == list(range(errors))
    assert caught.value.partial_result is None
    assert len(server.commands("bulkWrite")) == commands


def two_large_upserts():
    return [
        UpdateOne({"_id": each * (MAX_DOCUMENT // 2)}, {"$set": {"x": 1}}, upsert=True, namespace=NAMESPACE)
        for each in ("a", "b")
    ]


def test_reads_the_results_to_the_end(client, recorder):
    result = client.bulk_write(two_large_upserts(), verbose_results=True)
    assert (result.upserted_count, len(result.update_results)) == (2, 2)
    assert all("batchSize" not in command for command in recorder.sent("getMore"))
    assert "getMore" in recorder.commands
    sessions = {bytes(event.command["lsid"]["id"]) for event in recorder.of("CommandStarted")}
    assert len(sessions) == 1


def test_the_results_of_a_bulk_are_read_to_their_end_in_a_transaction(client, recorder):
    with client.start_session() as session, session.start_transaction():
        result = client.bulk_write(two_large_upserts(), session=session, verbose_results=True)
    assert (result.upserted_count, len(result.update_results)) == (2, 2)
    assert "getMore" in recorder.commands


def test_an_error_while_reading_the_results(client, recorder):
    fail(client, "getMore", errorCode=8)
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write(two_large_upserts(), verbose_results=True)
    error = caught.value
    assert isinstance(error.error, OperationFailure)
    assert error.error.code == 8
    assert (error.partial_result.upserted_count, len(error.partial_result.update_results)) == (2, 1)
    assert "killCursors" in recorder.commands


@pytest.fixture
def full_message():
    """Inserts after which there is room for a small one, but not for a further namespace."""
    room = MAX_MESSAGE - 1122
    models = [insert(a="b" * (MAX_DOCUMENT - 57)) for _ in range(room // MAX_DOCUMENT)]
    remainder = room % MAX_DOCUMENT
    if remainder >= 217:
        models.append(insert(a="b" * (remainder - 57)))
    return models


def test_a_further_write_fits_without_a_further_namespace(client, recorder, full_message):
    result = client.bulk_write([*full_message, insert(a="b")])
    assert result.inserted_count == len(full_message) + 1
    command = recorder.command("bulkWrite")
    assert len(command["ops"]) == len(full_message) + 1
    assert command["nsInfo"] == [{"ns": NAMESPACE}]


def test_splits_where_a_further_namespace_does_not_fit(client, recorder, full_message):
    namespace = "db." + "c" * 200
    result = client.bulk_write([*full_message, insert(namespace, a="b")])
    assert result.inserted_count == len(full_message) + 1
    first, second = recorder.sent("bulkWrite")
    assert (len(first["ops"]), first["nsInfo"]) == (len(full_message), [{"ns": NAMESPACE}])
    assert (len(second["ops"]), second["nsInfo"]) == (1, [{"ns": namespace}])


@pytest.mark.parametrize(
    "model", [insert(a="b" * MAX_MESSAGE), insert("db." + "c" * MAX_MESSAGE, a="b")], ids=["document", "namespace"]
)
def test_a_write_that_fits_into_no_message(client, recorder, model):
    with pytest.raises(DocumentTooLarge, match=r"the insert at index 0 is .* messages of at most 48000000 bytes"):
        client.bulk_write([model])
    assert recorder.commands == []


def test_a_write_that_fits_into_no_message_after_others(client):
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert(_id=1), insert(_id=2, a="b" * MAX_MESSAGE)])
    assert isinstance(caught.value.error, DocumentTooLarge)
    assert "index 1" in str(caught.value.error)
    assert caught.value.partial_result.inserted_count == 1


def test_unacknowledged_writes_in_all_batches(client, recorder):
    count = MAX_MESSAGE // MAX_DOCUMENT + 1
    models = [insert(a="b" * (MAX_DOCUMENT - 500)) for _ in range(count)]
    result = client.bulk_write(models, ordered=False, write_concern=UNACKNOWLEDGED)
    assert not result.acknowledged
    with pytest.raises(InvalidOperation, match="not acknowledged"):
        result.inserted_count  # noqa: B018
    commands = recorder.sent("bulkWrite")
    assert [len(each["ops"]) for each in commands] == [count - 1, 1]
    assert [each["writeConcern"] for each in commands] == [{"w": 0}, {"w": 0}]
    with gevent.Timeout(10):
        while client.db.coll.count_documents({}) < count:
            gevent.sleep(0.01)


@pytest.mark.parametrize(
    "model",
    [
        insert(a="b" * MAX_DOCUMENT),
        ReplaceOne({}, {"a": "b" * MAX_DOCUMENT}, namespace=NAMESPACE),
        DeleteOne({"a": "b" * (MAX_DOCUMENT + 16 * 1024)}, namespace=NAMESPACE),
    ],
    ids=["insert", "replace", "delete"],
)
def test_unacknowledged_writes_are_checked_for_size(client, recorder, model):
    with pytest.raises(DocumentTooLarge, match="index 0"):
        client.bulk_write([model], ordered=False, write_concern=UNACKNOWLEDGED)
    assert recorder.commands == []


def test_errors_are_in_the_order_of_the_writes_whatever_the_server_does():
    batch = [{"ok": 0, "idx": index, "code": 11000, "errmsg": "duplicate"} for index in (3, 0, 2)]
    cursor = {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": batch}
    with ScriptedServer({"bulkWrite": {"ok": 1, "nErrors": 3, "nInserted": 1, "cursor": cursor}}) as server:
        server.hello_extra["maxWireVersion"] = 25
        with MongoClient(server.name) as client, pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert() for _ in range(4)], ordered=False)
    assert [error["idx"] for error in caught.value.write_errors] == [0, 2, 3]


# What is refused


@pytest.mark.parametrize(
    ("models", "options", "kind", "message"),
    [
        ([], {}, InvalidOperation, "No operations to execute"),
        (insert(), {}, TypeError, "list"),
        ([5], {}, TypeError, r"models\[0\]"),
        ([insert(), InsertOne({})], {}, InvalidOperation, r"models\[1\], an InsertOne, has no namespace"),
        ([insert()], {"write_concern": UNACKNOWLEDGED}, InvalidOperation, "unacknowledged .* ordered writes"),
        (
            [insert()],
            {"write_concern": UNACKNOWLEDGED, "ordered": False, "verbose_results": True},
            InvalidOperation,
            "unacknowledged .* verbose results",
        ),
        *(
            (
                [insert()] * before + [model],
                {"write_concern": UNACKNOWLEDGED, "ordered": False},
                ConfigurationError,
                name,
            )
            for before in (0, 1, 5)
            for name, model in (
                ("collation", DeleteOne({}, collation={"locale": "en"}, namespace=NAMESPACE)),
                ("arrayFilters", UpdateOne({}, {"$set": {"a": 1}}, array_filters=[{"e": 2}], namespace=NAMESPACE)),
            )
        ),
        ([insert()], {"write_concern": {"w": 1}}, TypeError, "write_concern"),
        ([insert()], {"ordered": 1}, TypeError, "ordered"),
        ([insert()], {"let": 1}, TypeError, "let"),
    ],
)
def test_mistakes_of_the_caller(client, recorder, models, options, kind, message):
    with pytest.raises(kind, match=message):
        client.bulk_write(models, **options)
    assert recorder.commands == []


def test_unacknowledged_writes_take_no_session(client):
    with client.start_session() as session, pytest.raises(ConfigurationError, match="session"):
        client.bulk_write([insert()], session=session, ordered=False, write_concern=UNACKNOWLEDGED)


def test_servers_before_8_0_have_no_bulk_write_of_clients():
    with (
        Deployment.replica_set(version="7.0") as old,
        MongoClient(old.uri) as client,
        pytest.raises(InvalidOperation, match=r"8\.0"),
    ):
        client.bulk_write([insert()])


# Errors


def test_the_errors_of_single_writes(client):
    client.db.coll.insert_one({"_id": 1})
    models = [insert(_id=0), insert(_id=1), insert(_id=2)]
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write(models, ordered=False, verbose_results=True)
    error = caught.value
    [failed] = error.write_errors
    assert (failed["idx"], failed["code"], failed["op"]["document"]) == (1, 11000, {"_id": 1})
    assert isinstance(error.partial_result, ClientBulkWriteResult)
    assert {index: each.inserted_id for index, each in error.partial_result.insert_results.items()} == {0: 0, 2: 2}
    assert error.code == 65
    assert not error.timeout


def test_an_ordered_bulk_stops_at_the_first_error(client):
    client.db.coll.insert_one({"_id": 1})
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert(_id=0), insert(_id=1), insert(_id=2)])
    assert [each["idx"] for each in caught.value.write_errors] == [1]
    assert caught.value.partial_result.inserted_count == 1
    assert client.db.coll.count_documents({}) == 2


def test_an_error_of_the_whole_command(client):
    fail(client, "bulkWrite", errorCode=8, errorLabels=["SomeLabel"])
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert()])
    error = caught.value
    assert error.error.details["code"] == 8
    assert error.has_error_label("SomeLabel")
    assert error.partial_result is None


def test_a_write_concern_error_is_a_timeout_if_it_says_so(client):
    fail(client, "bulkWrite", writeConcernError={"code": 64, "errmsg": "slow", "errInfo": {"wtimeout": True}})
    with pytest.raises(ClientBulkWriteException) as caught:
        client.bulk_write([insert()])
    assert caught.value.timeout
    assert not isinstance(caught.value, WriteConcernError)


# Retries


@pytest.mark.parametrize(
    ("models", "tries"),
    [
        ([insert(_id=1), DeleteOne({"_id": 5}, namespace=NAMESPACE)], 2),
        ([insert(_id=1), DeleteMany({"_id": 5}, namespace=NAMESPACE)], 1),
    ],
)
def test_a_batch_is_tried_again_unless_it_writes_several_documents(deployment, client, models, tries):
    recorder = Recorder()
    with MongoClient(deployment.uri, event_listeners=[recorder]) as retrying:
        fail(client, "bulkWrite", closeConnection=True)
        if tries == 2:
            assert retrying.bulk_write(models).inserted_count == 1
            first, second = recorder.sent("bulkWrite")
            assert first["txnNumber"] == second["txnNumber"]
        else:
            with pytest.raises(ClientBulkWriteException) as caught:
                retrying.bulk_write(models)
            assert isinstance(caught.value.error, AutoReconnect)
            assert "txnNumber" not in recorder.command("bulkWrite")


def test_the_limits_of_the_server_hold():
    with scripted(maxWriteBatchSize=3) as server, MongoClient(*server.address) as client:
        assert client.bulk_write([insert(_id=each) for each in range(7)]).inserted_count == 7
        sent = [[op["document"]["_id"] for op in each["ops"]] for each in server.commands("bulkWrite")]
        assert sent == [[0, 1, 2], [3, 4, 5], [6]]
    with scripted(maxMessageSizeBytes=1500) as server, MongoClient(*server.address) as client:
        assert client.bulk_write([insert(_id=each, a="b" * 100) for each in range(7)]).inserted_count == 7
        assert max(len(each["ops"]) for each in server.commands("bulkWrite")) == 2


def test_namespaces_are_numbered_anew_in_each_batch():
    with scripted(maxWriteBatchSize=2) as server, MongoClient(*server.address) as client:
        client.bulk_write([insert(namespace) for namespace in ("d.a", "d.b", "d.b", "d.c")])
        sent = [
            ([op["insert"] for op in each["ops"]], [each["ns"] for each in each["nsInfo"]])
            for each in server.commands("bulkWrite")
        ]
        assert sent == [([0, 1], ["d.a", "d.b"]), ([0, 1], ["d.b", "d.c"])]


def test_a_lost_connection_after_a_batch_keeps_what_is_known():
    with scripted(maxWriteBatchSize=1) as server, MongoClient(*server.address) as client:
        server.fail("bulkWrite", lambda peer, message: peer.send(message), cut(0))
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([insert(_id=1), insert(_id=2), insert(_id=3)])
        assert isinstance(caught.value.error, AutoReconnect)
        assert caught.value.partial_result.inserted_count == 1
        assert len(server.commands("bulkWrite")) == 2
