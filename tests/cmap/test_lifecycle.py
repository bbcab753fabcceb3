"""A pool is paused, ready or closed (CMAP-43 to CMAP-81)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

import gmongo
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, PoolClearedError, PoolClosedError
from tests.cmap.harness import connection_counts, fill_pool, run_other_greenlets
from tests.support.pools import service_counts
from tests.support.server import hold_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-03", "CMAP-04")
def test_pool_class_is_not_public() -> None:
    assert {"check_out", "check_in", "clear", "ready", "close"} <= set(dir(Pool))
    assert {name for name in dir(gmongo) if "pool" in name.lower()} <= {"pool_options"}


@pytest.mark.requirement("CMAP-54", "CMAP-60", "CMAP-70", "CMAP-72")
def test_new_pool_is_paused_and_opens_no_connection(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(ready=False)
    assert pool.stats()["state"] == "paused"
    assert (pool.generation, connection_counts(pool)) == (0, (0, 0, 0, 0))
    assert recorder.event_lines == ["PoolCreated"]
    with pytest.raises(PoolClearedError):
        pool.check_out()
    assert recorder.event_lines[1:] == ["Started", "Failed connectionError"]
    gevent.sleep(0.01)
    assert server.connection_count == 0


@pytest.mark.requirement("CMAP-53", "CMAP-54", "CMAP-55", "CMAP-61", "CMAP-114", "CMAP-122", "CMAP-142", "CMAP-151")
def test_check_out_fails_while_paused_and_succeeds_after_ready(new_pool: Any, recorder: Any) -> None:
    pool = new_pool(wait_queue_timeout=None)
    assert pool.stats()["state"] == "ready"
    pool.check_in(pool.check_out())
    pool.clear()
    assert pool.stats()["state"] == "paused"
    recorder.clear()
    with pytest.raises(AutoReconnect) as raised:
        pool.check_out()
    assert isinstance(raised.value, PoolClearedError)
    assert not raised.value.timeout
    assert recorder.event_lines == ["Started", "Failed connectionError"]
    pool.ready()
    pool.check_in(pool.check_out())


@pytest.mark.requirement("CMAP-56", "CMAP-71", "CMAP-95", "CMAP-98")
def test_paused_pool_opens_no_connections(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(ready=False, min_pool_size=3, background_interval=0.001)
    gevent.sleep(0.02)
    assert recorder.event_lines == ["PoolCreated"]
    pool.ready()
    recorder.wait_for("Ready", 3)
    assert recorder.event_lines.index("PoolReady") < recorder.event_lines.index("Created 1")
    pool.clear()
    recorder.wait_for("Closed", 3)
    gevent.sleep(0.02)
    assert len(recorder.events_named("Created")) == 3
    assert server.connection_count == 3


@pytest.mark.requirement("CMAP-68", "CMAP-78", "CMAP-79")
def test_ready_on_ready_pool_publishes_no_event(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    pool.ready()
    assert recorder.event_lines == ["PoolCreated", "PoolReady"]
    assert pool.stats()["state"] == "ready"


@pytest.mark.requirement("CMAP-80", "CMAP-81")
def test_no_connection_is_created_before_pool_ready_listener_returns(new_pool: Any, recorder: Any) -> None:
    pool = new_pool(ready=False, min_pool_size=2, background_interval=0.001)
    lines_in_listener: list[list[str]] = []

    def sleep_and_record(_event: Any) -> None:
        gevent.sleep(0.03)
        pool.machine.background_wakeup.set()
        run_other_greenlets()
        lines_in_listener.append(recorder.lines_starting_with("Created"))

    recorder.hooks["PoolReady"] = sleep_and_record
    pool.ready()
    recorder.wait_for("Ready", 2)
    assert lines_in_listener == [[]]


@pytest.mark.requirement("SM-95")
@pytest.mark.requirement("CMAP-43", "CMAP-48", "CMAP-73", "CMAP-205")
def test_pool_is_ready_after_server_recovers(new_client: Any, server: Any, recorder: Any) -> None:
    client = new_client(heartbeatFrequencyMS=500)
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    assert recorder.event_lines[:2] == ["PoolCreated", "PoolReady"]
    server.stop()
    eventually(lambda: client.pool_stats()[0]["state"] == "paused")
    server.start()
    assert client.db.c.find_one({"_id": 2}) == {"_id": 2}
    assert recorder.lines_starting_with("PoolReady", "PoolCleared") == ["PoolReady", "PoolCleared", "PoolReady"]


@pytest.mark.requirement("CMAP-239", "CMAP-43", "CMAP-57")
def test_monitors_do_not_use_pool_connections(new_client: Any, server: Any, recorder: Any) -> None:
    client = new_client(maxPoolSize=1)
    recorder.wait_for("PoolReady")
    eventually(lambda: server.connection_count >= 1)
    assert recorder.event_lines == ["PoolCreated", "PoolReady"]
    assert client.pool_stats()[0]["total"] == 0
    client.db.c.find_one()
    assert client.pool_stats()[0]["total"] == 1
    assert server.connection_count >= 2


@pytest.mark.requirement("CMAP-50", "CMAP-62", "CMAP-69", "CMAP-77", "CMAP-114", "CMAP-121", "CMAP-197", "CMAP-234")
def test_closed_pool_ignores_ready_and_rejects_check_out(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(min_pool_size=2, background_interval=0.001)
    recorder.wait_for("Ready", 2)
    pool.close()
    recorder.clear()
    pool.ready()
    pool.clear()
    pool.close()
    gevent.sleep(0.01)
    assert pool.stats()["state"] == "closed"
    assert not recorder.events
    with pytest.raises(PoolClosedError) as raised:
        pool.check_out()
    assert str(raised.value) == "Attempted to check out a Connection from closed connection pool"
    assert raised.value.address == server.address
    assert recorder.event_lines == ["Started", "Failed poolClosed"]


@pytest.mark.requirement("CMAP-74", "CMAP-75", "CMAP-76", "CMAP-135", "CMAP-194")
def test_close_closes_available_connections_before_pool_closed_event(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    states: list[str] = []
    used_connection = pool.check_out()
    fill_pool(pool, 2)
    recorder.clear()
    recorder.hooks["Closed"] = lambda _event: states.append(pool.stats()["state"])
    pool.close()
    assert sorted(recorder.event_lines[:2]) == ["Closed 2 poolClosed", "Closed 3 poolClosed"]
    assert recorder.event_lines[2:] == ["PoolClosed"]
    assert states == ["closed", "closed"]
    eventually(lambda: len(server.peers) == 1)
    pool.check_in(used_connection)
    assert recorder.event_lines[3:] == ["CheckedIn 1", "Closed 1 poolClosed"]
    eventually(lambda: not server.peers)


@pytest.mark.requirement("CMAP-121")
def test_check_out_raises_if_pool_closes_after_end_of_handshake(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    recorder.hooks["Ready"] = lambda _event: pool.close()
    with pytest.raises(PoolClosedError):
        pool.check_out()
    assert recorder.event_lines[-3:] == ["PoolClosed", "Closed 1 poolClosed", "Failed poolClosed"]
    assert connection_counts(pool) == (0, 0, 0, 0)


@pytest.mark.requirement("CMAP-31", "CMAP-59", "CMAP-64", "CMAP-66", "CMAP-92")
def test_pool_stats_have_state_connection_counts_and_waiters(new_pool: Any, server: Any, start_greenlet: Any) -> None:
    pool = new_pool(max_pool_size=1)
    fill_pool(pool, 1)
    stats = pool.stats()
    assert (stats["address"], stats["state"], stats["generation"]) == (server.address, "ready", 0)
    assert (stats["available"], stats["waiting"], stats["oldest_wait"]) == (1, 0, None)
    assert service_counts(pool) == {}
    connection = pool.check_out()
    start_greenlet(pool.check_out)
    gevent.sleep(0.5)
    start_greenlet(pool.check_out)
    stats = pool.stats()
    assert (stats["available"], stats["in_use"], stats["waiting"]) == (0, 1, 2)
    assert stats["oldest_wait"] == pytest.approx(0.5, abs=0.1)
    pool.check_in(connection)


@pytest.mark.requirement("CMAP-07", "CMAP-110")
def test_pool_with_max_pool_size_zero_is_unlimited(new_pool: Any) -> None:
    pool = new_pool(max_pool_size=0)
    assert [pool.check_out().id for _ in range(120)] == list(range(1, 121))


def test_operation_count_includes_waiting_connecting_and_using_greenlets(
    new_pool: Any, server: Any, start_greenlet: Any
) -> None:
    gate = Event()
    pool = new_pool(max_pool_size=2, max_connecting=1)
    assert pool.operation_count == 0
    used_connection = pool.check_out()
    assert pool.operation_count == 1
    server.fail("handshake", hold_reply(gate))
    start_greenlet(pool.check_out)
    server.wait_for("handshake", 2)
    assert pool.operation_count == 2
    start_greenlet(pool.check_out)
    assert pool.operation_count == 3
    pool.check_in(used_connection)
    gate.set()
    assert pool.operation_count == 2
