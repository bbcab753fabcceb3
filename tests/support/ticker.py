"""Measurement of times in which the event loop is blocked."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

import gevent


class Ticker:
    """Greenlet that measures the longest gap between its turns.

    A gap is processor time of the thread in seconds, so that a busy machine has no influence. A gap excludes the time
    in which the thread sleeps.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.longest = 0.0
        self._greenlet = gevent.spawn(self._tick)

    def _tick(self) -> None:
        last = thread_time()
        while True:
            gevent.sleep(0.0002)
            now = thread_time()
            self.longest = max(self.longest, now - last)
            self.turns += 1
            last = now

    def stop(self) -> None:
        self._greenlet.kill()


def measure_longest_gap(activity: Callable[[], Any]) -> dict[str, float]:
    """Return the longest gap in milliseconds and the number of turns during an activity."""
    ticker = Ticker()
    gevent.sleep(0.01)
    ticker.longest, ticker.turns = 0.0, 0
    activity()
    gevent.sleep(0.005)  # the ticker needs a turn after the last gap
    ticker.stop()
    return {"stall": ticker.longest * 1000, "turns": ticker.turns}
