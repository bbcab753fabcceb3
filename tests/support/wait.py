"""Waits for conditions with a timeout."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import gevent

PATIENCE = 30.0  # seconds that a test waits for a condition
turns = 1000  # maximum number of waits of one millisecond in `becomes_true`

T = TypeVar("T")


def until(condition: Callable[[], T], pause: float = 0.01) -> T:
    """Wait until `condition` returns a true value, and return the value. The timeout of the test applies."""
    while not (outcome := condition()):
        gevent.sleep(pause)
    return outcome


def eventually(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Wait until `condition` returns a true value, and return the value.

    :raises AssertionError: The timeout has passed.
    """
    with gevent.Timeout(seconds, AssertionError(f"did not happen within {seconds} seconds: {condition}")):
        return until(condition, 0.002)


def becomes_true(condition: Callable[[], Any], seconds: float | None = None) -> bool:
    """Run other greenlets until `condition` is true, and return False if the condition stays false.

    In contrast to :func:`eventually`, the function first waits without timers. The function counts turns of the
    event loop instead of seconds, because a suspended process cannot make progress.
    """
    for _ in range(50):
        if condition():
            return True
        gevent.sleep(0)
    for _ in range(turns if seconds is None else round(seconds * 1000)):
        if condition():
            return True
        gevent.sleep(0.001)
    return bool(condition())


def becomes_true_after_collection(condition: Callable[[], Any]) -> bool:
    """Run :func:`becomes_true` after a garbage collection if the condition is false."""
    if not condition():
        gc.collect()
    return becomes_true(condition)
