"""Features where they meet: a client of any kind, a server in trouble at any step, and what must hold all the same.

Each scene is drawn at random, from its number. In trouble no storm of connections reaches the server; afterwards no
greenlet has been forgotten, every beginning has its end, and the pool and the topology are what their events say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from bson import ObjectId

import gmongo
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.server_api import ServerApi
from tests.support.fixtures import limited
from tests.support.recorder import Recorder, short_name
from tests.support.server import ScriptedServer, cut, silent
from tests.support.single import REPLIES
from tests.support.tls import TlsServer, server_context
from tests.support.wait import eventually

pytestmark = pytest.mark.real_time  # TLS servers have threads, and storms end with time

SCENES = 28
MANY = 10_000
GRANTED = {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
LOGIN = {"username": "ann", "password": "secret", "authMechanism": "PLAIN"}

TOPOLOGIES = ("standalone", "streaming", "replica set", "load balanced", "TLS")
TROUBLES: dict[str, Callable[[ScriptedServer], Any]] = {
    "refuses connections": lambda server: server.stop(),
    "closes at the hello": lambda server: server.fail("handshake", *[cut(0)] * MANY),
    "sends half a hello": lambda server: server.fail("handshake", *[cut(20)] * MANY),
    "does not answer the hello": lambda server: server.fail("handshake", *[silent] * MANY),
    "refuses the hello": lambda server: setattr(
        server, "hello_edit", lambda _command, _reply: {"ok": 0, "code": 8000, "errmsg": "not now"}
    ),
    "closes at the log-in": lambda server: server.fail("saslStart", *[cut(0)] * MANY),
    "does not answer the log-in": lambda server: server.fail("saslStart", *[silent] * MANY),
    "refuses the log-in": lambda server: server.replies.update(
        saslStart={"ok": 0, "code": 18, "errmsg": "no such user"}
    ),
    "closes at a command": lambda server: server.fail("find", *[cut(0)] * MANY),
    "sends half a reply": lambda server: server.fail("find", *[cut(30)] * MANY),
    "does not answer commands": lambda server: server.fail("find", *[silent] * MANY),
    "closes at the checks": lambda server: server.fail("hello", *[cut(0)] * MANY),
    "shuts down": lambda server: server.replies.update(find={"ok": 0, "code": 91, "errmsg": "shutting down"}),
    "is overloaded": lambda server: server.replies.update(
        find={"ok": 0, "code": 462, "errmsg": "busy", "errorLabels": ["SystemOverloadedError", "RetryableError"]}
    ),
}
LIMITS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "none": nullcontext,
    "gmongo.timeout": lambda: gmongo.timeout(0.1),
    "gevent.Timeout": lambda: gevent.Timeout(0.1, False),
}
LISTENERS: dict[str, Callable[[Any], None]] = {
    "quiet": lambda event: None,
    "yields": lambda event: gevent.sleep(0),
    "is slow": lambda event: gevent.sleep(0.002),
    "raises": lambda event: 1 / 0,  # type: ignore[arg-type, return-value]
}


@dataclass(frozen=True)
class Scene:
    """What meets in one test."""

    topology: str
    trouble: str
    limit: str
    listener: str
    logs_in: bool
    strict: bool
    workers: int
    options: dict[str, Any]

    @classmethod
    def drawn(cls, number: int) -> Scene:
        """The scene of a number; every trouble and topology has its turn."""
        draw = random.Random(number)
        trouble = list(TROUBLES)[number % len(TROUBLES)]
        smallest = draw.randint(0, 3)
        return cls(
            TOPOLOGIES[number % len(TOPOLOGIES)],
            trouble,
            draw.choice(list(LIMITS)),
            draw.choice(list(LISTENERS)),
            "log-in" in trouble or draw.random() < 0.5,
            draw.random() < 0.3,
            draw.randint(1, 6),
            {
                "minPoolSize": smallest,
                "maxPoolSize": draw.randint(max(1, smallest), 4),
                "maxConnecting": draw.randint(1, 2),
                "waitQueueTimeoutMS": draw.choice([200, 2000]),
                "retryReads": draw.random() < 0.5,
                "connectTimeoutMS": 300,
                "socketTimeoutMS": 300,
                "serverSelectionTimeoutMS": 1000,
                "heartbeatFrequencyMS": 500,
                "maxAdaptiveRetries": draw.randint(0, 2),
                "baseBackoffMS": 20,
            },
        )


class Everywhere(dict[str, Callable[[Any], None]]):
    """Hooks of a recorder: the same for all events."""

    def __init__(self, hook: Callable[[Any], None]) -> None:
        self._hook = hook

    def get(self, _kind: str, _default: Any = None) -> Any:
        return self._hook


def server_of(scene: Scene, certificates: SimpleNamespace) -> ScriptedServer:
    replies = {"saslStart": dict(GRANTED)}
    if scene.topology == "TLS":
        return TlsServer(server_context(certificates.server), replies=replies)
    if scene.topology == "replica set":

        def member(server: ScriptedServer) -> dict[str, Any]:
            return {"setName": "rs", "hosts": [server.name], "setVersion": 1, "electionId": ObjectId("1" * 24)}

        return ScriptedServer(replies, member=member, streams=True)
    server = ScriptedServer(replies, streams=scene.topology == "streaming")
    if scene.topology == "load balanced":
        server.hello_extra = {"serviceId": ObjectId("5" * 24), "msg": "isdbgrid"}
    return server


def client_of(scene: Scene, server: ScriptedServer, recorder: Recorder, certificates: SimpleNamespace) -> Any:
    options = {**scene.options, **(LOGIN if scene.logs_in else {})}
    if scene.strict:
        options["server_api"] = ServerApi("1")
    if scene.topology == "TLS":
        options |= {"tls": True, "tlsCAFile": certificates.ca}
    uri = f"mongodb://{server.name}/"
    if scene.topology == "replica set":
        uri += "?replicaSet=rs"
    elif scene.topology == "load balanced":
        uri += "?loadBalanced=true"
    return MongoClient(uri, event_listeners=[recorder], **options)


def work(client: Any, limit: Callable[[], AbstractContextManager[Any]], turns: int) -> None:
    for _ in range(turns):
        try:
            with limit():
                client.db.c.find_one({"_id": 1})
        except PyMongoError:
            pass


patience = limited(90)


@pytest.mark.requirement("CMAP-96", "CMAP-175", "BP-72", "SM-83")
@pytest.mark.parametrize("number", range(SCENES))
def test_a_scene(number: int, recorder: Recorder, files: SimpleNamespace) -> None:
    scene = Scene.drawn(number)
    recorder.hooks = Everywhere(LISTENERS[scene.listener])
    with server_of(scene, files) as server:
        client = client_of(scene, server, recorder, files)
        try:
            eventually(lambda: works(client), 20)
            play(scene, server, client)
            check_recovery(scene, server, client)
        finally:
            client.close()
        check_events(recorder)


def play(scene: Scene, server: ScriptedServer, client: Any) -> None:
    """Trouble comes while all are at work; then they rest, and it goes on."""
    TROUBLES[scene.trouble](server)
    for peer in list(server.peers.values()):
        peer.close()
    limit = LIMITS[scene.limit]
    workers = [gevent.spawn(work, client, limit, 2) for _ in range(scene.workers)]
    gevent.joinall(workers, timeout=30)
    assert all(each.ready() for each in workers), f"a greenlet is left: {scene}"
    before = server.connection_count
    gevent.sleep(0.5)
    # No operation runs: two monitors' connections may be tried again, and the background's.
    assert server.connection_count - before <= 6, f"a storm: {scene}"


def works(client: Any) -> bool:
    try:
        return bool(client.db.c.find_one({"_id": 1}) == {"_id": 1})
    except PyMongoError:
        return False


def check_recovery(scene: Scene, server: ScriptedServer, client: Any) -> None:
    """All is well again: operations succeed, and nothing is held."""
    server.faults.clear()
    server.hello_edit = None
    server.replies.update(saslStart=dict(GRANTED))
    server.replies["find"] = REPLIES["find"]
    if server._listener is None:
        server.start()

    eventually(lambda: works(client), 20)
    (pool,) = client.pool_stats()
    assert (pool["in_use"], pool["waiting"]) == (0, 0), scene
    smallest = scene.options["minPoolSize"]
    eventually(lambda: client.pool_stats()[0]["available"] >= smallest, 20)
    (pool,) = client.pool_stats()
    assert pool["state"] == "ready"
    assert pool["total"] <= scene.options["maxPoolSize"]


def check_events(recorder: Recorder) -> None:
    """Every beginning has one end, and states follow each other as they can."""
    counts = Counter(short_name(event) for event in recorder.events)
    outs = counts["ConnectionCheckedOut"] + counts["ConnectionCheckOutFailed"]
    assert counts["ConnectionCheckOutStarted"] == outs
    assert counts["ConnectionCheckedOut"] == counts["ConnectionCheckedIn"]
    assert counts["ConnectionCreated"] == counts["ConnectionClosed"]
    assert counts["HeartbeatStarted"] == counts["HeartbeatSucceeded"] + counts["HeartbeatFailed"]
    assert counts["CommandStarted"] == counts["CommandSucceeded"] + counts["CommandFailed"]
    states = [kind for kind in map(short_name, recorder.events) if kind in ("PoolReady", "PoolCleared", "PoolClosed")]
    services = any(getattr(event, "service_id", None) for event in recorder.events)
    if not services:  # a clear of a service does not pause the pool
        assert all(one != other for one, other in pairwise(states)), states
        assert states[0] == "PoolReady"
    assert states[-1] == "PoolClosed"
    closed = [event.connection_id for event in recorder.of("ConnectionClosed")]
    assert len(closed) == len(set(closed))
