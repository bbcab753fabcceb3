"""Choosing servers for operations: waiting, waking, and the choice."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.read_preferences import Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred
from tests.sdam.harness import awaitable, settle
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply
from tests.support.wait import eventually


class Selector:
    """A selector of the application's. It accepts what the test says, and counts how often it was asked."""

    def __init__(self, accepts: bool) -> None:
        self.accepts = accepts
        self.asked = 0

    def __call__(self, servers: list[Any]) -> list[Any]:
        self.asked += 1
        return servers if self.accepts else []


# Waiting


@pytest.mark.requirement("SM-27")
def test_waiters_look_again_after_each_check_and_never_else(
    connect: Any, streaming: ScriptedServer, recorder: Any
) -> None:
    selector = Selector(accepts=False)
    client = connect(streaming, heartbeatFrequencyMS=60_000, server_selector=selector)
    eventually(lambda: awaitable(streaming))
    waiters = [gevent.spawn(client.db.c.find_one, {"_id": number}) for number in range(5)]
    eventually(lambda: client._topology.selector.waiting == 5)
    for _ in range(3):
        asked = selector.asked
        settle(0.05)
        assert selector.asked == asked, "no selector runs while nothing has changed"
        streaming.changed()
        eventually(lambda asked=asked: selector.asked == asked + 5)
    selector.accepts = True
    streaming.changed()
    gevent.joinall(waiters, timeout=5, raise_error=True)


class Interrupted(Selector):
    """A selector during whose second answer, once it is armed, a change comes that brings a server."""

    change: Any = None

    def __call__(self, servers: list[Any]) -> list[Any]:
        accepts = super().__call__(servers)
        if self.change is not None and self.asked == 2:
            self.accepts = True
            self.change()
        return accepts


@pytest.mark.requirement("SM-27")
def test_the_first_waiter_goes_on_first_also_if_it_has_just_looked_in_vain(
    connect: Any, streaming: ScriptedServer
) -> None:
    selector = Interrupted(accepts=False)
    client = connect(streaming, heartbeatFrequencyMS=60_000, server_selector=selector, maxPoolSize=1)
    eventually(lambda: awaitable(streaming))
    served: list[int] = []

    def ask(number: int) -> None:
        client.db.c.find_one()
        served.append(number)

    waiters = [gevent.spawn(ask, number) for number in range(5)]
    eventually(lambda: client._topology.selector.waiting == 5)
    selector.asked = 0
    selector.change = lambda: client._topology.selector.wake(client._topology.description)
    streaming.changed()
    gevent.joinall(waiters, timeout=5, raise_error=True)
    assert served == [1, 0, 2, 3, 4]  # the second one was awake when the server came


def test_no_timer_of_a_waiter_is_left(connect: Any, streaming: ScriptedServer) -> None:
    """Waiting is one timer, which a waiter that leaves takes along."""
    client = connect(streaming, server_selector=Selector(accepts=False), serverSelectionTimeoutMS=60_000)
    eventually(lambda: awaitable(streaming))
    before = gevent.get_hub().loop.activecnt
    waiters = [gevent.spawn(client.db.c.find_one) for _ in range(10)]
    settle()
    gevent.killall(waiters)
    gc.collect()
    eventually(lambda: gevent.get_hub().loop.activecnt <= before + 1)  # one is of eventually() itself
    assert client._topology.selector.waiting == 0


# The server selector of the application


def test_the_selector_with_the_highest_port(connect: Any, replica_set: ScriptedReplicaSet, recorder: Any) -> None:
    """The prose test "Application-Provided Server Selector"."""
    client = connect(
        replica_set.members[0],
        replicaSet="scripted",
        localThresholdMS=60_000,
        server_selector=lambda servers: [max(servers, key=lambda server: server.address[1])],
    )
    eventually(lambda: len(client.nodes) == 3)
    nearest = client.db.get_collection("c", read_preference=Nearest())
    for number in range(10):
        nearest.find_one({"_id": number})
    highest = max(replica_set.members, key=lambda member: member.port)
    assert [event.connection_id for event in recorder.of("CommandStarted")] == [highest.address] * 10


# Behind several mongos


def mongos() -> ScriptedServer:
    return ScriptedServer(member=lambda _server: {"msg": "isdbgrid"})


def test_a_slow_server_has_less_to_do() -> None:
    """The prose test "operationCount-based Selection Within Latency Window", with 20 instead of 500 ms."""
    recorder = Recorder()

    def run(greenlets: int, each: int) -> Counter[Any]:
        """How many operations went where."""

        def find() -> None:
            for _ in range(each):
                client.db.c.find_one()

        recorder.forget()
        gevent.joinall([gevent.spawn(find) for _ in range(greenlets)], raise_error=True)
        return Counter(event.connection_id for event in recorder.of("CommandStarted"))

    with mongos() as slow, mongos() as other:
        options: dict[str, Any] = {"localThresholdMS": 30_000, "minPoolSize": 10, "maxPoolSize": 10}
        with MongoClient([slow.name, other.name], event_listeners=[recorder], **options) as client:
            eventually(lambda: [pool["available"] for pool in client.pool_stats()] == [10, 10])

            def late(_command: Any) -> Any:
                gevent.sleep(0.02)
                return cursor_reply([])

            slow.replies["find"] = late
            assert run(10, 10)[slow.address] < 25
            # Both take their time now, or all operations would be done before the next one begins.
            slow.replies["find"] = other.replies["find"] = lambda command: gevent.sleep(0.0005) or cursor_reply([])
            assert 400 <= run(10, 100)[slow.address] <= 600


@pytest.mark.parametrize(
    ("preference", "sent"),
    [
        (Primary(), None),
        (PrimaryPreferred(), {"mode": "primaryPreferred"}),
        (Secondary(), {"mode": "secondary"}),
        (Nearest(), {"mode": "nearest"}),
        (SecondaryPreferred([{"dc": "east"}]), {"mode": "secondaryPreferred", "tags": [{"dc": "east"}]}),
    ],
    ids=str,
)
def test_read_preferences_are_passed_to_mongos(connect: Any, preference: Any, sent: Any) -> None:
    with mongos() as server:
        client = connect(server)
        client.db.get_collection("c", read_preference=preference).find_one()
        assert server.commands("find")[0].get("$readPreference") == sent


def test_the_primary_has_no_tags() -> None:
    """The section ReadPreference Document Validation."""
    with pytest.raises(Exception, match="tags"):
        MongoClient("mongodb://h/?readPreference=primary&readPreferenceTags=dc:east", connect=False)


def test_the_applications_selector_is_asked_for_each_operation(streaming: Any, connect: Any) -> None:
    """What it says may change from one operation to the next, so its answer is not remembered."""
    asked: list[int] = []

    def selector(servers: list[Any]) -> list[Any]:
        asked.append(len(servers))
        return servers

    client = connect(streaming, heartbeatFrequencyMS=60_000, server_selector=selector)
    client.db.c.find_one()
    before = len(asked)
    for _ in range(5):
        client.db.c.find_one()
    assert len(asked) - before == 5


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_an_operation_waits_for_a_server_once(
    streaming: Any, connect: Any, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    """When there is none in time, a second try would wait for as long again."""
    client = connect(streaming, server_selector=lambda servers: [], serverSelectionTimeoutMS=20)
    waits: list[str] = []
    select = client._topology.selector.select

    def counting(topology: Any, selector: Any, operation: Any, *more: Any) -> Any:
        waits.append(operation.name)
        return select(topology, selector, operation, *more)

    monkeypatch.setattr(client._topology.selector, "select", counting)
    with pytest.raises(ServerSelectionTimeoutError) as caught:
        client.db.c.insert_one({}) if write else client.db.c.find_one()
    assert waits == ["insert" if write else "find"]
    assert not caught.value.has_error_label("RetryableWriteError")
