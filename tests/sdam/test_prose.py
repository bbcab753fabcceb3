"""Prose tests of the SDAM specification. ``test_round_trip_times.py`` has the prose tests of round trip times."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NotPrimaryError, PyMongoError, ServerSelectionTimeoutError
from gmongo.read_preferences import Secondary
from tests.sdam.harness import awaitable_hellos, description_of, wait_for_absent_events
from tests.support.clients import Client
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut_reply
from tests.support.wait import eventually

NOT_PRIMARY = {"ok": 0, "code": 10107, "errmsg": "not writable primary"}
RECOVERING = {"ok": 0, "code": 13436, "errmsg": "node is recovering"}
# With this long heartbeat interval, each check during a test is a check that the driver requested.
OPTIONS = {"replicaSet": "scripted", "heartbeatFrequencyMS": 60_000, "retryReads": False, "retryWrites": False}


def client_with_all_members(connect: Any, replica_set: ScriptedReplicaSet, **options: Any) -> Client:
    """Return a client that knows all members, and whose monitors stream from members that support
    streaming.
    """
    client: Client = connect(replica_set.members[0], **{**OPTIONS, **options})
    eventually(lambda: len(client.nodes) == 3)
    for member in replica_set.members:
        eventually(lambda member=member: awaitable_hellos(member) or not member.streams)
    return client


def test_server_selection_fails_if_all_servers_are_unavailable(connect: Any) -> None:
    with ScriptedServer() as first, ScriptedServer() as second:
        first.stop()
        second.stop()
        client = connect(first, second, serverSelectionTimeoutMS=50)
        with pytest.raises(ServerSelectionTimeoutError):
            client.db.c.find_one()


def test_network_error_of_write_marks_primary_unknown(
    connect: Any, replica_set: ScriptedReplicaSet, recorder: Any
) -> None:
    client = client_with_all_members(connect, replica_set)
    primary = replica_set.members[0]
    handshakes = len(primary.commands("handshake"))
    primary.fail("insert", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.insert_one({})
    assert description_of(client, primary).server_type_name == "Unknown"
    assert client.topology_description.topology_type_name == "ReplicaSetNoPrimary"
    wait_for_absent_events()
    assert len(primary.commands("handshake")) == handshakes + 1


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "polling"])
@pytest.mark.usefixtures("quick_checks")
def test_not_writable_primary_error_marks_primary_unknown(connect: Any, recorder: Any, streams: bool) -> None:
    with ScriptedReplicaSet(streams=streams) as replica_set:
        client = client_with_all_members(connect, replica_set)
        primary = replica_set.members[0]
        primary.replies["find"] = NOT_PRIMARY
        kinds: list[str] = []
        recorder.hooks["TopologyDescriptionChanged"] = lambda event: kinds.append(
            event.new_description.topology_type_name
        )
        with pytest.raises(NotPrimaryError):
            client.db.c.find_one()
        assert kinds[0] == "ReplicaSetNoPrimary"
        (lost,) = [
            e.new_description for e in recorder.events_named("ServerDescriptionChanged") if e.new_description.error
        ]
        assert lost.address == primary.address
        assert "not writable primary" in str(lost.error)


@pytest.mark.usefixtures("quick_checks")
def test_node_is_recovering_error_marks_secondary_unknown_and_requests_check(connect: Any, recorder: Any) -> None:
    with ScriptedReplicaSet(streams=False) as replica_set:
        client = client_with_all_members(connect, replica_set)
        for member in replica_set.members:
            member.replies["find"] = RECOVERING
        recorder.clear()
        with pytest.raises(PyMongoError):
            client.db.get_collection("c", read_preference=Secondary()).find_one()
        (lost,) = [event for event in recorder.events_named("ServerDescriptionChanged") if event.new_description.error]
        assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"
        (member,) = [each for each in replica_set.members if each.address == lost.server_address]
        member.wait_for("hello")
        eventually(lambda: description_of(client, member).server_type_name == "RSSecondary")


@pytest.mark.usefixtures("quick_checks")
def test_write_concern_error_with_shutdown_code_marks_primary_unknown(connect: Any, recorder: Any) -> None:
    with ScriptedReplicaSet(streams=False) as replica_set:
        client = client_with_all_members(connect, replica_set)
        primary = replica_set.members[0]
        error = {"code": 91, "errmsg": "Replication is being shut down"}
        primary.replies["insert"] = {"ok": 1, "n": 1, "writeConcernError": error}
        recorder.clear()
        with pytest.raises(PyMongoError):
            client.db.c.insert_one({})
        assert recorder.lines_starting_with("ServerDescription", "TopologyDescription")[:2] == [
            "ServerDescriptionChanged Unknown",
            "TopologyDescriptionChanged ReplicaSetNoPrimary",
        ]
        primary.wait_for("hello")


@pytest.mark.parametrize(
    "reply",
    [
        {"ok": 0, "errmsg": "not writable primary", "code": 10107},
        {"errmsg": "node is recovering", "code": 13436, "ok": 0},
        {"codeName": "x", "errmsg": "not master", "ok": 0},
        {"errmsg": "node is recovering", "ok": 0},
    ],
)
def test_state_change_error_marks_server_unknown_with_message(
    connect: Any, replica_set: ScriptedReplicaSet, recorder: Any, reply: Any
) -> None:
    client = client_with_all_members(connect, replica_set)
    replica_set.members[0].replies["insert"] = reply
    with pytest.raises(PyMongoError):
        client.db.c.insert_one({})
    lost = description_of(client, replica_set.members[0])
    assert lost.server_type_name == "Unknown"
    assert reply["errmsg"] in str(lost.error)


@pytest.mark.parametrize("options", [{"directConnection": False}, {"replicaSet": "scripted"}], ids=str)
def test_client_discovers_primary_with_replica_set_options(
    connect: Any, replica_set: ScriptedReplicaSet, options: dict[str, Any]
) -> None:
    client = connect(replica_set.members[1], **options)
    assert client.db.c.insert_one({"_id": 1}).inserted_id == 1
    assert len(replica_set.members[0].commands("insert")) == 1


def test_direct_connection_to_secondary_raises_not_primary_error(connect: Any, replica_set: ScriptedReplicaSet) -> None:
    secondary = replica_set.members[1]
    secondary.replies["insert"] = NOT_PRIMARY
    client = connect(secondary, directConnection=True, retryWrites=False)
    with pytest.raises(NotPrimaryError):
        client.db.c.insert_one({})
    assert client.topology_description.topology_type_name == "Single"


def test_client_with_one_seed_discovers_replica_set(connect: Any, replica_set: ScriptedReplicaSet) -> None:
    client = connect(replica_set.members[1])
    assert client.db.c.insert_one({"_id": 1}).inserted_id == 1
    assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"


def failing_hellos(times: int) -> Any:
    """Return a ``hello_edit`` function that replaces the next `times` hello replies by errors."""
    left = [times]

    def replace_reply(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        left[0] -= 1
        return {"ok": 0, "code": 1234, "errmsg": "failpoint"} if left[0] >= 0 else reply

    return replace_reply


@pytest.mark.requirement("SM-26", "SM-33", "SM-34", "SM-104")
def test_monitor_waits_half_a_second_after_failed_checks(
    connect: Any, poll_server: ScriptedServer, recorder: Any
) -> None:
    """Check the pause after failed checks.

    Only two checks fail, instead of five as in the specification.
    """
    poll_server.hello_edit = failing_hellos(2)
    client = connect(poll_server, directConnection=True)
    started = gevent.get_hub().loop.now()
    assert client.admin.command("ping")["ok"] == 1
    gevent.get_hub().loop.update_now()
    assert gevent.get_hub().loop.now() - started >= 0.95
    assert len(recorder.events_named("HeartbeatFailed")) == 2
    assert poll_server.connection_count == 4  # three connections of the monitor, and one connection of the operation


@pytest.mark.requirement("SM-95", "SM-99")
@pytest.mark.usefixtures("quick_checks")
def test_failed_checks_clear_pool_until_next_successful_check(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    connect(server, directConnection=True, heartbeat_interval=0.05)
    recorder.wait_for("PoolReady")
    assert recorder.lines_starting_with("HeartbeatSucceeded", "PoolReady")[:2] == ["HeartbeatSucceeded", "PoolReady"]
    recorder.clear()
    server.hello_edit = failing_hellos(2)
    recorder.wait_for("HeartbeatFailed")
    recorder.wait_for("PoolCleared")
    recorder.wait_for("PoolReady")
    lines = recorder.event_lines
    assert "HeartbeatSucceeded" in lines[lines.index("PoolCleared") : lines.index("PoolReady")]


@pytest.mark.usefixtures("quick_checks")
def test_heartbeat_frequency_sets_interval_of_streamed_replies(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    """Run streaming protocol test 1 of the specification with a tenth of the heartbeat interval."""
    connect(server, heartbeat_interval=0.05)
    recorder.wait_for("HeartbeatSucceeded", 6)


@pytest.mark.requirement("SM-81")
def test_heartbeat_started_event_precedes_tcp_connection(connect: Any, recorder: Any) -> None:
    """Run heartbeat test 1 of the specification."""
    from gevent.server import StreamServer

    story: list[str] = []

    def accept(sock: Any, _address: Any) -> None:
        story.append("client connected")
        sock.recv(1)
        story.append("client hello received")
        sock.close()

    recorder.hooks["HeartbeatStarted"] = lambda _event: story.append("serverHeartbeatStartedEvent")
    recorder.hooks["HeartbeatFailed"] = lambda _event: story.append("serverHeartbeatFailedEvent")
    listener = StreamServer(("127.0.0.1", 0), accept)
    listener.start()
    try:
        server = ScriptedServer()
        server.port = listener.server_port
        client = connect(server, serverSelectionTimeoutMS=50)
        with pytest.raises(ServerSelectionTimeoutError):
            client.db.c.find_one()
    finally:
        listener.stop(timeout=0)
    assert story[:4] == [
        "serverHeartbeatStartedEvent",
        "client connected",
        "client hello received",
        "serverHeartbeatFailedEvent",
    ]
