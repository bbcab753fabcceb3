"""Kinds of interruptions: the errors that the harness throws into a greenlet, and the moment of the
throw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import gevent.timeout
from gevent import GreenletExit, Timeout, getcurrent

from gmongo import _background
from gmongo.auth import scram
from gmongo.cmap import connecting, pool, server_connection, wait_queue
from gmongo.events import delivery
from gmongo.wire import timeout
from gmongo.wire.timeout import Source

EARLY = "early"  # Throw in a callback of the hub while the greenlet waits, as `Greenlet.kill` does.
LATE = "late"  # Throw when the hub wakes the greenlet, after the awaited event.
SPAWN = "spawn"  # Throw into a new driver greenlet before its first switch.

ENTER = "enter"  # Throw no error, but start a second greenlet that uses the object of the first greenlet.


class ApplicationError(TimeoutError):
    """An exception that the application throws, for example with ``gevent.Timeout(1,
    ApplicationError())``.

    ``TimeoutError`` is a subclass of OSError, but the driver must not treat this exception as a
    network error.
    """


class InterruptionKind(NamedTuple):
    """A kind of interruption: the errors that the harness throws, and the moment of the throw.

    :ivar name: the name in test IDs.
    :ivar moment: the moment of the interruption: EARLY, LATE, SPAWN or ENTER.
    :ivar error_factories: functions that create the errors of the chosen switch and of the following
        switches. None for the error of a running timeout of the driver, or for no error (ENTER).
    :ivar innermost: True to throw the error of the innermost running timeout of the driver, False
        for the outermost timeout.
    """

    name: str
    moment: str
    error_factories: tuple[Callable[[], BaseException], ...] | None
    innermost: bool = True

    @property
    def is_from_application(self) -> bool:
        """Return True if the errors come from the application, False for a timeout of the driver and
        for ENTER.
        """
        return self.error_factories is not None


def _application_timeout() -> Timeout:
    return Timeout(1000)


KILL = InterruptionKind("kill", EARLY, (GreenletExit,))
LATE_TIMEOUT = InterruptionKind("foreign timeout", LATE, (_application_timeout,))
KILL_AT_SPAWN = InterruptionKind("kill before the first switch", SPAWN, (GreenletExit,))
SECOND_GREENLET = InterruptionKind("second greenlet", ENTER, None)
KILL_AND_TIMEOUT = InterruptionKind("kill and timeout", EARLY, (GreenletExit, _application_timeout))
INTERRUPTION_KINDS = (
    KILL,
    InterruptionKind("kill", LATE, (GreenletExit,)),
    InterruptionKind("foreign timeout", EARLY, (_application_timeout,)),
    LATE_TIMEOUT,
    InterruptionKind("exception", EARLY, (ApplicationError,)),
    InterruptionKind("exception", LATE, (ApplicationError,)),
    InterruptionKind("own timeout", EARLY, None),
    InterruptionKind("own timeout", LATE, None),
    InterruptionKind("own outer timeout", EARLY, None, innermost=False),
    KILL_AND_TIMEOUT,
    InterruptionKind("kill and timeout", LATE, (GreenletExit, _application_timeout)),
    InterruptionKind("exception and kill", EARLY, (ApplicationError, GreenletExit)),
)


class RunningTimeouts:
    """The running timeouts of the driver.

    Each element of ``entries`` contains the waiting greenlet, the timer, and the error to throw.
    """

    entries: list[tuple[Any, Any, BaseException]] = []

    @classmethod
    def begin(cls, timer: Any, error: BaseException) -> None:
        cls.entries.append((getcurrent(), timer, error))

    @classmethod
    def end(cls, timer: Any) -> None:
        cls.entries[:] = [each for each in cls.entries if each[1] is not timer]

    @classmethod
    def error_of(cls, greenlet: Any, innermost: bool) -> BaseException | None:
        """Return the error of the innermost or outermost running timeout of the greenlet, or None."""
        errors = [error for owner, _timer, error in cls.entries if owner is greenlet]
        return errors[-1 if innermost else 0] if errors else None


class ReportingGreenlet(gevent.Greenlet):  # type: ignore[misc]
    """Class of driver greenlets in the tests. ``start()`` calls ``on_start`` in the starting greenlet."""

    on_start: Callable[[gevent.Greenlet[..., Any]], None] | None = None

    def start(self) -> None:
        super().start()
        if ReportingGreenlet.on_start is not None:
            ReportingGreenlet.on_start(self)


class TrackedLimit(timeout.TimeLimit):
    """Replacement of the driver's time limit. :class:`RunningTimeouts` lists each time limit that is
    running.
    """

    __slots__ = ()

    def begin(self, seconds: float, source: Source | None = None, elapsed: float = 0.0) -> None:
        super().begin(seconds, source, elapsed)
        RunningTimeouts.begin(self, self._make_error(seconds))

    def end(self) -> None:
        RunningTimeouts.end(self)
        super().end()


class TrackedTimeout(gevent.timeout.Timeout):
    """Replacement of the wait queue timeout. :class:`RunningTimeouts` lists each timeout that is
    running.
    """

    def start(self) -> None:
        super().start()
        RunningTimeouts.begin(self, self)

    def close(self) -> None:
        RunningTimeouts.end(self)
        super().close()


def track_timeouts(monkeypatch: Any) -> None:
    """Make the driver use :class:`TrackedLimit`, :class:`TrackedTimeout` and
    :class:`ReportingGreenlet`.
    """
    RunningTimeouts.entries.clear()
    for module in (timeout, server_connection, connecting, pool):
        monkeypatch.setattr(module, "TimeLimit", TrackedLimit)
    monkeypatch.setattr(wait_queue, "Timeout", TrackedTimeout)
    for module in (_background, delivery, pool):
        monkeypatch.setattr(module, "Greenlet", ReportingGreenlet)
    monkeypatch.setattr(scram, "gevent", ReportingGreenlet)
