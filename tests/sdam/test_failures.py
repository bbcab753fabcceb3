"""A failed check publishes events and clears the pool. A network error of an operation cancels
the check in progress.
"""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NetworkTimeout, OperationFailure
from tests.sdam.harness import (
    awaitable_hellos,
    description_of,
    pool_stats_of,
    streaming_connection_number,
    wait_for_absent_events,
)
from tests.support.server import ScriptedServer, cut_reply, send_no_reply
from tests.support.wait import eventually

SHUTDOWN_ERROR = {"ok": 0, "code": 91, "errmsg": "The server is in quiesce mode", "codeName": "ShutdownInProgress"}


FAILURES = {
    "network error": (lambda server: server.fail("hello", cut_reply(0)), AutoReconnect),
    "timeout": (lambda server: server.fail("hello", send_no_reply), NetworkTimeout),
    "command error": (
        lambda server: setattr(server, "hello_edit", lambda command, reply: SHUTDOWN_ERROR),
        OperationFailure,
    ),
}


@pytest.mark.requirement("SM-97", "SM-98", "SM-99", "SM-100", "SM-101", "SM-110", "SM-130")
@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("failure", FAILURES)
def test_failed_check_publishes_events_in_order(
    connect: Any, poll_server: ScriptedServer, recorder: Any, failure: str
) -> None:
    cause_failure, error_class = FAILURES[failure]
    client = connect(poll_server, heartbeat_interval=0.05, connectTimeoutMS=50)
    recorder.wait_for("HeartbeatSucceeded", 2)
    (monitor_connection,) = poll_server.peers
    states: list[str] = []
    recorder.hooks["ServerDescriptionChanged"] = lambda _event: states.append(
        pool_stats_of(client, poll_server)["state"]
    )
    recorder.clear()
    cause_failure(poll_server)
    recorder.wait_for("PoolCleared")
    start = recorder.event_lines.index("HeartbeatFailed")
    assert recorder.event_lines[start : start + 4] == [
        "HeartbeatFailed",
        "ServerDescriptionChanged Unknown",
        "TopologyDescriptionChanged Single",
        "PoolCleared interrupting" if failure == "timeout" else "PoolCleared",
    ]
    assert isinstance(recorder.events_named("HeartbeatFailed")[0].reply, error_class)
    assert isinstance(recorder.events_named("ServerDescriptionChanged")[0].new_description.error, error_class)
    assert states[0] == "paused"
    eventually(lambda: monitor_connection not in poll_server.peers)
    poll_server.hello_edit = None
    recorder.wait_for("PoolReady")
    assert next(iter(poll_server.commands("handshake")[-1])) == "ismaster"


@pytest.mark.requirement("SM-102", "SM-103", "SM-111")
@pytest.mark.usefixtures("long_minimum_pause")
def test_known_server_is_checked_immediately_after_network_error_of_check(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    client = connect(stream_server, heartbeatFrequencyMS=60_000)
    eventually(lambda: awaitable_hellos(stream_server))
    recorder.clear()
    stream_server.peers[streaming_connection_number(stream_server)].close()
    recorder.wait_for("PoolReady")
    assert recorder.lines_starting_with("Heartbeat", "Pool")[:5] == [
        "HeartbeatFailed awaited",
        "PoolCleared",
        "HeartbeatStarted",
        "HeartbeatSucceeded",
        "PoolReady",
    ]
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.requirement("SM-95", "SM-96", "SM-100")
@pytest.mark.usefixtures("quick_checks")
def test_server_description_listener_can_run_operation_on_server(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    documents: list[Any] = []
    states: list[tuple[str, str]] = []
    client = connect(server, heartbeat_interval=0.1, retryReads=False)
    recorder.wait_for("PoolReady")

    def use_server(event: Any) -> None:
        kind = event.new_description.server_type_name
        states.append((kind, pool_stats_of(client, server)["state"]))
        if kind != "Unknown":
            documents.append(client.db.c.find_one({"_id": 1}))

    recorder.hooks["ServerDescriptionChanged"] = use_server
    server.fail("hello", *[cut_reply(0)] * 4)
    if server.streams:
        server.changed()
    eventually(lambda: documents)
    assert documents[0] == {"_id": 1}
    assert {*states} == {("Unknown", "paused"), ("Standalone", "ready")}


@pytest.mark.requirement("SM-31", "SM-106")
@pytest.mark.usefixtures("long_minimum_pause")
def test_command_error_in_handshake_marks_server_unknown_without_check(
    connect: Any, poll_server: ScriptedServer, recorder: Any
) -> None:
    client = connect(poll_server, heartbeatFrequencyMS=60_000, retryReads=False)
    recorder.wait_for("PoolReady")
    poll_server.hello_edit = lambda _command, _reply: {"ok": 0, "code": 8000, "errmsg": "not now"}
    with pytest.raises(OperationFailure, match="not now"):
        client.db.c.find_one()
    assert recorder.lines_starting_with("ServerDescription", "PoolCleared")[-2:] == [
        "ServerDescriptionChanged Unknown",
        "PoolCleared",
    ]
    assert isinstance(description_of(client, poll_server).error, OperationFailure)
    wait_for_absent_events()
    assert len(recorder.events_named("HeartbeatStarted")) == 1


@pytest.mark.requirement("SM-91", "SM-92", "SM-109", "SM-121")
@pytest.mark.usefixtures("long_minimum_pause")
def test_network_error_of_operation_cancels_check(connect: Any, stream_server: ScriptedServer, recorder: Any) -> None:
    client = connect(stream_server, heartbeatFrequencyMS=60_000, retryReads=False)
    eventually(lambda: awaitable_hellos(stream_server))
    old_number = streaming_connection_number(stream_server)
    recorder.clear()
    stream_server.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    recorder.wait_for("HeartbeatFailed awaited")
    eventually(lambda: old_number not in stream_server.peers)
    wait_for_absent_events()
    assert recorder.lines_starting_with("Heartbeat") == ["HeartbeatFailed awaited"]
    assert recorder.lines_starting_with("ServerDescription", "PoolCleared") == [
        "ServerDescriptionChanged Unknown",
        "PoolCleared",
    ]


@pytest.mark.requirement("SM-129")
@pytest.mark.usefixtures("long_minimum_pause")
def test_concurrent_network_errors_of_operations_clear_pool_once(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    client = connect(stream_server, heartbeatFrequencyMS=60_000, retryReads=False)
    eventually(lambda: awaitable_hellos(stream_server) and len(stream_server.peers) == 2)
    monitor_connections = set(stream_server.peers)
    stream_server.fail("find", *[send_no_reply] * 8)
    readers = [gevent.spawn(client.db.c.find_one) for _ in range(8)]
    stream_server.wait_for("find", 8)
    recorder.clear()
    for number in set(stream_server.peers) - monitor_connections:
        stream_server.peers[number].close()
    gevent.joinall(readers, timeout=5)
    assert all(isinstance(reader.exception, AutoReconnect) for reader in readers)
    recorder.wait_for("HeartbeatFailed awaited")
    wait_for_absent_events()
    assert recorder.lines_starting_with("Heartbeat", "ServerDescription", "PoolCleared") == [
        "ServerDescriptionChanged Unknown",
        "PoolCleared",
        "HeartbeatFailed awaited",
    ]


@pytest.mark.requirement("SM-59")
@pytest.mark.usefixtures("quick_checks")
def test_each_read_is_retried_after_server_closes_all_connections(
    connect: Any, stream_server: ScriptedServer, recorder: Any
) -> None:
    """A server may close all connections if the names of its replica set members change."""
    client = connect(stream_server, heartbeatFrequencyMS=60_000)
    eventually(lambda: awaitable_hellos(stream_server) and len(stream_server.peers) == 2)
    monitor_connections = set(stream_server.peers)
    stream_server.fail("find", *[send_no_reply] * 5)
    readers = [gevent.spawn(client.db.c.find_one, {"_id": number}) for number in range(5)]
    stream_server.wait_for("find", 5)
    for number in set(stream_server.peers) - monitor_connections:
        stream_server.peers[number].close()
    assert [reader.get(timeout=5) for reader in readers] == [{"_id": number} for number in range(5)]
