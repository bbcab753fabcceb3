"""``drainLateReplies``: an interrupted operation does not cost its connection, if its reply comes in time.

The question goes to a server that says when each piece of the reply goes out, so that interruptions land where they are
meant to land.
"""

from __future__ import annotations

import gc
import socket
import struct
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import bson
import gevent
import gevent.server
import pytest
from bson import Int64
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    ConfigurationError,
    NetworkTimeout,
    PyMongoError,
)
from gmongo.testing import Deployment
from tests.execution.harness import slow
from tests.hostile.peer import OP_COMPRESSED, OP_MSG, good_reply, hello, message, read_command
from tests.hostile.replies import hello_message
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

LARGE = 200_000


class Server:
    """Keeps the replies to what asks for them (``{"_id": "late"}``) until :meth:`release`.

    :param pieces: the lengths of what goes out before.
    """

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.filling = b""
        self.flags = 0
        self.behind = b""
        self.hello: dict[str, Any] = {}
        self.cursor_id = 0
        self.compresses = False
        self.gate = Event()
        self.asked = Event()
        self.names: list[str] = []
        self.killed: list[int] = []
        self.lost = 0
        self.sockets: list[Any] = []
        self._server = gevent.server.StreamServer(("127.0.0.1", 0), self._serve)
        self._server.start()
        self.name = f"127.0.0.1:{self._server.server_port}"

    def release(self) -> None:
        self.gate.set()

    def disconnect(self) -> None:
        for each in self.sockets:
            each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.gate.set()
        self._server.stop(timeout=0)

    def _serve(self, sock: Any, _address: Any) -> None:
        stream = sock.makefile("rb")
        self.sockets.append(sock)
        try:
            while len(head := stream.read(16)) == 16:
                length, number, _, opcode = struct.unpack("<iiii", head)
                body = stream.read(length - 16)
                self._answer(sock, read_command(opcode, body), number)
        except OSError:
            pass
        finally:
            self.lost += 1
            stream.close()
            sock.close()

    def _answer(self, sock: Any, command: dict[str, Any], number: int) -> None:
        name = next(iter(command))
        if name in ("hello", "ismaster", "isMaster"):
            extra = {"compression": ["zlib"]} if self.compresses else {}
            return sock.sendall(hello_message({**hello(self.name), **extra, **self.hello}, command, number))
        self.names.append(name)
        if name == "killCursors":
            self.killed += command["cursors"]
        reply = message(bson.encode(good_reply(name, command)), number)
        if name != "find":
            return sock.sendall(reply)
        wanted = command["filter"]["_id"]
        document = {"_id": wanted, "filling": self.filling if wanted == "late" else b""}
        cursor_id = self.cursor_id if wanted == "late" else 0
        cursor = {"id": Int64(cursor_id), "ns": "d.c", "firstBatch": [document]}
        reply = message(bson.encode({"ok": 1.0, "cursor": cursor}), number, self.flags if wanted == "late" else 0)
        if self.compresses:
            payload = struct.pack("<iiB", OP_MSG, len(reply) - 16, 2) + zlib.compress(reply[16:], 0)
            reply = struct.pack("<iiii", 16 + len(payload), 1, number, OP_COMPRESSED) + payload
        if wanted == "late":
            for piece in self.pieces:
                sock.sendall(reply[:piece])
                reply = reply[piece:]
                gevent.sleep(0.005)
            self.asked.set()
            self.gate.wait()
            reply += self.behind
        sock.sendall(reply)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def pools() -> PoolRecorder:
    return PoolRecorder()


@pytest.fixture
def client_of(server: Server, pools: PoolRecorder) -> Iterator[Callable[..., MongoClient[Any]]]:
    clients = []

    def make(**options: Any) -> MongoClient[Any]:
        given = {"replicaSet": "rs", "serverMonitoringMode": "poll", "event_listeners": [pools], **options}
        clients.append(MongoClient(f"mongodb://{server.name}/", **given))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(client_of: Callable[..., MongoClient[Any]]) -> MongoClient[Any]:
    return client_of(drainLateReplies=True, drainLateRepliesMS=10_000, maxPoolSize=1)


def stats(client: MongoClient[Any]) -> dict[str, Any]:
    (found,) = client.pool_stats()
    return found


def counts(client: MongoClient[Any]) -> tuple[int, int, int, int]:
    found = stats(client)
    return found["total"], found["available"], found["in_use"], found["draining"]


class Mine(Exception):
    pass


def ask_late(client: MongoClient[Any], server: Server, how: str = "kill") -> None:
    """An operation that is interrupted when the server has its question."""
    limit = gevent.Timeout(10)

    def ask() -> None:
        try:
            with limit:
                client.d.c.find_one({"_id": "late"})
        except (gevent.Timeout, Mine, PyMongoError):
            return
        raise AssertionError("not interrupted")

    if how == "limit":
        with pytest.raises(NetworkTimeout), gmongo.timeout(0.05):
            client.d.c.find_one({"_id": "late"})
        return
    asking = gevent.spawn(ask)
    server.asked.wait()
    if how == "kill":
        asking.kill()
    elif how == "error":
        asking.kill(Mine)
    else:
        asking.kill(limit)
    assert asking.dead


# It is kept


@pytest.mark.parametrize("how", ["kill", "error", "timeout", "limit"])
def test_the_connection_is_used_again_when_the_reply_has_come(how, client, server, pools):
    ask_late(client, server, how)
    assert counts(client) == (1, 0, 0, 1)
    server.release()
    eventually(lambda: counts(client) == (1, 1, 0, 0))
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pools.only("Created") == ["Created 1"] and pools.only("Closed") == []
    assert pools.only("CheckedOut", "CheckedIn") == ["CheckedOut 1", "CheckedIn 1"] * 2


def test_a_connection_that_is_used_again_holds_the_hub_again(client, server):
    ask_late(client, server)
    (pool,) = client._topology.pools()
    (connection,) = pool.machine.draining
    eventually(lambda: not connection._transport._readable.ref)  # nothing waits for the reply but the pool
    server.release()
    eventually(lambda: counts(client) == (1, 1, 0, 0))
    assert connection._transport._readable.ref


@pytest.mark.parametrize("late", [False, True])
def test_without_the_option_connection_is_kept_for_the_error_of_max_time_ms(late, client_of, server, pools):
    client = client_of(maxPoolSize=1)
    ask_late(client, server, "limit")
    assert counts(client) == (1, 0, 0, 1)
    gevent.sleep(0.3 if late else 0.2)
    server.release()
    eventually(lambda: counts(client) == (1, 1, 0, 0))  # if late, the second connection sends `killSessions`
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pools.only("Created", "Closed") == ["Created 1", *(["Closed 1 error", "Created 2"] if late else [])]


@pytest.mark.requirement("CMAP-30", "CMAP-134")
@pytest.mark.parametrize("how", ["kill", "timeout"])
def test_without_the_option_an_interrupted_connection_is_closed(how, client_of, server, pools):
    client = client_of(maxPoolSize=1)
    ask_late(client, server, how)
    assert counts(client) == (0, 0, 0, 0)
    assert pools.only("Closed") == ["Closed 1 error"]


def test_a_connection_that_waits_for_a_late_reply_counts_in_the_pool_and_as_load(client, server):
    ask_late(client, server)
    waiting = gevent.spawn(client.d.c.find_one, {"_id": 5})
    eventually(lambda: stats(client)["waiting"] == 1)
    (pool,) = client._topology.pools()
    assert counts(client) == (1, 0, 0, 1)
    assert pool.operation_count == 2
    server.release()
    assert waiting.get()["_id"] == 5  # it was handed over
    assert counts(client) == (1, 1, 0, 0)


@pytest.mark.parametrize("compresses", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("filling", [0, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("pieces", [[5], [16], [20, 30], [100]], ids=str)
def test_a_reply_that_has_come_in_part(pieces, filling, compresses, client_of, server, pools):
    server.pieces, server.filling, server.compresses = pieces, bytes(filling), compresses
    compressors = {"compressors": "zlib"} if compresses else {}
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000, maxPoolSize=1, **compressors)
    ask_late(client, server)
    server.release()
    eventually(lambda: counts(client) == (1, 1, 0, 0))
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pools.only("Created") == ["Created 1"]


def test_the_limit_of_bytes_holds_for_the_late_reply_only(client_of, server, pools):
    options = {"drainLateRepliesMS": 10_000, "drainLateRepliesBytes": LARGE // 2, "maxPoolSize": 1}
    client = client_of(drainLateReplies=True, **options)
    ask_late(client, server)
    server.release()
    eventually(lambda: counts(client) == (1, 1, 0, 0))
    server.filling = bytes(LARGE)
    assert len(client.d.c.find_one({"_id": "late"})["filling"]) == LARGE
    assert pools.only("Created") == ["Created 1"]


def test_over_tls(connect):
    with Deployment.standalone(tls=True) as deployment:
        client = connect(deployment, drainLateReplies=True, drainLateRepliesMS=10_000)
        client.db.c.insert_one({"_id": 1})
        slow(deployment, "find", milliseconds=60, times=1)
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
            client.db.c.find_one({"_id": 1})
        assert counts(client) == (1, 0, 0, 1)
        eventually(lambda: stats(client)["draining"] == 0)
        assert counts(client) == (1, 1, 0, 0)
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


# It is closed


def test_after_its_time_it_is_closed(client_of, server, pools):
    client = client_of(drainLateReplies=True, drainLateRepliesMS=30)
    ask_late(client, server)
    assert counts(client) == (1, 0, 0, 1)
    eventually(lambda: counts(client) == (0, 0, 0, 0))
    assert pools.only("Closed") == ["Closed 1 error"]
    server.release()
    eventually(lambda: server.lost > 0)


def test_a_reply_above_the_limit_is_not_read(client_of, server, pools):
    server.filling = bytes(LARGE)
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000, drainLateRepliesBytes=LARGE)
    ask_late(client, server)
    server.release()
    eventually(lambda: counts(client) == (0, 0, 0, 0))
    assert pools.only("Closed") == ["Closed 1 error"]


def test_a_long_reply_that_was_begun_before_the_interruption_keeps_to_the_limit(client_of, server):
    server.pieces, server.filling = [70_000], bytes(LARGE)
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000, drainLateRepliesBytes=LARGE)
    ask_late(client, server)
    eventually(lambda: counts(client) == (0, 0, 0, 0))  # its length is known already


MORE_TO_COME = 2


@pytest.mark.parametrize(
    ("flags", "behind"), [(MORE_TO_COME, b""), (0, b"\0")], ids=["more to come", "a byte behind it"]
)
def test_a_late_reply_that_is_not_all_there_is(flags, behind, client, server, pools):
    server.flags, server.behind = flags, behind
    ask_late(client, server)
    server.release()
    eventually(lambda: stats(client)["draining"] == 0)
    assert counts(client) == (0, 0, 0, 0)
    assert pools.only("Closed") == ["Closed 1 error"]


def test_the_servers_own_limit_holds_for_a_late_reply_too(client_of, server, pools):
    server.hello, server.filling = {"maxMessageSizeBytes": LARGE // 2}, bytes(LARGE)
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000, drainLateRepliesBytes=10 * LARGE)
    ask_late(client, server)
    server.release()
    eventually(lambda: stats(client)["draining"] == 0)
    assert pools.only("Closed") == ["Closed 1 error"]


def test_a_clear_ends_it(client, server, pools):
    ask_late(client, server)
    (pool,) = client._topology.pools()
    pool.clear(NetworkTimeout("of the test"))
    assert counts(client) == (0, 0, 0, 0)
    assert pools.story[-2:] == ["PoolCleared", "Closed 1 stale"]
    server.release()
    pool.ready()
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pools.only("Created") == ["Created 1", "Created 2"]


def test_a_close_ends_it(client, server, pools):
    ask_late(client, server)
    client.close()
    assert pools.only("Closed", "PoolClosed") == ["Closed 1 poolClosed", "PoolClosed"]
    eventually(lambda: server.lost > 0)


def test_a_reader_that_is_killed_at_once_leaves_nothing(client, server, pools):
    """``gevent.killall`` of all that there is may hit it before it has begun."""
    before = {each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)}
    ask_late(client, server)
    readers = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), gevent.Greenlet) and each not in before and "_read" in repr(each._run)
    ]
    assert readers
    gevent.killall(readers)
    eventually(lambda: counts(client) == (0, 0, 0, 0))
    assert pools.only("Closed") == ["Closed 1 error"]
    assert client.d.c.find_one({"_id": 5})["_id"] == 5


def test_a_server_that_closes_instead(client, server, pools):
    ask_late(client, server)
    server.disconnect()
    eventually(lambda: counts(client)[3] == 0)
    assert pools.only("Closed") == ["Closed 1 error"]


def test_a_client_that_is_dropped_is_gone_at_once(server):
    client: Any = MongoClient(f"mongodb://{server.name}/?replicaSet=rs&drainLateReplies=true")
    ask_late(client, server)
    assert counts(client)[3] == 1
    gc.collect()
    gc.disable()
    try:
        left = [weakref.ref(each) for each in (client._topology, *client._topology.pools(), client._executor)]
        del client
        gevent.sleep(0)
        assert [each() for each in left] == [None, None, None]
    finally:
        gc.enable()
    server.release()


# What must not be kept


@pytest.mark.real_time
def test_a_request_that_went_out_in_part(client_of, server, pools):
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000)
    client.d.c.find_one({"_id": 5})
    (pool,) = client._topology.pools()
    (connection,) = pool.machine.available
    assert connection._transport is not None
    sending = gevent.spawn(client.d.c.insert_many, [{"x": bytes(15_000_000)}] * 3)
    eventually(lambda: connection.mid_message and connection._transport._waiting is not None)
    sending.kill()
    assert connection.unanswered is None
    assert counts(client) == (0, 0, 0, 0)
    assert pools.only("Closed") == ["Closed 1 error"]


@pytest.mark.real_time
def test_a_request_in_one_piece_that_went_out_in_part(client_of, server):
    client = client_of(drainLateReplies=True)
    client.d.c.find_one({"_id": 5})
    (pool,) = client._topology.pools()
    with checked_out(pool) as connection:
        request = struct.pack("<iiii", 20_000_016, 1, 0, OP_MSG) + bytes(20_000_000)
        sending = gevent.spawn(connection.exchange, 1, [request], None, bson.decode)
        eventually(lambda: connection._transport._waiting is sending)
        sending.kill()
        assert connection.mid_message and connection.unanswered is None


def test_a_request_that_was_not_sent_at_all(client_of, server, pools, monkeypatch):
    """The time is over before the first byte: nothing has happened to the connection, with the option or without."""
    for options in ({}, {"drainLateReplies": True}):
        client = client_of(**options)
        client.d.c.find_one({"_id": 5})
        with pytest.raises(NetworkTimeout):
            (pool,) = client._topology.pools()
            with checked_out(pool) as connection:
                connection.exchange(1, [b"nothing"], 0.0, bson.decode)
        assert counts(client) == (1, 1, 0, 0)
        assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pools.only("Closed") == []


@pytest.mark.real_time
def test_an_unacknowledged_write_has_no_reply(client_of, server):
    client = client_of(drainLateReplies=True, drainLateRepliesMS=10_000, w=0)
    client.d.c.find_one({"_id": 5})
    (pool,) = client._topology.pools()
    (connection,) = pool.machine.available
    sending = gevent.spawn(client.d.c.insert_one, {"x": bytes(15_000_000)})
    eventually(lambda: connection.mid_message)
    sending.kill()
    assert connection.unanswered is None
    assert counts(client) == (0, 0, 0, 0)


@pytest.mark.parametrize("holds", ["cursor", "transaction"])
def test_behind_a_load_balancer_a_cursor_and_a_transaction_go_with_their_connection(holds, connect, pools):
    with Deployment.load_balanced(1) as deployment:
        client = connect(deployment, drainLateReplies=True, drainLateRepliesMS=10_000)
        client.db.c.insert_many([{"_id": number} for number in range(6)])
        with client.start_session() as session:
            if holds == "cursor":
                cursor = client.db.c.find({}, batch_size=2)
                next(cursor), next(cursor)
                slow(deployment, "getMore", milliseconds=60, times=1)
                with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
                    next(cursor)
            else:
                session.start_transaction()
                slow(deployment, "insert", milliseconds=60, times=1)
                with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
                    client.db.c.insert_one({}, session=session)
        assert stats(client)["draining"] == 0


# What a late reply brings


def test_a_late_reply_that_cannot_be_read_closes_the_connection(client, server, pools, monkeypatch):
    monkeypatch.setattr(
        "gmongo.execution.late_reply.LateReply.__call__", lambda *_: (_ for _ in ()).throw(bson.errors.InvalidBSON())
    )
    ask_late(client, server)
    server.release()
    eventually(lambda: counts(client) == (0, 0, 0, 0))
    assert pools.only("Closed") == ["Closed 1 error"]


# The option


def test_limits_need_the_option():
    for limit in ({"drainLateRepliesMS": 100}, {"drainLateRepliesBytes": 100}):
        with pytest.raises(ConfigurationError, match="limits of drainLateReplies=true"):
            MongoClient("127.0.0.1", connect=False, **limit)
    for wrong in ({"drainLateRepliesMS": 0}, {"drainLateRepliesBytes": 0}):
        with pytest.raises((ConfigurationError, ValueError), match=next(iter(wrong))):
            MongoClient("127.0.0.1", connect=False, drainLateReplies=True, **wrong)


def test_drain_late_replies_may_be_in_the_uri():
    client: Any = MongoClient(
        "mongodb://127.0.0.1/?drainLateReplies=true&drainLateRepliesMS=250&drainLateRepliesBytes=4096", connect=False
    )
    pool = client._options.topology().pool
    assert (pool.drains, pool.drain_time, pool.drain_bytes) == (True, 0.25, 4096)
    pool = MongoClient("127.0.0.1", connect=False)._options.topology().pool
    assert not pool.drains


@pytest.mark.parametrize("thrown", [gevent.Timeout(), gevent.GreenletExit(), ValueError("x")])
def test_a_request_that_was_never_sent_has_no_late_reply(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, thrown: BaseException
) -> None:
    def interrupted(*_arguments: object) -> None:
        raise thrown

    with ScriptedServer() as scripted:
        scripted.hello_extra = {"compression": ["zlib"]}
        client = connect(scripted, compressors="zlib", drainLateReplies=True)
        monkeypatch.setattr("gmongo.cmap.server_connection.compressed", interrupted)
        with pytest.raises(type(thrown)) as caught:
            client.db.command("ping")
        assert caught.value is thrown
        (pool,) = client.pool_stats()
        assert (pool["draining"], pool["available"], pool["in_use"]) == (0, 0, 0)
