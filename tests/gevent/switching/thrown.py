"""The errors that the harness throws into greenlets, and the moments."""

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
from gmongo.wire.transport import Transport

EARLY = "early"  # a callback of the hub throws, as `Greenlet.kill` does
LATE = "late"  # in the instant of waking: what was waited for has come, and is lost to the greenlet that is interrupted
SPAWN = "spawn"  # into a new greenlet of the driver, before its first switch

ENTER = "enter"  # nothing is thrown: a second greenlet enters the object


class Broken(TimeoutError):
    """An exception of the application, as of ``gevent.Timeout(1, TimeoutError())``. It is no failure of the network."""


class Kind(NamedTuple):
    """A kind of interruption.

    :ivar name: for people.
    :ivar landing: EARLY or LATE.
    :ivar makes: make what is thrown at the switch in question, and at the next ones of the clean-up; or None for the
        driver's own time-out.
    :ivar innermost: which of the driver's time-outs goes off, if several run.
    """

    name: str
    landing: str
    makes: tuple[Callable[[], BaseException], ...] | None
    innermost: bool = True

    @property
    def foreign(self) -> bool:
        """Whether it is none of the driver's business."""
        return self.makes is not None


def _foreign_timeout() -> Timeout:
    return Timeout(1000)


KILL = Kind("kill", EARLY, (GreenletExit,))
LATE_TIMEOUT = Kind("foreign time-out", LATE, (_foreign_timeout,))
UNBORN = Kind("kill before the first switch", SPAWN, (GreenletExit,))
SECOND = Kind("second greenlet", ENTER, None)
KILL_AND_TIMEOUT = Kind("kill and time-out", EARLY, (GreenletExit, _foreign_timeout))
KINDS = (
    KILL,
    Kind("kill", LATE, (GreenletExit,)),
    Kind("foreign time-out", EARLY, (_foreign_timeout,)),
    LATE_TIMEOUT,
    Kind("exception", EARLY, (Broken,)),
    Kind("exception", LATE, (Broken,)),
    Kind("own time-out", EARLY, None),
    Kind("own time-out", LATE, None),
    Kind("own outer time-out", EARLY, None, innermost=False),
    KILL_AND_TIMEOUT,
    Kind("kill and time-out", LATE, (GreenletExit, _foreign_timeout)),
    Kind("exception and kill", EARLY, (Broken, GreenletExit)),
)


class Running:
    """The driver's own time-outs that run now: in which greenlet, which, and what it would throw."""

    known: list[tuple[Any, Any, BaseException]] = []

    @classmethod
    def begin(cls, timer: Any, error: BaseException) -> None:
        """A time-out begins in this greenlet."""
        cls.known.append((getcurrent(), timer, error))

    @classmethod
    def end(cls, timer: Any) -> None:
        """It ends."""
        cls.known[:] = [each for each in cls.known if each[1] is not timer]

    @classmethod
    def of(cls, greenlet: Any, innermost: bool) -> BaseException | None:
        """What the driver's own timer would throw into the greenlet now."""
        errors = [error for owner, _timer, error in cls.known if owner is greenlet]
        return errors[-1 if innermost else 0] if errors else None


class Spawned(gevent.Greenlet):  # type: ignore[misc]
    """A greenlet of the driver whose start is known."""

    heard: Callable[[gevent.Greenlet[..., Any]], None] | None = None

    def start(self) -> None:
        super().start()
        if Spawned.heard is not None:
            Spawned.heard(self)


class KnownLimit(timeout.TimeLimit):
    """A limit of the driver's that is known while time runs."""

    __slots__ = ()

    def begin(self, seconds: float, transport: Transport | None = None) -> None:
        super().begin(seconds, transport)
        Running.begin(self, self._make_error(seconds))

    def end(self) -> None:
        Running.end(self)
        super().end()


class KnownTimeout(gevent.timeout.Timeout):
    """A time-out of a queue that is known while it runs."""

    def start(self) -> None:
        super().start()
        Running.begin(self, self)

    def close(self) -> None:
        Running.end(self)
        super().close()


def know_timeouts(monkeypatch: Any) -> None:
    """Have the driver use timeouts and greenlets that are known."""
    Running.known.clear()
    for module in (timeout, server_connection, connecting, establishing):
        monkeypatch.setattr(module, "TimeLimit", KnownLimit)
    monkeypatch.setattr(wait_queue, "Timeout", KnownTimeout)
    for module in (_background, delivery, pending_replies):
        monkeypatch.setattr(module, "Greenlet", Spawned)
    monkeypatch.setattr(scram_keys, "gevent", Spawned)
