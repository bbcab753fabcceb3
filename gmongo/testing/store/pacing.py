"""Long operations that switch to other greenlets, and observe timeouts and kills."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

import gevent

from gmongo.testing import clock
from gmongo.testing.command import CommandError, interrupted

T = TypeVar("T")
_SLICE = 0.002
_CHECK_EVERY = 32
_RUN = 1024  # the number of items to sort without a pause
_PAUSE = 1e-6
_FIRST = itemgetter(0)


class Pace:
    """The pace of one command. The methods raise error 50 after ``maxTimeMS``.

    :param limit: ``maxTimeMS`` of the command, None or 0 for no limit.
    :param interrupted: returns True if the member is no longer primary.
    :param settle: waits until no commit is in progress.
    :param killed: returns True if the command was killed.
    """

    def __init__(
        self,
        limit: Any = None,
        interrupted: Callable[[], bool] = lambda: False,
        settle: Callable[[], None] = lambda: None,
        killed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._interrupted = interrupted
        self._settle, self._killed = settle, killed
        self._since = clock.monotonic()
        self.deadline = self._since + limit / 1000 if limit else None

    def through(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, with a pause for other greenlets every few milliseconds."""
        for number, item in enumerate(items, 1):
            yield item
            if not number % _CHECK_EVERY:
                self.pause()

    def in_order(
        self, items: Iterable[T], key: Callable[[T], Any], reverse: bool = False, most: int | None = None
    ) -> Iterator[T]:
        """Yield the items in the order of :func:`sorted`, with pauses.

        :param most: the maximum number of results, None for all.
        """
        keyed = ((key(item), item) for item in self.through(items))
        runs: list[list[tuple[Any, T]]] = []
        while run := list(islice(keyed, _RUN)):
            if most is not None and most <= _RUN and runs:
                run = runs.pop() + run
            run.sort(key=_FIRST, reverse=reverse)
            runs.append(run[:most])
        merged = heapq.merge(*map(_drain, runs), key=_FIRST, reverse=reverse)
        results = islice(self.through(merged), most)
        last = list(islice(results, 1))
        for following in results:
            yield last.pop()[1]
            last.append(following)
        for run in runs:  # before the last item, because the caller may stop there
            for _ in self.through(_drain(run)):
                pass
        yield from (item for _, item in last)

    def pause(self) -> None:
        """Switch to other greenlets, if the last pause was some milliseconds ago."""
        now = clock.monotonic()
        if self.deadline is not None and now > self.deadline:
            raise _exceeded()
        if now - self._since > _SLICE:
            # A timer, because the event loop runs `sleep(0)` 50 times before it polls the sockets.
            gevent.sleep(_PAUSE)
            self._settle()
            self._since = clock.monotonic()
            self.check_killed()

    def check_killed(self) -> None:
        if self._killed():
            raise interrupted()

    def check_wait(self) -> float:
        """Check that a write can wait. Return the remaining seconds."""
        self.check_killed()
        if self._interrupted():
            raise CommandError(11602, "InterruptedDueToReplStateChange", "operation was interrupted")
        left = float("inf") if self.deadline is None else self.deadline - clock.monotonic()
        if left <= 0:
            raise _exceeded()
        return left


def _exceeded() -> CommandError:
    return CommandError(50, "MaxTimeMSExpired", "operation exceeded time limit")


def _drain(run: list[T]) -> Iterator[T]:
    """Yield and remove the items of a list. To free all items at once would block the event loop."""
    run.reverse()
    while run:
        yield run.pop()
