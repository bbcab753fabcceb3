"""Checking out and in (CMAP-104 to CMAP-137, CMAP-178, CMAP-179)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import gevent
import pytest

from gmongo.errors import InvalidOperation, PyMongoError
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import counts, filled
from tests.support.pools import checked_out
from tests.support.server import silent
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-104", "CMAP-109", "CMAP-120", "CMAP-130", "CMAP-131", "CMAP-136", "CMAP-137")
def test_the_order_of_a_check_out_and_check_in(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    recorder.forget()
    pool.check_in(pool.check_out())
    assert recorder.story == ["Started", "Created 1", "Ready 1", "CheckedOut 1", "CheckedIn 1"]
    recorder.forget()
    pool.check_in(pool.check_out())
    assert recorder.story == ["Started", "CheckedOut 1", "CheckedIn 1"]


@pytest.mark.requirement("CMAP-108", "CMAP-128")
def test_perished_connections_are_closed_on_the_way(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    filled(pool, 4)
    pool.clear()
    pool.ready()
    recorder.forget()
    assert pool.check_out().id == 5
    assert recorder.story[0] == "Started"
    assert sorted(recorder.only("Closed")) == [f"Closed {number} stale" for number in range(1, 5)]
    assert recorder.story[5:] == ["Created 5", "Ready 5", "CheckedOut 5"]
    assert counts(pool) == (1, 0, 0, 1)
    eventually(lambda: len(server.peers) == 1)


@pytest.mark.parametrize("max_idle_time", [None, 60], ids=["at-once", "looked-at"])
def test_the_one_used_last_is_taken_first(new_pool: Any, max_idle_time: float | None) -> None:
    """So that those which are not needed grow idle."""
    pool = new_pool(max_idle_time=max_idle_time)
    first, second, third = filled(pool, 3)
    assert [pool.check_out() for _ in range(3)] == [third, second, first]


@pytest.mark.requirement("CMAP-22", "CMAP-132", "CMAP-133")
def test_a_connection_of_another_pool_is_not_checked_in(new_pool: Any, recorder: Any) -> None:
    first, second = new_pool(), new_pool()
    connection = first.check_out()
    recorder.forget()
    with pytest.raises(InvalidOperation, match="not checked out of"):
        second.check_in(connection)
    assert not recorder.events
    assert (counts(first), counts(second)) == ((1, 0, 0, 1), (0, 0, 0, 0))
    first.check_in(connection)


@pytest.mark.requirement("CMAP-133")
def test_a_connection_is_checked_in_once(new_pool: Any, recorder: Any) -> None:
    pool = new_pool()
    connection = pool.check_out()
    pool.check_in(connection)
    recorder.forget()
    with pytest.raises(InvalidOperation):
        pool.check_in(connection)
    assert not recorder.events
    assert counts(pool) == (1, 0, 1, 0)


@pytest.mark.requirement("CMAP-178")
@pytest.mark.parametrize("end", ["well", "by an exception", "by a kill", "by a time-out"])
def test_the_scope_checks_in_however_it_ends(new_pool: Any, recorder: Any, go: Any, end: str) -> None:
    pool = new_pool()

    def use() -> None:
        limit = gevent.Timeout(0.01 if end == "by a time-out" else None)
        with suppress(gevent.Timeout), checked_out(pool), limit:  # it begins when the connection is there
            if end == "by an exception":
                raise ZeroDivisionError
            gevent.sleep(60 if end != "well" else 0)

    task = go(use)
    recorder.wait_for("CheckedOut")
    if end == "by a kill":
        task.kill()
    task.join(timeout=5)
    assert recorder.story[-1] == "CheckedIn 1"  # nothing was asked of the server, so it is as good as new
    assert counts(pool) == (1, 0, 1, 0)


@pytest.mark.requirement("CMAP-179")
def test_operations_give_back_what_they_take(new_client: Any, server: Any, recorder: Any, go: Any) -> None:
    client = new_client(retryReads=False)
    server.replies["count"] = {"ok": 0, "code": 2, "errmsg": "no"}
    client.db.c.insert_one({})
    list(client.db.c.find())
    with pytest.raises(PyMongoError):
        client.db.command("count", "c")
    server.fail("find", silent)
    task = go(client.db.c.find_one)
    server.wait_for("find", 2)
    task.kill()
    with pytest.raises(ZeroDivisionError):
        client.db.c.insert_many(1 / 0 for _ in range(3))
    assert len(recorder.of("CheckedOut")) == len(recorder.of("CheckedIn")) >= 4
    assert client.pool_stats()[0]["in_use"] == 0


def test_a_fork_while_listeners_hear_of_a_check_in(new_pool: Any, recorder: Any, monkeypatch: Any) -> None:
    """The child's pool begins again in the middle of a check-in of the parent's: the connection is not the child's."""
    pool = new_pool()
    connection = pool.check_out()

    def fork(_events: Any, _id: int) -> None:
        pool.mark_forked(lambda: RuntimeError("forked"))
        pool.reset_after_fork()

    monkeypatch.setattr(PoolEvents, "checked_in", fork)
    pool.check_in(connection)
    assert pool.stats()["total"] == 0
    assert recorder.only("Closed") == []
