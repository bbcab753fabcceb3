"""The checker of critical sections detects each greenlet switch in a critical section."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.cmap.pool_state import StateMachine
from tests.support.critical_sections import record_switches


@pytest.mark.parametrize(
    "method", ["check_out_available", "check_in", "clear", "_drop_connection", "begin_establishing"]
)
def test_sleep_in_critical_section_is_detected(new_pool: Any, monkeypatch: Any, method: str) -> None:
    original = getattr(StateMachine, method)

    def sleep_in_method(machine: StateMachine, *arguments: Any) -> Any:
        gevent.sleep(0)
        return original(machine, *arguments)

    pool = new_pool()
    monkeypatch.setattr(StateMachine, method, sleep_in_method)
    with record_switches() as sections:
        pool.check_in(pool.check_out())
        pool.clear()
        pool.remove_perished()
    assert sections.faults
    assert "a switch in a critical section" in sections.faults[0]
    assert "in sleep" in sections.faults[0]


def test_sleep_in_critical_section_of_delivery_is_detected(new_pool: Any) -> None:
    pool = new_pool()
    with record_switches() as sections, pool._delivery:
        pool.clear()
        gevent.sleep(0)
    pool.finish()
    assert "a switch in a critical section" in sections.faults[0]


def test_greenlet_switch_before_delivery_of_queued_events_is_detected(new_pool: Any) -> None:
    pool = new_pool()
    with record_switches() as sections:
        pool.machine.clear(None, None, False)
        gevent.sleep(0)
    pool.finish()
    assert "before events were delivered" in sections.faults[0]
