"""The prose tests of the Server Discovery and Monitoring specification; those of RTT are in test_round_trip_times."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NotPrimaryError, PyMongoError, ServerSelectionTimeoutError
from gmongo.read_preferences import Secondary
from tests.sdam.harness import awaitable, description_of, settle
from tests.support.clients import Client
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut
from tests.support.wait import eventually

NOT_PRIMARY = {"ok": 0, "code": 10107, "errmsg": "not writable primary"}
RECOVERING = {"ok": 0, "code": 13436, "errmsg": "node is recovering"}
# A minute between heartbeats: what is checked sooner is checked because of what happened.
RARELY = {"replicaSet": "scripted", "heartbeatFrequencyMS": 60_000, "retryReads": False, "retryWrites": False}


def known(connect: Any, replica_set: ScriptedReplicaSet, **options: Any) -> Client:
    """A client that knows all members and has an awaitable hello under way with each that streams."""
    client: Client = connect(replica_set.members[0], **{**RARELY, **options})
    eventually(lambda: len(client.nodes) == 3)
    for member in replica_set.members:
        eventually(lambda member=member: awaitable(member) or not member.streams)
    return client


def test_all_servers_unavailable(connect: Any) -> None:
    with ScriptedServer() as one, ScriptedServer() as two:
        one.stop()
        two.stop()
        client = connect(one, two, serverSelectionTimeoutMS=50)
        with pytest.raises(ServerSelectionTimeoutError):
            client.db.c.find_one()


def test_network_error_writing_to_the_primary(connect: Any, replica_set: ScriptedReplicaSet, recorder: Any) -> None:
    client = known(connect, replica_set)
    primary = replica_set.members[0]
    handshakes = len(primary.commands("handshake"))
    primary.fail("insert", cut(0))
    with pytest.raises(AutoReconnect):
        client.db.c.insert_one({})
    assert description_of(client, primary).server_type_name == "Unknown"
    assert client.topology_description.topology_type_name == "ReplicaSetNoPrimary"
    settle()
    assert len(primary.commands("handshake")) == handshakes + 1, "the operation's own connection, no check"


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "polled"])
@pytest.mark.usefixtures("quick")
def test_not_writable_primary(connect: Any, recorder: Any, streams: bool) -> None:
    with ScriptedReplicaSet(streams=streams) as replica_set:
        client = known(connect, replica_set)
        primary = replica_set.members[0]
        primary.replies["find"] = NOT_PRIMARY
        kinds: list[str] = []
        recorder.hooks["TopologyDescriptionChanged"] = lambda event: kinds.append(
            event.new_description.topology_type_name
        )
        with pytest.raises(NotPrimaryError):
            client.db.c.find_one()
        assert kinds[0] == "ReplicaSetNoPrimary"
        (lost,) = [e.new_description for e in recorder.of("ServerDescriptionChanged") if e.new_description.error]
        assert lost.address == primary.address
        assert "not writable primary" in str(lost.error)


@pytest.mark.usefixtures("quick")
def test_node_is_recovering(connect: Any, recorder: Any) -> None:
    """The former secondary is Unknown, the topology keeps its primary, and the secondary is checked at once."""
    with ScriptedReplicaSet(streams=False) as replica_set:
        client = known(connect, replica_set)
        for member in replica_set.members:
            member.replies["find"] = RECOVERING
        recorder.forget()
        with pytest.raises(PyMongoError):
            client.db.get_collection("c", read_preference=Secondary()).find_one()
        (lost,) = [event for event in recorder.of("ServerDescriptionChanged") if event.new_description.error]
        assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"
        (member,) = [each for each in replica_set.members if each.address == lost.server_address]
        member.wait_for("hello")
        eventually(lambda: description_of(client, member).server_type_name == "RSSecondary")


@pytest.mark.usefixtures("quick")
def test_node_is_recovering_in_a_write_concern_error(connect: Any, recorder: Any) -> None:
    with ScriptedReplicaSet(streams=False) as replica_set:
        client = known(connect, replica_set)
        primary = replica_set.members[0]
        error = {"code": 91, "errmsg": "Replication is being shut down"}
        primary.replies["insert"] = {"ok": 1, "n": 1, "writeConcernError": error}
        recorder.forget()
        with pytest.raises(PyMongoError):
            client.db.c.insert_one({})
        assert recorder.only("ServerDescription", "TopologyDescription")[:2] == [
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
def test_errors_that_say_so(connect: Any, replica_set: ScriptedReplicaSet, recorder: Any, reply: Any) -> None:
    client = known(connect, replica_set)
    replica_set.members[0].replies["insert"] = reply
    with pytest.raises(PyMongoError):
        client.db.c.insert_one({})
    lost = description_of(client, replica_set.members[0])
    assert lost.server_type_name == "Unknown"
    assert reply["errmsg"] in str(lost.error)


# Topology discovery and direct connection


@pytest.mark.parametrize("options", [{"directConnection": False}, {"replicaSet": "scripted"}], ids=str)
def test_topology_discovery(connect: Any, replica_set: ScriptedReplicaSet, options: dict[str, Any]) -> None:
    client = connect(replica_set.members[1], **options)
    assert client.db.c.insert_one({"_id": 1}).inserted_id == 1
    assert len(replica_set.members[0].commands("insert")) == 1


def test_direct_connection(connect: Any, replica_set: ScriptedReplicaSet) -> None:
    secondary = replica_set.members[1]
    secondary.replies["insert"] = NOT_PRIMARY
    client = connect(secondary, directConnection=True, retryWrites=False)
    with pytest.raises(NotPrimaryError):
        client.db.c.insert_one({})
    assert client.topology_description.topology_type_name == "Single"


def test_one_seed_without_options_is_discovery(connect: Any, replica_set: ScriptedReplicaSet) -> None:
    client = connect(replica_set.members[1])
    assert client.db.c.insert_one({"_id": 1}).inserted_id == 1
    assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"


# Pauses and pools


def fails(times: int) -> Any:
    """An edit of hellos in which the next ones fail."""
    left = [times]

    def edit(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        left[0] -= 1
        return {"ok": 0, "code": 1234, "errmsg": "failpoint"} if left[0] >= 0 else reply

    return edit


@pytest.mark.requirement("SM-26", "SM-33", "SM-34", "SM-104")
def test_monitors_sleep_between_checks(connect: Any, polled: ScriptedServer, recorder: Any) -> None:
    """With two failures instead of five; the least pause is the real one."""
    polled.hello_edit = fails(2)
    client = connect(polled, directConnection=True)
    started = gevent.get_hub().loop.now()
    assert client.admin.command("ping")["ok"] == 1
    gevent.get_hub().loop.update_now()
    assert gevent.get_hub().loop.now() - started >= 0.95
    assert len(recorder.of("HeartbeatFailed")) == 2
    assert polled.connection_count == 4, "three of the monitor, one of the operation"


@pytest.mark.requirement("SM-95", "SM-99")
@pytest.mark.usefixtures("quick")
def test_connection_pool_management(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    connect(server, directConnection=True, heartbeat=0.05)
    recorder.wait_for("PoolReady")
    assert recorder.only("HeartbeatSucceeded", "PoolReady")[:2] == ["HeartbeatSucceeded", "PoolReady"]
    recorder.forget()
    server.hello_edit = fails(2)
    recorder.wait_for("HeartbeatFailed")
    recorder.wait_for("PoolCleared")
    recorder.wait_for("PoolReady")
    assert (
        "HeartbeatSucceeded" in recorder.story[recorder.story.index("PoolCleared") : recorder.story.index("PoolReady")]
    )


# Heartbeats


@pytest.mark.usefixtures("quick")
def test_an_option_sets_how_often_replies_come(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    """The streaming protocol's test 1, in a tenth of the time."""
    connect(server, heartbeat=0.05)
    recorder.wait_for("HeartbeatSucceeded", 6)


@pytest.mark.requirement("SM-81")
def test_a_check_is_announced_before_its_socket_is_made(connect: Any, recorder: Any) -> None:
    """The heartbeat test 1."""
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
