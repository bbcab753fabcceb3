"""Kinds of interruptions: the errors that the harness throws, and the moment at which the harness throws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import gevent.timeout
from gevent import GreenletExit, Timeout, getcurrent

from gmongo import _background
from gmongo.auth import scram_keys
from gmongo.cmap import connecting, establishing, pending_replies, server_connection, wait_queue
from gmongo.events import delivery
from gmongo.wire import timeout
from gmongo.wire.timeout import Source

EARLY = "early"  # throw in a callback of the hub during the wait, as `Greenlet.kill` does
LATE = "late"  # throw at the end of the wait, after the awaited event
SPAWN = "spawn"  # throw into a new driver greenlet before its first switch

ENTER = "enter"  # throw nothing, and start a second greenlet that uses the object


class ApplicationError(TimeoutError):
    """An exception that the application throws, for example with ``gevent.Timeout(1, ApplicationError())``.

    The class is a subclass of OSError, but the exception is no network error.
    """


class InterruptionKind(NamedTuple):
    """A kind of interruption: the errors and the moment.

    :ivar name: the name in test IDs.
    :ivar moment: the moment of the interruption: EARLY, LATE, SPAWN or ENTER.
    :ivar error_factories: functions that create the error for the chosen switch and the errors for the following
        switches. None throws the error of a running timeout of the driver.
    :ivar innermost: True to throw the error of the driver's innermost timeout, False for the outermost timeout.
    """

    name: str
    moment: str
    error_factories: tuple[Callable[[], BaseException], ...] | None
    innermost: bool = True

    @property
    def is_from_application(self) -> bool:
        """Return True if the errors come from the application, False if the error is a timeout of the driver."""
        return self.error_factories is not None


def _foreign_timeout() -> Timeout:
    return Timeout(1000)


KILL = InterruptionKind("kill", EARLY, (GreenletExit,))
LATE_TIMEOUT = InterruptionKind("foreign timeout", LATE, (_foreign_timeout,))
SPAWNED = InterruptionKind("kill before the first switch", SPAWN, (GreenletExit,))
SECOND = InterruptionKind("second greenlet", ENTER, None)
KILL_AND_TIMEOUT = InterruptionKind("kill and timeout", EARLY, (GreenletExit, _foreign_timeout))
KINDS = (
    KILL,
    InterruptionKind("kill", LATE, (GreenletExit,)),
    InterruptionKind("foreign timeout", EARLY, (_foreign_timeout,)),
    LATE_TIMEOUT,
    InterruptionKind("exception", EARLY, (ApplicationError,)),
    InterruptionKind("exception", LATE, (ApplicationError,)),
    InterruptionKind("own timeout", EARLY, None),
    InterruptionKind("own timeout", LATE, None),
    InterruptionKind("own outer timeout", EARLY, None, innermost=False),
    KILL_AND_TIMEOUT,
    InterruptionKind("kill and timeout", LATE, (GreenletExit, _foreign_timeout)),
    InterruptionKind("exception and kill", EARLY, (ApplicationError, GreenletExit)),
)


class RunningTimeouts:
    """List of the driver's running timeouts. Each entry has the greenlet, the timer and the error."""

    known: list[tuple[Any, Any, BaseException]] = []

    @classmethod
    def begin(cls, timer: Any, error: BaseException) -> None:
        """Add a timeout of the current greenlet to the list."""
        cls.known.append((getcurrent(), timer, error))

    @classmethod
    def end(cls, timer: Any) -> None:
        """Remove a timeout from the list."""
        cls.known[:] = [each for each in cls.known if each[1] is not timer]

    @classmethod
    def of(cls, greenlet: Any, innermost: bool) -> BaseException | None:
        """Return the error that a timeout of the driver would throw into the greenlet."""
        errors = [error for owner, _timer, error in cls.known if owner is greenlet]
        return errors[-1 if innermost else 0] if errors else None


class ReportingGreenlet(gevent.Greenlet):  # type: ignore[misc]
    """Greenlet that calls ``on_start`` when a driver greenlet starts."""

    on_start: Callable[[gevent.Greenlet[..., Any]], None] | None = None

    def start(self) -> None:
        super().start()
        if ReportingGreenlet.on_start is not None:
            ReportingGreenlet.on_start(self)


class TrackedLimit(timeout.TimeLimit):
    """Time limit of the driver. :class:`RunningTimeouts` contains the time limit while the time limit runs."""

    __slots__ = ()

    def begin(self, seconds: float, source: Source | None = None, extended: bool = False) -> None:
        super().begin(seconds, source, extended)
        RunningTimeouts.begin(self, self._make_error(seconds))

    def end(self) -> None:
        RunningTimeouts.end(self)
        super().end()


class TrackedTimeout(gevent.timeout.Timeout):
    """Timeout of the wait queue. :class:`RunningTimeouts` contains the timeout while the timeout runs."""

    def start(self) -> None:
        super().start()
        RunningTimeouts.begin(self, self)

    def close(self) -> None:
        RunningTimeouts.end(self)
        super().close()


def track_timeouts(monkeypatch: Any) -> None:
    """Let the driver use the tracked timeouts and the reporting greenlets of this module."""
    RunningTimeouts.known.clear()
    for module in (timeout, server_connection, connecting, establishing):
        monkeypatch.setattr(module, "TimeLimit", TrackedLimit)
    monkeypatch.setattr(wait_queue, "Timeout", TrackedTimeout)
    for module in (_background, delivery, pending_replies):
        monkeypatch.setattr(module, "Greenlet", ReportingGreenlet)
    monkeypatch.setattr(scram_keys, "gevent", ReportingGreenlet)
