"""The intervals between checks, and the timeouts of checks."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient, _clock
from gmongo.client_options import ClientOptions
from gmongo.errors import ConfigurationError, NetworkTimeout, ServerSelectionTimeoutError
from gmongo.sdam.settings import MIN_HEARTBEAT_FREQUENCY
from tests.sdam.harness import wait_for_absent_events
from tests.support.listeners import ForwardingHeartbeatListener
from tests.support.recorder import short_name
from tests.support.server import ScriptedServer, hold_reply, send_no_reply
from tests.support.wait import eventually


class CheckTimes(ForwardingHeartbeatListener):
    """A heartbeat listener that records the start times and the end times of checks."""

    def __init__(self) -> None:
        self.start_times: list[float] = []
        self.end_times: list[float] = []

    def handle(self, event: Any) -> None:
        (self.start_times if short_name(event) == "HeartbeatStarted" else self.end_times).append(_clock.monotonic())

    def wait_for_pauses(self, count: int) -> list[float]:
        """Wait for `count` pauses between checks. Return the seconds from the end of each check to
        the start of the next check.
        """
        eventually(lambda: len(self.start_times) > count)
        return [start - end for end, start in zip(self.end_times, self.start_times[1:], strict=False)]


# Tests of heartbeatFrequencyMS


@pytest.mark.requirement("SM-37", "SM-38", "SM-39")
def test_heartbeat_frequency_is_read_from_uri_and_keyword() -> None:
    def interval(uri: str, **options: Any) -> float:
        return ClientOptions(uri, None, options).topology().heartbeat_frequency

    assert interval("mongodb://h") == 10
    assert interval("mongodb://h/?heartbeatFrequencyMS=1500") == 1.5
    assert interval("mongodb://h", heartbeatFrequencyMS=2500) == 2.5


@pytest.mark.requirement("SM-34", "SM-35")
def test_minimum_heartbeat_frequency_is_not_an_option() -> None:
    assert MIN_HEARTBEAT_FREQUENCY == 0.5
    for name in ("minHeartbeatFrequencyMS", "minHeartbeatIntervalMS"):
        with pytest.raises(ConfigurationError, match=rf"{name}(?!\w)"):
            MongoClient("h", connect=False, **{name: 100})


@pytest.mark.requirement("SM-22", "SM-85", "SM-94")
@pytest.mark.usefixtures("quick_checks")
def test_polling_monitor_starts_check_one_interval_after_previous_check(
    connect: Any, poll_server: ScriptedServer, recorder: Any
) -> None:
    check_times = CheckTimes()
    connect(poll_server, heartbeat_interval=0.06, event_listeners=[check_times])
    assert min(check_times.wait_for_pauses(3)) >= 0.055


@pytest.mark.requirement("SM-36")
@pytest.mark.usefixtures("quick_checks")
def test_heartbeat_interval_starts_at_end_of_slow_check(connect: Any, poll_server: ScriptedServer) -> None:
    check_times, gate = CheckTimes(), Event()
    poll_server.fail("hello", hold_reply(gate))
    connect(poll_server, heartbeat_interval=0.06, event_listeners=[check_times])
    poll_server.wait_for("hello")
    gevent.sleep(0.1)
    gate.set()
    assert min(check_times.wait_for_pauses(3)) >= 0.055


@pytest.mark.requirement("SM-05", "SM-24", "SM-120")
@pytest.mark.usefixtures("quick_checks")
def test_server_selection_without_suitable_server_requests_check(connect: Any, poll_server: ScriptedServer) -> None:
    """Use a heartbeat interval longer than the test, so that only an operation can cause a check."""
    poll_server.hello_extra = {"setName": "s", "isWritablePrimary": False, "ismaster": False, "secondary": True}
    poll_server.hello_extra |= {"hosts": [poll_server.name], "me": poll_server.name, "setVersion": 1}
    client = connect(poll_server, replicaSet="s")
    eventually(lambda: client.nodes)
    wait_for_absent_events()
    assert poll_server.commands("hello") == []
    writer = gevent.spawn(client.db.c.insert_one, {"_id": 1})
    poll_server.wait_for("hello")
    assert not writer.ready()
    poll_server.hello_extra |= {"isWritablePrimary": True, "ismaster": True, "secondary": False}
    assert writer.get(timeout=5).inserted_id == 1


@pytest.mark.requirement("SM-23", "SM-25")
@pytest.mark.usefixtures("quick_checks")
def test_request_for_check_during_check_is_ignored(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    client, gate = connect(poll_server), Event()
    recorder.wait_for("HeartbeatSucceeded")
    poll_server.fail("hello", hold_reply(gate))
    client._topology.request_checks()
    poll_server.wait_for("hello")
    for _ in range(10):
        client._topology.request_checks()
        gevent.sleep(0)
    assert len(recorder.events_named("HeartbeatStarted")) == 2
    gate.set()
    recorder.wait_for("HeartbeatSucceeded", 2)
    wait_for_absent_events(0.1)  # ten times the minimum pause between checks
    assert len(poll_server.commands("hello")) == 1
    client._topology.request_checks()
    poll_server.wait_for("hello", 2)


@pytest.mark.requirement("SM-26", "SM-33", "SM-34", "SM-119")
def test_requested_checks_are_at_least_500_ms_apart(connect: Any, poll_server: ScriptedServer) -> None:
    check_times = CheckTimes()
    client = connect(poll_server, event_listeners=[check_times])

    def request_checks_repeatedly() -> None:
        while True:
            client._topology.request_checks()
            gevent.sleep(0.01)

    requests = gevent.spawn(request_checks_repeatedly)
    pauses = check_times.wait_for_pauses(3)
    requests.kill()
    assert 0.5 <= min(pauses) <= max(pauses) < 0.6


@pytest.mark.requirement("SM-104", "SM-105")
@pytest.mark.usefixtures("quick_checks")
def test_failed_server_is_checked_again_only_on_request(connect: Any, recorder: Any) -> None:
    """Use a heartbeat interval longer than the test: only an operation can cause a second check."""
    with ScriptedServer() as server:
        server.stop()
        client = connect(server, serverSelectionTimeoutMS=30)
        recorder.wait_for("HeartbeatFailed")
        wait_for_absent_events(0.1)
        assert len(recorder.events_named("HeartbeatStarted")) == 1
        with pytest.raises(ServerSelectionTimeoutError):
            client.db.c.find_one()
        recorder.wait_for("HeartbeatFailed", 2)


def wait_for_heartbeat_timeout(seconds: float, recorder: Any, count: int = 1) -> None:
    event = recorder.wait_for("HeartbeatFailed", count)
    assert isinstance(event.reply, NetworkTimeout)
    assert round(event.duration, 6) >= seconds


@pytest.mark.requirement("SM-10", "SM-67")
def test_handshake_of_monitor_times_out_after_connect_timeout(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    server.fail("handshake", send_no_reply)
    connect(server, connectTimeoutMS=100)
    wait_for_heartbeat_timeout(0.1, recorder)


@pytest.mark.requirement("SM-11")
@pytest.mark.usefixtures("quick_checks")
def test_socket_timeout_does_not_apply_to_monitors(connect: Any, poll_server: ScriptedServer, recorder: Any) -> None:
    gate = Event()
    poll_server.fail("hello", hold_reply(gate))
    connect(poll_server, heartbeat_interval=0.02, socketTimeoutMS=10)
    poll_server.wait_for("hello")
    wait_for_absent_events(0.05)
    gate.set()
    recorder.wait_for("HeartbeatSucceeded", 3)
    assert not recorder.events_named("HeartbeatFailed")


@pytest.mark.requirement("SM-69")
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("server_streams", [True, False])
def test_awaited_reply_times_out_after_connect_timeout_plus_interval(
    connect: Any, stream_server: ScriptedServer, recorder: Any, server_streams: bool
) -> None:
    """The server sends the first awaited reply after 100 ms, and no further reply."""
    stream_server.exhausts = server_streams
    connect(stream_server, heartbeat_interval=0.1, connectTimeoutMS=100)
    event = recorder.wait_for("HeartbeatSucceeded awaited")
    assert round(event.duration, 6) >= 0.09
    stream_server.answering.clear()
    wait_for_heartbeat_timeout(0.19, recorder)


@pytest.mark.requirement("SM-68")
@pytest.mark.usefixtures("quick_checks")
def test_connect_timeout_of_zero_disables_timeout_of_checks(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    connect(server, heartbeat_interval=0.02, connectTimeoutMS=0)
    recorder.wait_for("HeartbeatSucceeded", 3)
    server.answering.clear()
    wait_for_absent_events(0.2)
    assert recorder.events_named("HeartbeatFailed") == []
    seen_count = len(recorder.events_named("HeartbeatSucceeded"))
    server.answering.set()
    recorder.wait_for("HeartbeatSucceeded", seen_count + 2)


def test_server_selection_try_once_is_rejected_as_keyword_and_ignored_in_uri() -> None:
    """Check `serverSelectionTryOnce`, which the specification defines only for
    single-threaded drivers.
    """
    with pytest.raises(ConfigurationError, match="serverSelectionTryOnce"):
        MongoClient("h", connect=False, serverSelectionTryOnce=True)
    with pytest.warns(UserWarning, match="(?i)serverSelectionTryOnce"):
        MongoClient("mongodb://h/?serverSelectionTryOnce=true", connect=False)
