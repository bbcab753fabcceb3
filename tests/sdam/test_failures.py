"""Checks that fail, and what an application's errors do to the monitoring of a server."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from tests.sdam.harness import awaitable, connection_that_streams, description_of, pool_of, settle
from tests.support.server import ScriptedServer, cut, silent
from tests.support.wait import eventually

SHUTTING_DOWN = {"ok": 0, "code": 91, "errmsg": "The server is in quiesce mode", "codeName": "ShutdownInProgress"}


DISASTERS = {
    "network error": (lambda server: server.fail("hello", cut(0)), AutoReconnect),
    "time-out": (lambda server: server.fail("hello", silent), NetworkTimeout),
    "command error": (
        lambda server: setattr(server, "hello_edit", lambda command, reply: SHUTTING_DOWN),
        OperationFailure,
    ),
}


# A check fails


@pytest.mark.requirement("SM-97", "SM-98", "SM-99", "SM-100", "SM-101", "SM-110", "SM-130")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", DISASTERS)
def test_the_order_of_what_follows(connect: Any, polled: ScriptedServer, recorder: Any, kind: str) -> None:
    provoke, error = DISASTERS[kind]
    client = connect(polled, heartbeat=0.05, connectTimeoutMS=50)
    recorder.wait_for("HeartbeatSucceeded", 2)
    (monitoring,) = polled.peers
    states: list[str] = []
    recorder.hooks["ServerDescriptionChanged"] = lambda _event: states.append(pool_of(client, polled)["state"])
    recorder.forget()
    provoke(polled)
    recorder.wait_for("PoolCleared")
    failed = recorder.story.index("HeartbeatFailed")
    assert recorder.story[failed : failed + 4] == [
        "HeartbeatFailed",
        "ServerDescriptionChanged Unknown",
        "TopologyDescriptionChanged Single",
        "PoolCleared interrupting" if kind == "time-out" else "PoolCleared",
    ]
    assert isinstance(recorder.of("HeartbeatFailed")[0].reply, error)
    assert isinstance(recorder.of("ServerDescriptionChanged")[0].new_description.error, error)
    assert states[0] == "paused", "it is never Unknown with a pool that hands out connections"
    eventually(lambda: monitoring not in polled.peers)
    polled.hello_edit = None
    recorder.wait_for("PoolReady")
    assert next(iter(polled.commands("handshake")[-1])) == "ismaster"


@pytest.mark.requirement("SM-101")
@pytest.mark.usefixtures("quick")
def test_a_time_out_ends_operations_in_progress(connect: Any, polled: ScriptedServer, recorder: Any) -> None:
    polled.fail("find", silent)
    client = connect(polled, heartbeat=0.05, connectTimeoutMS=100, retryReads=False)
    reader = gevent.spawn(client.db.c.find_one)
    polled.wait_for("find")
    polled.fail("hello", silent)
    with pytest.raises(AutoReconnect):
        reader.get(timeout=5)
    assert recorder.only("PoolCleared") == ["PoolCleared interrupting"]


@pytest.mark.requirement("SM-102", "SM-103", "SM-111")
@pytest.mark.usefixtures("no_pauses")
def test_a_known_server_that_is_lost_is_tried_again_at_once(
    connect: Any, streaming: ScriptedServer, recorder: Any
) -> None:
    client = connect(streaming, heartbeatFrequencyMS=60_000)
    eventually(lambda: awaitable(streaming))
    recorder.forget()
    streaming.peers[connection_that_streams(streaming)].close()
    recorder.wait_for("PoolReady")
    assert recorder.only("Heartbeat", "Pool")[:5] == [
        "HeartbeatFailed awaited",
        "PoolCleared",
        "HeartbeatStarted",
        "HeartbeatSucceeded",
        "PoolReady",
    ]
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.requirement("SM-104", "SM-105", "SM-111")
@pytest.mark.usefixtures("quick")
def test_after_a_command_error_it_waits(connect: Any, streaming: ScriptedServer, recorder: Any) -> None:
    connect(streaming, heartbeatFrequencyMS=60_000)
    eventually(lambda: awaitable(streaming))
    streaming.hello_edit = lambda command, reply: SHUTTING_DOWN if "topologyVersion" in command else reply
    streaming.changed()
    recorder.wait_for("HeartbeatFailed")
    settle(0.1)
    assert recorder.only("Heartbeat")[-1] == "HeartbeatFailed awaited"


@pytest.mark.requirement("SM-95", "SM-96", "SM-100")
@pytest.mark.usefixtures("quick")
def test_a_greenlet_that_sees_the_server_can_use_it(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    """Even a listener that hears of the server before anybody else."""
    found: list[Any] = []
    states: list[tuple[str, str]] = []
    client = connect(server, heartbeat=0.1, retryReads=False)
    recorder.wait_for("PoolReady")

    def use(event: Any) -> None:
        kind = event.new_description.server_type_name
        states.append((kind, pool_of(client, server)["state"]))
        if kind != "Unknown":
            found.append(client.db.c.find_one({"_id": 1}))

    recorder.hooks["ServerDescriptionChanged"] = use
    server.fail("hello", *[cut(0)] * 4)
    if server.streams:
        server.changed()
    eventually(lambda: found)
    assert found[0] == {"_id": 1}
    assert {*states} == {("Unknown", "paused"), ("Standalone", "ready")}


# Handshakes of the application's connections


@pytest.mark.requirement("SM-31", "SM-106")
@pytest.mark.usefixtures("no_pauses")
def test_a_refused_handshake_of_an_operation(connect: Any, polled: ScriptedServer, recorder: Any) -> None:
    """The server is Unknown; but its monitor, which has no error, does not retry at once."""
    client = connect(polled, heartbeatFrequencyMS=60_000, retryReads=False)
    recorder.wait_for("PoolReady")
    polled.hello_edit = lambda _command, _reply: {"ok": 0, "code": 8000, "errmsg": "not now"}
    with pytest.raises(OperationFailure, match="not now"):
        client.db.c.find_one()
    assert recorder.only("ServerDescription", "PoolCleared")[-2:] == ["ServerDescriptionChanged Unknown", "PoolCleared"]
    assert isinstance(description_of(client, polled).error, OperationFailure)
    settle()
    assert len(recorder.of("HeartbeatStarted")) == 1


# Errors of operations


@pytest.mark.requirement("SM-91", "SM-92", "SM-109", "SM-121")
@pytest.mark.usefixtures("no_pauses")
def test_an_operation_that_loses_its_connection_cancels_the_check(
    connect: Any, streaming: ScriptedServer, recorder: Any
) -> None:
    client = connect(streaming, heartbeatFrequencyMS=60_000, retryReads=False)
    eventually(lambda: awaitable(streaming))
    old = connection_that_streams(streaming)
    recorder.forget()
    streaming.fail("find", cut(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    recorder.wait_for("HeartbeatFailed awaited")
    eventually(lambda: old not in streaming.peers)
    settle()
    assert recorder.only("Heartbeat") == ["HeartbeatFailed awaited"], "no new check before its time"
    assert recorder.only("ServerDescription", "PoolCleared") == ["ServerDescriptionChanged Unknown", "PoolCleared"]


@pytest.mark.requirement("SM-129")
@pytest.mark.usefixtures("no_pauses")
def test_many_errors_of_one_outage_are_one(connect: Any, streaming: ScriptedServer, recorder: Any) -> None:
    client = connect(streaming, heartbeatFrequencyMS=60_000, retryReads=False)
    eventually(lambda: awaitable(streaming) and len(streaming.peers) == 2)
    monitoring = set(streaming.peers)
    streaming.fail("find", *[silent] * 8)
    readers = [gevent.spawn(client.db.c.find_one) for _ in range(8)]
    streaming.wait_for("find", 8)
    recorder.forget()
    for number in set(streaming.peers) - monitoring:
        streaming.peers[number].close()
    gevent.joinall(readers, timeout=5)
    assert all(isinstance(reader.exception, AutoReconnect) for reader in readers)
    recorder.wait_for("HeartbeatFailed awaited")
    settle()
    assert recorder.only("Heartbeat", "ServerDescription", "PoolCleared") == [
        "ServerDescriptionChanged Unknown",
        "PoolCleared",
        "HeartbeatFailed awaited",
    ]


@pytest.mark.requirement("SM-59")
@pytest.mark.usefixtures("quick")
def test_a_server_that_closes_the_connections_of_applications(
    connect: Any, streaming: ScriptedServer, recorder: Any
) -> None:
    """As it does when the names of its members change: operations in progress get second tries."""
    client = connect(streaming, heartbeatFrequencyMS=60_000)
    eventually(lambda: awaitable(streaming) and len(streaming.peers) == 2)
    monitoring = set(streaming.peers)
    streaming.fail("find", *[silent] * 5)
    readers = [gevent.spawn(client.db.c.find_one, {"_id": number}) for number in range(5)]
    streaming.wait_for("find", 5)
    for number in set(streaming.peers) - monitoring:
        streaming.peers[number].close()
    assert [reader.get(timeout=5) for reader in readers] == [{"_id": number} for number in range(5)]


@pytest.mark.requirement("SM-111", "SM-119")
def test_a_server_that_closes_the_connections_of_monitors_is_checked_at_intervals(
    connect: Any, streaming: ScriptedServer, recorder: Any
) -> None:
    """Each time a known server is lost, so a check follows at once; but once in the minimum between checks."""
    streaming.exhausts = False
    streaming.fail("hello", *[cut(0)] * 1000)

    # It answers what is awaited at once.
    recorder.hooks["HeartbeatStarted"] = lambda _event: gevent.spawn_later(0.005, streaming.changed)
    connect(streaming, heartbeatFrequencyMS=60_000)
    gevent.sleep(0.4)
    assert 2 <= len(streaming.commands("handshake")) <= 4
