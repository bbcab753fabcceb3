"""Prose tests of the Client-Side Operations Timeout specification, except tests 2 and 3 about
client-side encryption.

Most tests use other timeouts than the specification. Tests 1 and 11 limit a batch to two documents,
and do not insert 50 megabytes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from bson import Int64, ObjectId

import gmongo
from gmongo import CursorType, InsertOne
from gmongo.errors import InvalidOperation, PyMongoError, ServerSelectionTimeoutError
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment
from tests.execution.harness import delay_replies, events_of_command
from tests.support.clients import Client, Connect, client_factory
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually


@pytest.fixture
def standalone() -> Iterator[Deployment]:
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def client_without_timeout(standalone: Deployment) -> Iterator[Client]:
    """Yield a client without a timeout, with which a test inserts its data."""
    with client_factory(Recorder()) as create_client:
        yield create_client(standalone)


def delayed_reply_of(reply: Any) -> Callable[[Any], Any]:
    def delayed_reply(_command: Any) -> Any:
        gevent.sleep(0.1)
        return reply

    return delayed_reply


def client_with_small_batches(server: ScriptedServer, connect: Connect) -> Client:
    server.hello_extra["maxWriteBatchSize"] = 2
    server.replies["insert"] = delayed_reply_of({"ok": 1, "n": 2})
    cursor = {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}
    server.replies["bulkWrite"] = delayed_reply_of({"ok": 1, "cursor": cursor, "nInserted": 2, "nErrors": 0})
    return connect(f"mongodb://{server.name}", timeoutMS=180)


def test_1_all_batches_of_insert_many_share_one_timeout(server: ScriptedServer, connect: Connect) -> None:
    client = client_with_small_batches(server, connect)
    with pytest.raises(PyMongoError) as raised:
        client.db.coll.insert_many([{} for _ in range(8)])
    assert raised.value.timeout
    assert len(server.commands("insert")) == 2


def test_11_all_batches_of_bulk_write_share_one_timeout(server: ScriptedServer, connect: Connect) -> None:
    server.hello_extra["maxWireVersion"] = 25
    client = client_with_small_batches(server, connect)
    with pytest.raises(PyMongoError) as raised:
        client.bulk_write([InsertOne({}, namespace="db.coll") for _ in range(8)])
    assert raised.value.timeout
    assert len(server.commands("bulkWrite")) == 2


def test_4_1_timed_out_handshake_closes_background_connection(connect: Connect, recorder: Recorder) -> None:
    """Check that a timeout limits the handshake commands of a background connection (test 4.1).

    The specified limit is timeoutMS. In gmongo, the limit is `connectTimeoutMS`, because the pool
    opens background connections without an operation.
    """
    with Deployment.standalone(users={"u": "p"}) as deployment:
        delay_replies(deployment, "saslContinue", milliseconds=500, times=1, appName="pool")
        connect(deployment, minPoolSize=1, timeoutMS=100, connectTimeoutMS=100, appName="pool")
        recorder.wait_for("ConnectionCreated")
        recorder.wait_for("ConnectionClosed")


def test_4_2_timeout_is_refreshed_for_each_handshake_command(connect: Connect, recorder: Recorder) -> None:
    with Deployment.standalone(users={"u": "p"}) as deployment:
        delay_replies(deployment, "hello", "isMaster", "saslContinue", milliseconds=150, appName="refresh")
        connect(deployment, minPoolSize=1, timeoutMS=200, appName="refresh")
        recorder.wait_for("ConnectionCreated")
        recorder.wait_for("ConnectionReady")


def test_5_1_timeout_of_tailable_cursor_is_refreshed_for_each_get_more(
    standalone: Deployment, client_without_timeout: Client, connect: Connect, recorder: Recorder
) -> None:
    client_without_timeout.db.create_collection("coll", capped=True, size=500)
    client_without_timeout.db.coll.insert_one({"x": 1})
    client = connect(standalone, timeoutMS=500)
    delay_replies(standalone, "getMore", milliseconds=300)
    cursor = client.db.coll.find(cursor_type=CursorType.TAILABLE)
    assert next(cursor)["x"] == 1
    assert events_of_command(recorder, "getMore") == []
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(cursor)
    delay_replies(standalone, "getMore", milliseconds=2000)
    with pytest.raises(PyMongoError) as raised:
        next(cursor)
    assert raised.value.timeout
    assert events_of_command(recorder, "find").count("CommandStarted") == 1
    assert events_of_command(recorder, "getMore").count("CommandStarted") == 3


def test_5_2_change_stream_times_out_after_several_get_mores(
    connect: Connect, recorder: Recorder, deployment: Deployment
) -> None:
    client = connect(deployment, timeoutMS=500)
    delay_replies(deployment, "getMore", milliseconds=375)
    with client.db.coll.watch(max_await_time_ms=5) as stream:
        with pytest.raises(PyMongoError) as raised:
            next(stream)
        assert raised.value.timeout
    assert events_of_command(recorder, "aggregate").count("CommandStarted") >= 1
    assert events_of_command(recorder, "getMore").count("CommandStarted") >= 2


def test_6_1_slow_gridfs_upload_times_out(standalone: Deployment, connect: Connect) -> None:
    client = connect(standalone, timeoutMS=500)
    stream = GridFSBucket(client.db).open_upload_stream("filename")
    delay_replies(standalone, "insert", milliseconds=700, times=1)
    stream.write(b"\x12")
    with pytest.raises(PyMongoError) as raised:
        stream.close()
    assert raised.value.timeout


def test_6_2_slow_abort_of_gridfs_upload_times_out(standalone: Deployment, connect: Connect) -> None:
    client = connect(standalone, timeoutMS=500)
    stream = GridFSBucket(client.db, chunk_size_bytes=2).open_upload_stream("filename")
    # The upload buffers up to 1,000 chunks. Write more chunks, so that the abort must delete chunks
    # on the server.
    stream.write(bytes(2_002))
    delay_replies(standalone, "delete", milliseconds=700, times=1)
    with pytest.raises(PyMongoError) as raised:
        stream.abort()
    assert raised.value.timeout


def test_7_slow_gridfs_download_times_out(
    standalone: Deployment, client_without_timeout: Client, connect: Connect, recorder: Recorder
) -> None:
    identifier = ObjectId("000000000000000000000005")
    client_without_timeout.db.fs.files.insert_one(
        {
            "_id": identifier,
            "length": 10,
            "chunkSize": 4,
            "uploadDate": datetime.datetime(1970, 1, 1),
            "filename": "length-10",
        }
    )
    client = connect(standalone, timeoutMS=500)
    stream = GridFSBucket(client.db).open_download_stream(identifier)
    delay_replies(standalone, "find", milliseconds=700, times=1)
    with pytest.raises(PyMongoError) as raised:
        stream.read()
    assert raised.value.timeout
    finds = [event.command["find"] for event in recorder.events_named("CommandStarted") if event.command_name == "find"]
    assert finds == ["fs.files", "fs.chunks"]


@pytest.mark.parametrize(
    "options",
    [
        {"serverSelectionTimeoutMS": 20},
        {"timeoutMS": 20, "serverSelectionTimeoutMS": 60_000},
        {"timeoutMS": 60_000, "serverSelectionTimeoutMS": 20},
        {"timeoutMS": 0, "serverSelectionTimeoutMS": 20},
    ],
    ids=lambda options: " ".join(options),
)
def test_8_server_selection_uses_the_lower_timeout(connect: Connect, options: dict[str, Any]) -> None:
    """Check that the lower value of serverSelectionTimeoutMS and timeoutMS applies (test 8).

    A timeoutMS of 0 means no timeout.
    """
    client = connect("mongodb://127.0.0.1:1", **options)
    with pytest.raises(ServerSelectionTimeoutError) as raised:
        client.admin.command("ping")
    assert raised.value.timeout


@pytest.mark.parametrize(
    "options",
    [{"timeoutMS": 50, "serverSelectionTimeoutMS": 60_000}, {"timeoutMS": 60_000, "serverSelectionTimeoutMS": 50}],
    ids=["timeoutMS", "serverSelectionTimeoutMS"],
)
def test_8_handshake_uses_the_lower_timeout(connect: Connect, options: dict[str, Any]) -> None:
    with Deployment.standalone(users={"u": "p"}) as deployment:
        client = connect(deployment, **options)
        eventually(lambda: client.nodes)
        delay_replies(deployment, "saslContinue", milliseconds=400)
        with pytest.raises(PyMongoError) as raised:
            client.db.coll.insert_one({"x": 1})
        assert raised.value.timeout


@pytest.mark.parametrize("timeout_source", ["option", "block"])
def test_9_end_session_aborts_the_transaction_within_the_timeout(
    deployment: Deployment, connect: Connect, recorder: Recorder, timeout_source: str
) -> None:
    """Check that timeoutMS applies to `end_session` (test 9).

    As in PyMongo, `end_session` ignores errors of the abort.
    """
    client = connect(deployment, **({"timeoutMS": 500} if timeout_source == "option" else {}))
    session = client.start_session()
    session.start_transaction()
    client.db.coll.insert_one({"x": 1}, session=session)
    delay_replies(deployment, "abortTransaction", milliseconds=2000, times=1)
    with gevent.Timeout(1.75):
        if timeout_source == "option":
            session.end_session()
        else:
            with gmongo.timeout(0.5):
                session.end_session()
    assert "CommandFailed" in events_of_command(recorder, "abortTransaction")
    assert session.has_ended


def test_10_1_timeout_is_refreshed_for_abort(deployment: Deployment, connect: Connect, recorder: Recorder) -> None:
    """Check that timeoutMS starts anew for abortTransaction (test 10.1).

    ``test_time_limits.py`` checks the exact times.
    """
    client = connect(deployment, timeoutMS=500)
    delay_replies(deployment, "insert", "abortTransaction", milliseconds=700, times=2)
    with client.start_session() as session:
        with pytest.raises(PyMongoError) as raised:
            session.with_transaction(lambda session: client.db.coll.insert_one({"_id": 1}, session=session))
        assert raised.value.timeout
        assert events_of_command(recorder, "insert") == ["CommandStarted", "CommandFailed"]
        eventually(lambda: events_of_command(recorder, "abortTransaction")[:2] == ["CommandStarted", "CommandFailed"])
        with pytest.raises(InvalidOperation, match="twice"):
            session.abort_transaction()
        session.with_transaction(lambda session: client.db.coll.insert_one({"_id": 2}, session=session))


def test_10_2_all_attempts_of_with_transaction_share_one_timeout(deployment: Deployment, client: Client) -> None:
    delay_replies(deployment, "insert", milliseconds=25, code=24, labels=["TransientTransactionError"])
    attempts: list[int] = []

    def callback(session: Any) -> None:
        attempts.append(1)
        client.db.coll.insert_one({"x": 1}, session=session)

    with client.start_session() as session, pytest.raises(PyMongoError) as raised, gmongo.timeout(0.2):
        session.with_transaction(callback)
    assert raised.value.timeout
    assert len(attempts) > 1
