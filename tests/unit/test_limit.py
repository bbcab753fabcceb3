"""Limits of time: what they throw, and how they treat a loop that was held."""

from __future__ import annotations

import time
from time import monotonic

import gevent
import pytest

from gmongo.wire.limit import interrupt_after


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


def test_time_in_which_the_loop_was_held_does_not_count():
    done = []

    def work():
        with interrupt_after(0.1, ValueError()):
            for _ in range(3):  # several passes of the loop, which the limit would not leave it
                gevent.sleep(0.001)
            done.append(True)

    greenlet = gevent.spawn(work)
    gevent.sleep(0)
    time.sleep(0.3)
    greenlet.join()
    assert done == [True]


def test_a_process_that_is_always_late_gets_twice_the_time_at_most():
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
    assert 0.2 <= monotonic() - begin < 30
