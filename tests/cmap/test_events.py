"""Pool events and their listeners (CMAP-05, CMAP-06, CMAP-180 to CMAP-204)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo import monitoring
from gmongo.errors import AutoReconnect, WaitQueueTimeoutError
from gmongo.monitoring import listeners as listeners_module
from tests.cmap.harness import fill_pool
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder, short_pool_event_name
from tests.support.server import cut_reply

KINDS = {
    "PoolCreated", "PoolReady", "PoolCleared", "PoolClosed", "Created", "Ready", "Closed", "Started", "Failed",
    "CheckedOut", "CheckedIn",
}  # fmt: skip


def publish_all_events(client: Any, server: Any) -> None:
    """Run operations and errors that cause each pool event at least once."""
    client.db.c.find_one()
    server.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    with pytest.raises(AutoReconnect):
        client._topology.pools()[0].check_out()
    client.close()


@pytest.mark.requirement(
    "CMAP-05", "CMAP-48", "CMAP-49", "CMAP-180", "CMAP-181", "CMAP-182", "CMAP-183", "CMAP-184", "CMAP-185",
    "CMAP-186", "CMAP-187", "CMAP-190", "CMAP-195", "CMAP-196", "CMAP-200", "CMAP-202",
)  # fmt: skip
def test_listener_receives_all_pool_events(new_client: Any, server: Any, recorder: Any) -> None:
    publish_all_events(new_client(retryReads=False, maxPoolSize=9), server)
    assert {short_pool_event_name(event) for event in recorder.events} == KINDS
    for event in recorder.events:
        assert event.address == server.address
        assert isinstance(getattr(event, "connection_id", 1), int)
        assert getattr(event, "duration", 0.0) >= 0
    assert recorder.events_named("PoolCreated")[0].options == {"maxPoolSize": 9}
    assert (
        recorder.events_named("PoolCleared")[0].service_id,
        recorder.events_named("PoolCleared")[0].interrupt_connections,
    ) == (
        None,
        False,
    )


@pytest.mark.requirement("CMAP-05", "CMAP-49", "CMAP-181")
def test_registered_listener_receives_events_of_new_client(new_client: Any, monkeypatch: Any, recorder: Any) -> None:
    monkeypatch.setattr(listeners_module, "_registered", [])
    monitoring.register(recorder)
    new_client(event_listeners=[]).db.c.find_one()
    assert recorder.event_lines == [
        "PoolCreated",
        "PoolReady",
        "Started",
        "Created 1",
        "Ready 1",
        "CheckedOut 1",
        "CheckedIn 1",
    ]


@pytest.mark.requirement("CMAP-06", "CMAP-180", "CMAP-203", "CMAP-204", "CMAP-26", "CMAP-120")
def test_concurrent_check_outs_publish_consistent_events(new_pool: Any, server: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=4, max_connecting=2, clears=False, wait_queue_timeout=0.2)
    for kind in ("Created", "Ready", "Closed", "CheckedIn", "CheckedOut", "Started"):
        recorder.hooks[kind] = lambda _event: gevent.sleep(0)

    def use(number: int) -> None:
        if number % 10 == 3:
            server.fail("handshake", cut_reply(0))
        try:
            with checked_out(pool) as connection:
                gevent.sleep(0)
                if number % 7 == 0:
                    connection.error = ConnectionError("lost")
        except (AutoReconnect, WaitQueueTimeoutError):
            pass

    tasks = [go(use, number) for number in range(200)]
    gevent.joinall(tasks, timeout=20)
    assert all(task.successful() for task in tasks)
    check_event_order(recorder)


def check_event_order(recorder: PoolRecorder) -> None:
    """Check that the events of each connection have the right order, and that each check-out has one end event."""
    assert [event.connection_id for event in recorder.events_named("Created")] == list(
        range(1, len(recorder.events_named("Created")) + 1)
    )
    events_of: dict[int, list[str]] = {}
    for event in recorder.events:
        if getattr(event, "connection_id", 0):
            events_of.setdefault(event.connection_id, []).append(short_pool_event_name(event))
    for events in events_of.values():
        closed = events[-1:] == ["Closed"]
        middle = events[: len(events) - closed]
        assert "Closed" not in middle
        assert middle[0] == "Created"
        assert middle[1:] == [] or middle[1] == "Ready"
        uses = middle[2:]
        assert uses == ["CheckedOut", "CheckedIn"] * (len(uses) // 2) + ["CheckedOut"] * (len(uses) % 2)
    assert len(recorder.events_named("Started")) == len(recorder.events_named("CheckedOut")) + len(
        recorder.events_named("Failed")
    )


@pytest.mark.requirement("CMAP-40", "CMAP-81", "CMAP-180")
def test_exception_in_listener_is_logged_and_ignored(new_pool: Any, recorder: Any, caplog: Any) -> None:
    def raise_zero_division_error(_event: Any) -> None:
        raise ZeroDivisionError("in a listener")

    for kind in KINDS:
        recorder.hooks[kind] = raise_zero_division_error
    pool = new_pool()
    fill_pool(pool, 2)
    pool.clear()
    pool.ready()
    pool.check_in(pool.check_out())
    pool.close()
    assert recorder.event_lines[-2:] == ["Closed 3 poolClosed", "PoolClosed"]
    assert "in a listener" in caplog.text


@pytest.mark.requirement("CMAP-43", "CMAP-96", "CMAP-193", "CMAP-134")
def test_pool_cleared_event_precedes_check_in_of_failed_connection(new_client: Any, server: Any, recorder: Any) -> None:
    client = new_client(retryReads=False)
    client.db.c.find_one()
    recorder.clear()
    server.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    assert recorder.event_lines[:5] == ["Started", "CheckedOut 1", "PoolCleared", "CheckedIn 1", "Closed 1 error"]
