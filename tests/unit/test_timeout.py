"""Limits of time: what they throw, and how they treat a loop that was held."""

from __future__ import annotations

import itertools
import weakref
from contextlib import suppress
from functools import partial
from time import monotonic
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo import _clock
from gmongo.cmap.connection import Connection
from gmongo.cmap.server_connection import _timeout_error
from gmongo.errors import AutoReconnect
from gmongo.wire import timeout as limit_module
from gmongo.wire.timeout import Limit, interrupt_after


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


@pytest.mark.parametrize(("passes", "in_time"), [(1, True), (2, False)])
def test_block_ends_one_pass_after_a_late_timer(passes, in_time, virtual_time):
    done = []

    def work():
        with suppress(ValueError), interrupt_after(0.1, ValueError()):
            gevent.sleep(0.05)
            for _ in range(passes - 1):
                gevent.sleep(0.01)
            done.append(True)

    greenlet = gevent.spawn(work)
    gevent.sleep(0)
    virtual_time.suspend(0.3)
    greenlet.join()
    assert done == [True] * in_time


class Loop:
    """A loop whose time passes when the test says so, with one timer."""

    approx_timer_resolution = 1e-6

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
@given(
    st.lists(st.floats(0.001, 3), min_size=9, max_size=9),
    st.sampled_from([0.2, 1.0, 3.0]),
    st.sampled_from([None, False, True]),
)
def test_limit_ends_within_two_passes_of_the_loop(passes, seconds, arrived):
    """Each pass of the loop takes its own time. A reply that has begun to arrive has as much time again as was lost."""
    loop, thrown = Loop(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gmongo.wire.timeout.get_hub", lambda: loop)
        patch.setattr("gmongo._background.get_hub", lambda: loop)
        patch.setattr("gmongo.wire.timeout.getcurrent", lambda: SimpleNamespace(throw=thrown.append))
        patch.setattr(_clock, "monotonic", lambda: loop.now)
        limit = limit_of([])
        limit.begin(seconds, None if arrived is None else SimpleNamespace(has_arrived=lambda: arrived))
        lates = []
        for length in itertools.cycle(passes):
            loop.now += length
            if loop.now >= loop.due:
                lates.append(loop.now - seconds)
                loop.fire()
            if thrown:
                break
    assert len(thrown) == 1
    late = lates[0]
    if late <= 0.05 or arrived is False:
        assert len(lates) == 1
    elif arrived is None:
        assert loop.now <= seconds + late + max(passes) + 1e-5
    else:
        assert seconds + late + min(late, seconds) - 1e-9 <= loop.now
        assert loop.now <= seconds + late + min(late, seconds) + max(passes) + 1e-5


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
        limit._extended = True
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
