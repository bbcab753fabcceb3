"""Timeouts for calls of PyMongo. A ``gevent.Timeout`` cannot interrupt PyMongo without monkey-patching."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SILENT = "the server does not reply, or the call waits for documents"


class SilentServerError(Exception):
    """A call of PyMongo has not ended within its time limit."""


@contextmanager
def interrupt_after(seconds: float | None, record: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Interrupt the main thread after each interval while the block runs.

    :param seconds: Interval in seconds, or None for no interruptions.
    :param record: Function that is called before the error is raised. The interrupted call may catch the error.
    :raises SilentServerError: The block has not ended after an interval.
    """

    def interrupt(*_: Any) -> None:
        if not done.is_set():
            record()
            raise SilentServerError

    def watch() -> None:
        while not done.wait(seconds):
            signal.pthread_kill(thread, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    done, thread = threading.Event(), threading.main_thread().ident or 0
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        signal.signal(signal.SIGUSR1, before)
