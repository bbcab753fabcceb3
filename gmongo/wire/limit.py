"""Limits of time on code that may switch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gevent import get_hub, getcurrent

from gmongo import _clock

_NO_LIMIT: AbstractContextManager[Any] = nullcontext()
# A timer that goes off later than this, in seconds, says that the application held the loop.
_HELD = 0.05


class _Limit:
    """Throws an error into the greenlet that entered it, after so many seconds in which the loop could run.

    A timer that goes off late does not say that the server was slow: what it sent may already wait in the socket,
    unread. So the time for which the loop was held is granted again, but no more than the limit in all: in a process
    that is always late, a dead server is found after twice the time.
    """

    __slots__ = ("_due", "_error", "_grant", "_greenlet", "_ref", "_seconds", "_timer")

    def __init__(self, seconds: float, error: BaseException, ref: bool) -> None:
        self._seconds = self._grant = seconds
        self._error = error
        self._ref = ref

    def __enter__(self) -> None:
        self._greenlet = getcurrent()
        self._start(self._seconds)

    def __exit__(self, *_outcome: object) -> None:
        self._timer.close()

    def _start(self, seconds: float) -> None:
        self._due = _clock.monotonic() + seconds
        # Of all that is due in one pass of the loop, timers of this priority come last.
        self._timer = get_hub().loop.timer(seconds, ref=self._ref, priority=-1)
        self._timer.start(self._fire, update=True)

    def _fire(self) -> None:
        late = _clock.monotonic() - self._due
        if late > _HELD and self._grant > 0:
            more = min(late, self._grant)
            self._grant -= more
            self._timer.close()
            self._start(more)
        else:
            self._greenlet.throw(self._error)


def interrupt_after(seconds: float | None, error: BaseException, ref: bool = True) -> AbstractContextManager[Any]:
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
    return _Limit(seconds, error, ref)
