"""Time under control, for tests in which much of it passes."""

from __future__ import annotations

import contextlib
import datetime
from types import TracebackType
from typing import Any

import gevent

from gmongo import _clock, _object_ids, _random
from gmongo.testing.virtual_loop import VirtualLoop


class VirtualTime:
    """Time that passes only while there is nothing else to do, and then at once.

    While it is in force, the timers of this hub do not wait: gmongo's, those of simulated deployments, and every
    ``gevent.sleep`` and ``gevent.Timeout`` of the application. When all greenlets wait and no socket has something to
    read, the clock jumps to the next timer. An election of thirty seconds takes milliseconds, and computing takes no
    time at all, so that a test comes out the same on a slow machine.

    Use it in a ``with``, around the deployments and the clients, whose timers have to be on its clock. All servers have
    to run in this hub: one elsewhere is left no time to answer. :func:`time.time` and :func:`time.monotonic` stay what
    they are; :meth:`monotonic` and :meth:`date` are the virtual ones.

    :param start: what :meth:`monotonic` shows at first, in seconds; by default what :func:`time.monotonic` does.
    :param date: what :meth:`date` shows at first; by default the time of day. A date without a time zone is in UTC.
    :param seed: what follows from it is all that the driver and the deployments leave to chance: which server is
        chosen, how long a retry waits, which replies are lost, identifiers of sessions, cursors and documents. With the
        same `seed` (by default 0), `start` and `date` a program has the same history each time, in any process.
    """

    def __init__(
        self,
        *,
        start: float | None = None,
        date: datetime.datetime | None = None,
        seed: int | float | str = 0,
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, float, str)):
            raise TypeError(f"seed is {seed!r}, which is neither a number nor a text")
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
        # What is ready at the same time comes in an order that depends on where in its turn the loop is: each history
        # begins at the same place, when a timer has gone off.
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
        """The moment, in seconds, for measuring time.

        :raises RuntimeError: this is outside the ``with``.
        """
        return self._running().monotonic()

    def date(self) -> datetime.datetime:
        """The time of day as a date in UTC.

        :raises RuntimeError: this is outside the ``with``.
        """
        return datetime.datetime.fromtimestamp(self._running().seconds(), datetime.timezone.utc)

    def advance(self, seconds: float) -> None:
        """Let time pass, with all that happens in it: heartbeats, elections, timers of the application.

        :param seconds: how much.
        :raises ValueError: `seconds` is no number from 0 up.
        :raises RuntimeError: this is outside the ``with``.
        """
        self._running().advance(checked_seconds(seconds))

    def suspend(self, seconds: float) -> None:
        """Let the machine sleep: afterwards the clocks show more, and all that was due meanwhile is late.

        :param seconds: how much.
        :raises ValueError: `seconds` is no number from 0 up.
        :raises RuntimeError: this is outside the ``with``.
        """
        self._running().suspend(checked_seconds(seconds))

    def _running(self) -> VirtualLoop:
        if self._loop is None:
            raise RuntimeError("time is not virtual here: use VirtualTime in a with")
        return self._loop


_REAL = _clock.monotonic, _clock.time
_MOMENT = 1e-6


def install(hub: Any, **settings: Any) -> VirtualLoop:
    """Put the timers of a hub on a clock that can be advanced.

    :param settings: of the :class:`VirtualLoop`.
    """
    if "date" in settings and settings["date"] is not None:
        date = settings["date"]
        settings["date"] = (date if date.tzinfo else date.replace(tzinfo=datetime.timezone.utc)).timestamp()
    hub.loop = loop = VirtualLoop(hub.loop, **settings)
    return loop


def advance_hub(seconds: float) -> None:
    """Let `seconds` pass on the clock of this thread's hub.

    :raises ValueError: `seconds` is no number from 0 up.
    :raises RuntimeError: its clock cannot be advanced.
    """
    loop = gevent.get_hub().loop
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError(
            "time passes by itself here: put `with VirtualTime():` of gmongo.testing around the deployment and clients"
        )
    loop.advance(checked_seconds(seconds))


def checked_seconds(seconds: float) -> float:
    """What was given, if it is a length of time."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds is {seconds!r}, which is not a number from 0 up")
    return seconds
