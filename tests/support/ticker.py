"""How long the loop is held: a ticker that has a turn as often as it can."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any

import gevent


class Ticker:
    """Has a turn as often as it can, and notes the longest gap.

    It is processor time of the thread, in seconds: what others do on a busy machine is not counted. Nor is what waits
    without a processor; look for that by something that cannot go on while the loop is held.
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


def measured(activity: Callable[[], Any]) -> dict[str, float]:
    """The longest time without a turn while something is done, in milliseconds, and how many turns there were."""
    ticker = Ticker()
    gevent.sleep(0.01)
    ticker.longest, ticker.turns = 0.0, 0
    activity()
    gevent.sleep(0.005)  # the ticker has its turn after the last stall, too
    ticker.stop()
    return {"stall": ticker.longest * 1000, "turns": ticker.turns}
