"""Tests of round trip times, which handshakes, polling monitors and RTT monitors measure."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gevent
import pytest

from gmongo import _clock
from gmongo.sdam.rtt_monitor import RoundTripTime
from tests.sdam.harness import description_of, plain_hellos, streaming_connection_number
from tests.support.server import ScriptedServer, cut_reply
from tests.support.wait import eventually

pytestmark = [pytest.mark.usefixtures("quick_checks"), pytest.mark.real_time]


def commands_of_rtt_connection(server: ScriptedServer) -> list[str]:
    """Return the names of the commands that the round trip time (RTT) monitor has sent."""
    (number, *_) = [each.connection for each in server.received if each.command in plain_hellos(server)]
    return [next(iter(each.command)) for each in server.received if each.connection == number]


@pytest.mark.requirement("SM-77", "SM-78", "SM-122")
def test_average_round_trip_time_is_weighted_and_minimum_is_of_last_10_samples() -> None:
    """A negative sample counts as zero."""
    times = RoundTripTime()
    assert (times.average, times.minimum) == (None, 0.0)
    times.add_sample(1.0)
    assert (times.average, times.minimum) == (1.0, 0.0)
    times.add_sample(2.0)
    assert times.average == pytest.approx(1.2) and times.minimum == 1.0
    times.add_sample(-5.0)
    assert times.average == pytest.approx(0.96) and times.minimum == 0.0
    for _ in range(9):
        times.add_sample(3.0)
    assert times.minimum == 0.0
    times.add_sample(4.0)
    assert times.minimum == 3.0
    times.reset()
    assert (times.average, times.minimum) == (None, 0.0)
    times.add_sample(7.0)
    assert (times.average, times.minimum) == (7.0, 0.0)


@pytest.mark.requirement("SM-03", "SM-73", "SM-78", "SM-113")
def test_handshake_is_first_round_trip_sample(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    def delay_reply(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        gevent.sleep(0.05)
        return reply

    poll_server.hello_edit = delay_reply
    connect(poll_server)
    description = recorder.wait_for("ServerDescriptionChanged").new_description
    assert description.round_trip_time >= 0.045
    assert description.min_round_trip_time == 0


@pytest.mark.requirement("SM-72")
def test_polled_server_has_one_monitor_connection(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    connect(poll_server, heartbeat_interval=0.01)
    recorder.wait_for("HeartbeatSucceeded", 4)
    assert poll_server.connection_count == 1


@pytest.mark.requirement("SM-118")
def test_failed_check_resets_round_trip_times(connect: Any, server: ScriptedServer, recorder: Any) -> None:
    client = connect(server, heartbeat_interval=0.02)
    eventually(lambda: description_of(client, server).min_round_trip_time > 0)
    stream_number = streaming_connection_number(server) if server.streams else None
    recorder.clear()
    if stream_number:
        server.peers[stream_number].close()
    else:
        server.fail("hello", cut_reply(0))
    unknown_description = recorder.wait_for("ServerDescriptionChanged Unknown").new_description
    assert unknown_description.round_trip_time is None
    assert unknown_description.min_round_trip_time == 0
    description = recorder.wait_for("ServerDescriptionChanged Standalone").new_description
    assert description.round_trip_time > 0
    if not stream_number:  # the RTT monitor of a streaming server may already have added samples
        assert description.min_round_trip_time == 0


@pytest.mark.requirement("SM-61", "SM-71", "SM-80", "SM-108", "SM-125", "SM-126", "SM-127")
def test_rtt_monitor_uses_second_connection(connect: Any, stream_server: ScriptedServer) -> None:
    (known_server,) = connect(stream_server, heartbeat_interval=0.02)._topology.servers.values()
    eventually(lambda: len(plain_hellos(stream_server)) >= 5)
    assert all(command == {"hello": 1, "helloOk": True, "$db": "admin"} for command in plain_hellos(stream_server))
    assert commands_of_rtt_connection(stream_server)[:4] == ["ismaster", "hello", "hello", "hello"]
    assert stream_server.connection_count == len(stream_server.commands("handshake")) == 2
    assert streaming_connection_number(stream_server) not in stream_server.connections_of("handshake")[1:]
    known_server.monitor._rtt_monitor._background.greenlet.kill()
    eventually(lambda: stream_server.connection_count == 3)  # the killed greenlet has closed its connection


@pytest.mark.requirement("SM-70", "SM-123")
def test_rtt_monitor_measures_once_per_interval(connect: Any, stream_server: ScriptedServer) -> None:
    times: list[float] = []

    def record_time(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if "topologyVersion" not in command and "client" not in command:
            times.append(_clock.monotonic())
        return reply

    stream_server.hello_edit = record_time
    connect(stream_server, heartbeat_interval=0.05)
    eventually(lambda: len(times) >= 4)
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.045


@pytest.mark.requirement("SM-03", "SM-79", "SM-128")
def test_round_trip_time_is_continuously_updated(connect: Any, stream_server: ScriptedServer, recorder: Any) -> None:
    """Run the prose test "RTT is continuously updated" with a shorter interval."""
    client = connect(stream_server, heartbeat_interval=0.02)
    eventually(lambda: description_of(client, stream_server).round_trip_time)
    assert all(event.new_description.round_trip_time for event in recorder.events_named("ServerDescriptionChanged"))

    def delay_rtt_reply(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if "topologyVersion" not in command:
            gevent.sleep(0.1)
        return reply

    stream_server.hello_edit = delay_rtt_reply
    eventually(lambda: description_of(client, stream_server).round_trip_time > 0.05)


@pytest.mark.requirement("SM-75", "SM-82")
def test_reply_to_rtt_monitor_causes_no_event_or_description_change(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    client = connect(stream_server, heartbeat_interval=0.02)
    recorder.wait_for("PoolReady")
    recorder.wait_for("HeartbeatStarted awaited")
    eventually(lambda: len(plain_hellos(stream_server)) >= 1)
    recorder.clear()
    stream_server.hello_edit = lambda command, reply: (
        reply if "topologyVersion" in command else {**reply, "msg": "isdbgrid", "setName": "other", "maxWireVersion": 8}
    )
    seen_count = len(plain_hellos(stream_server))
    eventually(lambda: len(plain_hellos(stream_server)) > seen_count + 3)
    assert {*recorder.event_lines} == {"HeartbeatStarted awaited", "HeartbeatSucceeded awaited"}
    assert description_of(client, stream_server).server_type_name == "Standalone"


@pytest.mark.requirement("SM-76", "SM-124")
@pytest.mark.parametrize("is_network_error", [True, False], ids=["network error", "command error"])
def test_rtt_monitor_errors_keep_server_description_and_samples(
    connect: Any, stream_server: ScriptedServer, recorder: Any, is_network_error: bool
) -> None:
    client = connect(stream_server, heartbeat_interval=0.02)
    recorder.wait_for("PoolReady")
    eventually(lambda: description_of(client, stream_server).min_round_trip_time > 0)
    recorder.clear()

    def fail_rtt_hello(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if "topologyVersion" in command:
            return reply
        if is_network_error:
            raise ConnectionResetError
        return {"ok": 0, "code": 91, "errmsg": "going down"}

    stream_server.hello_edit = fail_rtt_hello
    # The number of handshakes shows that the RTT monitor reconnected.
    eventually(lambda: len(stream_server.commands("handshake")) >= 4)
    assert {*recorder.event_lines} == {"HeartbeatStarted awaited", "HeartbeatSucceeded awaited"}
    description = description_of(client, stream_server)
    assert description.round_trip_time > 0
    assert description.min_round_trip_time > 0
    stream_server.hello_edit = None
    seen_count = len(plain_hellos(stream_server))
    eventually(lambda: len(plain_hellos(stream_server)) > seen_count)
    assert [next(iter(command)) for command in stream_server.commands("handshake")][-1] == "ismaster"
