"""Functions that wait until a condition is true."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import gevent

WAIT_LIMIT = 30.0  # seconds after which `eventually` fails, if its caller sets no limit
max_wait_count = 1000  # maximum number of waits of one millisecond in `becomes_true`

T = TypeVar("T")


def until(condition: Callable[[], T], pause: float = 0.01) -> T:
    """Wait until `condition` returns a true value, and return the value.

    The time limit of pytest for each test is the only time limit.
    """
    while not (outcome := condition()):
        gevent.sleep(pause)
    return outcome


def eventually(condition: Callable[[], T], seconds: float = WAIT_LIMIT) -> T:
    """Wait until `condition` returns a true value, and return the value."""
    with gevent.Timeout(seconds, AssertionError(f"after {seconds} seconds this condition is not true: {condition}")):
        return until(condition, 0.002)


def becomes_true(condition: Callable[[], Any], seconds: float | None = None) -> bool:
    """Run other greenlets until `condition` is true.

    Return False if the condition is still false after the last wait.

    In contrast to :func:`eventually`, this function limits the number of waits of one millisecond,
    not the time. Time in which the machine suspends the process therefore does not count. Before
    the waits of one millisecond, other greenlets run up to 50 times without a timer.
    """
    for _ in range(50):
        if condition():
            return True
        gevent.sleep(0)
    for _ in range(max_wait_count if seconds is None else round(seconds * 1000)):
        if condition():
            return True
        gevent.sleep(0.001)
    return bool(condition())


def becomes_true_after_collection(condition: Callable[[], Any]) -> bool:
    """Collect garbage if the condition is false. Then return the result of :func:`becomes_true`."""
    if not condition():
        gc.collect()
    return becomes_true(condition)
