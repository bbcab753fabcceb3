"""Thread entities: greenlets that run operations in order."""

from __future__ import annotations

from collections.abc import Callable

import gevent
from gevent.queue import Queue

_JOIN_TIMEOUT_SECONDS = 10


class Thread:
    """A thread entity. A greenlet runs the functions that operations submit, in order."""

    def __init__(self) -> None:
        self._work: Queue[Callable[[], object]] = Queue()
        self._greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        for work in self._work:
            work()

    def submit(self, work: Callable[[], object]) -> None:
        """Add a function to the queue, and let the thread run until its next wait."""
        self._work.put(work)
        gevent.sleep(0)

    def join(self) -> None:
        """Wait until all submitted functions have ended, or raise the error of a failed function."""
        self._work.put(StopIteration)
        self._greenlet.get(timeout=_JOIN_TIMEOUT_SECONDS)

    def check(self) -> None:
        """If a submitted function has raised an error, raise the error."""
        if self._greenlet.exception is not None:
            raise self._greenlet.exception

    def kill(self) -> None:
        self._greenlet.kill()
