"""Waiting for what must happen, with a limit; never for a time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import gevent

PATIENCE = 30.0  # seconds that a test waits for what must happen
turns = 1000  # turns of a millisecond that `comes_true` gives the event loop

T = TypeVar("T")


def until(condition: Callable[[], T], pause: float = 0.01) -> T:
    """Wait until `condition` returns something true, and return it; the limit is that of the test."""
    while not (outcome := condition()):
        gevent.sleep(pause)
    return outcome


def eventually(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Wait until `condition` returns something true, and return it.

    :raises AssertionError: that takes too long.
    """
    with gevent.Timeout(seconds, AssertionError(f"did not happen within {seconds} seconds: {condition}")):
        return until(condition, 0.002)


def comes_true(condition: Callable[[], Any], seconds: float | None = None) -> bool:
    """Let the others run until `condition` holds, at first without a pause; False if it never does.

    Other than :func:`eventually`, this raises nothing and starts no timer before it has to. It gives the loop a turn
    for each millisecond and looks at no clock: nothing comes true while the process stands still.
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


def comes_true_at_last(condition: Callable[[], Any]) -> bool:
    """The same for what may hang on garbage."""
    if not condition():
        gc.collect()
    return comes_true(condition)
