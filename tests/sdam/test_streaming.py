"""Monitors use the streaming protocol: awaitable hello commands, and a stream of replies to one
request.
"""

from __future__ import annotations

from typing import Any

import bson
import gevent
import pytest
from bson import Int64, ObjectId

from gmongo.errors import PyMongoError
from gmongo.read_preferences import Secondary
from gmongo.sdam.monitor import allows_streaming
from gmongo.wire.message import EXHAUST_ALLOWED, MORE_TO_COME, OP_MSG
from tests.sdam.harness import (
    awaitable_hellos,
    description_of,
    newer_topology_version,
    plain_hellos,
    streaming_connection_number,
    wait_for_absent_events,
)
from tests.support.framing import HEADER, write_message
from tests.support.server import ScriptedReplicaSet, ScriptedServer
from tests.support.wait import eventually


@pytest.mark.requirement("SM-32", "SM-41", "SM-46", "SM-48", "SM-49", "SM-62", "SM-88", "SM-115")
def test_awaitable_hello_has_topology_version_and_exhaust_allowed_flag(
    connect: Any, stream_server: ScriptedServer
) -> None:
    connect(stream_server, heartbeatFrequencyMS=12_345)
    eventually(lambda: awaitable_hellos(stream_server))
    (request,) = [each for each in stream_server.received if "topologyVersion" in each.command]
    assert request.command == {
        "hello": 1,
        "helloOk": True,
        "topologyVersion": stream_server.topology_version,
        "maxAwaitTimeMS": 12_345,
        "$db": "admin",
    }
    assert isinstance(request.command["maxAwaitTimeMS"], Int64)
    assert isinstance(request.command["topologyVersion"]["counter"], Int64)
    assert request.flags & EXHAUST_ALLOWED
    (handshake, *_) = [each for each in stream_server.received if each.connection == request.connection]
    assert handshake.name == "handshake"


def _prepare_member_of_other_set(replica_set: ScriptedReplicaSet) -> tuple[str, dict[str, Any]]:
    return replica_set.members[1].name, {"directConnection": True, "replicaSet": "other"}


def _prepare_stale_primary(replica_set: ScriptedReplicaSet) -> tuple[str, dict[str, Any]]:
    stale_fields = {"isWritablePrimary": True, "ismaster": True, "secondary": False, "electionId": ObjectId(bytes(12))}
    replica_set.members[1].hello_edit = lambda _command, reply: {**reply, **stale_fields}
    return ",".join(member.name for member in replica_set.members), {"replicaSet": "scripted"}


@pytest.mark.requirement("SM-111", "SM-115")
@pytest.mark.parametrize("prepare", [_prepare_member_of_other_set, _prepare_stale_primary])
def test_monitor_streams_from_server_that_topology_rejects(connect: Any, prepare: Any) -> None:
    with ScriptedReplicaSet(2) as replica_set:
        server = replica_set.members[1]
        hosts, options = prepare(replica_set)
        client = connect(f"mongodb://{hosts}", **options)
        with pytest.raises(PyMongoError):
            client.db.command("ping", read_preference=Secondary())
        assert description_of(client, server).server_type_name == "Unknown"
        assert len(awaitable_hellos(server)) == 1
        assert len(server.received) < 10


@pytest.mark.requirement("SM-50", "SM-65", "SM-81", "SM-84", "SM-86", "SM-87")
def test_monitor_reads_streamed_replies_without_further_requests(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    connect(stream_server)
    for number in range(1, 6):
        recorder.wait_for("HeartbeatStarted awaited", number)
        eventually(lambda: awaitable_hellos(stream_server))
        stream_server.changed()
        recorder.wait_for("HeartbeatSucceeded awaited", number)
    recorder.wait_for("HeartbeatStarted awaited", 6)
    assert len(awaitable_hellos(stream_server)) == 1
    assert recorder.lines_starting_with("Heartbeat") == [
        "HeartbeatStarted",
        "HeartbeatSucceeded",
        *["HeartbeatStarted awaited", "HeartbeatSucceeded awaited"] * 5,
        "HeartbeatStarted awaited",
    ]


@pytest.mark.requirement("SM-49", "SM-55", "SM-66", "SM-111")
def test_monitor_repeats_hello_if_server_sends_only_one_reply(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    """Check that each new hello has the ``topologyVersion`` of the last reply."""
    stream_server.exhausts = False
    connect(stream_server)
    for number in range(1, 5):
        eventually(lambda number=number: len(awaitable_hellos(stream_server)) == number)
        assert awaitable_hellos(stream_server)[-1]["topologyVersion"] == stream_server.topology_version
        stream_server.changed()
    recorder.wait_for("HeartbeatSucceeded awaited", 4)
    assert len(stream_server.commands("handshake")) == 2  # one by the monitor, one by the RTT monitor


@pytest.mark.requirement("SM-63", "SM-114")
def test_streamed_replies_in_one_packet_are_processed_in_order(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    tags = ["one", "two", "three"]

    def send_three_replies(peer: Any, message: bytes) -> None:
        _length, _number, response_to, _opcode = HEADER.unpack_from(message)
        reply = bson.decode(message[21:])
        packet = b""
        for number, tag in enumerate(tags):
            changed_reply = {
                **reply,
                "tags": {"is": tag},
                "topologyVersion": newer_topology_version(reply["topologyVersion"], number),
            }
            packet += write_message(OP_MSG, 7000 + number, response_to, MORE_TO_COME, changed_reply)
            response_to = 7000 + number
        peer.send(packet)

    connect(stream_server)
    eventually(lambda: awaitable_hellos(stream_server) and len(stream_server.commands("handshake")) == 2)
    recorder.clear()
    stream_server.fail("hello", send_three_replies)
    stream_server.changed()
    recorder.wait_for("HeartbeatSucceeded awaited", 3)
    assert [event.reply["tags"]["is"] for event in recorder.events_named("HeartbeatSucceeded")] == tags
    changes = recorder.events_named("ServerDescriptionChanged")
    assert [event.new_description.tags["is"] for event in changes] == tags
    assert recorder.lines_starting_with("Heartbeat", "ServerDescription")[:3] == [
        "HeartbeatSucceeded awaited",
        "ServerDescriptionChanged Standalone",
        "HeartbeatStarted awaited",
    ]


def return_command_error(stream_server: ScriptedServer) -> None:
    stream_server.hello_edit = lambda command, reply: {"ok": 0, "code": 91, "errmsg": "going down"}
    stream_server.changed()


def close_connection(stream_server: ScriptedServer) -> None:
    stream_server.peers[streaming_connection_number(stream_server)].close()


@pytest.mark.requirement("SM-64")
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("cause_failure", [return_command_error, close_connection])
def test_monitor_streams_on_new_connection_after_failure(
    connect: Any, stream_server: ScriptedServer, recorder: Any, cause_failure: Any
) -> None:
    connect(stream_server, heartbeat_interval=0.5)
    eventually(lambda: awaitable_hellos(stream_server) and len(stream_server.commands("handshake")) == 2)
    old_number = streaming_connection_number(stream_server)
    cause_failure(stream_server)
    recorder.wait_for("HeartbeatFailed awaited")
    stream_server.hello_edit = None
    eventually(lambda: old_number not in stream_server.peers)
    eventually(lambda: streaming_connection_number(stream_server) != old_number)
    new_number = streaming_connection_number(stream_server)
    assert [each.name for each in stream_server.received if each.connection == new_number] == ["handshake", "hello"]
    assert [each.name for each in stream_server.received if each.connection == old_number] == ["handshake", "hello"]


def test_server_monitoring_mode_auto_polls_on_aws_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    lambda_environment = {"AWS_EXECUTION_ENV": "AWS_Lambda_python3.12"}
    assert not allows_streaming("auto", lambda_environment)
    assert allows_streaming("stream", lambda_environment)
    assert allows_streaming("auto", {})
    assert not allows_streaming("poll", {})


@pytest.mark.requirement("SM-74", "SM-79", "SM-128")
@pytest.mark.usefixtures("quick_checks")
def test_round_trip_time_excludes_await_time(connect: Any, stream_server: ScriptedServer, recorder: Any) -> None:
    """Delay replies to the RTT monitor by 0.01 seconds, and streamed replies by 0.2 seconds."""

    def delay_rtt_reply(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if "topologyVersion" not in command:
            gevent.sleep(0.01)
        return reply

    stream_server.hello_edit = delay_rtt_reply
    client = connect(stream_server, heartbeat_interval=0.2)
    event = recorder.wait_for("HeartbeatSucceeded awaited", 3)
    assert event.duration == pytest.approx(0.2, rel=0.01)
    wait_for_absent_events()
    description = description_of(client, stream_server)
    assert len(plain_hellos(stream_server)) >= 2
    assert description.min_round_trip_time == pytest.approx(0.01, rel=0.01)
    assert description.round_trip_time == pytest.approx(0.01, rel=0.01)
