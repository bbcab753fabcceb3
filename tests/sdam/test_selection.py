"""Server selection waits for a suitable server, wakes after a topology change, and chooses
a server.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import Mock

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.read_preferences import Nearest
from tests.sdam.harness import awaitable_hellos
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply
from tests.support.wait import eventually


class CountingSelector:
    """A server selector that counts its calls, and accepts either all servers or no server."""

    def __init__(self, accepts: bool) -> None:
        self.accepts = accepts
        self.call_count = 0

    def __call__(self, servers: list[Any]) -> list[Any]:
        self.call_count += 1
        return servers if self.accepts else []


class ChangingSelector(CountingSelector):
    """A server selector that changes the topology in its second call, then accepts all servers."""

    change: Any = None

    def __call__(self, servers: list[Any]) -> list[Any]:
        accepted_servers = super().__call__(servers)
        if self.change is not None and self.call_count == 2:
            self.accepts = True
            self.change()
        return accepted_servers


@pytest.mark.requirement("SM-27")
def test_topology_change_during_selector_call_wakes_all_waiting_operations(
    connect: Any, stream_server: ScriptedServer
) -> None:
    selector = ChangingSelector(accepts=False)
    client = connect(stream_server, heartbeatFrequencyMS=60_000, server_selector=selector, maxPoolSize=1)
    eventually(lambda: awaitable_hellos(stream_server))
    served_waiters: list[int] = []

    def find(number: int) -> None:
        client.db.c.find_one()
        served_waiters.append(number)

    waiters = [gevent.spawn(find, number) for number in range(5)]
    eventually(lambda: client._topology.selector.waiter_count == 5)
    selector.call_count = 0
    selector.change = lambda: client._topology.selector.wake_waiters(client._topology.description)
    stream_server.changed()
    gevent.joinall(waiters, timeout=5, raise_error=True)
    assert served_waiters == [1, 0, 2, 3, 4]  # the topology changed during the selector call for waiter 1


def test_constant_topology_changes_do_not_delay_server_selection_timeout(
    connect: Any, stream_server: ScriptedServer, virtual_time: Any
) -> None:
    client = connect(stream_server, server_selector=CountingSelector(accepts=False), serverSelectionTimeoutMS=1000)
    eventually(lambda: awaitable_hellos(stream_server))
    waiter = gevent.spawn(client.db.c.find_one)
    eventually(lambda: client._topology.selector.waiter_count)
    virtual_time.suspend(1.0)
    for _ in range(20):
        client._topology.selector.wake_waiters(client.topology_description)
        gevent.sleep(0)
    with pytest.raises(ServerSelectionTimeoutError):
        waiter.get(block=False)


def test_application_selector_chooses_server_with_highest_port(
    connect: Any, replica_set: ScriptedReplicaSet, recorder: Any
) -> None:
    """Run the prose test "Application-Provided Server Selector"."""
    selector = Mock(side_effect=lambda servers: [max(servers, key=lambda server: server.address[1])])
    client = connect(replica_set.members[0], replicaSet="scripted", localThresholdMS=60_000, server_selector=selector)
    eventually(lambda: len(client.nodes) == 3)
    nearest = client.db.get_collection("c", read_preference=Nearest())
    for number in range(10):
        nearest.find_one({"_id": number})
    highest = max(replica_set.members, key=lambda member: member.port)
    assert [event.connection_id for event in recorder.events_named("CommandStarted")] == [highest.address] * 10
    assert selector.call_count >= 10


def scripted_mongos() -> ScriptedServer:
    return ScriptedServer(member=lambda _server: {"msg": "isdbgrid"})


def test_slow_mongos_receives_fewer_operations() -> None:
    """Run the prose test "operationCount-based Selection Within Latency Window" with delays of 20 ms
    instead of 500 ms.
    """
    recorder = Recorder()

    def run_finds(greenlet_count: int, finds_per_greenlet: int) -> Counter[Any]:
        """Run `find` operations in several greenlets. Return the number of commands for each
        server address.
        """

        def find() -> None:
            for _ in range(finds_per_greenlet):
                client.db.c.find_one()

        recorder.clear()
        gevent.joinall([gevent.spawn(find) for _ in range(greenlet_count)], raise_error=True)
        return Counter(event.connection_id for event in recorder.events_named("CommandStarted"))

    with scripted_mongos() as slow, scripted_mongos() as other:
        options: dict[str, Any] = {"localThresholdMS": 30_000, "minPoolSize": 10, "maxPoolSize": 10}
        with MongoClient([slow.name, other.name], event_listeners=[recorder], **options) as client:
            eventually(lambda: [pool["available"] for pool in client.pool_stats()] == [10, 10])

            def reply_after_delay(_command: Any) -> Any:
                gevent.sleep(0.02)
                return cursor_reply([])

            slow.replies["find"] = reply_after_delay
            assert run_finds(10, 10)[slow.address] < 25
            # With equal delays, each server receives about half of the operations.
            slow.replies["find"] = other.replies["find"] = lambda command: gevent.sleep(0.0005) or cursor_reply([])
            assert 400 <= run_finds(10, 100)[slow.address] <= 600
