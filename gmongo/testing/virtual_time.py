"""Virtual time for tests of long durations."""

from __future__ import annotations

import contextlib
import datetime
from types import TracebackType
from typing import Any

import gevent

from gmongo import _clock, _object_ids, _random
from gmongo.testing.virtual_loop import VirtualLoop


class VirtualTime:
    """Time that passes only while nothing else can run, and then without a wait.

    The timers of this hub do not wait: timers of gmongo and of simulated deployments, and every ``gevent.sleep`` and
    ``gevent.Timeout`` of the application. While all greenlets wait and no socket is readable, the clock jumps to the
    next timer. An election of thirty seconds takes milliseconds. Computations take no virtual time, so that a test has
    the same result on a slow machine.

    Use the class in a ``with`` block around the deployments and the clients, because their timers need its clock. All
    servers must run in this hub, because a server elsewhere has no time to reply. :func:`time.time` and
    :func:`time.monotonic` remain real. :meth:`monotonic` and :meth:`date` are virtual.

    :param start: the first value of :meth:`monotonic` in seconds; by default the value of :func:`time.monotonic`.
    :param date: the first value of :meth:`date`; by default the time of day. A date without a time zone is in UTC.
    :param seed: the seed of all random decisions of the driver and the deployments: server selection, backoff, lost
        replies, and identifiers of sessions, cursors and documents. With the same `seed` (by default 0), `start` and
        `date` a program has the same history each time, in any process.
    """

    def __init__(
        self,
        *,
        start: float | None = None,
        date: datetime.datetime | None = None,
        seed: int | float | str = 0,
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, float, str)):
            raise TypeError(f"seed is {seed!r}, which is neither a number nor a string")
        self._seed = seed
        self._chance = contextlib.ExitStack()
        self._start = start
        self._date = date
        self._hub: Any = None
        self._loop: VirtualLoop | None = None

    def __enter__(self) -> VirtualTime:
        hub = gevent.get_hub()
        if self._loop is not None or isinstance(hub.loop, VirtualLoop) or _clock.monotonic is not _REAL[0]:
            raise RuntimeError("time is virtual already")
        # The order of simultaneous events depends on the turn of the loop. Each history begins after a timer.
        gevent.sleep(_MOMENT)
        self._loop = install(hub, start=self._start, date=self._date)
        self._hub = hub
        _clock.monotonic, _clock.time = self._loop.monotonic, self._loop.seconds
        self._chance.enter_context(_random.repeatable(self._seed))
        _object_ids.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop, self._loop = self._loop, None
        _clock.monotonic, _clock.time = _REAL
        self._chance.close()
        _object_ids.begin()
        if loop is not None:
            self._hub.loop = loop.real
            loop.end()

    def monotonic(self) -> float:
        """Return the monotonic time in seconds.

        :raises RuntimeError: the call is outside the ``with`` block.
        """
        return self._running().monotonic()

    def date(self) -> datetime.datetime:
        """Return the time of day as a date in UTC.

        :raises RuntimeError: the call is outside the ``with`` block.
        """
        return datetime.datetime.fromtimestamp(self._running().seconds(), datetime.timezone.utc)

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run all events of this time: heartbeats, elections, timers of the application.

        :param seconds: the duration.
        :raises ValueError: `seconds` is no number from 0 up.
        :raises RuntimeError: the call is outside the ``with`` block.
        """
        self._running().advance(checked_seconds(seconds))

    def suspend(self, seconds: float) -> None:
        """Simulate a sleep of the machine: the clocks advance, and all events of this time are late.

        :param seconds: the duration.
        :raises ValueError: `seconds` is no number from 0 up.
        :raises RuntimeError: the call is outside the ``with`` block.
        """
        self._running().suspend(checked_seconds(seconds))

    def _running(self) -> VirtualLoop:
        if self._loop is None:
            raise RuntimeError("time is not virtual here: use VirtualTime in a with block")
        return self._loop


_REAL = _clock.monotonic, _clock.time
_MOMENT = 1e-6


def install(hub: Any, **settings: Any) -> VirtualLoop:
    """Replace the timers of a hub by timers of a clock that can be advanced.

    :param settings: of the :class:`VirtualLoop`.
    """
    if "date" in settings and settings["date"] is not None:
        date = settings["date"]
        settings["date"] = (date if date.tzinfo else date.replace(tzinfo=datetime.timezone.utc)).timestamp()
    hub.loop = loop = VirtualLoop(hub.loop, **settings)
    return loop


def advance_hub(seconds: float) -> None:
    """Advance the clock of this thread's hub by `seconds`.

    :raises ValueError: `seconds` is no number from 0 up.
    :raises RuntimeError: the hub has a real clock.
    """
    loop = gevent.get_hub().loop
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError(
            "time passes by itself here: put `with VirtualTime():` of gmongo.testing around the deployment and clients"
        )
    loop.advance(checked_seconds(seconds))


def checked_seconds(seconds: float) -> float:
    """Return `seconds`, if it is a duration."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds is {seconds!r}, which is not a number from 0 up")
    return seconds
