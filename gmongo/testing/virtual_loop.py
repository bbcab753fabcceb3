"""An event loop with a virtual clock. While all greenlets wait, the clock jumps to the next timer."""

from __future__ import annotations

import _thread
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Any

import gevent

# The lowest priority of timers. Of several due timers, the timer with the highest priority fires first, as in libev.
_LOWEST_PRIORITY = -100
# Real seconds before each jump while threads run that started after the loop. Such threads may need real time to poll.
_THREAD_WAIT_SECONDS = 0.0005
# Real seconds before each jump without such threads. After this time, the real loop polls the
# sockets again, because a busy kernel may deliver data with a delay.
_SOCKET_WAIT_SECONDS = 0.00005


class VirtualLoop:
    """An event loop with a virtual clock, which replaces the real loop of a hub.

    The real loop continues to serve the sockets and callbacks. While all greenlets wait and no socket
    is ready, the clock jumps to the time of the next timer. The loop fires one timer, and runs all
    greenlets that the timer wakes, before the next jump.

    :param loop: the real loop.
    :param start: the first value of the clock; by default the value of :func:`time.monotonic`.
    :param date: the date and time at the start, in seconds since 1970; by default the real time.
    :param in_real_time: True if the clock runs at the speed of real time, and jumps only in
        :meth:`advance`. In this mode, timers wait in real time.
    """

    def __init__(
        self, loop: Any, *, start: float | None = None, date: float | None = None, in_real_time: bool = False
    ) -> None:
        self.real = loop
        self._in_real_time = in_real_time
        start_time = time.monotonic()
        self._virtual_now = start_time if start is None else start
        self._offset = self._virtual_now - start_time
        self._epoch = (time.time() if date is None else date) - self._virtual_now
        self._jump_request_count = 0 if in_real_time else 1  # a positive count lets the clock jump
        self._entry_numbers = itertools.count()
        self._queue: list[tuple[float, int, int, VirtualTimer]] = []
        self._ref_count = 0  # the number of scheduled timers that keep the hub running
        self._idle_watcher = loop.idle(ref=False)
        self._waker = loop.timer(0, ref=False)
        self._result_watchers: list[Any] = []  # the watchers with which other threads announce results
        self._thread_count = _count_other_threads()
        self._last_idle_iteration = -1  # the number of the last loop iteration without an event, or -1 after a jump
        self._ended = False
        self.io, self.run_callback = loop.io, loop.run_callback  # avoids a slow `__getattr__` in frequent calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    @property
    def error_handler(self) -> Any:
        """The object that handles errors of callbacks: the hub, while the hub runs."""
        return self.real.error_handler

    @error_handler.setter
    def error_handler(self, handler: Any) -> None:
        self.real.error_handler = handler

    def monotonic(self) -> float:
        """Return the virtual monotonic time in seconds."""
        return time.monotonic() + self._offset if self._in_real_time or self._ended else self._virtual_now

    now = monotonic

    def seconds(self) -> float:
        """Return the virtual date and time in seconds since 1970."""
        return self.monotonic() + self._epoch

    def suspend(self, seconds: float) -> None:
        """Advance the clock, and fire no timer. Timers that were due in the skipped time fire after the call."""
        self._virtual_now += seconds
        self._offset += seconds

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds`. Each timer that becomes due fires at its own due time."""
        timer = self.timer(seconds, priority=_LOWEST_PRIORITY)
        self._jump_request_count += 1
        try:
            gevent.get_hub().wait(timer)
        finally:
            timer.close()
            self._jump_request_count -= 1
            self._prepare_next_timer()

    def async_(self, ref: bool = True, priority: int | None = None) -> Any:
        """Return a watcher for a result of another thread. The clock does not jump while the watcher is active."""
        watcher = self.real.async_(ref, priority)
        self._result_watchers.append(watcher)
        return watcher

    def timer(self, after: float, repeat: float = 0.0, ref: bool = True, priority: int | None = None) -> VirtualTimer:
        """Return a timer that uses the virtual clock. The method has the parameters of gevent's ``loop.timer``."""
        if self._ended:
            timer: VirtualTimer = self.real.timer(after, repeat, ref, priority)  # a timer of gevent
            return timer
        return VirtualTimer(self, after, repeat, ref, priority or 0)

    def add(self, timer: VirtualTimer, after: float) -> None:
        """Schedule a timer, which fires after `after` seconds."""
        timer.entry = (self.monotonic() + max(0.0, after), -timer.priority, next(self._entry_numbers), timer)
        heapq.heappush(self._queue, timer.entry)
        self._ref_count += timer.ref
        self._prepare_next_timer()

    def remove(self, timer: VirtualTimer) -> None:
        timer.entry = None
        self._ref_count -= timer.ref
        self._prepare_next_timer()

    def end(self) -> None:
        """End the virtual time. Schedule each timer on the real loop with its remaining time."""
        scheduled = [entry for entry in self._queue if entry[3].entry is entry]
        virtual_now = self.monotonic()
        self._queue, self._ended = [], True
        self._idle_watcher.close()
        self._waker.close()
        for due_time, _priority, _order, timer in sorted(scheduled):
            timer.continue_on(self.real, max(0.0, due_time - virtual_now))

    def _prepare_next_timer(self) -> None:
        """Start the idle watcher if the clock may jump. Else, in real time, start a real timer for the next timer."""
        if self._ended:
            return
        while self._queue and self._queue[0][3].entry is not self._queue[0]:
            heapq.heappop(self._queue)
        may_jump = bool(self._queue and self._jump_request_count)
        if may_jump:
            if not self._idle_watcher.active:
                self._idle_watcher.start(self._jump)
            self._idle_watcher.ref = self._ref_count > 0
        elif self._idle_watcher.active:
            self._idle_watcher.stop()
        if self._in_real_time:
            self._waker.close()
            if self._queue and not may_jump:
                self._waker = self.real.timer(max(0.0, self._queue[0][0] - self.monotonic()), ref=self._ref_count > 0)
                self._waker.start(self._fire, update=True)

    def _jump(self) -> None:
        """Jump to the next timer. The idle watcher calls the method in the hub while nothing else can run."""
        self._result_watchers = [watcher for watcher in self._result_watchers if watcher.active]
        if self._result_watchers:
            return  # another thread computes a result, which needs real time
        iteration, last_idle_iteration = self.real.iteration, self._last_idle_iteration
        self._last_idle_iteration = iteration
        if iteration != last_idle_iteration + 1:
            time.sleep(_THREAD_WAIT_SECONDS if _count_other_threads() > self._thread_count else _SOCKET_WAIT_SECONDS)
            return  # the real loop polls the sockets, and calls `_jump` again in the next iteration if nothing can run
        self._last_idle_iteration = -1
        if self.real.activecnt:  # otherwise no watcher keeps the real loop running, and this iteration is the last
            self._fire(may_jump=True)

    def _fire(self, may_jump: bool = False) -> None:
        if not self._queue:
            return
        due_time = self._queue[0][0]
        remaining = due_time - self.monotonic()
        if remaining > 0 and not may_jump:
            return self._prepare_next_timer()  # the real timer fired early
        if remaining > 0 and self._in_real_time:
            self._offset += remaining
        elif remaining > 0:
            self._virtual_now = due_time
        timer = heapq.heappop(self._queue)[3]
        if timer.entry is not None:
            timer.fire()


def _count_other_threads() -> int:
    """Count the threads outside the hub's thread pool. Threads of the pool announce their results with `async_`."""
    pool = gevent.get_hub()._threadpool
    return _thread._count() - (0 if pool is None else pool.size)


class VirtualTimer:
    """A timer of a :class:`VirtualLoop`, with the attributes of gevent timers."""

    __slots__ = (
        "__weakref__", "_after", "_real_timer", "_ref", "_repeat", "args", "callback", "entry",
        "loop", "priority"
    )  # fmt: skip

    def __init__(self, loop: VirtualLoop, after: float, repeat: float, ref: bool, priority: int) -> None:
        self.loop = loop
        self.priority = priority
        self.callback: Callable[..., Any] | None = None
        self.args: tuple[Any, ...] | None = None
        self.entry: tuple[float, int, int, VirtualTimer] | None = None  # the queue entry of an active timer
        self._after, self._repeat, self._ref = after, repeat, ref
        self._real_timer: Any = None  # the timer of the real loop after the end of virtual time

    @property
    def active(self) -> bool:
        return self.entry is not None or (self._real_timer is not None and self._real_timer.active)

    @property
    def pending(self) -> bool:
        """Always False, because a timer that fires calls its callback immediately."""
        return False

    @property
    def ref(self) -> bool:
        """True if the timer keeps the hub running."""
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
        """Schedule a call of `callback` with `args`."""
        self._start(self._after, callback, args)

    def again(self, callback: Callable[..., Any], *args: Any, update: bool | None = None) -> None:
        """Restart the timer with its repeat interval, or with its first interval if there is no repeat interval."""
        self._start(self._repeat or self._after, callback, args)

    def _start(self, after: float, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.stop()
        self.callback, self.args = callback, args
        if self.loop._ended:
            self.continue_on(self.loop.real, after)
        else:
            self.loop.add(self, after)

    def stop(self) -> None:
        self.callback = self.args = None
        if self.entry is not None:
            self.loop.remove(self)
        if self._real_timer is not None:
            self._real_timer.close()
            self._real_timer = None

    close = stop

    def fire(self) -> None:
        """Call the callback. The loop calls the method in the hub when the timer is due."""
        callback, args = self.callback, self.args
        self.loop.remove(self)
        if self._repeat and callback is not None:
            self.loop.add(self, self._repeat)
        else:
            self.callback = self.args = None
        if callback is not None:
            callback(*(args or ()))

    def continue_on(self, loop: Any, after: float) -> None:
        """Replace the timer by a timer of the real loop, which fires after `after` seconds."""
        self.entry = None
        self._real_timer = loop.timer(after, self._repeat, ref=self._ref, priority=self.priority or None)
        self._real_timer.start(self.callback, *(self.args or ()))

    def __enter__(self) -> VirtualTimer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
