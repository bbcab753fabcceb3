"""Pool listeners that yield, use the client, raise, never return, or are killed (CMAP-06, CMAP-A40)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import gevent
import pytest
from gevent import getcurrent
from gevent.event import Event

from gmongo.events import delivery as delivery_module
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import connection_counts, fill_pool, run_other_greenlets
from tests.support.faults import cut_reply
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder, pool_event_line
from tests.support.wait import eventually

USES = ("Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed")


def add_listeners(pool: Any, *recorders: PoolRecorder) -> None:
    """Add listeners to a pool, after the listeners that the pool already has."""
    events: PoolEvents = pool._events
    events._listeners = (*events._listeners, *recorders)


def check_out_and_yield(pool: Any) -> None:
    with checked_out(pool):
        gevent.sleep(0)


@pytest.mark.requirement("CMAP-06")
def test_all_listeners_receive_pool_events_in_one_order(new_pool: Any, recorder: Any, go: Any) -> None:
    """Check a listener that yields after some events, and a second listener that raises an error."""
    pool, second, inside = new_pool(max_pool_size=3), PoolRecorder(), []

    def yield_in_listener(event: Any) -> None:
        inside.append(event)
        assert inside == [event]
        gevent.sleep(0.001 if "Checked" in pool_event_line(event) else 0)
        inside.remove(event)

    def raise_in_listener(_event: Any) -> None:
        raise ZeroDivisionError

    add_listeners(pool, second)
    recorder.clear()
    recorder.hooks, second.hooks = dict.fromkeys(USES, yield_in_listener), dict.fromkeys(USES, raise_in_listener)
    gevent.joinall([go(check_out_and_yield, pool) for _ in range(20)], timeout=5, raise_error=True)
    assert len(second.events_named("CheckedIn")) == 20
    assert second.events == recorder.events


EXPECTED: ContextVar[Any] = ContextVar("EXPECTED")


@pytest.mark.requirement("CMAP-06")
def test_listener_runs_in_greenlet_and_context_that_caused_event(new_pool: Any, recorder: Any, go: Any) -> None:
    pool, faults, contexts = new_pool(max_pool_size=2), [], []

    def check_greenlet(event: Any) -> None:
        contexts.append(EXPECTED.get())
        if EXPECTED.get() is not getcurrent():
            faults.append(event)
        gevent.sleep(0)

    recorder.hooks = dict.fromkeys(USES, check_greenlet)

    def use_in_context() -> None:
        EXPECTED.set(getcurrent())
        check_out_and_yield(pool)

    tasks = [go(use_in_context) for _ in range(10)]
    gevent.joinall(tasks, timeout=5, raise_error=True)
    assert faults == []
    assert all(contexts.count(task) in (3, 5) for task in tasks)


@pytest.mark.requirement("CMAP-143", "CMAP-146", "CMAP-149", "CMAP-153", "CMAP-154", "CMAP-155")
def test_clear_takes_effect_before_pool_cleared_listener_returns(new_pool: Any, recorder: Any, go: Any) -> None:
    """Check that the pool is cleared while the listener of PoolClearedEvent still waits.

    The pool publishes later events only after the listener has returned.
    """
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    waiting = go(pool.check_out)
    recorder.clear()
    gate = Event()
    recorder.hooks["PoolCleared"] = lambda _event: gate.wait()
    clearing = go(pool.clear, interrupt=True)
    assert not connection.usable
    assert pool.stats()["waiting"] == 0
    checking_in = go(pool.check_in, connection)
    assert connection_counts(pool) == (0, 0, 0, 0)
    assert recorder.event_lines == ["PoolCleared"]
    gate.set()
    gevent.joinall([clearing, checking_in, waiting], timeout=5)
    assert sorted(recorder.event_lines[1:]) == ["CheckedIn 1", "Closed 1 stale", "Failed connectionError"]


def test_nested_check_out_in_listener_publishes_later_events(new_pool: Any, recorder: Any) -> None:
    pool, second = new_pool(), PoolRecorder()
    fill_pool(pool, 1)
    add_listeners(pool, second)

    def use_pool(_event: Any) -> None:
        recorder.hooks.clear()
        pool.check_in(pool.check_out())

    recorder.clear()
    recorder.hooks["CheckedIn"] = use_pool
    pool.check_in(pool.check_out())
    assert recorder.event_lines == second.event_lines == ["Started", "CheckedOut 1", "CheckedIn 1"] * 2


@pytest.mark.parametrize("how_listener_ends", ["killed", "returns"])
def test_hanging_listener_delays_events_but_not_operations(
    new_pool: Any, recorder: Any, go: Any, monkeypatch: Any, caplog: Any, how_listener_ends: str
) -> None:
    monkeypatch.setattr(delivery_module, "_PATIENCE", 0.02)
    pool, gate = new_pool(), Event()
    fill_pool(pool, 1)
    recorder.clear()

    def wait_in_listener(_event: Any) -> None:
        recorder.hooks.clear()
        gate.wait()

    recorder.hooks["CheckedIn"] = wait_in_listener
    first = go(lambda: pool.check_in(pool.check_out()))
    for _ in range(20):
        pool.check_in(pool.check_out())
    assert len(recorder.events) == 3
    assert "a listener has not returned" in caplog.text
    if how_listener_ends == "killed":
        first.kill()
    gate.set()
    eventually(lambda: len(recorder.events) == 63)
    assert recorder.event_lines == ["Started", "CheckedOut 1", "CheckedIn 1"] * 21
    pool.check_in(pool.check_out())
    assert len(recorder.events) == 66


def test_slow_listener_does_not_delay_application_timeout(new_pool: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    fill_pool(pool, 1)
    recorder.clear()
    recorder.hooks = dict.fromkeys(USES, lambda _event: gevent.sleep(0.02))
    tasks = [go(check_out_and_yield, pool) for _ in range(10)]
    with gevent.Timeout(0.05, False) as timeout, gevent.Timeout(0.3):
        try:
            check_out_and_yield(pool)
        finally:
            assert timeout.pending is False
    recorder.hooks.clear()
    gevent.joinall(tasks, timeout=5, raise_error=True)
    run_other_greenlets()
    assert len(recorder.events_named("Started")) == len(recorder.lines_starting_with("CheckedOut", "Failed")) == 11
    assert len(recorder.events_named("CheckedOut")) == len(recorder.events_named("CheckedIn"))


@pytest.mark.requirement("CMAP-37", "CMAP-180")
@pytest.mark.parametrize("event", ["Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed"])
def test_kill_in_listener_does_not_stop_delivery_of_waiting_events(
    new_pool: Any, server: Any, recorder: Any, go: Any, event: str
) -> None:
    pool, second, gate = new_pool(max_pool_size=2, clears=False), PoolRecorder(), Event()
    add_listeners(pool, second)
    if event == "Closed":
        server.fail("handshake", cut_reply(0))
    recorder.clear()
    recorder.hooks[event] = lambda _event: (recorder.hooks.clear(), gate.wait())
    victim = go(check_out_and_yield, pool)
    eventually(lambda: recorder.events_named(event))
    others = [go(check_out_and_yield, pool) for _ in range(5)]
    victim.kill()
    gevent.joinall(others, timeout=5, raise_error=True)
    eventually(lambda: not pool._delivery.pending)
    assert recorder.events == second.events
    assert len(recorder.events_named("Started")) == len(recorder.lines_starting_with("CheckedOut", "Failed")) == 6
    assert len(recorder.events_named("CheckedOut")) == len(recorder.events_named("CheckedIn"))
    assert connection_counts(pool)[3] == 0


@pytest.mark.requirement("CMAP-74", "CMAP-75")
def test_close_of_pool_returns_after_delivery_of_all_events(new_pool: Any, recorder: Any, go: Any) -> None:
    pool = new_pool()
    connections = [pool.check_out() for _ in range(3)]
    recorder.clear()
    recorder.hooks = dict.fromkeys(("CheckedIn", "Closed", "PoolClosed"), lambda _event: gevent.sleep(0.005))
    tasks = [go(pool.check_in, connection) for connection in connections]
    pool.close()
    assert recorder.event_lines[-1] == "PoolClosed"
    assert not pool._delivery.pending
    gevent.joinall(tasks, timeout=5)


def test_pool_without_listeners_queues_no_events(new_pool: Any, monkeypatch: Any) -> None:
    pool = new_pool()
    pool._events.is_enabled = lambda: False
    recorded: list[Any] = []
    monkeypatch.setattr(delivery_module.Delivery, "record", lambda _delivery, *what: recorded.append(what))
    pool.check_in(pool.check_out())
    pool.check_in(pool.check_out())
    assert recorded == []
