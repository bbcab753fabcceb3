"""Greenlets of the driver's own: they never keep the hub running, and end with the object they work for."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from gevent import Greenlet, Timeout, get_hub, getcurrent, sleep

Owner = TypeVar("Owner")

_log = logging.getLogger("gmongo.background")
_AFTER_INTERRUPTION = 1.0  # seconds
_TURN = 0.002  # seconds


class Turns:
    """Lets other greenlets have a turn now and then during a long loop of pure work, which would hold the hub."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = monotonic()

    def take(self) -> None:
        """Switch, if this greenlet has been running for two milliseconds."""
        if monotonic() - self._since > _TURN:
            sleep(1e-6)  # a timer, unlike sleep(0), lets sockets be served too
            self._since = monotonic()


class Alarm:
    """What a background greenlet sleeps on: it wakes after a time, or when somebody rings. Neither holds the hub."""

    __slots__ = ("_hub", "_rung", "_sleeper")

    def __init__(self) -> None:
        self._hub = get_hub()
        self._sleeper: Any = None
        self._rung = False

    def ring(self) -> None:
        """Wake the sleeper, or let its next sleep end at once. Does not switch; any thread may call it."""
        self._rung = True
        if self._sleeper is not None:
            self._hub.loop.run_callback_threadsafe(self._wake)

    def silence(self) -> None:
        """Forget a ring that nobody has heard."""
        self._rung = False

    def sleep(self, seconds: float | None) -> bool:
        """Sleep up to `seconds`, or without end; True if the alarm rang."""
        if not self._rung and (seconds is None or seconds > 0):
            self._sleep(seconds)
        rung, self._rung = self._rung, False
        return rung

    def _sleep(self, seconds: float | None) -> None:
        self._sleeper = getcurrent()
        timer = self._hub.loop.timer(seconds or 0, ref=False)
        if seconds is not None:
            timer.start(self._wake)
        try:
            self._hub.switch()
        finally:
            self._sleeper = None
            timer.close()

    def _wake(self) -> None:
        if self._sleeper is not None:
            self._sleeper.switch()


def spawn_for(owner: Owner, alarm: Alarm, step: Callable[[Owner], float | None]) -> Greenlet:
    """Run ``step(owner)`` again and again in a greenlet, asleep on `alarm` in between.

    Only a weak reference to `owner` is held while asleep. The greenlet ends when the owner is gone or killed it.

    :param step: returns how many seconds to sleep; None is until the alarm rings; negative ends the greenlet.
    """
    reference = weakref.ref(owner, lambda _gone: alarm.ring())
    greenlet = Greenlet(_run, reference, alarm, step)
    greenlet.start()
    return greenlet


def _run(reference: weakref.ref[Owner], alarm: Alarm, step: Callable[[Owner], float | None]) -> None:
    while True:
        owner = reference()
        if owner is None:
            return
        try:
            pause = step(owner)
        except (Exception, Timeout):  # of a listener: the work goes on all the same
            _log.exception("background work for %r was interrupted", owner)
            pause = _AFTER_INTERRUPTION
        del owner
        if pause is not None and pause < 0:
            return
        alarm.sleep(pause)
