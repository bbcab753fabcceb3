"""An event loop whose timers need not wait: when nothing else can happen, its clock jumps to the next of them."""

from __future__ import annotations

import _thread
import heapq
import itertools
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import gevent

# Of what is due at one moment, timers of higher priority go off first, as in libev.
_LAST = -100
# Seconds before each jump while there are more threads than at first: the end of one may be polled for.
_FOR_THREADS = 0.0005
# Seconds before each jump otherwise, after which the sockets are asked once more: on a busy machine the kernel may be
# a moment late with what one end of a socket has sent to the other.
_FOR_SOCKETS = 0.00005


class VirtualLoop:
    """Stands in for the loop of a hub. Sockets and callbacks are the real loop's; timers and the clock are its own.

    When all greenlets wait and no socket is ready, the clock jumps to the moment of the next timer, which goes off: one
    at a time, so that all that follows from it happens before the next one.

    :param loop: the real loop.
    :param start: what the clock shows at first; by default what :func:`time.monotonic` does.
    :param date: the time of day at first, in seconds since 1970; by default the real one.
    :param flows: whether time passes by itself. Then timers wait as they always do, and only :meth:`advance` jumps.
    """

    def __init__(
        self, loop: Any, *, start: float | None = None, date: float | None = None, flows: bool = False
    ) -> None:
        self.real = loop
        self._flows = flows
        began = time.monotonic()
        self._shown = began if start is None else start
        self._offset = self._shown - began
        self._epoch = (time.time() if date is None else date) - self._shown
        self._jumpers = 0 if flows else 1
        self._order = itertools.count()
        self._due: list[tuple[float, int, int, VirtualTimer]] = []
        self._holding = 0  # how many of the timers keep the loop running
        self._idle = loop.idle(ref=False)
        self._wake = loop.timer(0, ref=False)
        self._results: list[Any] = []  # what other threads are to deliver
        self._threads = _other_threads()
        self._last_idle = -1  # the turn of the real loop in which there was last nothing to do
        self._ended = False
        self.io, self.run_callback = loop.io, loop.run_callback  # these are called all the time

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    @property
    def error_handler(self) -> Any:
        """The hub, while it runs."""
        return self.real.error_handler

    @error_handler.setter
    def error_handler(self, handler: Any) -> None:
        self.real.error_handler = handler

    # The clock

    def monotonic(self) -> float:
        """The moment, in seconds."""
        return time.monotonic() + self._offset if self._flows or self._ended else self._shown

    now = monotonic

    def seconds(self) -> float:
        """The time of day, in seconds since 1970."""
        return self.monotonic() + self._epoch

    def suspend(self, seconds: float) -> None:
        """Set the clock forth, as when the machine has slept: what was due meanwhile goes off late, all at once."""
        self._shown += seconds
        self._offset += seconds

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, with all that happens in them, one thing after the other.

        It returns when nothing is left to do that is due until then.
        """
        timer = self.timer(seconds, priority=_LAST)
        self._jumpers += 1
        try:
            gevent.get_hub().wait(timer)
        finally:
            timer.close()
            self._jumpers -= 1
            self._arrange()

    def async_(self, ref: bool = True, priority: int | None = None) -> Any:
        """A watcher by which another thread tells that it has a result."""
        watcher = self.real.async_(ref, priority)
        self._results.append(watcher)
        return watcher

    # Timers

    def timer(self, after: float, repeat: float = 0.0, ref: bool = True, priority: int | None = None) -> VirtualTimer:
        """A timer of this clock; the parameters are those of gevent's loops."""
        if self._ended:
            timer: VirtualTimer = self.real.timer(after, repeat, ref, priority)  # of the same methods
            return timer
        return VirtualTimer(self, after, repeat, ref, priority or 0)

    def add(self, timer: VirtualTimer, after: float) -> None:
        """Let a timer go off after so many seconds."""
        timer.entry = (self.monotonic() + max(0.0, after), -timer.priority, next(self._order), timer)
        heapq.heappush(self._due, timer.entry)
        self._holding += timer.ref
        self._arrange()

    def remove(self, timer: VirtualTimer) -> None:
        """Let a timer not go off."""
        timer.entry = None
        self._holding -= timer.ref
        self._arrange()

    def end(self) -> None:
        """Hand the timers over to the real loop, each with the time that is left to it."""
        left = [entry for entry in self._due if entry[3].entry is entry]
        shown = self.monotonic()
        self._due, self._ended = [], True
        self._idle.close()
        self._wake.close()
        for moment, _priority, _order, timer in sorted(left):
            timer.continue_on(self.real, max(0.0, moment - shown))

    def _arrange(self) -> None:
        """Let the real loop turn while the clock may jump, or wake when the next timer is due; or let it rest."""
        if self._ended:
            return
        while self._due and self._due[0][3].entry is not self._due[0]:
            heapq.heappop(self._due)
        jumps = bool(self._due and self._jumpers)
        if jumps:
            if not self._idle.active:
                self._idle.start(self._jump)
            self._idle.ref = self._holding > 0
        elif self._idle.active:
            self._idle.stop()
        if self._flows:
            self._wake.close()
            if self._due and not jumps:
                self._wake = self.real.timer(max(0.0, self._due[0][0] - self.monotonic()), ref=self._holding > 0)
                self._wake.start(self._go_off, update=True)

    def _jump(self) -> None:
        """Nothing else can happen now; runs in the hub."""
        self._results = [each for each in self._results if each.active]
        if self._results:
            return  # what a thread computes takes its own time
        turn, before = self.real.iteration, self._last_idle
        self._last_idle = turn
        if turn != before + 1:
            time.sleep(_FOR_THREADS if _other_threads() > self._threads else _FOR_SOCKETS)
            return  # the loop asks the sockets again, and calls this in the next turn if there is nothing
        self._last_idle = -1
        if self.real.activecnt:  # else this is the last turn: nothing that the loop goes on for waits
            self._go_off(jumps=True)

    def _go_off(self, jumps: bool = False) -> None:
        if not self._due:
            return
        moment = self._due[0][0]
        ahead = moment - self.monotonic()
        if ahead > 0 and not jumps:
            return self._arrange()  # the real timer was a little early
        if ahead > 0 and self._flows:
            self._offset += ahead
        elif ahead > 0:
            self._shown = moment
        timer = heapq.heappop(self._due)[3]
        if timer.entry is not None:
            timer.go_off()


def _other_threads() -> int:
    """How many threads there are but for those of the hub's pool, whose results the loop knows to wait for."""
    pool = gevent.get_hub()._threadpool
    return _thread._count() - (0 if pool is None else pool.size)


class VirtualTimer:
    """A timer of a :class:`VirtualLoop`, with what gevent's own have.

    :ivar entry: its place among those that are due; None while it does not run.
    """

    __slots__ = (
        "__weakref__",
        "_after",
        "_continued",
        "_ref",
        "_repeat",
        "args",
        "callback",
        "entry",
        "loop",
        "priority",
    )

    def __init__(self, loop: VirtualLoop, after: float, repeat: float, ref: bool, priority: int) -> None:
        self.loop = loop
        self.priority = priority
        self.callback: Callable[..., Any] | None = None
        self.args: tuple[Any, ...] | None = None
        self.entry: tuple[float, int, int, VirtualTimer] | None = None
        self._after, self._repeat, self._ref = after, repeat, ref
        self._continued: Any = None  # a timer of the real loop, once time is no longer virtual

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.entry is not None or (self._continued is not None and self._continued.active)

    @property
    def pending(self) -> bool:
        """Whether it has gone off and its callback has not been called yet: never."""
        return False

    @property
    def ref(self) -> bool:
        """Whether it keeps the hub running."""
        return self._ref

    @ref.setter
    def ref(self, ref: bool) -> None:
        entry = self.entry
        if entry is not None:
            self.loop.remove(self)
        self._ref = ref
        if entry is not None:
            self.loop.add(self, entry[0] - self.loop.monotonic())

    def start(self, callback: Callable[..., Any], *args: Any, update: bool | None = None) -> None:
        """Call `callback` with `args` when the time has come."""
        self._start(self._after, callback, args)

    def again(self, callback: Callable[..., Any], *args: Any, update: bool | None = None) -> None:
        """Start again, with the time of the repetitions."""
        self._start(self._repeat or self._after, callback, args)

    def _start(self, after: float, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.stop()
        self.callback, self.args = callback, args
        if self.loop._ended:
            self.continue_on(self.loop.real, after)
        else:
            self.loop.add(self, after)

    def stop(self) -> None:
        """Do not go off."""
        self.callback = self.args = None
        if self.entry is not None:
            self.loop.remove(self)
        if self._continued is not None:
            self._continued.close()
            self._continued = None

    close = stop

    def go_off(self) -> None:
        """The time has come; runs in the hub."""
        callback, args = self.callback, self.args
        self.loop.remove(self)
        if self._repeat and callback is not None:
            self.loop.add(self, self._repeat)
        else:
            self.callback = self.args = None
        if callback is not None:
            callback(*(args or ()))

    def continue_on(self, loop: Any, after: float) -> None:
        """Go on as a timer of the real loop."""
        self.entry = None
        self._continued = loop.timer(after, self._repeat, ref=self._ref, priority=self.priority or None)
        self._continued.start(self.callback, *(self.args or ()))

    def __enter__(self) -> VirtualTimer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
