"""Background greenlets of the driver. Background greenlets do not keep the event loop alive."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from gevent import Greenlet, GreenletExit, Timeout, get_hub, getcurrent, sleep
from greenlet import greenlet

from gmongo import _clock
from gmongo._safe_log import safely

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

Owner = TypeVar("Owner")
Item = TypeVar("Item")

_log = logging.getLogger("gmongo.background")
_PAUSE_AFTER_EXCEPTION = 1.0  # seconds
_MAX_RUN_TIME = 0.002  # seconds
_MIN_LIBEV_DELAY = 1e-6  # minimum delay of a timer in libev, in seconds
_MILLISECOND = 0.001  # seconds
_ITEMS_BETWEEN_CHECKPOINTS = 32
_TEN_YEARS = 10 * 365 * 24 * 3600.0  # seconds


class LongWork:
    """Checkpoints of a long CPU-bound loop, which would otherwise block the event loop."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = _clock.monotonic()

    def checkpoint(self) -> None:
        """Let other greenlets run if this greenlet has run for two milliseconds."""
        if _clock.monotonic() - self._since > _MAX_RUN_TIME:
            sleep(timer_delay(0))  # sleep(0) does not let the event loop serve sockets
            self._since = _clock.monotonic()


def timer_delay(seconds: float) -> float:
    """Return the larger of `seconds` and the minimum timer delay. libuv warns of shorter delays."""
    resolution: float = get_hub().loop.approx_timer_resolution
    return max(seconds, resolution if resolution >= _MILLISECOND else _MIN_LIBEV_DELAY)


def with_checkpoints(items: Iterable[Item]) -> Iterator[Item]:
    """Yield `items`, with a checkpoint for every 32 items. The caller's loop body must take only microseconds."""
    work = LongWork()
    for index, item in enumerate(items):
        if not index % _ITEMS_BETWEEN_CHECKPOINTS:
            work.checkpoint()
        yield item


class Wakeup:
    """Sleep of one background greenlet. A timer or :meth:`set` ends the sleep, which does not keep the loop alive."""

    __slots__ = ("_hub", "_is_set", "_sleeper")

    def __init__(self) -> None:
        self._hub = get_hub()
        self._sleeper: greenlet | None = None
        self._is_set = False

    def set(self) -> None:
        """Wake the greenlet. If it is awake, skip its next sleep. Any thread may call this method."""
        # Set `_is_set` first: the sleeping greenlet sets `_sleeper`, and then reads `_is_set`.
        self._is_set = True
        if self._sleeper is not None:
            self._hub.loop.run_callback_threadsafe(self._wake_sleeper)

    def clear(self) -> None:
        """Cancel the effect of :meth:`set` on the next sleep."""
        self._is_set = False

    def sleep(self, seconds: float | None) -> bool:
        """Sleep for up to `seconds`. None means no limit. Return True if :meth:`set` was called."""
        if not self._is_set and (seconds is None or seconds > 0):
            self._sleep(seconds)
        was_set, self._is_set = self._is_set, False
        return was_set

    def _sleep(self, seconds: float | None) -> None:
        self._sleeper = getcurrent()
        timer = self._hub.loop.timer(timer_delay(seconds or 0), ref=False)
        if seconds is not None:
            timer.start(self._wake_sleeper, update=True)  # the loop's cached time may be old
        try:
            if not self._is_set:  # another thread may have called `set` before this greenlet assigned `_sleeper`
                self._hub.switch()
        finally:
            self._sleeper = None
            timer.close()

    def _wake_sleeper(self) -> None:
        # The timer and several threads may each request a wake-up. Only the first request finds a sleeping greenlet.
        if self._sleeper is not None:
            self._sleeper.switch()


def keep_loop_alive() -> IWatcher:
    """Return a timer that keeps the event loop alive until the caller closes the timer.

    A greenlet that waits for a background greenlet needs this timer. Without the timer, the hub might find an empty
    event loop and raise LoopExit in the main greenlet. The timer never fires in practice.
    """
    timer = get_hub().loop.timer(_TEN_YEARS)
    timer.start(lambda: None)
    return timer


class RestartingGreenlet:
    """Greenlet that runs `work`. After an exception, for example from ``gevent.killall``, a new greenlet runs `work`.

    A killed greenlet ends, so that ``killall`` returns immediately. If `work` returns, no new greenlet starts.
    """

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        self._work = work
        self._arguments = arguments
        self.ended = False  # True if no new greenlet starts: `work` returned, or `stop` was called
        self.greenlet = Greenlet(self._run, 0)

    def __repr__(self) -> str:
        return f"<RestartingGreenlet {self._work!r}>"

    def start(self) -> None:
        """Start the greenlet. The method does not switch greenlets."""
        self.greenlet.link(self._restart_after_exception)
        self.greenlet.start()

    def stop(self) -> None:
        """Kill the greenlet, and start no new greenlet. The method does not switch greenlets."""
        self.ended = True
        self.greenlet.kill(block=False)

    def _run(self, pause: float) -> None:
        try:
            if pause:
                Wakeup().sleep(pause)
            self._work(*self._arguments)
            self.ended = True
        except (Exception, Timeout):  # a listener may raise a Timeout, which is not an Exception
            safely(_log.exception, "background work was interrupted by an exception, and starts again: %r", self._work)

    def _restart_after_exception(self, greenlet: Greenlet) -> None:
        if self.ended:
            return
        # The new greenlet sleeps first, because this callback runs in the hub, which cannot sleep.
        # The pause limits the processor time of restarts.
        pause = 0 if isinstance(greenlet.value, GreenletExit) else _PAUSE_AFTER_EXCEPTION
        self.greenlet = Greenlet(self._run, pause)
        self.start()


def spawn_for(owner: Owner, wakeup: Wakeup, step: Callable[[Owner], float | None]) -> RestartingGreenlet:
    """Run ``step(owner)`` repeatedly in a greenlet, which calls ``wakeup.sleep`` between two steps.

    The sleeping greenlet has only a weak reference to `owner`, and ends after the garbage collection of `owner`. `step`
    returns the seconds of the next sleep, None to sleep until `wakeup` is set, or a negative number to end the loop.
    """
    reference = weakref.ref(owner, lambda _gone: wakeup.set())
    background = RestartingGreenlet(_repeat, reference, wakeup, step)
    background.start()
    return background


def _repeat(reference: weakref.ref[Owner], wakeup: Wakeup, step: Callable[[Owner], float | None]) -> None:
    while True:
        owner = reference()
        if owner is None:
            return
        pause = step(owner)
        del owner  # without this statement, the frame would keep the owner alive during the sleep
        if pause is not None and pause < 0:
            return
        wakeup.sleep(pause)
