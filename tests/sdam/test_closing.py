"""A closed or dropped client releases all resources. Monitors do not run between checks."""

from __future__ import annotations

import gc
import os
from typing import Any

import gevent
import greenlet
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, InvalidOperation, PyMongoError
from tests.sdam.harness import awaitable_hellos, wait_for_absent_events
from tests.support.clients import make_client
from tests.support.greenlets import living_greenlets
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, hold_reply, send_no_reply
from tests.support.wait import eventually

CLIENT_COUNT = 30


def count_driver_greenlets() -> int:
    """Return the number of living greenlets that run functions of gmongo."""
    return sum(str(getattr(each._run, "__module__", "")).startswith("gmongo.") for each in living_greenlets())


def count_watchers() -> int:
    """Return the number of active timer, I/O and async watchers, even watchers with ``ref=False``."""
    loop = gevent.get_hub().loop
    samples = [loop.timer(1), loop.io(0, 1), loop.async_()]
    kinds = {type(sample) for sample in samples}
    for sample in samples:
        sample.close()
    return sum(type(each) in kinds and each.active for each in gc.get_objects())


def count_resources() -> tuple[int, int, int, int]:
    """Return the numbers of driver greenlets, file descriptors, active watchers, and active
    watchers with ``ref=True``.
    """
    gc.collect()
    return count_driver_greenlets(), len(os.listdir("/proc/self/fd")), count_watchers(), gevent.get_hub().loop.activecnt


@pytest.mark.requirement("SM-89", "SM-90", "SM-123")
@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "polling"])
@pytest.mark.parametrize("closes_clients", [True, False], ids=["closed", "dropped"])
def test_closed_or_dropped_clients_release_all_resources(streams: bool, closes_clients: bool) -> None:
    """Close or drop one half of the clients after an operation, the other half during discovery."""

    def use_new_client(number: int) -> None:
        client: Any = MongoClient(replica_set.members[0].name, replicaSet="scripted", minPoolSize=1)
        if number % 2:
            assert client.db.c.find_one({"_id": number}) == {"_id": number}
        else:
            gevent.sleep(0.001 * (number % 6))
        if closes_clients:
            client.close()

    with gevent.Timeout(60), ScriptedReplicaSet(streams=streams) as replica_set:
        use_new_client(1)
        eventually(lambda: not any(member.peers for member in replica_set.members))
        before = eventually(count_resources)
        for number in range(CLIENT_COUNT):
            use_new_client(number)
        eventually(lambda: not any(member.peers for member in replica_set.members), 10)
        eventually(lambda: all(now <= then for now, then in zip(count_resources(), before, strict=True)), 10)


@pytest.mark.requirement("SM-89", "SM-90", "SM-112", "SM-121")
@pytest.mark.parametrize("closes_clients", [True, False], ids=["closed", "dropped"])
@pytest.mark.parametrize("stage", ["handshake", "hello"])
def test_client_of_silent_server_releases_resources_at_close_or_drop(stage: str, closes_clients: bool) -> None:
    with ScriptedServer(streams=True) as server:
        before = eventually(count_resources)
        server.fail(stage, *[send_no_reply] * 50)
        clients: Any = [MongoClient(server.name, connectTimeoutMS=0) for _ in range(10)]
        server.wait_for(stage, 10)
        if closes_clients:
            for client in clients:
                client.close()
        clients = client = None
        eventually(lambda: not server.peers)
        eventually(lambda: all(now <= then for now, then in zip(count_resources(), before, strict=True)))


def test_close_publishes_all_events_without_greenlet_switch(connect: Any, stream_server: ScriptedServer) -> None:
    recorder = Recorder()
    client = make_client(stream_server.name, recorder)
    eventually(lambda: awaitable_hellos(stream_server))
    other = gevent.spawn(int)
    client._topology.close()
    assert not other.ready()
    assert recorder.lines_starting_with("TopologyClosed") == ["TopologyClosed"]
    event_count = len(recorder.events)
    wait_for_absent_events()
    assert other.ready()
    client.close()
    assert len(recorder.events) == event_count


@pytest.mark.requirement("SM-83", "SM-89", "SM-91")
@pytest.mark.parametrize("stage", ["handshake", "hello"])
def test_close_during_check_publishes_last_events_in_order(
    connect: Any, stream_server: ScriptedServer, recorder: Any, stage: str
) -> None:
    """Check that the last events concern the cancelled check, the pool, the server and the topology,
    in this order."""
    stream_server.fail("handshake", *[send_no_reply] * (stage == "handshake"))
    client = connect(stream_server, heartbeatFrequencyMS=60_000)
    if stage == "hello":
        eventually(lambda: awaitable_hellos(stream_server))
    else:
        stream_server.wait_for("handshake")
    pending_event = "HeartbeatStarted awaited" if stage == "hello" else "HeartbeatStarted"
    assert recorder.lines_starting_with("Heartbeat")[-1] == pending_event
    recorder.clear()
    client._topology.close()
    wait_for_absent_events()
    assert recorder.event_lines == [
        pending_event.replace("Started", "Failed"),
        "PoolClosed",
        "ServerClosed",
        "TopologyDescriptionChanged Unknown",
        "TopologyClosed",
    ]


@pytest.mark.requirement("SM-91")
def test_close_without_known_server_does_not_wait(connect: Any, poll_server: ScriptedServer, virtual_time: Any) -> None:
    """Stop the server, and then close a client that has idle sessions."""
    client = connect(poll_server, retryReads=False)
    with client.start_session() as one, client.start_session() as other:
        client.db.command("ping", session=one)
        client.db.command("ping", session=other)
    poll_server.stop()
    with pytest.raises(PyMongoError):
        client.db.command("ping")
    eventually(lambda: client.topology_description.has_known_servers is False)
    began = virtual_time.monotonic()
    client.close()
    assert virtual_time.monotonic() == began


@pytest.mark.usefixtures("quick_checks")
def test_idle_monitor_greenlets_are_not_resumed(connect: Any, server: ScriptedServer, monkeypatch: Any) -> None:
    client = connect(server, heartbeatFrequencyMS=60_000)
    client.db.c.find_one()
    eventually(lambda: len(server.peers) == (3 if server.streams else 2))
    wait_for_absent_events()
    resumed_greenlets: list[str] = []

    def record_resumed_greenlet(event: str, arguments: Any) -> None:
        target = arguments[1]
        if event in ("switch", "throw") and isinstance(target, gevent.Greenlet):
            name = repr(getattr(target, "_run", ""))
            resumed_greenlets.extend([name] * ("gmongo" in name))

    previous_trace = greenlet.settrace(record_resumed_greenlet)
    try:
        gevent.sleep(0.7)
        resumed_monitors = [each for each in resumed_greenlets if "Monitor" in each]
        server.changed()
        client._topology.request_checks()
        # Check that the trace function detects a resumed monitor greenlet.
        eventually(lambda: [each for each in resumed_greenlets if "Monitor" in each])
    finally:
        greenlet.settrace(previous_trace)
    assert resumed_monitors == []


def test_close_of_client_ends_server_selection_with_invalid_operation(connect: Any) -> None:
    with ScriptedServer() as dead:
        dead.stop()
        client = connect(dead, serverSelectionTimeoutMS=60_000)
        waiters = [gevent.spawn(client.db.c.find_one) for _ in range(3)]
        eventually(lambda: client._topology.selector.waiter_count == 3)
        client._topology.close()
        gevent.joinall(waiters, timeout=5)
    assert [type(each.exception) for each in waiters] == [InvalidOperation] * 3


def test_operation_in_progress_fails_10_seconds_after_close(connect: Any, virtual_time: Any) -> None:
    with ScriptedServer() as server:
        client = connect(server, retryReads=False)
        client.db.command("ping")
        server.fail("find", send_no_reply)
        reading = gevent.spawn(client.db.c.find_one)
        server.wait_for("find")
        begin = virtual_time.monotonic()
        client.close()
        reading.join()
        assert 10 <= virtual_time.monotonic() - begin < 11
    assert isinstance(reading.exception, AutoReconnect) and "close()" in str(reading.exception)


def test_concurrent_close_publishes_each_closed_event_once(recorder: Recorder) -> None:
    gate = Event()
    with ScriptedServer() as server:
        client = MongoClient(server.name, event_listeners=[recorder])
        client.db.command("ping")
        server.fail("endSessions", hold_reply(gate))
        closing = [gevent.spawn(client.close) for _ in range(2)]
        server.wait_for("endSessions")
        gate.set()
        gevent.joinall(closing, timeout=5, raise_error=True)
    client.close()
    for kind in ("TopologyClosed", "ServerClosed", "PoolClosed"):
        assert len(recorder.events_named(kind)) == 1
