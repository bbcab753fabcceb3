"""Deterministic scheduler that replaces the hub of gevent.

The test decides which greenlet or callback runs next. :func:`scheduled` installs the scheduler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from gevent import GreenletExit
from greenlet import getcurrent, greenlet

from gmongo import _background, _clock
from gmongo.cmap import pool, wait_queue
from gmongo.events import delivery


class Scheduled:
    """A callback that waits to run. ``callback`` is None after ``stop``."""

    def __init__(self, callback: Callable[..., Any] | None = None, due: float = 0.0) -> None:
        self.callback, self.due = callback, due

    def stop(self) -> None:
        self.callback = None

    close = stop


class Timer(Scheduled):
    """Replacement of a timer of gevent's event loop."""

    def start(self, callback: Callable[..., Any], update: bool = False) -> None:
        scheduler = Scheduler.current
        self.callback, self.due = callback, self.due + scheduler.now
        scheduler.timers.append(self)


class Scheduler:
    """Replacement of gevent's hub and event loop.

    The greenlet that creates the scheduler also runs the steps.
    """

    current: Scheduler
    approx_timer_resolution = 0.0  # seconds

    def __init__(self) -> None:
        Scheduler.current = self
        self.loop = self
        self.main = getcurrent()
        self.now = 1000.0
        self.ready: deque[Scheduled] = deque()
        self.timers: list[Timer] = []
        self.tasks: list[Task] = []
        self._is_over = False

    # Methods that the code under test calls

    def switch(self) -> Any:
        """Suspend the current greenlet until the test runs a step that resumes the greenlet."""
        if self._is_over:
            raise GreenletExit
        return self.main.switch()

    def run_callback(self, callback: Callable[..., Any], *arguments: Any) -> Scheduled:
        scheduled = Scheduled(partial(callback, *arguments))
        self.ready.append(scheduled)
        return scheduled

    run_callback_threadsafe = run_callback

    def timer(self, seconds: float, ref: bool = True) -> Timer:
        return Timer(due=seconds)

    # Methods that the tests call

    def has_ready(self) -> bool:
        """Return True if a callback can run now, without an advance of the clock."""
        while self.ready and self.ready[0].callback is None:
            self.ready.popleft()
        return bool(self.ready)

    def run_next(self) -> None:
        assert self.has_ready()
        callback = self.ready.popleft().callback
        assert callback is not None
        callback()

    def run_all(self) -> None:
        while self.has_ready():
            self.run_next()

    def has_timer(self) -> bool:
        """Return True if a timer has been started and not stopped."""
        self.timers = [each for each in self.timers if each.callback is not None]
        return bool(self.timers)

    def advance_to_next_timer(self) -> None:
        """Advance the clock to the next timer, and run the callback of the timer."""
        assert self.has_timer()
        next_timer = min(self.timers, key=lambda each: each.due)
        self.timers.remove(next_timer)
        self.now = max(self.now, next_timer.due)
        assert next_timer.callback is not None
        next_timer.callback()

    def end(self) -> None:
        self._is_over = True
        for task in self.tasks:
            task.throw(GreenletExit)


class Task(greenlet):  # type: ignore[misc]
    """Replacement of ``gevent.Greenlet``."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        scheduler = Scheduler.current
        super().__init__(self._run_function, scheduler.main)
        scheduler.tasks.append(self)
        self.function, self.arguments = function, arguments
        self.value: Any = None
        self._links: list[Callable[[Task], Any]] = []

    @classmethod
    def spawn(cls, function: Callable[..., Any], *arguments: Any) -> Task:
        task = cls(function, *arguments)
        task.start()
        return task

    def start(self) -> None:
        Scheduler.current.run_callback(self.switch)

    def link(self, callback: Callable[[Task], Any]) -> None:
        self._links.append(callback)

    def kill(self, block: bool = True) -> None:
        assert not block
        Scheduler.current.run_callback(self._kill)

    def _kill(self) -> None:
        if not self.dead:
            self.throw(GreenletExit)

    def _run_function(self) -> None:
        try:
            self.value = self.function(*self.arguments)
        except BaseException as error:
            self.value = error.with_traceback(None)
        for callback in self._links:
            Scheduler.current.run_callback(callback, self)

    def stack_lines(self) -> tuple[tuple[str, int], ...]:
        """Return the function name and line number of each frame of the task.

        The innermost frame is the first.
        """
        stack, frame = [], self.gr_frame
        while frame is not None:
            stack.append((frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        return tuple(stack)


class Event:
    """Replacement of ``gevent.event.Event`` that ignores timeouts."""

    def __init__(self) -> None:
        self._is_set = False
        self._sleeper: greenlet | None = None

    def set(self) -> None:
        self._is_set = True
        if self._sleeper is not None:
            Scheduler.current.run_callback(self._sleeper.switch)

    def wait(self, _seconds: float) -> bool:
        self._sleeper = getcurrent()
        try:
            while not self._is_set:
                Scheduler.current.switch()
        finally:
            self._sleeper = None
        return True


@contextmanager
def scheduled() -> Iterator[None]:
    """While the block runs, replace the hub, greenlets, events and clock that pools use."""

    def hub() -> Scheduler:
        return Scheduler.current

    with (
        patch.object(_clock, "monotonic", lambda: Scheduler.current.now),
        patch.multiple(_background, get_hub=hub, Greenlet=Task),
        patch.multiple(wait_queue, get_hub=hub, keep_loop_alive=lambda: Timer()),
        patch.multiple(delivery, Greenlet=Task, Event=Event),
        patch.object(pool, "spawn", Task.spawn),
    ):
        yield
