"""What listeners of a pool may do: yield, use the client, raise, never return, be killed (CMAP-06, CMAP-A40)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import gevent
import pytest
from gevent import getcurrent
from gevent.event import Event

from gmongo.events import delivery as delivery_module
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import counts, filled, settle
from tests.support.faults import cut
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder, pool_line
from tests.support.wait import eventually

USES = ("Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed")


def listen(pool: Any, *recorders: PoolRecorder) -> None:
    """Let others hear of the pool, too."""
    events: PoolEvents = pool._events
    events._listeners = (*events._listeners, *recorders)


def use(pool: Any) -> None:
    with checked_out(pool):
        gevent.sleep(0)


@pytest.mark.requirement("CMAP-06")
def test_one_event_at_a_time_in_the_same_order_for_all(new_pool: Any, recorder: Any, go: Any) -> None:
    """The first listener yields for longer in some events than in others, and the second one raises."""
    pool, second, inside = new_pool(max_pool_size=3), PoolRecorder(), []

    def dawdle(event: Any) -> None:
        inside.append(event)
        assert inside == [event]
        gevent.sleep(0.001 if "Checked" in pool_line(event) else 0)
        inside.remove(event)

    def fail(_event: Any) -> None:
        raise ZeroDivisionError

    listen(pool, second)
    recorder.forget()
    recorder.hooks, second.hooks = dict.fromkeys(USES, dawdle), dict.fromkeys(USES, fail)
    gevent.joinall([go(use, pool) for _ in range(20)], timeout=5, raise_error=True)
    assert len(second.of("CheckedIn")) == 20
    assert second.events == recorder.events


ASKING: ContextVar[Any] = ContextVar("ASKING")


@pytest.mark.requirement("CMAP-06")
def test_events_come_in_the_greenlet_and_context_that_they_happen_in(new_pool: Any, recorder: Any, go: Any) -> None:
    pool, faults, heard = new_pool(max_pool_size=2), [], []

    def hear(event: Any) -> None:
        heard.append(ASKING.get())
        if ASKING.get() is not getcurrent():
            faults.append(event)
        gevent.sleep(0)

    recorder.hooks = dict.fromkeys(USES, hear)

    def ask() -> None:
        ASKING.set(getcurrent())
        use(pool)

    tasks = [go(ask) for _ in range(10)]
    gevent.joinall(tasks, timeout=5, raise_error=True)
    assert faults == []
    assert all(heard.count(task) in (3, 5) for task in tasks)


@pytest.mark.requirement("CMAP-143", "CMAP-146", "CMAP-149", "CMAP-153", "CMAP-154", "CMAP-155")
def test_the_effects_of_a_clear_wait_for_no_listener(new_pool: Any, recorder: Any, go: Any) -> None:
    """And yet all hear of the clear before they hear of its effects."""
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    waiting = go(pool.check_out)
    recorder.forget()
    gate = Event()
    recorder.hooks["PoolCleared"] = lambda _event: gate.wait()
    clearing = go(pool.clear, interrupt=True)
    assert not connection.usable
    assert pool.stats()["waiting"] == 0
    giving_back = go(pool.check_in, connection)
    assert counts(pool) == (0, 0, 0, 0)
    assert recorder.story == ["PoolCleared"]
    gate.set()
    gevent.joinall([clearing, giving_back, waiting], timeout=5)
    assert sorted(recorder.story[1:]) == ["CheckedIn 1", "Closed 1 stale", "Failed connectionError"]


def test_a_listener_uses_the_pool(new_pool: Any, recorder: Any) -> None:
    """It gets what it asks for, and the events come after the one that it hears."""
    pool, second = new_pool(), PoolRecorder()
    filled(pool, 1)
    listen(pool, second)

    def ask(_event: Any) -> None:
        recorder.hooks.clear()
        pool.check_in(pool.check_out())

    recorder.forget()
    recorder.hooks["CheckedIn"] = ask
    pool.check_in(pool.check_out())
    assert recorder.story == second.story == ["Started", "CheckedOut 1", "CheckedIn 1"] * 2


@pytest.mark.parametrize("end", ["killed", "returns"])
def test_a_listener_does_not_return(
    new_pool: Any, recorder: Any, go: Any, monkeypatch: Any, caplog: Any, end: str
) -> None:
    """Others go on, and listeners hear of them later."""
    monkeypatch.setattr(delivery_module, "_PATIENCE", 0.02)
    pool, gate = new_pool(), Event()
    filled(pool, 1)
    recorder.forget()

    def hang(_event: Any) -> None:
        recorder.hooks.clear()
        gate.wait()

    recorder.hooks["CheckedIn"] = hang
    first = go(lambda: pool.check_in(pool.check_out()))
    for _ in range(20):
        pool.check_in(pool.check_out())
    assert len(recorder.events) == 3
    assert "a listener has not returned" in caplog.text
    if end == "killed":
        first.kill()
    gate.set()
    eventually(lambda: len(recorder.events) == 63)
    assert recorder.story == ["Started", "CheckedOut 1", "CheckedIn 1"] * 21
    pool.check_in(pool.check_out())
    assert len(recorder.events) == 66


def test_a_time_out_is_in_time_although_listeners_are_slow(new_pool: Any, recorder: Any, go: Any) -> None:
    """It is the application's, and the line of events is long."""
    pool = new_pool(max_pool_size=1)
    filled(pool, 1)
    recorder.forget()
    recorder.hooks = dict.fromkeys(USES, lambda _event: gevent.sleep(0.02))
    crowd = [go(use, pool) for _ in range(10)]
    with gevent.Timeout(0.05, False) as mine, gevent.Timeout(0.3):
        try:
            use(pool)
        finally:
            assert mine.pending is False
    recorder.hooks.clear()
    gevent.joinall(crowd, timeout=5, raise_error=True)
    settle()
    assert len(recorder.of("Started")) == len(recorder.only("CheckedOut", "Failed")) == 11
    assert len(recorder.of("CheckedOut")) == len(recorder.of("CheckedIn"))


@pytest.mark.requirement("CMAP-37", "CMAP-180")
@pytest.mark.parametrize("kind", ["Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed"])
def test_one_is_killed_in_a_listener_while_others_wait_behind(
    new_pool: Any, server: Any, recorder: Any, go: Any, kind: str
) -> None:
    pool, second, gate = new_pool(max_pool_size=2, clears=False), PoolRecorder(), Event()
    listen(pool, second)
    if kind == "Closed":
        server.fail("handshake", cut(0))
    recorder.forget()
    recorder.hooks[kind] = lambda _event: (recorder.hooks.clear(), gate.wait())
    victim = go(use, pool)
    eventually(lambda: recorder.of(kind))
    others = [go(use, pool) for _ in range(5)]
    victim.kill()
    gevent.joinall(others, timeout=5, raise_error=True)
    eventually(lambda: not pool._delivery.pending)
    assert recorder.events == second.events
    assert len(recorder.of("Started")) == len(recorder.only("CheckedOut", "Failed")) == 6
    assert len(recorder.of("CheckedOut")) == len(recorder.of("CheckedIn"))
    assert counts(pool)[3] == 0


@pytest.mark.requirement("CMAP-74", "CMAP-75")
def test_a_close_returns_after_its_events(new_pool: Any, recorder: Any, go: Any) -> None:
    """And after those of others that happened before."""
    pool = new_pool()
    connections = [pool.check_out() for _ in range(3)]
    recorder.forget()
    recorder.hooks = dict.fromkeys(("CheckedIn", "Closed", "PoolClosed"), lambda _event: gevent.sleep(0.005))
    crowd = [go(pool.check_in, connection) for connection in connections]
    pool.close()
    assert recorder.story[-1] == "PoolClosed"
    assert not pool._delivery.pending
    gevent.joinall(crowd, timeout=5)


def test_without_listeners_nothing_is_noted(new_pool: Any, monkeypatch: Any) -> None:
    pool = new_pool()
    pool._events.wanted = lambda: False
    noted: list[Any] = []
    monkeypatch.setattr(delivery_module.Delivery, "note", lambda _delivery, *what: noted.append(what))
    pool.check_in(pool.check_out())
    pool.check_in(pool.check_out())
    assert noted == []
