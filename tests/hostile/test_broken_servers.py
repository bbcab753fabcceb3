"""Tests of a client whose server violates the protocol, returns errors, or does not reply."""

from __future__ import annotations

import time

import bson
import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    CursorNotFound,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    ProtocolError,
)
from tests.support.recorder import Recorder
from tests.support.server import (
    ScriptedReplicaSet,
    ScriptedServer,
    cursor_reply,
    cut_reply,
    send_malformed_reply,
    send_no_reply,
    with_false_header,
)
from tests.support.wait import eventually

REPLY_FAULTS = {  # Name of a fault -> fault, exception class, and pattern of the message.
    "closed before the reply": (cut_reply(0), AutoReconnect, "connection closed by the server"),
    "closed inside the header": (cut_reply(10), AutoReconnect, "connection closed by the server"),
    "closed inside the body": (cut_reply(30), AutoReconnect, "connection closed by the server"),
    "negative length": (with_false_header(length=-1), ProtocolError, "message length -1"),
    "length zero": (with_false_header(length=0), ProtocolError, "message length 0"),
    "length below header": (with_false_header(length=15), ProtocolError, "message length 15"),
    "length below document": (with_false_header(length=17), ProtocolError, "too short"),
    "length too small": (with_false_header(length=30), ProtocolError, "length|bytes"),
    "2 GiB": (with_false_header(length=2**31 - 1), ProtocolError, "message length 2147483647"),
    "length above limit of hello": (
        with_false_header(length=48_100_000),
        ProtocolError,
        "message length 48100000",
    ),
    "reply to another request": (
        with_false_header(response_to=77),
        ProtocolError,
        "reply is to request 77",
    ),
    "unknown opcode": (with_false_header(opcode=2099), ProtocolError, "opcode 2099"),
    "unrequested compression": (
        with_false_header(opcode=2012),
        ProtocolError,
        "OP_COMPRESSED claims",
    ),
    "garbage": (send_malformed_reply, bson.errors.InvalidBSON, "."),
}
with_each_fault = pytest.mark.parametrize(("fault", "error", "message"), REPLY_FAULTS.values(), ids=REPLY_FAULTS.keys())


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch):
    """Reduce the minimum interval between server checks to 10 ms, so that tests need not wait for
    checks.
    """
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def client(server):
    with (
        gevent.Timeout(15),
        MongoClient(server.name, retryReads=False, serverSelectionTimeoutMS=5000) as client,
    ):
        client.admin.command("ping")
        yield client


def session_id_of(command):
    return bytes(command["lsid"]["id"])


def check_resources(client, server, lost_session_count):
    """Check that no connection is in use, that new operations succeed, and that the client ends its
    sessions.

    :param lost_session_count: the number of sessions that `close` does not end. The client discards a
        session whose connection failed, unless the failure was a timeout, or a cursor may be open.
    """
    for pool in client.pool_stats():
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
    for number in range(3):
        assert client.db.c.find_one({"_id": number}) == {"_id": number}
    assert [pool["total"] for pool in client.pool_stats()] == [1]
    used_ids = {session_id_of(each.command) for each in server.received if "lsid" in each.command}
    client.close()
    ended_ids = {bytes(each["id"]) for each in server.wait_for("endSessions")["endSessions"]}
    assert len(used_ids - ended_ids) == lost_session_count
    assert ended_ids <= used_ids


@pytest.mark.real_time
def test_error_of_timeout_before_send_contains_no_negative_limit(server):
    """A slow listener runs until the time limit has passed, before the client sends the command."""
    listener = Recorder()
    with MongoClient(server.name, event_listeners=[listener], retryReads=False) as client:
        client.db.command("ping")
        listener.hooks["CommandStarted"] = lambda _event: time.sleep(0.03)
        timeout_error = pytest.raises(NetworkTimeout, match=r"the limit of .* ended before")
        with timeout_error, gmongo.timeout(0.02):
            client.db.c.find_one()


@pytest.mark.parametrize(
    "extra_bytes",
    [b"\x10\0\0\0" * 4, b"\xff" * 40, bytes(16)],
    ids=["second reply", "noise", "zeros"],
)
@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_bytes_after_reply_close_connection_without_failing_operation(extra_bytes, write):
    """The additional bytes arrive while the connection is available. The next operation detects the
    bytes, closes the connection, and uses a new connection.
    """
    with (
        ScriptedReplicaSet(1) as replica_set,
        MongoClient(replica_set.members[0].name, replicaSet="scripted") as client,
    ):
        member = replica_set.members[0]
        operation = (lambda: client.db.c.insert_one({})) if write else client.db.c.find_one
        operation()
        name = "insert" if write else "find"
        [connection] = {each.connection for each in member.received if each.name == name}
        peer = member.peers[connection]
        peer._socket.sendall(extra_bytes)
        gevent.sleep(0.01)
        operation()
        assert len({each.connection for each in member.received if each.name == name}) == 2


@pytest.mark.requirement("CMAP-30")
@with_each_fault
def test_broken_reply_to_read_raises_error(client, server, fault, error, message):
    server.fail("find", fault)
    with pytest.raises(error, match=rf"{message}(?!\w)"):
        client.db.c.find_one({"_id": "broken"})
    check_resources(client, server, 1)


@with_each_fault
def test_broken_handshake_of_operation_raises_error(server, fault, error, message):
    with gevent.Timeout(5), MongoClient(server.name, retryReads=False) as client:
        eventually(lambda: client.nodes)
        server.fail("handshake", fault)
        with pytest.raises(error):
            client.db.c.find_one({"_id": "never sent"})
        assert not server.commands("find")
        check_resources(client, server, 0)


@pytest.mark.requirement("CMAP-30")
def test_operation_on_silent_server_raises_network_timeout_after_socket_timeout(server):
    with MongoClient(server.name, socketTimeoutMS=100, retryReads=False) as client:
        client.admin.command("ping")
        server.fail("find", send_no_reply)
        with pytest.raises(NetworkTimeout, match=f"{server.name}: timed out .*100 ms") as caught:
            client.db.c.find_one()
        assert caught.value.timeout
        # A network timeout does not clear the pool.
        assert client.pool_stats()[0]["generation"] == 0
        check_resources(client, server, 0)


def open_cursor(client, server):
    """Return a cursor that has returned its first document.

    The remaining documents of the cursor are on the server.
    """
    server.replies["find"] = cursor_reply([{"_id": 1}], cursor_id=7)
    cursor = client.db.c.find()
    assert next(cursor) == {"_id": 1}
    del server.replies["find"]
    server.replies["find"] = lambda command: cursor_reply([{"_id": command["filter"].get("_id")}])
    return cursor


@with_each_fault
def test_broken_get_more_reply_ends_cursor(client, server, fault, error, message):
    cursor = open_cursor(client, server)
    server.fail("getMore", fault)
    with pytest.raises(error, match=rf"{message}(?!\w)"):
        next(cursor)
    assert not cursor.alive
    assert list(cursor) == []
    cursor.close()
    if error is not AutoReconnect:
        assert server.wait_for("killCursors")["cursors"] == [7]
        eventually(lambda: client.pool_stats()[0]["in_use"] == 0)
    check_resources(client, server, 0)


@pytest.mark.parametrize(("code", "error"), [(43, CursorNotFound), (50, ExecutionTimeout), (237, OperationFailure)])
def test_error_reply_to_get_more_ends_cursor(client, server, code, error):
    cursor = open_cursor(client, server)
    server.replies["getMore"] = {"ok": 0, "code": code, "errmsg": "scripted error"}
    with pytest.raises(error):
        next(cursor)
    assert not cursor.alive
    assert len(server.commands("killCursors")) == int(code == 50)
    check_resources(client, server, 0)


@pytest.mark.parametrize(
    "document",
    [{5: 1}, {"a": {None: 1}}, {"a\0b": 1}, {"a": object()}, {"n": 2**70}],
    ids=["number as key", "None as key", "NUL in key", "object", "large number"],
)
def test_document_that_cannot_be_encoded_raises_error_before_send(client, server, document):
    with pytest.raises((bson.errors.InvalidDocument, OverflowError)):
        client.db.c.insert_one(dict(document))
    with pytest.raises((bson.errors.InvalidDocument, OverflowError)):
        client.db.c.find_one(document)
    assert not server.commands("insert")
    check_resources(client, server, 0)
