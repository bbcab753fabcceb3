"""The prose tests of the Client-Side Operations Timeout specification.

Not applicable: 2 and 3 (client-side encryption, which gmongo does not have). Tests of single milliseconds are made with
longer times here. Number 1 and 11 use a server whose batches are small, rather than fifty megabytes. The unit tests of
the specification are in ``test_time_limits.py``.
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
from tests.execution.harness import slow, told
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with gevent.Timeout(5, AssertionError("the limit was not kept")):
        yield


@pytest.fixture
def standalone() -> Iterator[Deployment]:
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def internal(standalone: Deployment) -> Iterator[Client]:
    """A client without a limit."""
    client: Client
    with gmongo.MongoClient(standalone.uri) as client:
        yield client


def slowly(reply: Any) -> Callable[[Any], Any]:
    def answer(_command: Any) -> Any:
        gevent.sleep(0.1)
        return reply

    return answer


def small_batches(server: ScriptedServer, connect: Callable[..., Client]) -> Client:
    server.hello_extra["maxWriteBatchSize"] = 2
    server.replies["insert"] = slowly({"ok": 1, "n": 2})
    cursor = {"id": Int64(0), "ns": "admin.$cmd.bulkWrite", "firstBatch": []}
    server.replies["bulkWrite"] = slowly({"ok": 1, "cursor": cursor, "nInserted": 2, "nErrors": 0})
    return connect(f"mongodb://{server.name}", timeoutMS=180)


def test_1_multi_batch_inserts(server: ScriptedServer, connect: Callable[..., Client]) -> None:
    """1. Multi-batch inserts."""
    client = small_batches(server, connect)
    with pytest.raises(PyMongoError) as raised:
        client.db.coll.insert_many([{} for _ in range(8)])
    assert raised.value.timeout
    assert len(server.commands("insert")) == 2


def test_11_multi_batch_bulk_writes(server: ScriptedServer, connect: Callable[..., Client]) -> None:
    """11. Multi-batch bulkWrites."""
    server.hello_extra["maxWireVersion"] = 25
    client = small_batches(server, connect)
    with pytest.raises(PyMongoError) as raised:
        client.bulk_write([InsertOne({}, namespace="db.coll") for _ in range(8)])
    assert raised.value.timeout
    assert len(server.commands("bulkWrite")) == 2


# 4. Background connection pooling


def test_4_1_the_limit_is_used_for_handshakes(connect: Callable[..., Client], recorder: Recorder) -> None:
    """4. timeoutMS used for handshake commands: a connection of the background is given up.

    gmongo's background has `connectTimeoutMS` for the whole, as the seed (CMAP) has it; so that is set here.
    """
    with Deployment.standalone(users={"u": "p"}) as deployment:
        slow(deployment, "saslContinue", milliseconds=500, times=1, appName="pool")
        connect(deployment, minPoolSize=1, timeoutMS=100, connectTimeoutMS=100, appName="pool")
        recorder.wait_for("ConnectionCreated")
        recorder.wait_for("ConnectionClosed")


def test_4_2_the_limit_is_that_of_each_command(connect: Callable[..., Client], recorder: Recorder) -> None:
    """4. timeoutMS is refreshed for each handshake command: it does not add up over them. (The times of this
    test and the next two are five or ten times those of the text: a busy machine must not decide.)
    """
    with Deployment.standalone(users={"u": "p"}) as deployment:
        slow(deployment, "hello", "isMaster", "saslContinue", milliseconds=150, appName="refresh")
        connect(deployment, minPoolSize=1, timeoutMS=200, appName="refresh")
        recorder.wait_for("ConnectionCreated")
        recorder.wait_for("ConnectionReady")


# 5. Blocking iteration


def test_5_1_tailable_cursors(
    standalone: Deployment, internal: Client, connect: Callable[..., Client], recorder: Recorder
) -> None:
    """5. Tailable cursors. As PyMongo's, they end for now with an empty batch, so that each call sends one getMore."""
    internal.db.create_collection("coll", capped=True, size=500)
    internal.db.coll.insert_one({"x": 1})
    client = connect(standalone, timeoutMS=500)
    slow(standalone, "getMore", milliseconds=300)
    cursor = client.db.coll.find(cursor_type=CursorType.TAILABLE)
    assert next(cursor)["x"] == 1
    assert told(recorder, "getMore") == []
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(cursor)
    slow(standalone, "getMore", milliseconds=2000)
    with pytest.raises(PyMongoError) as raised:
        next(cursor)
    assert raised.value.timeout
    assert told(recorder, "find").count("CommandStarted") == 1
    assert told(recorder, "getMore").count("CommandStarted") == 3


def test_5_2_change_streams(connect: Callable[..., Client], recorder: Recorder, deployment: Deployment) -> None:
    """5. Change streams."""
    client = connect(deployment, timeoutMS=500)
    slow(deployment, "getMore", milliseconds=375)
    with client.db.coll.watch(max_await_time_ms=5) as stream:
        with pytest.raises(PyMongoError) as raised:
            next(stream)
        assert raised.value.timeout
    assert told(recorder, "aggregate").count("CommandStarted") >= 1
    assert told(recorder, "getMore").count("CommandStarted") >= 2


# 6. and 7. GridFS


def test_6_1_uploads(standalone: Deployment, connect: Callable[..., Client]) -> None:
    """6. Uploads via openUploadStream can be timed out."""
    client = connect(standalone, timeoutMS=150)
    stream = GridFSBucket(client.db).open_upload_stream("filename")
    slow(standalone, "insert", milliseconds=200, times=1)
    stream.write(b"\x12")
    with pytest.raises(PyMongoError) as raised:
        stream.close()
    assert raised.value.timeout


def test_6_2_aborting_an_upload(standalone: Deployment, connect: Callable[..., Client]) -> None:
    """6. Aborting an upload stream can be timed out."""
    client = connect(standalone, timeoutMS=150)
    stream = GridFSBucket(client.db, chunk_size_bytes=2).open_upload_stream("filename")
    # The upload keeps up to 1,000 chunks. With more, the server has chunks for the abort to remove.
    stream.write(bytes(4_000))
    slow(standalone, "delete", milliseconds=200, times=1)
    with pytest.raises(PyMongoError) as raised:
        stream.abort()
    assert raised.value.timeout


def test_7_downloads(
    standalone: Deployment, internal: Client, connect: Callable[..., Client], recorder: Recorder
) -> None:
    """7. GridFS download."""
    identifier = ObjectId("000000000000000000000005")
    internal.db.fs.files.insert_one(
        {
            "_id": identifier,
            "length": 10,
            "chunkSize": 4,
            "uploadDate": datetime.datetime(1970, 1, 1),
            "filename": "length-10",
        }
    )
    client = connect(standalone, timeoutMS=150)
    stream = GridFSBucket(client.db).open_download_stream(identifier)
    slow(standalone, "find", milliseconds=200, times=1)
    with pytest.raises(PyMongoError) as raised:
        stream.read()
    assert raised.value.timeout
    finds = [event.command["find"] for event in recorder.of("CommandStarted") if event.command_name == "find"]
    assert finds == ["fs.files", "fs.chunks"]


# 8. Server selection


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
def test_8_server_selection(connect: Callable[..., Client], options: dict[str, Any]) -> None:
    """8. The lower one of serverSelectionTimeoutMS and timeoutMS is honored; 0 is none."""
    client = connect("mongodb://127.0.0.1:1", **options)
    with pytest.raises(ServerSelectionTimeoutError) as raised:
        client.admin.command("ping")
    assert raised.value.timeout


@pytest.mark.parametrize(
    "options",
    [
        {"timeoutMS": 50, "serverSelectionTimeoutMS": 60_000},
        {"timeoutMS": 60_000, "serverSelectionTimeoutMS": 50},
    ],
    ids=["timeoutMS", "serverSelectionTimeoutMS"],
)
def test_8_handshakes(connect: Callable[..., Client], options: dict[str, Any]) -> None:
    """8. So it is for the commands of a connection's handshake."""
    with Deployment.standalone(users={"u": "p"}) as deployment:
        client = connect(deployment, **options)
        eventually(lambda: client.nodes)
        slow(deployment, "saslContinue", milliseconds=400)
        with pytest.raises(PyMongoError) as raised:
            client.db.coll.insert_one({"x": 1})
        assert raised.value.timeout


# 9. endSession


@pytest.mark.parametrize("how", ["option", "block"])
def test_9_end_session(deployment: Deployment, connect: Callable[..., Client], recorder: Recorder, how: str) -> None:
    """9. endSession has the limit. Like PyMongo's it raises nothing, since errors of an abort are of no use."""
    client = connect(deployment, **({"timeoutMS": 100} if how == "option" else {}))
    session = client.start_session()
    session.start_transaction()
    client.db.coll.insert_one({"x": 1}, session=session)
    slow(deployment, "abortTransaction", milliseconds=400, times=1)
    with gevent.Timeout(0.35):
        if how == "option":
            session.end_session()
        else:
            with gmongo.timeout(0.1):
                session.end_session()
    assert "CommandFailed" in told(recorder, "abortTransaction")
    assert session.has_ended


# 10. Convenient transactions


def test_10_1_abort_in_background_has_a_limit_of_its_own(
    deployment: Deployment, connect: Callable[..., Client], recorder: Recorder
) -> None:
    """10. timeoutMS is refreshed for abortTransaction if the callback fails.

    ``test_time_limits_of_many.py`` has the exact times, on a scripted server in virtual time.
    """
    client = connect(deployment, timeoutMS=150)
    slow(deployment, "insert", "abortTransaction", milliseconds=200, times=2)
    with client.start_session() as session:
        with pytest.raises(PyMongoError) as raised:
            session.with_transaction(lambda session: client.db.coll.insert_one({"_id": 1}, session=session))
        assert raised.value.timeout
        assert told(recorder, "insert") == ["CommandStarted", "CommandFailed"]
        eventually(lambda: told(recorder, "abortTransaction")[:2] == ["CommandStarted", "CommandFailed"])
        with pytest.raises(InvalidOperation, match="twice"):
            session.abort_transaction()
        session.with_transaction(lambda session: client.db.coll.insert_one({"_id": 2}, session=session))


def test_10_2_one_limit_for_all_tries(deployment: Deployment, client: Client) -> None:
    """10. withTransaction applies a single timeout across retries due to transient errors."""
    slow(deployment, "insert", milliseconds=25, code=24, labels=["TransientTransactionError"])
    attempts: list[int] = []

    def callback(session: Any) -> None:
        attempts.append(1)
        client.db.coll.insert_one({"x": 1}, session=session)

    with client.start_session() as session, pytest.raises(PyMongoError) as raised, gmongo.timeout(0.2):
        session.with_transaction(callback)
    assert raised.value.timeout
    assert len(attempts) > 1
