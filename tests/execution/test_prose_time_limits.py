"""Prose tests of the Client-Side Operations Timeout specification.

The official tests in the unified format contain tests 5, 6.1, 7 and 10. Tests 2 and 3 need client-side encryption.
The tests use longer timeouts than the specification. Tests 1 and 11 use small batches instead of 50 megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from bson import Int64

import gmongo
from gmongo import InsertOne
from gmongo.errors import PyMongoError, ServerSelectionTimeoutError
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment
from tests.execution.harness import delay_replies, events_of_command
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually


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


def test_6_2_abort_of_gridfs_upload_times_out(deployment: Deployment, connect: Connect) -> None:
    client = connect(deployment, timeoutMS=500)
    stream = GridFSBucket(client.db, chunk_size_bytes=2).open_upload_stream("filename")
    # The upload buffers up to 1,000 chunks. Write more chunks, so that the abort must delete chunks
    # on the server.
    stream.write(bytes(2_002))
    delay_replies(deployment, "delete", milliseconds=700, times=1)
    with pytest.raises(PyMongoError) as raised:
        stream.abort()
    assert raised.value.timeout


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

    The value 0 means no timeout.
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
