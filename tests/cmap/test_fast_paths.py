"""Fast paths of check-outs and of the wait queue, and initial values of a new connection."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import gevent
import pytest

from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.pool import Pool
from gmongo.cmap.pool_state import StateMachine
from gmongo.cmap.server_connection import ServerConnection
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.errors import AutoReconnect
from tests.cmap.harness import make_pool
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer, cut_reply


@pytest.mark.parametrize("has_listener", [False, True])
def test_check_out_of_available_connection_takes_fast_path(
    server: ScriptedServer, recorder: PoolRecorder, monkeypatch: pytest.MonkeyPatch, has_listener: bool
) -> None:
    pool = make_pool(server.address, recorder if has_listener else None)
    with checked_out(pool) as connection:
        pass
    monkeypatch.setattr(Pool, "_obtain", lambda *_: pytest.fail("slow path"))
    with checked_out(pool) as again:
        assert again is connection
    pool.close()
    assert len(recorder.events) == (12 if has_listener else 0)


class WaitTimeout(Exception):
    pass


def test_hand_over_after_timeout_does_not_wake_waiter() -> None:
    queue: WaitQueue[str] = WaitQueue()
    waiter = queue.join()
    with pytest.raises(WaitTimeout):
        waiter.sleep(0, WaitTimeout)
    queue.hand_over("item")
    gevent.sleep(0)  # ends too early if the queue wakes the waiter again
    assert queue.leave(waiter) == "item"


def test_waiter_killed_during_hand_over_is_not_woken_later() -> None:
    queue: WaitQueue[str] = WaitQueue()
    ended = []

    def wait() -> None:
        waiter = queue.join()
        try:
            waiter.sleep(None, WaitTimeout)
        finally:
            ended.append(queue.leave(waiter))
            gevent.sleep(0)
            ended.append("slept")

    waiting = gevent.spawn(wait)
    gevent.sleep(0)
    waiting.kill(block=False)
    queue.hand_over("item")
    waiting.join()
    assert ended == ["item", "slept"]


def test_waiter_returns_item_immediately_if_item_was_handed_over_before_sleep() -> None:
    queue: WaitQueue[str] = WaitQueue()
    for limit in (None, 0, -1, 10):
        waiter = queue.join()
        queue.hand_over("item")
        assert waiter.sleep(limit, WaitTimeout) == "item"
        assert queue.leave(waiter) == "item"
    waiter = queue.join()
    WaitQueue.evict(queue.detach(), WaitTimeout)
    with pytest.raises(WaitTimeout):
        waiter.sleep(10, AssertionError)
    assert waiter.error is None and not queue.waiters


def test_wait_queue_with_waiters_keeps_event_loop_alive() -> None:
    loop = gevent.get_hub().loop
    before, queue = loop.activecnt, WaitQueue[str]()

    def active_watchers() -> int:
        return loop.activecnt - before

    first, second = queue.join(), queue.join("find")
    assert active_watchers() == 1 and [waiter.purpose for waiter in queue.waiters] == [None, "find"]
    queue.leave(first)
    assert active_watchers() == 1
    queue.leave(second)
    queue.leave(second)
    assert active_watchers() == 0
    queue.join()
    assert active_watchers() == 1
    queue.hand_over("item")
    assert active_watchers() == 0
    queue.join()
    queue.detach()
    assert active_watchers() == 0 and queue.oldest_wait() is None


def test_new_connection_has_initial_values() -> None:
    connection = Connection(("h", 1))
    slots = {*ServerConnection.__slots__, *Connection.__slots__} - {"__weakref__"}
    unset = {name for name in slots if not hasattr(connection, name)}
    assert unset == {"hello"}
    assert (connection.id, connection.generation, connection.idle_since) == (0, 0, 0.0)
    assert (connection.checked_out_at, connection.established_in) == (0.0, 0.0)
    assert connection.usable and not connection.has_socket and not connection.handshake_done
    assert connection.purpose is Purpose.OTHER
    for name in ("service_id", "checked_out_by", "last_command", "error", "unanswered", "late_reply", "authentication"):
        assert getattr(connection, name) is None
    assert not connection.inherited and not connection.mid_message and not connection.monitors
    assert repr(connection) == "<Connection 0 to h:1 generation=0>"


def test_repr_of_pool_shows_pool_stats(new_pool: Any) -> None:
    pool: Pool = new_pool()
    shown = repr(pool)
    host, port = pool.address
    assert shown.startswith(
        f"<Pool {host}:{port} state=ready, generation=0, total=0, available=0, pending=0, in_use=0, "
    )
    assert "address" not in shown and shown.endswith("waiting=0, oldest_wait=None>")
    with checked_out(pool):
        assert "total=1, available=0, pending=0, in_use=1, " in repr(pool)
    assert Waiter("find").purpose == "find"


STEPS: dict[str, Any] = {
    "check_out_established": lambda pool: pool.check_in(pool.check_out()),
    "check_in": lambda pool: pool.check_in(pool.check_out(), AutoReconnect("x")),
    "end_draining": lambda pool: pool.end_draining(Connection(("h", 1))),
    "ready": lambda pool: pool.ready(),
    "clear": lambda pool: pool.clear(),
    "close": lambda pool: pool.close(),
    "remove_perished": lambda pool: pool.remove_perished(),
    "reset_after_fork": lambda pool: pool.reset_after_fork(),
    "give_up": lambda pool: pool.check_out(),
}


@pytest.mark.parametrize("pool_method", STEPS)
def test_connection_dropped_by_pool_step_is_closed_after_step(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, pool_method: str
) -> None:
    pool = make_pool(server.address, None)
    real, dropped = getattr(StateMachine, pool_method), Mock()

    def drop_connection_in_step(machine: StateMachine, *arguments: Any) -> Any:
        result = real(machine, *arguments)
        machine._dropped.append(dropped)
        closed_before.append(dropped.close.call_count)
        return True if pool_method == "check_in" else result

    closed_before: list[int] = []
    monkeypatch.setattr(StateMachine, pool_method, drop_connection_in_step)
    if pool_method == "give_up":
        server.fail("handshake", cut_reply(0))
        with pytest.raises(AutoReconnect):
            STEPS[pool_method](pool)
    else:
        STEPS[pool_method](pool)
    assert closed_before == [0] and dropped.close.call_count == 1
    monkeypatch.undo()
    pool.close()
