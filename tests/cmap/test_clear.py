"""Effects of a clear on the connections and waiters of a pool (CMAP-138 to CMAP-160)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from bson import ObjectId

from gmongo.errors import AutoReconnect, InvalidOperation, PoolClearedError
from gmongo.testing import VirtualTime
from tests.cmap.harness import fill_pool, ping
from tests.support.pools import checked_out
from tests.support.recorder import Recorder
from tests.support.server import send_no_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-139")
def test_clear_of_service_without_load_balancer_raises_invalid_operation(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    with pytest.raises(InvalidOperation, match="clear requires a service_id behind a load balancer"):
        pool.clear(service_id=ObjectId())
    assert (pool.generation, pool.stats()["state"]) == (0, "ready")
    assert not recorder.events_named("PoolCleared")


@pytest.mark.requirement("CMAP-51", "CMAP-67", "CMAP-140", "CMAP-141", "CMAP-142", "CMAP-143")
def test_clear_increments_generation_and_keeps_used_connection(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    fill_pool(pool, 2)
    used_connection = pool.check_out()
    recorder.clear()
    states_at_clear: list[Any] = []
    recorder.hooks["PoolCleared"] = lambda _event: states_at_clear.append((pool.generation, pool.stats()["state"]))
    pool.clear()
    assert recorder.event_lines == ["PoolCleared"]
    assert states_at_clear == [(1, "paused")]
    assert ping(used_connection)["ok"] == 1  # the clear does not interrupt a checked-out connection
    pool.check_in(used_connection)
    assert recorder.event_lines[1:] == [
        f"CheckedIn {used_connection.id}",
        f"Closed {used_connection.id} stale",
    ]


@pytest.mark.requirement("CMAP-144", "CMAP-145")
def test_clear_of_paused_pool_publishes_no_event(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    for _ in range(3):
        pool.clear()
    assert pool.generation == 3
    assert recorder.lines_starting_with("PoolCleared") == ["PoolCleared"]
    new_paused_pool = new_pool(ready=False)
    recorder.clear()
    new_paused_pool.clear()
    assert (new_paused_pool.generation, recorder.event_lines) == (1, [])


@pytest.mark.requirement("CMAP-52", "CMAP-146", "CMAP-149", "CMAP-150", "CMAP-235")
def test_clear_fails_all_waiters_immediately(new_pool: Any, server: Any, recorder: Any, start_greenlet: Any) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=None)
    pool.check_out()
    waiting = [start_greenlet(pool.check_out) for _ in range(3)]
    recorder.clear()
    pool.clear(AutoReconnect("the original error"))
    gevent.sleep(0)
    gevent.sleep(0)
    assert all(each.ready() for each in waiting)
    assert recorder.event_lines == ["PoolCleared", *["Failed connectionError"] * 3]
    for each in waiting:
        assert isinstance(each.exception, PoolClearedError)
        assert isinstance(each.exception, AutoReconnect)
        assert not each.exception.timeout
        assert str(each.exception) == (
            f"Connection pool for {server.name} was cleared because another operation failed with: the original error"
        )
    assert pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-115", "CMAP-116", "CMAP-147", "CMAP-148")
@pytest.mark.parametrize("operation", ["read", "write"])
def test_operation_evicted_from_wait_queue_by_clear_is_retried(
    new_client: Any, server: Any, recorder: Any, start_greenlet: Any, operation: str
) -> None:
    """Check also that the server does not become Unknown, and that the pool is cleared only once."""
    topology_recorder = Recorder()
    server.hello_extra = {"msg": "isdbgrid"}
    client = new_client(maxPoolSize=1, event_listeners=[recorder, topology_recorder])
    client.db.c.find_one()
    pool = client._topology.pools()[0]
    connection = pool.check_out()
    run = client.db.c.find_one if operation == "read" else lambda: client.db.c.insert_one({"_id": 1})
    task = start_greenlet(run)
    assert pool.stats()["waiting"] == 1
    recorder.hooks["Failed"] = lambda _event: pool.ready()
    pool.clear(AutoReconnect("gone"))
    recorder.wait_for("Failed")
    pool.check_in(connection)
    task.get(timeout=5)
    assert recorder.lines_starting_with("Failed") == ["Failed connectionError"]
    assert topology_recorder.lines_starting_with("ServerDescriptionChanged") == ["ServerDescriptionChanged Mongos"]
    assert recorder.lines_starting_with("PoolCleared") == ["PoolCleared"]


# Tests of clears that interrupt connections in use


@pytest.mark.requirement("CMAP-152", "CMAP-153", "CMAP-154", "CMAP-155", "CMAP-156", "CMAP-159", "CMAP-191")
@pytest.mark.requirement("CMAP-204")
def test_interrupting_clear_fails_running_commands(
    virtual_time: VirtualTime, new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool = new_pool(background_interval=3600)
    server.fail("ping", send_no_reply, send_no_reply)

    def use_connection() -> None:
        with checked_out(pool) as connection:
            ping(connection, None)

    tasks = [start_greenlet(use_connection), start_greenlet(use_connection)]
    server.wait_for("ping", 2)
    recorder.clear()
    start_time = virtual_time.monotonic()
    pool.clear(interrupt=True)
    # `clear` returns before the interrupted commands fail.
    assert recorder.event_lines == ["PoolCleared"]
    with pytest.raises(PoolClearedError):
        pool.check_out()
    gevent.joinall(tasks, timeout=5)
    assert virtual_time.monotonic() == start_time
    for task in tasks:
        assert isinstance(task.exception, PoolClearedError)
        assert str(task.exception) == f"Connection to {server.name} interrupted due to server monitor timeout"
        assert task.exception.address == server.address
    events_of_first_connection = [words for words in recorder.event_lines if " 1" in words]
    assert events_of_first_connection == ["CheckedIn 1", "Closed 1 stale"]
    assert recorder.events[0].interrupt_connections is True
    eventually(lambda: not server.peers)


@pytest.mark.requirement("CMAP-157")
def test_interrupting_clear_keeps_connections_of_new_generation(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    oldest = pool.check_out()
    pool.clear()
    pool.ready()
    old = pool.check_out()
    new_connections: list[Any] = []

    def check_out_during_clear(_event: Any) -> None:  # runs before any interruption
        pool.ready()
        new_connections.append(pool.check_out())

    recorder.hooks["PoolCleared"] = check_out_during_clear
    pool.clear(interrupt=True)
    recorder.hooks.clear()
    assert [oldest.usable, old.usable, new_connections[0].usable] == [False, False, True]
    assert [oldest.generation, old.generation, new_connections[0].generation] == [0, 1, 2]
    assert ping(new_connections[0])["ok"] == 1


@pytest.mark.requirement("CMAP-158", "CMAP-160")
def test_monitor_timeout_interrupts_command_and_operation_is_retried(
    new_client: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    client = new_client(heartbeatFrequencyMS=500, connectTimeoutMS=150, serverMonitoringMode="poll")
    client.db.c.find_one()
    server.fail("find", send_no_reply)
    server.fail("hello", send_no_reply)
    task = start_greenlet(client.db.c.find_one, {"_id": 7})
    assert task.get(timeout=10) == {"_id": 7}
    cleared = recorder.events_named("PoolCleared")
    assert [event.interrupt_connections for event in cleared] == [True]
    assert [words for words in recorder.event_lines if words.startswith("Closed")] == ["Closed 1 stale"]
