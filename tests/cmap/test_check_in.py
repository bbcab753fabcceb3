"""Check-outs and check-ins of connections (CMAP-104 to CMAP-137, CMAP-178, CMAP-179)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import gevent
import pytest

from gmongo.errors import InvalidOperation, PyMongoError
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import connection_counts, fill_pool
from tests.support.pools import checked_out
from tests.support.server import send_no_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-104", "CMAP-109", "CMAP-120", "CMAP-130", "CMAP-131", "CMAP-136", "CMAP-137")
def test_check_out_and_check_in_publish_events_in_order(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    recorder.clear()
    pool.check_in(pool.check_out())
    assert recorder.event_lines == ["Started", "Created 1", "Ready 1", "CheckedOut 1", "CheckedIn 1"]
    recorder.clear()
    pool.check_in(pool.check_out())
    assert recorder.event_lines == ["Started", "CheckedOut 1", "CheckedIn 1"]


@pytest.mark.requirement("CMAP-108", "CMAP-128")
def test_check_out_closes_perished_connections(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    fill_pool(pool, 4)
    pool.clear()
    pool.ready()
    recorder.clear()
    assert pool.check_out().id == 5
    assert recorder.event_lines[0] == "Started"
    assert sorted(recorder.lines_starting_with("Closed")) == [f"Closed {number} stale" for number in range(1, 5)]
    assert recorder.event_lines[5:] == ["Created 5", "Ready 5", "CheckedOut 5"]
    assert connection_counts(pool) == (1, 0, 0, 1)
    eventually(lambda: len(server.peers) == 1)


@pytest.mark.requirement("CMAP-30", "CMAP-108", "CMAP-173")
@pytest.mark.parametrize("step", ["check-out", "background run"])
def test_pool_closes_connection_that_server_closed_while_idle(
    new_pool: Any, server: Any, recorder: Any, step: str
) -> None:
    pool = new_pool()
    fill_pool(pool, 1)
    for peer in list(server.peers.values()):
        peer.close()
    gevent.sleep(1)
    recorder.clear()
    if step == "check-out":
        assert pool.check_out().id == 2
        assert recorder.event_lines == ["Started", "Closed 1 error", "Created 2", "Ready 2", "CheckedOut 2"]
    else:
        pool.remove_perished()
        assert recorder.event_lines == ["Closed 1 error"]
        assert connection_counts(pool) == (0, 0, 0, 0)


def test_open_connection_is_reused_after_long_idle_time(new_pool: Any) -> None:
    pool = new_pool()
    fill_pool(pool, 1)
    gevent.sleep(1)
    pool.remove_perished()
    assert pool.check_out().id == 1


@pytest.mark.requirement("CMAP-22", "CMAP-132", "CMAP-133")
def test_check_in_to_another_pool_and_second_check_in_raise_invalid_operation(new_pool: Any, recorder: Any) -> None:
    first, second = new_pool(), new_pool()
    connection = first.check_out()
    recorder.clear()
    with pytest.raises(InvalidOperation, match="not checked out of"):
        second.check_in(connection)
    assert not recorder.events
    assert (connection_counts(first), connection_counts(second)) == ((1, 0, 0, 1), (0, 0, 0, 0))
    first.check_in(connection)
    recorder.clear()
    with pytest.raises(InvalidOperation, match="is not checked out of <Pool"):
        first.check_in(connection)
    assert not recorder.events
    assert connection_counts(first) == (1, 0, 1, 0)


@pytest.mark.requirement("CMAP-178")
@pytest.mark.parametrize("how_block_ends", ["return", "exception", "kill", "timeout"])
def test_with_block_checks_in_connection_however_block_ends(
    new_pool: Any, recorder: Any, start_greenlet: Any, how_block_ends: str
) -> None:
    pool = new_pool()

    def use_connection() -> None:
        limit = gevent.Timeout(0.01 if how_block_ends == "timeout" else None)
        # The `with` statement starts the timer of `limit` after the check-out.
        with suppress(gevent.Timeout), checked_out(pool), limit:
            if how_block_ends == "exception":
                raise ZeroDivisionError
            gevent.sleep(60 if how_block_ends != "return" else 0)

    task = start_greenlet(use_connection)
    recorder.wait_for("CheckedOut")
    if how_block_ends == "kill":
        task.kill()
    task.join(timeout=5)
    assert recorder.event_lines[-1] == "CheckedIn 1"  # the connection stays open, because no command was in progress
    assert connection_counts(pool) == (1, 0, 1, 0)


@pytest.mark.requirement("CMAP-179")
def test_failed_and_interrupted_operations_check_in_each_connection(
    new_client: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    client = new_client(retryReads=False)
    server.replies["count"] = {"ok": 0, "code": 2, "errmsg": "no"}
    client.db.c.insert_one({})
    list(client.db.c.find())
    with pytest.raises(PyMongoError):
        client.db.command("count", "c")
    server.fail("find", send_no_reply)
    task = start_greenlet(client.db.c.find_one)
    server.wait_for("find", 2)
    task.kill()
    with pytest.raises(ZeroDivisionError):
        client.db.c.insert_many(1 / 0 for _ in range(3))
    assert len(recorder.events_named("CheckedOut")) == len(recorder.events_named("CheckedIn")) >= 4
    assert client.pool_stats()[0]["in_use"] == 0


def test_fork_in_listener_of_check_in_drops_connection(new_pool: Any, recorder: Any, monkeypatch: Any) -> None:
    pool = new_pool()
    connection = pool.check_out()

    def fork_pool(_events: Any, _id: int) -> None:
        pool.mark_forked(lambda: RuntimeError("forked"))
        pool.reset_after_fork()

    monkeypatch.setattr(PoolEvents, "checked_in", fork_pool)
    pool.check_in(connection)
    assert pool.stats()["total"] == 0
    assert recorder.lines_starting_with("Closed") == []


def test_fork_in_listener_discards_later_events_of_parent(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    connections = [pool.check_out() for _ in range(2)]
    for connection in connections:
        pool.check_in(connection)
    recorder.hooks["Closed"] = lambda _event: pool.mark_forked(lambda: RuntimeError("forked"))
    pool.close()
    pool._delivery.deliver()
    assert len(recorder.lines_starting_with("Closed")) == 1


def test_child_closes_idle_and_used_connections_of_parent_after_fork(new_pool: Any) -> None:
    pool = new_pool()
    idle, used = pool.check_out(), pool.check_out()
    pool.check_in(idle)
    pool.mark_forked(lambda: RuntimeError("forked"))
    pool.reset_after_fork()
    assert [connection._transport.closed for connection in (idle, used)] == [True, True]
    assert pool.stats()["generation"] == 1
