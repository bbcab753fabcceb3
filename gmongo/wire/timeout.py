"""Time limits of code that may switch greenlets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import TYPE_CHECKING, Protocol

from gevent import get_hub, getcurrent
from greenlet import greenlet

from gmongo import _clock
from gmongo._background import timer_delay

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

_NO_LIMIT: AbstractContextManager[None] = nullcontext()
# A delay in seconds. If a timer fires later, the application has blocked the event loop.
_LATE = 0.05


class Seconds(float):
    """Deadline or duration in seconds, and the limit of the operation from which the value results.

    :ivar limit: seconds of the limit, and the name of the option or function that sets the limit.
    """

    __slots__ = ("limit",)

    limit: tuple[float, str]


def seconds_of(limit: tuple[float, str], value: float) -> Seconds:
    """Return the deadline or duration `value`, and the limit from which the value results."""
    seconds = Seconds(value)
    seconds.limit = limit
    return seconds


def remaining(deadline: float | None) -> float | None:
    """Return the seconds until `deadline`, or None without a deadline. After the deadline, the seconds are negative."""
    if deadline is None or deadline == inf:
        return None
    left = deadline - _clock.monotonic()
    return seconds_of(deadline.limit, left) if isinstance(deadline, Seconds) else left


def limit_text(value: float | None) -> str:
    """Describe the limit from which a deadline or a duration results."""
    if not isinstance(value, Seconds):
        return "the limit of the operation"
    seconds, option = value.limit
    return f"the limit of {seconds * 1000:.10g} ms ({option})"


class Source(Protocol):
    """Source of the result that a block waits for."""

    def has_arrived(self) -> bool:
        """Return True if a part of the result has arrived. Does not switch greenlets."""


class TimeLimit:
    """Reusable time limit, which throws an error into a greenlet at most two loop iterations after the limit.

    The timer fires late if the application blocks the event loop. The reply may have arrived during this delay, so a
    late timer first checks the socket. If a part of the reply has arrived, the greenlet gets extra time: the delay, but
    at most the limit. If no byte has arrived, the exchange ends immediately. A limit without a source is extended by
    one iteration of the event loop.

    The timer continues after :meth:`end`. If a later use of the limit is in progress when the timer fires, the timer
    starts again for the rest of this use. A new timer for each exchange would double the time of an exchange in Python.

    :param make_error: makes the error from the seconds of the limit. This function must not refer to the owner of the
        limit, because the event loop would keep the owner alive.
    :param ref: True if the timer keeps the event loop alive.
    """

    __slots__ = (
        "_due",
        "_extended",
        "_fires_at",
        "_greenlet",
        "_make_error",
        "_ref",
        "_seconds",
        "_source",
        "_timer",
    )

    def __init__(self, make_error: Callable[[float], BaseException], ref: bool = False) -> None:
        self._make_error = make_error
        self._ref = ref
        self._greenlet: greenlet | None = None  # greenlet that is currently limited
        # The current use: the limit in seconds, the end on the clock, and True if a late timer has extended the limit.
        # The source of the result of the current use, or None.
        self._seconds: float
        self._due: float
        self._extended: bool
        self._source: Source | None = None
        self._timer: IWatcher | None = None
        self._fires_at = inf

    def begin(self, seconds: float, source: Source | None = None, extended: bool = False) -> None:
        """Start the limit for the current greenlet. The caller must then call :meth:`end`. Does not switch greenlets.

        :param seconds: the limit; for 0 or less, the error is raised immediately.
        :param source: source of the result, such as the transport that receives the reply; otherwise None.
        :param extended: True if `seconds` already contains the extension by a blocked event loop.
        """
        if seconds <= 0:
            raise self._make_error(seconds)
        self._seconds = seconds
        self._extended = extended
        self._source = source
        self._due = _clock.monotonic() + seconds
        self._greenlet = getcurrent()
        if self._due < self._fires_at:
            self._start(seconds)

    def add(self, seconds: float) -> None:
        """Add time to the running limit."""
        self._due += seconds

    def extend_if_late(self) -> None:
        """Extend the limit if it ended while the event loop was blocked. The caller has received a result."""
        late = _clock.monotonic() - self._due
        if late > _LATE and not self._extended:
            self._extended = True
            self._due += late + min(late, self._seconds)

    def end(self) -> None:
        """End the limit."""
        self._greenlet = self._source = None

    def close(self) -> None:
        """Close the timer after the last use."""
        self._fires_at = inf
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.close()

    def _start(self, seconds: float) -> None:
        self.close()
        self._fires_at = self._due
        # Timers of this priority run last in an iteration of the event loop.
        self._timer = get_hub().loop.timer(timer_delay(seconds), ref=self._ref, priority=-1)
        self._timer.start(self._fire, update=True)

    def _fire(self) -> None:
        self.close()
        if self._greenlet is None:
            return
        late = _clock.monotonic() - self._due
        if late < 0:  # the timer was started for an earlier use
            self._start(-late)
        elif late > _LATE and not self._extended and (self._source is None or self._source.has_arrived()):
            self._extended = True
            more = 0.0 if self._source is None else min(late, self._seconds)
            self._due += late + more
            self._start(more)
        else:
            self._greenlet.throw(self._make_error(self._seconds))


class _TimeoutBlock:
    """Context manager that limits the time of its body."""

    __slots__ = ("_limit", "_seconds")

    def __init__(self, limit: TimeLimit, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds

    def __enter__(self) -> None:
        self._limit.begin(self._seconds)

    def __exit__(self, *_exception: object) -> None:
        self._limit.end()
        self._limit.close()


def interrupt_after(seconds: float | None, error: BaseException, ref: bool = True) -> AbstractContextManager[None]:
    """Return a context manager that raises `error` in its body after `seconds`. None means no limit and no timer.

    The body raises the object `error`, not a copy, so callers can distinguish `error` from timeouts of the application.

    :param ref: True if the timer keeps the event loop alive; False for background greenlets.
    """
    if seconds is None:
        return _NO_LIMIT
    if seconds <= 0:
        try:
            raise error
        finally:
            del error  # the error refers to this frame
    return _TimeoutBlock(TimeLimit(lambda _seconds: error, ref), seconds)
