"""Measurement of the longest time for which a greenlet blocks the event loop."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

import gevent


class Ticker:
    """Greenlet that wakes up every 0.2 ms, and measures the longest gap between two wakeups.

    A gap is measured as the processor time that the thread used, in seconds. A gap therefore
    excludes the time in which the thread sleeps or other processes run.
    """

    def __init__(self) -> None:
        self.wakeup_count = 0
        self.longest_gap = 0.0
        self._greenlet = gevent.spawn(self._tick)

    def _tick(self) -> None:
        last = thread_time()
        while True:
            gevent.sleep(0.0002)
            now = thread_time()
            self.longest_gap = max(self.longest_gap, now - last)
            self.wakeup_count += 1
            last = now

    def stop(self) -> None:
        self._greenlet.kill()


def measure_longest_gap(activity: Callable[[], Any]) -> dict[str, float]:
    """Run `activity`. Return the longest gap in milliseconds as ``stall``, and the number of wakeups
    as ``turns``.
    """
    ticker = Ticker()
    gevent.sleep(0.01)
    ticker.longest_gap, ticker.wakeup_count = 0.0, 0
    activity()
    gevent.sleep(0.005)  # the ticker must wake up once more to measure the last gap
    ticker.stop()
    return {"stall": ticker.longest_gap * 1000, "turns": ticker.wakeup_count}
