"""A virtual clock, for tests that would take long in real time."""

from __future__ import annotations

import contextlib
import datetime
from typing import Any

import gevent

from gmongo import _clock, _object_ids, _random
from gmongo.testing.virtual_loop import VirtualLoop


class VirtualTime:
    """A virtual clock for all timers of the current hub. While all greenlets of the hub wait and no
    socket is readable, the clock jumps to the next timer.

    All timers of the current hub use the virtual clock: timers of gmongo, timers of simulated deployments, and
    ``gevent.sleep`` and ``gevent.Timeout`` in the application. An election of thirty seconds takes milliseconds of real
    time. Computations take no virtual time. Thus a test has equal results on slow and fast machines.

    Create the deployments and the clients inside the ``with`` block of this class, because their timers need the
    virtual clock. All servers must run in the current hub. While gmongo waits for a server in another process, the
    clock jumps to the timeout. :func:`time.time` and :func:`time.monotonic` return real times. :meth:`monotonic` and
    :meth:`date` return virtual times.

    :param start: the first value of :meth:`monotonic` in seconds; by default the value of :func:`time.monotonic`.
    :param date: the first value of :meth:`date`; by default the real date. A date without a time zone is in UTC.
    :param seed: the seed of all random decisions of the driver and the deployments; 0 by default. Random decisions
        include server selection, backoff, lost replies, and identifiers of sessions, cursors and documents. If two runs
        of a program have equal `seed`, `start` and `date`, the same events happen in both runs.
    """

    def __init__(
        self, *, start: float | None = None, date: datetime.datetime | None = None, seed: int | float | str = 0
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, float, str)):
            raise TypeError(f"seed is {seed!r}, which is neither a number nor a string")
        self._seed = seed
        self._random_context = contextlib.ExitStack()
        self._start = start
        self._date = date
        self._hub: Any = None
        self._loop: VirtualLoop | None = None

    def __enter__(self) -> VirtualTime:
        hub = gevent.get_hub()
        if self._loop is not None or isinstance(hub.loop, VirtualLoop) or _clock.monotonic is not _REAL_CLOCKS[0]:
            raise RuntimeError("time is virtual already")
        # The order of simultaneous events depends on the phase of the loop. Therefore the virtual
        # time always begins in the same phase: the phase after a timer.
        gevent.sleep(_SHORTEST_SLEEP)
        self._loop = install_loop(hub, start=self._start, date=self._date)
        self._hub = hub
        _clock.monotonic, _clock.time = self._loop.monotonic, self._loop.seconds
        self._random_context.enter_context(_random.repeatable(self._seed))
        _object_ids.restart()
        return self

    def __exit__(self, *_: object) -> None:
        loop, self._loop = self._loop, None
        _clock.monotonic, _clock.time = _REAL_CLOCKS
        self._random_context.close()
        _object_ids.restart()
        if loop is not None:
            self._hub.loop = loop.real
            loop.end()

    def monotonic(self) -> float:
        """Return the virtual monotonic time in seconds.

        :raises RuntimeError: the call is outside the ``with`` block.
        """
        return self._get_loop().monotonic()

    def date(self) -> datetime.datetime:
        """Return the virtual date and time of day in UTC.

        :raises RuntimeError: the call is outside the ``with`` block.
        """
        return datetime.datetime.fromtimestamp(self._get_loop().seconds(), datetime.timezone.utc)

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds`, and run all events that happen in the skipped time.

        The events include heartbeats, elections and timers of the application.

        :param seconds: the time by which the clock advances.
        :raises ValueError: `seconds` is negative, infinite or not a number.
        :raises RuntimeError: the call is outside the ``with`` block.
        """
        self._get_loop().advance(check_seconds(seconds))

    def suspend(self, seconds: float) -> None:
        """Simulate a suspended machine: advance the clock by `seconds`, and run no event in the skipped time.

        All events of the skipped time happen after the call.

        :param seconds: the time by which the clock advances.
        :raises ValueError: `seconds` is negative, infinite or not a number.
        :raises RuntimeError: the call is outside the ``with`` block.
        """
        self._get_loop().suspend(check_seconds(seconds))

    def _get_loop(self) -> VirtualLoop:
        if self._loop is None:
            raise RuntimeError("time is not virtual here: use VirtualTime in a with block")
        return self._loop


_REAL_CLOCKS = _clock.monotonic, _clock.time
_SHORTEST_SLEEP = 1e-6  # seconds


def install_loop(hub: Any, **settings: Any) -> VirtualLoop:
    """Replace a hub's loop by a :class:`VirtualLoop`, and return the new loop. The setting `date` is a ``datetime``."""
    if date := settings.get("date"):
        settings["date"] = (date if date.tzinfo else date.replace(tzinfo=datetime.timezone.utc)).timestamp()
    hub.loop = loop = VirtualLoop(hub.loop, **settings)
    return loop


def advance_hub(seconds: float) -> None:
    """Advance the virtual clock of this thread's hub by `seconds`."""
    loop = gevent.get_hub().loop
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("this hub has a real clock: put `with VirtualTime():` of gmongo.testing around the "
                           "deployment and clients")  # fmt: skip
    loop.advance(check_seconds(seconds))


def check_seconds(seconds: float) -> float:
    """Return `seconds`, or raise a ValueError if `seconds` is negative, infinite or not a number."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds is {seconds!r}, which is not a nonnegative number")
    return seconds
