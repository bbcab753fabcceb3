"""Prose tests of the SDAM specification, except the tests of round trip times."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import ServerSelectionTimeoutError
from tests.support.server import ScriptedServer


def make_failing_hello_edit(error_count: int) -> Any:
    """Return a ``hello_edit`` function that replaces the next `error_count` replies by errors."""
    remaining = [error_count]

    def replace_reply(command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        remaining[0] -= 1
        return {"ok": 0, "code": 1234, "errmsg": "failpoint"} if remaining[0] >= 0 else reply

    return replace_reply


@pytest.mark.requirement("SM-26", "SM-33", "SM-34", "SM-104")
def test_monitor_waits_half_a_second_after_failed_checks(
    connect: Any, poll_server: ScriptedServer, recorder: Any
) -> None:
    """Run the prose test of the pause after failed checks with two failed checks instead of five."""
    poll_server.hello_edit = make_failing_hello_edit(2)
    client = connect(poll_server, directConnection=True)
    started = gevent.get_hub().loop.now()
    assert client.admin.command("ping")["ok"] == 1
    gevent.get_hub().loop.update_now()
    assert gevent.get_hub().loop.now() - started >= 0.95
    assert len(recorder.events_named("HeartbeatFailed")) == 2
    assert poll_server.connection_count == 4  # 3 for the monitor, 1 for the operation


@pytest.mark.requirement("SM-95", "SM-99")
@pytest.mark.usefixtures("quick_checks")
def test_failed_checks_clear_pool_until_next_successful_check(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    connect(server, directConnection=True, heartbeat_interval=0.05)
    recorder.wait_for("PoolReady")
    assert recorder.lines_starting_with("HeartbeatSucceeded", "PoolReady")[:2] == [
        "HeartbeatSucceeded",
        "PoolReady",
    ]
    recorder.clear()
    server.hello_edit = make_failing_hello_edit(2)
    recorder.wait_for("HeartbeatFailed")
    recorder.wait_for("PoolCleared")
    recorder.wait_for("PoolReady")
    lines = recorder.event_lines
    assert "HeartbeatSucceeded" in lines[lines.index("PoolCleared") : lines.index("PoolReady")]


@pytest.mark.usefixtures("quick_checks")
def test_heartbeat_frequency_sets_interval_of_streamed_replies(
    connect: Any, server: ScriptedServer, recorder: Any
) -> None:
    """Run streaming protocol test 1 of the specification with an interval of 50 ms instead
    of 500 ms.
    """
    connect(server, heartbeat_interval=0.05)
    recorder.wait_for("HeartbeatSucceeded", 6)


@pytest.mark.requirement("SM-81")
def test_heartbeat_started_event_precedes_tcp_connection(connect: Any, recorder: Any) -> None:
    """Run heartbeat test 1 of the specification."""
    from gevent.server import StreamServer

    event_order: list[str] = []

    def accept(sock: Any, _address: Any) -> None:
        event_order.append("client connected")
        sock.recv(1)
        event_order.append("client hello received")
        sock.close()

    recorder.hooks["HeartbeatStarted"] = lambda _event: event_order.append("serverHeartbeatStartedEvent")
    recorder.hooks["HeartbeatFailed"] = lambda _event: event_order.append("serverHeartbeatFailedEvent")
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
    assert event_order[:4] == [
        "serverHeartbeatStartedEvent",
        "client connected",
        "client hello received",
        "serverHeartbeatFailedEvent",
    ]
