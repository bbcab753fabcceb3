"""Time limits for code that may switch greenlets."""

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
_LATE_THRESHOLD = 0.05  # A timer is late if it fires more than this number of seconds after the end of the limit.


class Seconds(float):
    """Deadline or duration in seconds, with the time limit from which the number was computed."""

    __slots__ = ("limit",)

    limit: tuple[float, str]  # seconds, and name of the option or function that sets the time limit


def seconds_of(limit: tuple[float, str], value: float) -> Seconds:
    """Convert a deadline or duration to :class:`Seconds`, with its time limit."""
    seconds = Seconds(value)
    seconds.limit = limit
    return seconds


def remaining(deadline: float | None) -> float | None:
    """Return the seconds until `deadline` (negative afterwards), or None without a deadline."""
    if deadline is None or deadline == inf:
        return None
    seconds_left = deadline - _clock.monotonic()
    return seconds_of(deadline.limit, seconds_left) if isinstance(deadline, Seconds) else seconds_left


def has_passed(deadline: float | None) -> bool:
    """Return True after `deadline`. Without a deadline, return False."""
    seconds_left = remaining(deadline)
    return seconds_left is not None and seconds_left <= 0


def limit_text(value: float | None) -> str:
    """Describe the time limit from which a deadline or a duration was computed."""
    if not isinstance(value, Seconds):
        return "the limit of the operation"
    seconds, option = value.limit
    return f"the limit of {seconds * 1000:.10g} ms ({option})"


class Source(Protocol):
    """Object that receives the result for a time-limited greenlet: for example, a transport."""

    def has_arrived(self) -> bool: ...


class TimeLimit:
    """Reusable time limit.

    At the end of the limit, a timer throws an error into the greenlet that called :meth:`begin`. If
    the application blocks the event loop, the timer fires late, although the reply may have arrived
    in time. Therefore a late timer first checks the source. If reply bytes have arrived, the greenlet
    receives as much extra time as the timer was late, up to the length of the limit. If no byte has
    arrived, the timer throws the error immediately. Without a source, a late timer fires again in the
    next iteration of the event loop, and then throws the error.

    :meth:`end` does not stop the timer. If the timer fires during a later use of the limit, the timer
    starts again. A new timer for each exchange would double the Python time of an exchange.

    `make_error` returns the error for a limit in seconds. This function must not refer to the owner
    of the :class:`TimeLimit`, because the event loop would keep the owner alive.
    """

    __slots__ = ("_due", "_extended", "_fires_at", "_greenlet", "_make_error", "_ref", "_seconds", "_source", "_timer")

    def __init__(self, make_error: Callable[[float], BaseException], ref: bool = False) -> None:
        self._make_error = make_error
        self._ref = ref
        self._greenlet: greenlet | None = None  # Greenlet that the limit may interrupt now.
        # `_due` is the end of the current time limit. `_extended` is true if a late timer has extended the limit.
        self._seconds: float
        self._due: float
        self._extended: bool
        self._source: Source | None = None
        self._timer: IWatcher | None = None
        self._fires_at = inf

    def begin(self, seconds: float, source: Source | None = None, elapsed: float = 0.0) -> None:
        """Limit the time of the current greenlet until :meth:`end`.

        The method does not switch greenlets. If `seconds` is 0 or less, raise the error. The time
        limit started `elapsed` seconds before this call.
        """
        if seconds <= 0:
            raise self._make_error(seconds)
        self._seconds = seconds
        self._extended = False
        self._source = source
        self._due = _clock.monotonic() + seconds - elapsed
        self._greenlet = getcurrent()
        if self._due < self._fires_at:
            self._start(seconds - elapsed)

    def add(self, seconds: float) -> None:
        self._due += seconds

    def extend_if_late(self) -> None:
        """Extend a limit that ended while the event loop was blocked. Call this method after each stage."""
        lateness = _clock.monotonic() - self._due
        if lateness > _LATE_THRESHOLD and not self._extended:
            self._extend(lateness, min(lateness, self._seconds))

    def _extend(self, lateness: float, extra_seconds: float) -> None:
        self._extended = True
        self._due += lateness + extra_seconds

    def end(self) -> None:
        self._greenlet = self._source = None

    def close(self) -> None:
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
        lateness = _clock.monotonic() - self._due
        if lateness < 0:  # the timer belongs to an earlier use of the time limit
            self._start(-lateness)
        elif lateness > _LATE_THRESHOLD and not self._extended and (self._source is None or self._source.has_arrived()):
            extra_seconds = 0.0 if self._source is None else min(lateness, self._seconds)
            self._extend(lateness, extra_seconds)
            self._start(extra_seconds)
        else:
            self._greenlet.throw(self._make_error(self._seconds))


class TimeoutBlock:
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
    """Return a context manager that raises `error` in its body after `seconds`, if not None.

    The body raises the object `error`, not a copy. Callers can distinguish this object from an
    application's timeout. If `seconds` is 0 or less, this function itself raises `error`.
    """
    if seconds is None:
        return _NO_LIMIT
    if seconds <= 0:
        try:
            raise error
        finally:
            del error  # prevent a reference cycle between this frame and the error
    return TimeoutBlock(TimeLimit(lambda _seconds: error, ref), seconds)
