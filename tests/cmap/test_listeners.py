"""Pool listeners that let other greenlets run, and pools without listeners (CMAP-06)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import gevent
import pytest
from gevent import getcurrent

from gmongo.events import delivery as delivery_module
from tests.support.pools import checked_out

EVENT_NAMES = ("Started", "Created", "Ready", "CheckedOut", "CheckedIn", "Closed")


def check_out_and_sleep(pool: Any) -> None:
    with checked_out(pool):
        gevent.sleep(0)


EXPECTED_GREENLET: ContextVar[Any] = ContextVar("EXPECTED_GREENLET")


@pytest.mark.requirement("CMAP-06")
def test_listener_runs_in_greenlet_and_context_that_caused_event(
    new_pool: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool, wrong_greenlet_events, expected_greenlets = new_pool(max_pool_size=2), [], []

    def check_greenlet(event: Any) -> None:
        expected_greenlets.append(EXPECTED_GREENLET.get())
        if EXPECTED_GREENLET.get() is not getcurrent():
            wrong_greenlet_events.append(event)
        gevent.sleep(0)

    recorder.hooks = dict.fromkeys(EVENT_NAMES, check_greenlet)

    def use_in_context() -> None:
        EXPECTED_GREENLET.set(getcurrent())
        check_out_and_sleep(pool)

    tasks = [start_greenlet(use_in_context) for _ in range(10)]
    gevent.joinall(tasks, timeout=5, raise_error=True)
    assert wrong_greenlet_events == []
    assert all(expected_greenlets.count(task) in (3, 5) for task in tasks)


def test_pool_without_listeners_queues_no_events(new_pool: Any, monkeypatch: Any) -> None:
    pool = new_pool()
    pool._events.is_enabled = lambda: False
    queued_events: list[Any] = []
    monkeypatch.setattr(delivery_module.Delivery, "record", lambda _delivery, *event: queued_events.append(event))
    pool.check_in(pool.check_out())
    pool.check_in(pool.check_out())
    assert queued_events == []
