"""Thread entities: greenlets that run operations one after the other."""

from __future__ import annotations

from collections.abc import Callable

import gevent
from gevent.queue import Queue

_SECONDS_TO_END = 10


class Thread:
    """A thread of a test, waiting for work."""

    def __init__(self) -> None:
        self._work: Queue[Callable[[], object]] = Queue()
        self._greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        for work in self._work:
            work()

    def submit(self, work: Callable[[], object]) -> None:
        """Run this after what was submitted before, beginning at once."""
        self._work.put(work)
        gevent.sleep(0)

    def join(self) -> None:
        """Wait for the end of the last work; raises what it raised."""
        self._work.put(StopIteration)
        self._greenlet.get(timeout=_SECONDS_TO_END)

    def check(self) -> None:
        """Raise what it has raised so far."""
        if self._greenlet.exception is not None:
            raise self._greenlet.exception

    def kill(self) -> None:
        """End it wherever it is."""
        self._greenlet.kill()
