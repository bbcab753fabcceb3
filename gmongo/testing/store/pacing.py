"""Long work that lets others run meanwhile, and that ends when its time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import gevent

from gmongo.testing import clock
from gmongo.testing.command import CommandError

T = TypeVar("T")
_SLICE = 0.002
_LOOK_EVERY = 32


class Pace:
    """The pace of one command.

    :param limit: its ``maxTimeMS``; None or 0 for no limit.
    :param interrupted: tells whether the member has stopped being able to write since the command arrived.
    """

    def __init__(self, limit: Any = None, interrupted: Callable[[], bool] = lambda: False) -> None:
        self._interrupted = interrupted
        self._since = clock.monotonic()
        self.deadline = self._since + limit / 1000 if limit else None

    def through(self, items: Iterable[T]) -> Iterator[T]:
        """The items, with a pause for other greenlets every few milliseconds.

        :raises CommandError: 50, the time of the command is over.
        """
        for number, item in enumerate(items, 1):
            yield item
            if not number % _LOOK_EVERY:
                self.breathe()

    def breathe(self) -> None:
        """Let others run, if they have not for a while.

        :raises CommandError: 50, the time of the command is over.
        """
        now = clock.monotonic()
        if self.deadline is not None and now > self.deadline:
            raise _exceeded()
        if now - self._since > _SLICE:
            gevent.sleep(0)
            self._since = clock.monotonic()

    def check_wait(self) -> float:
        """Check that a write may wait on; for how many seconds.

        :raises CommandError: 50, its time is over; 11602, the member is no longer primary.
        """
        if self._interrupted():
            raise CommandError(11602, "InterruptedDueToReplStateChange", "operation was interrupted")
        left = float("inf") if self.deadline is None else self.deadline - clock.monotonic()
        if left <= 0:
            raise _exceeded()
        return left


def _exceeded() -> CommandError:
    return CommandError(50, "MaxTimeMSExpired", "operation exceeded time limit")
