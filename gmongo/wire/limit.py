"""Limits of time on code that may switch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import TYPE_CHECKING

from gevent import get_hub, getcurrent
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import timer_delay

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

    from gmongo.wire.transport import Transport

_NO_LIMIT: AbstractContextManager[None] = nullcontext()
# A timer that goes off later than this, in seconds, shows that the application kept the event loop busy.
_LATE = 0.05


class Seconds(float):
    """A moment on the clock or a duration, with the limit of an operation that sets it.

    :ivar limit: the seconds of the limit, and the option or function that sets it.
    """

    __slots__ = ("limit",)

    limit: tuple[float, str]


def seconds_of(limit: tuple[float, str], value: float) -> Seconds:
    """Return `value` with its limit."""
    seconds = Seconds(value)
    seconds.limit = limit
    return seconds


def remaining(deadline: float | None) -> float | None:
    """Seconds left, perhaps none; None without a limit."""
    if deadline is None or deadline == inf:
        return None
    left = deadline - _clock.monotonic()
    return seconds_of(deadline.limit, left) if isinstance(deadline, Seconds) else left


def limit_text(value: float | None) -> str:
    """Describe the limit that sets a moment or a duration."""
    if not isinstance(value, Seconds):
        return "the limit of the operation"
    seconds, option = value.limit
    return f"the limit of {seconds * 1000:.10g} ms ({option})"


class Limit:
    """Throws an error into a greenlet after so many seconds, at most two passes of the event loop later; it may do so
    again and again.

    The timer goes off late if the application keeps the loop busy. The reply may have arrived meanwhile. So a late
    timer looks before it gives up. A reply that has begun to arrive has the time for which the loop was late once more,
    at most the limit. An exchange without any byte of a reply ends at once. A block of several steps, such as a
    handshake, has one more pass of the loop.

    The timer that was started for one use runs on into the next, and goes off only when its time is over: if that use
    has ended since then, it is started again for the one of that moment, if there is one. To make, to start and to
    close a timer for each exchange of a connection would cost as much as all else that an exchange does in Python.

    :param make_error: makes what is thrown from the seconds that were allowed. It must not refer to what has the limit,
        which the loop would keep alive by the timer.
    :param ref: whether the timer keeps the hub running.
    """

    __slots__ = (
        "_due",
        "_extended",
        "_goes_off",
        "_greenlet",
        "_make_error",
        "_ref",
        "_seconds",
        "_timer",
        "_transport",
    )

    def __init__(self, make_error: Callable[[float], BaseException], ref: bool = False) -> None:
        self._make_error = make_error
        self._ref = ref
        self._greenlet: greenlet | None = None  # for which time runs now
        # Of the present use: its limit, its end, whether a late timer has extended it, and its transport if it has one.
        self._seconds: float
        self._due: float
        self._extended: bool
        self._transport: Transport | None = None
        self._timer: IWatcher | None = None
        self._goes_off = inf

    def begin(self, seconds: float, transport: Transport | None = None) -> None:
        """The time of this greenlet begins; :meth:`end` must follow. Does not switch.

        :param seconds: if there are none, the error is raised here.
        :param transport: on which the reply arrives, if this limits one exchange.
        """
        if seconds <= 0:
            raise self._make_error(seconds)
        self._seconds = seconds
        self._extended = False
        self._transport = transport
        self._due = _clock.monotonic() + seconds
        self._greenlet = getcurrent()
        if self._due < self._goes_off:
            self._start(seconds)

    def end(self) -> None:
        """What was limited has ended."""
        self._greenlet = self._transport = None

    def close(self) -> None:
        """There is no further use."""
        self._goes_off = inf
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.close()

    def _start(self, seconds: float) -> None:
        self.close()
        self._goes_off = self._due
        # Of all that is due in one pass of the loop, timers of this priority come last.
        self._timer = get_hub().loop.timer(timer_delay(seconds), ref=self._ref, priority=-1)
        self._timer.start(self._fire, update=True)

    def _fire(self) -> None:
        self.close()
        if self._greenlet is None:
            return
        late = _clock.monotonic() - self._due
        if late < 0:  # it was started for a use before this one
            self._start(-late)
        elif late > _LATE and not self._extended and (self._transport is None or self._transport.has_arrived()):
            self._extended = True
            more = 0.0 if self._transport is None else min(late, self._seconds)
            self._due += late + more
            self._start(more)
        else:
            self._greenlet.throw(self._make_error(self._seconds))


class _LimitedBlock:
    """The body of one ``with`` under a limit."""

    __slots__ = ("_limit", "_seconds")

    def __init__(self, limit: Limit, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds

    def __enter__(self) -> None:
        self._limit.begin(self._seconds)

    def __exit__(self, *_outcome: object) -> None:
        self._limit.end()
        self._limit.close()


def interrupt_after(seconds: float | None, error: BaseException, ref: bool = True) -> AbstractContextManager[None]:
    """Interrupt the body of a ``with`` after `seconds` by raising `error` in it; None is no limit and costs no timer.

    The very object `error` is thrown, so a time-out of the application around the same code keeps its identity.

    :param ref: whether the timer keeps the hub running; False for background greenlets.
    """
    if seconds is None:
        return _NO_LIMIT
    if seconds <= 0:
        try:
            raise error
        finally:
            del error  # it refers to this frame
    return _LimitedBlock(Limit(lambda _seconds: error, ref), seconds)
