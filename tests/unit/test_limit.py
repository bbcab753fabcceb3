"""Limits of time: what they throw, and how they treat a loop that was held."""

from __future__ import annotations

import time
import weakref
from functools import partial
from time import monotonic
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo import _clock
from gmongo.cmap.connection import Connection, _timeout_error
from gmongo.errors import AutoReconnect
from gmongo.wire import limit as limit_module
from gmongo.wire.limit import Limit, interrupt_after


def test_the_very_error_is_thrown():
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as raised, interrupt_after(0.01, error):
        gevent.sleep(60)
    assert raised.value is error


def test_a_body_that_ends_in_time_is_left_alone():
    with interrupt_after(0.02, ValueError()):
        gevent.sleep(0.001)
    gevent.sleep(0.04)


def test_a_limit_that_is_over_is_not_entered():
    with pytest.raises(ValueError, match="late"), interrupt_after(0, ValueError("late")):
        pytest.fail("the body ran")


def test_time_in_which_the_loop_was_held_does_not_count(virtual_time):
    done = []

    def work():
        with interrupt_after(0.1, ValueError()):
            for _ in range(3):  # several passes of the loop, which the limit would not leave it
                gevent.sleep(0.001)
            done.append(True)

    greenlet = gevent.spawn(work)
    gevent.sleep(0)
    virtual_time.suspend(0.3)
    greenlet.join()
    assert done == [True]


def test_a_process_that_is_always_late_is_interrupted_at_last():
    def hold():
        while True:
            time.sleep(0.07)
            gevent.sleep(0.001)

    holder = gevent.spawn(hold)
    begin = monotonic()
    try:
        with pytest.raises(ValueError), interrupt_after(0.2, ValueError()):
            gevent.sleep(60)
    finally:
        holder.kill()
    assert monotonic() - begin >= 0.2


class Loop:
    """A loop whose time passes when the test says so, with one timer."""

    def __init__(self):
        self.now = 0.0
        self.loop = self

    def timer(self, seconds, ref, priority):
        self.due = self.now + seconds
        return self

    def start(self, fire, update):
        self.fire = fire

    def close(self):
        self.fire = None


@settings(max_examples=200)
@given(st.lists(st.sampled_from([0.0, 0.04, 0.051, 0.3, 1.0, 7.0]), max_size=8), st.sampled_from([0.2, 1.0, 3.0]))
def test_the_time_for_which_the_loop_was_held_is_granted_again_up_to_the_limit(lates, seconds):
    """Whatever the timers are late by, one after the other."""
    loop, thrown = Loop(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gmongo.wire.limit.get_hub", lambda: loop)
        patch.setattr("gmongo.wire.limit.getcurrent", lambda: SimpleNamespace(throw=thrown.append))
        patch.setattr(_clock, "monotonic", lambda: loop.now)
        limit = limit_of([])
        limit.begin(seconds)
        held = []
        for late in [*lates, *[0.0] * 9]:
            held.append(late)
            loop.now = loop.due + late
            loop.fire()
            if thrown:
                break
    assert len(thrown) == 1
    granted = loop.now - sum(held) - seconds
    assert -1e-9 <= granted <= seconds + 1e-9
    assert granted == pytest.approx(min(seconds, sum(late for late in held[:-1] if late > 0.05)))
    assert held[-1] <= 0.05 or granted == pytest.approx(seconds)


# One exchange after the other


def limit_of(errors):
    """A limit that says for how many seconds each error was made."""

    def make_error(seconds):
        errors.append(seconds)
        return ValueError("too late")

    return Limit(make_error)


def test_an_exchange_is_ended_when_its_own_time_is_over():
    limit, errors = limit_of(made := []), []
    for seconds in (60, 0.02, 0.03, 60, 0.01):  # shorter and longer than the timer that runs
        begin = monotonic()
        limit.begin(seconds)
        try:
            gevent.sleep(60 if seconds < 1 else 0.001)
        except ValueError as error:
            errors.append(str(error))
            assert monotonic() - begin >= seconds
        finally:
            limit.end()
    assert (made, errors) == ([0.02, 0.03, 0.01], ["too late"] * 3)
    limit.close()


def test_a_timer_of_an_exchange_before_is_started_again_for_this_one():
    limit = limit_of(made := [])
    limit.begin(0.02)
    limit.end()
    begin = monotonic()
    limit.begin(0.05)
    with pytest.raises(ValueError):
        gevent.sleep(60)
    limit.end()
    assert monotonic() - begin >= 0.05
    assert made == [0.05]


def test_nothing_is_thrown_into_a_greenlet_that_has_ended(virtual_time):
    limit = limit_of(made := [])
    limit.begin(0.01)
    limit.end()
    gevent.sleep(0.03)
    assert made == []
    assert limit._timer is None  # nothing goes on while there are no exchanges


def test_the_time_of_an_exchange_that_has_ended_is_over_in_silence(virtual_time, monkeypatch):
    """Though the loop is late, so that the timer is due for the very exchange that has ended."""
    failed = []
    monkeypatch.setattr(gevent.get_hub(), "handle_error", lambda *details: failed.append(details))
    limit = limit_of(made := [])
    for seconds, late in ((0.01, 0), (0.01, 60)):
        limit.begin(seconds)
        limit.end()
        limit._due -= late
        limit._grant = 0
        gevent.sleep(0.03)
    assert not made and not failed


def test_many_exchanges_cost_one_timer():
    limit, timers = limit_of([]), set()
    for _ in range(100):
        limit.begin(60)
        timers.add(limit._timer)
        limit.end()
    assert len(timers) == 1
    limit.close()


def test_an_exchange_without_time_does_not_begin():
    limit = limit_of(made := [])
    for seconds in (0, -1):
        with pytest.raises(ValueError):
            limit.begin(seconds)
    assert made == [0, -1]


def test_the_timer_does_not_hold_the_hub():
    loop, limit = gevent.get_hub().loop, limit_of([])
    holding = loop.activecnt
    limit.begin(60)
    assert limit._timer.active
    assert loop.activecnt == holding
    limit.end()
    limit.close()


@pytest.mark.parametrize("held", [0.3, 0.02])
def test_an_exchange_gets_the_time_for_which_the_loop_was_held(held, virtual_time):
    done = []

    def work():
        limit = limit_of([])
        limit.begin(60)  # its timer is not the one that counts
        limit.end()
        limit.begin(0.1)
        try:
            for _ in range(3):
                gevent.sleep(0.001)
            done.append(True)
        finally:
            limit.end()
            limit.close()

    greenlet = gevent.spawn(work)
    gevent.sleep(0)
    virtual_time.suspend(held)
    greenlet.join()
    assert done == [True]


def test_an_exchange_of_a_process_that_is_always_late_is_ended_at_last():
    def hold():
        while True:
            time.sleep(0.2)  # so that the timer is always late enough
            gevent.sleep(0.001)

    holder, limit = gevent.spawn(hold), limit_of([])
    limit.begin(0.3)
    try:
        with gevent.Timeout(20), pytest.raises(ValueError):
            gevent.sleep(60)
    finally:
        limit.end()
        holder.kill()


def test_a_dropped_connection_does_not_live_on_by_its_timer():
    connection = Connection(("127.0.0.1", 1))
    with pytest.raises(AutoReconnect):  # it has no socket
        connection.exchange(1, [b""], 60, bytes)
    limit = connection._limit = Limit(partial(_timeout_error, connection.address, connection._usual_limits))
    limit.begin(60)
    limit.end()
    gone = weakref.ref(connection)
    del connection
    assert gone() is None
    limit.close()


def test_a_closed_connection_leaves_no_timer():
    connection = Connection(("127.0.0.1", 1))
    limit = connection._limit = Limit(partial(_timeout_error, connection.address, connection._usual_limits))
    limit.begin(60)
    limit.end()
    connection.close()
    assert limit._timer is None


@pytest.mark.parametrize(("more", "held"), [({}, 1), ({"ref": True}, 1), ({"ref": False}, 0)])
def test_a_limit_of_a_block_holds_the_hub_unless_it_is_told_not_to(more, held):
    loop = gevent.get_hub().loop
    before = loop.activecnt
    with interrupt_after(10, TimeoutError(), **more):
        assert loop.activecnt - before == held
    assert loop.activecnt == before
    with interrupt_after(None, TimeoutError(), **more):
        assert loop.activecnt == before


def test_a_timer_that_would_be_too_late_is_replaced(monkeypatch):
    timers = []

    def make(seconds, **_more):
        timers.append(Mock(seconds=seconds))
        return timers[-1]

    monkeypatch.setattr(limit_module, "get_hub", lambda: Mock(loop=Mock(timer=make)))
    own = Limit(ValueError)
    for seconds in (10, 20, 5):
        own.begin(seconds)
        own.end()
    assert [each.seconds for each in timers] == [10, 5]
    assert [each.close.called for each in timers] == [True, False]
    own.close()
    assert timers[1].close.called
