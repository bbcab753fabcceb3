"""Checks by monitors: the commands, the connections and the events of a check, and the monitored
servers.
"""

from __future__ import annotations

import gc
from typing import Any

import gevent
import pytest

from gmongo.errors import PyMongoError
from gmongo.server_api import ServerApi
from tests.sdam.harness import awaitable_hellos, description_of, plain_hellos, wait_for_absent_events
from tests.support.greenlets import living_greenlets
from tests.support.pools import checked_out
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut_reply
from tests.support.wait import eventually

AUTHENTICATION_FIELDS = {"saslSupportedMechs", "speculativeAuthenticate", "saslStart"}
HEARTBEAT_EVENTS = ("HeartbeatStarted", "HeartbeatSucceeded", "HeartbeatFailed")


def command_names(commands: list[dict[str, Any]]) -> list[str]:
    return [next(iter(command)) for command in commands]


@pytest.mark.requirement("SM-01", "SM-83", "SM-84")
@pytest.mark.usefixtures("quick_checks")
def test_each_check_publishes_started_event_and_end_event(
    connect: Any, poll_server: ScriptedServer, recorder: Any
) -> None:
    connect(poll_server, heartbeat_interval=0.02)
    recorder.wait_for("HeartbeatSucceeded", 3)
    poll_server.fail("hello", cut_reply(0))
    recorder.wait_for("HeartbeatFailed")
    recorder.wait_for("HeartbeatSucceeded", 5)
    event_order = recorder.lines_starting_with(*HEARTBEAT_EVENTS)
    assert event_order[0::2] == ["HeartbeatStarted"] * len(event_order[0::2])
    assert {*event_order[1::2]} == {"HeartbeatSucceeded", "HeartbeatFailed"}
    request_count = len(poll_server.commands("handshake")) + len(poll_server.commands("hello"))
    assert request_count - len(recorder.events_named("HeartbeatStarted")) in (0, 1)


@pytest.mark.requirement("SM-02", "SM-08", "SM-94", "SM-116")
@pytest.mark.usefixtures("quick_checks")
def test_polling_monitor_sends_hello_with_hello_ok(connect: Any, poll_server: ScriptedServer) -> None:
    connect(poll_server, heartbeat_interval=0.02)
    assert poll_server.wait_for("hello", 2) == {"hello": 1, "helloOk": True, "$db": "admin"}


@pytest.mark.requirement("SM-29", "SM-113")
def test_handshake_of_monitor_is_first_check(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    client = connect(poll_server)
    event = recorder.wait_for("HeartbeatSucceeded")
    wait_for_absent_events()
    assert [each.name for each in poll_server.received] == ["handshake"]
    assert event.reply["maxWireVersion"] == 21
    assert description_of(client, poll_server).server_type_name == "Standalone"


@pytest.mark.requirement("SM-21", "SM-95", "SM-110")
def test_first_check_publishes_events_in_order(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    connect(poll_server)
    recorder.wait_for("PoolReady")
    assert recorder.event_lines == [
        "TopologyOpened",
        "TopologyDescriptionChanged Unknown",
        "ServerOpening",
        "PoolCreated",
        "HeartbeatStarted",
        "HeartbeatSucceeded",
        "ServerDescriptionChanged Standalone",
        "TopologyDescriptionChanged Single",
        "PoolReady",
    ]


# Tests of the choice between hello and legacy hello


@pytest.mark.requirement("SM-07")
def test_first_hello_is_legacy_hello_with_hello_ok(connect: Any, server: ScriptedServer) -> None:
    connect(server)
    command = server.wait_for("handshake")
    assert next(iter(command)) == "ismaster"
    assert command["helloOk"] is True


@pytest.mark.requirement("SM-09", "SM-117")
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("hello_ok", [None, False])
def test_monitor_sends_legacy_hello_if_server_reports_no_hello_ok(
    connect: Any, poll_server: ScriptedServer, hello_ok: Any
) -> None:
    poll_server.hello_extra = {"helloOk": hello_ok}
    connect(poll_server, heartbeat_interval=0.02)
    poll_server.wait_for("hello", 3)
    assert {*command_names(poll_server.commands("hello"))} == {"ismaster"}
    assert all(command["helloOk"] is True for command in poll_server.commands("hello"))


@pytest.mark.requirement("SM-06", "SM-107")
@pytest.mark.usefixtures("quick_checks")
def test_monitor_with_server_api_never_sends_legacy_hello(connect: Any, server: ScriptedServer) -> None:
    server.hello_extra = {"helloOk": None}
    connect(server, heartbeat_interval=0.02, server_api=ServerApi("1"))
    server.wait_for("hello", 4)
    server.fail("hello", cut_reply(0), cut_reply(0))
    server.wait_for("handshake", 3 if server.streams else 2)
    commands = [each.command for each in server.received]
    assert {*command_names(commands)} == {"hello"}
    assert all(command["apiVersion"] == "1" for command in commands)


@pytest.mark.requirement("SM-17", "SM-18", "SM-61", "SM-71")
@pytest.mark.usefixtures("quick_checks")
def test_checks_of_monitor_do_not_use_pool_connections(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    client = connect(server, heartbeat_interval=0.02, maxPoolSize=1)
    recorder.wait_for("HeartbeatSucceeded", 2)
    eventually(lambda: len(server.peers) == (2 if server.streams else 1))
    assert not [event for event in recorder.event_lines if event.startswith("Connection")]
    with checked_out(client._topology.server_at(server.address, None, wait=True).pool) as connection:
        recorder.wait_for("HeartbeatSucceeded", len(recorder.events_named("HeartbeatSucceeded")) + 3)
        assert connection.usable
    assert len(recorder.events_named("ConnectionCreated")) == 1
    assert len(server.peers) == (3 if server.streams else 2)


@pytest.mark.requirement("SM-19", "SM-20")
@pytest.mark.usefixtures("quick_checks")
def test_monitors_omit_authentication(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    """Check that only the connections of operations authenticate."""
    client = connect(
        server, heartbeat_interval=0.02, username="user", password="password", serverSelectionTimeoutMS=500
    )
    recorder.wait_for("HeartbeatSucceeded", 4)
    eventually(lambda: len(server.commands("handshake")) == (2 if server.streams else 1))
    assert {each.name for each in server.received} == {"handshake", "hello"}
    assert not AUTHENTICATION_FIELDS & {field for each in server.received for field in each.command}
    monitor_connections = {each.connection for each in server.received}
    with pytest.raises(PyMongoError):
        client.db.c.find_one()  # fails, because the scripted server has no users
    other_requests = [each for each in server.received if each.connection not in monitor_connections]
    assert AUTHENTICATION_FIELDS & {field for each in other_requests for field in each.command}


def count_monitors() -> int:
    """Return the number of living monitor greenlets."""
    gc.collect()
    return len(living_greenlets("monitor.Monitor "))


@pytest.mark.requirement("SM-13", "SM-16")
def test_each_seed_has_one_monitor(connect: Any, recorder: Any) -> None:
    before = count_monitors()
    with ScriptedServer() as first, ScriptedServer() as second, ScriptedServer() as third:
        connect(first, second, third)
        assert count_monitors() == before + 3
        for server in (first, second, third):
            server.wait_for("handshake")


@pytest.mark.requirement("SM-14", "SM-16")
def test_monitors_follow_replica_set_members(connect: Any, replica_set: ScriptedReplicaSet) -> None:
    before = -1
    while count_monitors() != before:  # Wait until the monitors of earlier tests have ended.
        before = count_monitors()
        gevent.sleep(0.2)
    client = connect(replica_set.members[1], replicaSet="scripted")
    eventually(lambda: len(client.nodes) == 3)
    assert count_monitors() == before + 3
    new = replica_set.add_member()
    eventually(lambda: new.address in client.nodes)
    assert count_monitors() == before + 4
    removed = replica_set.members[2]
    replica_set.reconfigure([member for member in replica_set.hosts if member is not removed])
    eventually(lambda: not removed.peers)
    eventually(lambda: count_monitors() == before + 3)


@pytest.mark.requirement("SM-15")
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "polling"])
def test_frozen_member_does_not_delay_checks_of_other_members(connect: Any, recorder: Any, streams: bool) -> None:
    """Freeze one member, and expect that the checks of the other members succeed."""
    with ScriptedReplicaSet(streams=streams) as replica_set:
        frozen, *others = replica_set.members[::-1]
        client = connect(
            replica_set.members[0], heartbeat_interval=0.02, replicaSet="scripted", connectTimeoutMS=60_000
        )
        eventually(lambda: len(client.nodes) == 3)
        frozen.answering.clear()
        wait_for_absent_events(0.05)
        recorder.clear()
        for other in others:
            eventually(
                lambda other=other: (
                    [e.connection_id for e in recorder.events_named("HeartbeatSucceeded")].count(other.address) >= 10
                )
            )
        assert frozen.address not in [event.connection_id for event in recorder.events_named("HeartbeatSucceeded")]
        assert frozen.address not in [event.connection_id for event in recorder.events_named("HeartbeatFailed")]


@pytest.mark.requirement("SM-04", "SM-32", "SM-47", "SM-60")
@pytest.mark.usefixtures("quick_checks")
def test_monitor_streams_if_server_supports_streaming(connect: Any, server: ScriptedServer) -> None:
    connect(server, heartbeat_interval=0.02)
    server.wait_for("hello", 4)
    assert bool(awaitable_hellos(server)) == server.streams
    assert bool(plain_hellos(server))
