"""What is thrown, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import gevent.timeout
from gevent import GreenletExit, Timeout, getcurrent

from gmongo.cmap import wait_queue
from gmongo.wire import limit

EARLY = "early"  # a callback of the hub throws, as `Greenlet.kill` does
LATE = "late"  # in the instant of waking: what was waited for has come, and is lost to whoever is interrupted


class Broken(Exception):
    """Somebody's ordinary exception, such as that of a ``gevent.Timeout(1, Broken())``."""


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


class KnownTimeout(gevent.timeout.Timeout):
    """A time-out of the driver's; the running ones are known by their greenlet."""

    running: list[tuple[Any, KnownTimeout]] = []

    def start(self) -> None:
        super().start()
        KnownTimeout.running.append((getcurrent(), self))

    def close(self) -> None:
        KnownTimeout.running[:] = [each for each in KnownTimeout.running if each[1] is not self]
        super().close()

    @classmethod
    def of(cls, greenlet: Any, innermost: bool) -> BaseException | None:
        """What the driver's own timer would throw into the greenlet now."""
        known = [timeout for owner, timeout in cls.running if owner is greenlet]
        if not known:
            return None
        timeout = known[-1 if innermost else 0]
        return timeout.exception if isinstance(timeout.exception, BaseException) else timeout


def know_timeouts(monkeypatch: Any) -> None:
    """Have the driver use time-outs that are known."""
    KnownTimeout.running.clear()
    monkeypatch.setattr(limit, "Timeout", KnownTimeout)
    monkeypatch.setattr(wait_queue, "Timeout", KnownTimeout)
