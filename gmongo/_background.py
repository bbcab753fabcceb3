"""Greenlets of the driver's own: they never keep the hub running, and end with the object they work for."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from gevent import Greenlet, GreenletExit, Timeout, get_hub, getcurrent, sleep
from greenlet import greenlet

from gmongo import _clock
from gmongo._safe_log import safely

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

Owner = TypeVar("Owner")
Item = TypeVar("Item")

_log = logging.getLogger("gmongo.background")
_AFTER_INTERRUPTION = 1.0  # seconds
_LONGEST_RUN = 0.002  # seconds
_SHORTEST_WAIT = 1e-6  # seconds; libev waits no longer than it has to
_MILLISECOND = 0.001  # seconds
_ITEMS_BETWEEN_CHECKPOINTS = 32
_FOREVER = 10 * 365 * 24 * 3600.0  # seconds


class LongWork:
    """A long loop of pure work, which would hold the hub if it did not pass checkpoints."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = _clock.monotonic()

    def checkpoint(self) -> None:
        """Let other greenlets run, if this one has been running for two milliseconds."""
        if _clock.monotonic() - self._since > _LONGEST_RUN:
            sleep(timer_delay(0))  # a timer, unlike sleep(0), lets sockets be served too
            self._since = _clock.monotonic()


def timer_delay(seconds: float) -> float:
    """Return `seconds`, or the shortest delay of a timer if that is longer: libuv's loop warns of a shorter delay."""
    resolution: float = get_hub().loop.approx_timer_resolution
    return max(seconds, resolution if resolution >= _MILLISECOND else _SHORTEST_WAIT)


def with_checkpoints(items: Iterable[Item]) -> Iterator[Item]:
    """The items of a loop of pure work, of which each takes a few microseconds, with checkpoints in between."""
    work = LongWork()
    for count, item in enumerate(items):
        if not count % _ITEMS_BETWEEN_CHECKPOINTS:
            work.checkpoint()
        yield item


class Wakeup:
    """What a background greenlet sleeps on: it wakes after a time, or when this is set. Neither holds the hub."""

    __slots__ = ("_hub", "_is_set", "_sleeper")

    def __init__(self) -> None:
        self._hub = get_hub()
        self._sleeper: greenlet | None = None
        self._is_set = False

    def set(self) -> None:
        """Wake the sleeper, or let its next sleep end at once. Does not switch; safe to call from any thread."""
        self._is_set = True  # before the look at the sleeper, which looks at this after it has made itself known
        if self._sleeper is not None:
            self._hub.loop.run_callback_threadsafe(self._wake)

    def clear(self) -> None:
        """Forget that it was set since the last sleep."""
        self._is_set = False

    def sleep(self, seconds: float | None) -> bool:
        """Sleep up to `seconds`, or without end; True if it was woken, or set before."""
        if not self._is_set and (seconds is None or seconds > 0):
            self._sleep(seconds)
        was_set, self._is_set = self._is_set, False
        return was_set

    def _sleep(self, seconds: float | None) -> None:
        self._sleeper = getcurrent()
        timer = self._hub.loop.timer(timer_delay(seconds or 0), ref=False)
        if seconds is not None:
            timer.start(self._wake, update=True)  # the time of the loop may be old
        try:
            if not self._is_set:  # by another thread, which has found no sleeper yet
                self._hub.switch()
        finally:
            self._sleeper = None
            timer.close()

    def _wake(self) -> None:
        # The timer and `set`, or two threads, may both have asked for it: the first of them has woken the sleeper.
        if self._sleeper is not None:
            self._sleeper.switch()


def hold_hub() -> IWatcher:
    """A timer that keeps the hub running until it is closed. It is never meant to go off.

    A greenlet that waits for another one that does not hold the hub needs it: with no timer and no socket to wait for,
    the hub would find the loop empty and end the main greenlet with LoopExit.
    """
    timer = get_hub().loop.timer(_FOREVER)
    timer.start(_never)
    return timer


def _never() -> None:
    """What the timer that holds the hub calls."""


class RestartingGreenlet:
    """A greenlet that is replaced by a new one when it is killed from outside, as by ``gevent.killall``.

    It ends with whatever exception is thrown into it, so that ``killall`` need not wait. Another one takes its place.

    :param work: what it does; it must end by itself when it is not wanted any more.
    :param arguments: for `work`.
    """

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        self._work = work
        self._arguments = arguments
        self._stopped = False
        self._has_ended = False  # by itself
        self.greenlet = Greenlet(self._run, 0)

    def __repr__(self) -> str:
        return f"<RestartingGreenlet {self._work!r}>"

    def start(self) -> None:
        """Begin. Does not switch."""
        self.greenlet.link(self._ended)
        self.greenlet.start()

    def stop(self) -> None:
        """End it wherever it is. Does not switch."""
        self._stopped = True
        self.greenlet.kill(block=False)

    def _run(self, pause: float) -> None:
        """The work, after a pause in seconds."""
        try:
            if pause:
                Wakeup().sleep(pause)
            self._work(*self._arguments)
            self._has_ended = True
        except (Exception, Timeout):  # a time-out is no Exception, and may be a listener's
            safely(_log.exception, "background work was interrupted, and is started again: %r", self._work)

    def _ended(self, greenlet: Greenlet) -> None:
        if self._stopped or self._has_ended:
            return
        # This runs in the hub, where nothing may wait: the pause is the new greenlet's.
        # An exception may be a defect, which comes back at once: the loop is not kept busy with it.
        pause = 0 if isinstance(greenlet.value, GreenletExit) else _AFTER_INTERRUPTION
        self.greenlet = Greenlet(self._run, pause)
        self.start()


def spawn_for(owner: Owner, wakeup: Wakeup, step: Callable[[Owner], float | None]) -> RestartingGreenlet:
    """Run ``step(owner)`` again and again in a greenlet, asleep on `wakeup` in between.

    Only a weak reference to `owner` is held while asleep. The greenlet ends when the owner is gone.

    :param step: returns how many seconds to sleep; None is until `wakeup` is set; negative ends the greenlet.
    """
    reference = weakref.ref(owner, lambda _gone: wakeup.set())
    background = RestartingGreenlet(_repeat, reference, wakeup, step)
    background.start()
    return background


def _repeat(reference: weakref.ref[Owner], wakeup: Wakeup, step: Callable[[Owner], float | None]) -> None:
    while True:
        owner = reference()
        if owner is None:
            return
        pause = step(owner)
        del owner  # this frame sleeps, and would keep it alive
        if pause is not None and pause < 0:
            return
        wakeup.sleep(pause)
