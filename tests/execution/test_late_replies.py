"""With ``drainLateReplies``, the pool keeps the connection of an interrupted operation if the reply
soon arrives.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import bson
import gevent
import gevent.server
import pytest
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.errors import ConfigurationError, NetworkTimeout, PyMongoError
from gmongo.testing import Deployment
from tests.execution.harness import delay_replies
from tests.support.greenlets import living_greenlets
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

LARGE = 200_000


class DelayingServer(ScriptedServer):
    """Member of a replica set. The fault :meth:`delay` delays a reply until the test calls
    :meth:`release`.

    Before the delay, the server sends pieces of the reply with the lengths in ``lengths``.
    """

    def __init__(self) -> None:
        member = {"setName": "rs", "setVersion": 1}
        super().__init__(
            {"find": self._find_reply},
            member=lambda server: {**member, "hosts": [server.name], "me": server.name},
        )
        self.lengths: list[int] = []
        self.filling = b""
        self.flags = 0
        self.suffix = b""
        self.gate = Event()
        self.late_find_received = Event()

    def release(self) -> None:
        self.gate.set()

    def _find_reply(self, command: dict[str, Any]) -> dict[str, Any]:
        document_id = command["filter"]["_id"]
        return cursor_reply([{"_id": document_id, "filling": self.filling if document_id == "late" else b""}])

    def delay(self, peer: Any, message: bytes) -> None:
        message = message[:16] + struct.pack("<I", self.flags) + message[20:]
        for length in self.lengths:
            peer.send(message[:length])
            message = message[length:]
            gevent.sleep(0.005)
        self.late_find_received.set()
        self.gate.wait()
        peer.send(message + self.suffix)


@pytest.fixture
def server() -> Iterator[DelayingServer]:
    with DelayingServer() as server:
        yield server
        server.release()


@pytest.fixture
def pool_recorder() -> PoolRecorder:
    return PoolRecorder()


@pytest.fixture
def create_client(server: DelayingServer, pool_recorder: PoolRecorder) -> Iterator[Callable[..., MongoClient[Any]]]:
    clients = []

    def create_and_keep_client(**options: Any) -> MongoClient[Any]:
        settings = {
            "replicaSet": "rs",
            "serverMonitoringMode": "poll",
            "event_listeners": [pool_recorder],
            **options,
        }
        clients.append(MongoClient(f"mongodb://{server.name}/", **settings))
        return clients[-1]

    yield create_and_keep_client
    for client in clients:
        client.close()


@pytest.fixture
def client(create_client: Callable[..., MongoClient[Any]]) -> MongoClient[Any]:
    return create_client(drainLateReplies=True, drainLateRepliesMS=10_000, maxPoolSize=1)


def pool_stats_of(client: MongoClient[Any]) -> dict[str, Any]:
    (stats,) = client.pool_stats()
    return stats


def connection_counts(client: MongoClient[Any]) -> tuple[int, int, int, int]:
    stats = pool_stats_of(client)
    return stats["total"], stats["available"], stats["in_use"], stats["draining"]


class CustomError(Exception):
    pass


def interrupt_late_find(client: MongoClient[Any], server: DelayingServer, interruption: str = "kill") -> None:
    """Start a `find` whose reply the server delays.

    After the server has received the `find`, interrupt the operation.
    """
    limit = gevent.Timeout(10)
    server.fail("find", server.delay)

    def find() -> None:
        try:
            with limit:
                client.d.c.find_one({"_id": "late"})
        except (gevent.Timeout, CustomError, PyMongoError):
            return
        raise AssertionError("not interrupted")

    if interruption == "limit":
        with pytest.raises(NetworkTimeout), gmongo.timeout(0.05):
            client.d.c.find_one({"_id": "late"})
        return
    running_find = gevent.spawn(find)
    server.late_find_received.wait()
    if interruption == "kill":
        running_find.kill()
    elif interruption == "error":
        running_find.kill(CustomError)
    else:
        running_find.kill(limit)
    assert running_find.dead


@pytest.mark.parametrize("interruption", ["kill", "error", "timeout", "limit"])
def test_connection_is_reused_after_late_reply(interruption, client, server, pool_recorder):
    interrupt_late_find(client, server, interruption)
    assert connection_counts(client) == (1, 0, 0, 1)
    server.release()
    eventually(lambda: connection_counts(client) == (1, 1, 0, 0))
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert (
        pool_recorder.lines_starting_with("Created") == ["Created 1"]
        and pool_recorder.lines_starting_with("Closed") == []
    )
    assert pool_recorder.lines_starting_with("CheckedOut", "CheckedIn") == ["CheckedOut 1", "CheckedIn 1"] * 2


def test_draining_connection_does_not_keep_event_loop_alive_until_reply(client, server):
    interrupt_late_find(client, server)
    (pool,) = client._topology.pools()
    (connection,) = pool.machine.draining
    eventually(lambda: not connection._transport._read_watcher.ref)
    server.release()
    eventually(lambda: connection_counts(client) == (1, 1, 0, 0))
    assert connection._transport._read_watcher.ref


@pytest.mark.parametrize("reply_is_late", [False, True])
def test_pool_by_default_drains_connection_of_operation_that_timed_out(
    reply_is_late, create_client, server, pool_recorder
):
    client = create_client(maxPoolSize=1)
    interrupt_late_find(client, server, "limit")
    assert connection_counts(client) == (1, 0, 0, 1)
    gevent.sleep(0.3 if reply_is_late else 0.2)
    server.release()
    # If the reply arrives after the time limit of draining, the client opens a second connection for
    # `killSessions`.
    eventually(lambda: connection_counts(client) == (1, 1, 0, 0))
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pool_recorder.lines_starting_with("Created", "Closed") == [
        "Created 1",
        *(["Closed 1 error", "Created 2"] if reply_is_late else []),
    ]


def test_draining_connection_counts_in_pool_size_and_operation_count(client, server):
    interrupt_late_find(client, server)
    waiting = gevent.spawn(client.d.c.find_one, {"_id": 5})
    eventually(lambda: pool_stats_of(client)["waiting"] == 1)
    (pool,) = client._topology.pools()
    assert connection_counts(client) == (1, 0, 0, 1)
    assert pool.operation_count == 2
    server.release()
    assert waiting.get()["_id"] == 5
    assert connection_counts(client) == (1, 1, 0, 0)


def test_drain_late_replies_bytes_does_not_limit_the_next_reply(create_client, server, pool_recorder):
    options = {"drainLateRepliesMS": 10_000, "drainLateRepliesBytes": LARGE // 2, "maxPoolSize": 1}
    client = create_client(drainLateReplies=True, **options)
    interrupt_late_find(client, server)
    server.release()
    eventually(lambda: connection_counts(client) == (1, 1, 0, 0))
    server.filling = bytes(LARGE)
    assert len(client.d.c.find_one({"_id": "late"})["filling"]) == LARGE
    assert pool_recorder.lines_starting_with("Created") == ["Created 1"]


# Cause of the close -> client options, and attributes of the server
CLOSE_CAUSES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "drainLateRepliesMS": ({"drainLateRepliesMS": 30}, {}),
    "drainLateRepliesBytes": ({"drainLateRepliesBytes": LARGE}, {"filling": bytes(LARGE)}),
    "first part of a large reply": (
        {"drainLateRepliesBytes": LARGE},
        {"filling": bytes(LARGE), "lengths": [70_000]},
    ),
    "maxMessageSizeBytes": (
        {"drainLateRepliesBytes": 10 * LARGE},
        {"filling": bytes(LARGE), "hello_extra": {"maxMessageSizeBytes": LARGE // 2}},
    ),
    "moreToCome": ({}, {"flags": 2}),
    "byte after the reply": ({}, {"suffix": b"\0"}),
    "disconnect": ({}, {}),
}


@pytest.mark.parametrize("cause", CLOSE_CAUSES)
def test_each_listed_cause_closes_draining_connection(cause, create_client, server, pool_recorder):
    options, attributes = CLOSE_CAUSES[cause]
    for name, value in attributes.items():
        setattr(server, name, value)
    client = create_client(drainLateReplies=True, **{"drainLateRepliesMS": 10_000, **options})
    interrupt_late_find(client, server)
    if cause == "disconnect":
        server.peers[server.connections_of("find")[0]].close()
    elif cause not in ("drainLateRepliesMS", "first part of a large reply"):
        server.release()
    eventually(lambda: connection_counts(client) == (0, 0, 0, 0))
    assert pool_recorder.lines_starting_with("Closed") == ["Closed 1 error"]


def test_pool_clear_closes_draining_connection(client, server, pool_recorder):
    interrupt_late_find(client, server)
    (pool,) = client._topology.pools()
    pool.clear(NetworkTimeout("of the test"))
    assert connection_counts(client) == (0, 0, 0, 0)
    assert pool_recorder.event_lines[-2:] == ["PoolCleared", "Closed 1 stale"]
    server.release()
    pool.ready()
    assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pool_recorder.lines_starting_with("Created") == ["Created 1", "Created 2"]


def test_client_close_closes_draining_connection(client, server, pool_recorder):
    interrupt_late_find(client, server)
    client.close()
    assert pool_recorder.lines_starting_with("Closed", "PoolClosed") == [
        "Closed 1 poolClosed",
        "PoolClosed",
    ]
    eventually(lambda: not server.peers)


def test_kill_of_greenlet_that_drains_closes_connection(client, server, pool_recorder):
    """Kill the draining greenlet before its first switch."""
    known = set(living_greenlets())
    interrupt_late_find(client, server)
    draining_greenlets = set(living_greenlets("_read")) - known
    assert draining_greenlets
    gevent.killall(draining_greenlets)
    eventually(lambda: connection_counts(client) == (0, 0, 0, 0))
    assert pool_recorder.lines_starting_with("Closed") == ["Closed 1 error"]
    assert client.d.c.find_one({"_id": 5})["_id"] == 5


def test_timeout_before_first_byte_of_request_keeps_connection(create_client, server, pool_recorder, monkeypatch):
    for options in ({}, {"drainLateReplies": True}):
        client = create_client(**options)
        client.d.c.find_one({"_id": 5})
        with pytest.raises(NetworkTimeout):
            (pool,) = client._topology.pools()
            with checked_out(pool) as connection:
                connection.exchange(1, [b"nothing"], 0.0, bson.decode)
        assert connection_counts(client) == (1, 1, 0, 0)
        assert client.d.c.find_one({"_id": 5})["_id"] == 5
    assert pool_recorder.lines_starting_with("Closed") == []


@pytest.mark.parametrize("pinned_by", ["cursor", "transaction"])
def test_pinned_connection_of_load_balancer_is_not_drained(pinned_by, connect, pool_recorder):
    with Deployment.load_balanced(1) as deployment:
        client = connect(deployment, drainLateReplies=True, drainLateRepliesMS=10_000)
        client.db.c.insert_many([{"_id": number} for number in range(6)])
        with client.start_session() as session:
            if pinned_by == "cursor":
                cursor = client.db.c.find({}, batch_size=2)
                next(cursor), next(cursor)
                delay_replies(deployment, "getMore", milliseconds=60, times=1)
                with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
                    next(cursor)
            else:
                session.start_transaction()
                delay_replies(deployment, "insert", milliseconds=60, times=1)
                with pytest.raises(gevent.Timeout), gevent.Timeout(0.02):
                    client.db.c.insert_one({}, session=session)
        assert pool_stats_of(client)["draining"] == 0


def test_drain_limits_without_drain_late_replies_raise_configuration_error():
    for limit in ({"drainLateRepliesMS": 100}, {"drainLateRepliesBytes": 100}):
        with pytest.raises(ConfigurationError, match="need drainLateReplies=true"):
            MongoClient("127.0.0.1", connect=False, **limit)
    for invalid_limit in ({"drainLateRepliesMS": 0}, {"drainLateRepliesBytes": 0}):
        with pytest.raises((ConfigurationError, ValueError), match=rf"{next(iter(invalid_limit))}(?!\w)"):
            MongoClient("127.0.0.1", connect=False, drainLateReplies=True, **invalid_limit)
