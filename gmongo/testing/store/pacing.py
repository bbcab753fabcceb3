"""Pause long computations, to switch to other greenlets and to check for timeouts and kills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, TypeVar

import gevent

from gmongo.testing import clock
from gmongo.testing.command import CommandError, create_kill_error, error

T = TypeVar("T")
_LONGEST_SLICE = 0.002  # The longest computation in seconds between two pauses.
_ITEMS_PER_CHECK = 32  # The number of items between two checks of the time.
_PAUSE_SECONDS = 1e-6


class Pace:
    """The pauses of one command, one per 2 ms of computation, and the time limit ``maxTimeMS``."""

    def __init__(
        self,
        max_time_ms: Any = None,
        is_interrupted: Callable[[], bool] = lambda: False,
        is_killed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_interrupted = is_interrupted
        self._is_killed = is_killed
        self._last_pause = clock.monotonic()
        self.deadline = self._last_pause + max_time_ms / 1000 if max_time_ms else None

    def iterate(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. Let other greenlets run every few milliseconds."""
        for number, item in enumerate(items, 1):
            yield item
            if not number % _ITEMS_PER_CHECK:
                self.pause()

    def sort(self, items: Iterable[T], key: Callable[[T], Any], reverse: bool = False) -> list[T]:
        """Sort the items like :func:`sorted`."""
        pairs = [(key(item), item) for item in self.iterate(items)]
        pairs.sort(key=itemgetter(0), reverse=reverse)
        return [item for _, item in pairs]

    def pause(self) -> None:
        """Check the deadline. Let other greenlets run if the last pause was more than 2 ms ago."""
        now = clock.monotonic()
        if self.deadline is not None and now > self.deadline:
            raise _create_time_limit_error()
        if now - self._last_pause > _LONGEST_SLICE:
            # Sleep with a timer, because the event loop may execute `sleep(0)` 50 times before the
            # loop polls the sockets.
            gevent.sleep(_PAUSE_SECONDS)
            self._last_pause = clock.monotonic()
            self.check_killed()

    def check_killed(self) -> None:
        if self._is_killed():
            raise create_kill_error()

    def check_wait(self) -> float:
        """Raise an error if the command must end. Return the seconds until the deadline."""
        self.check_killed()
        if self._is_interrupted():
            raise error(11602, "operation was interrupted")
        remaining = float("inf") if self.deadline is None else self.deadline - clock.monotonic()
        if remaining <= 0:
            raise _create_time_limit_error()
        return remaining


def _create_time_limit_error() -> CommandError:
    return error(50, "operation exceeded time limit")
