"""Timeouts for calls of PyMongo, which ``gevent.Timeout`` cannot interrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SILENT = "the server does not reply, or the call waits for documents"


class SilentServerError(Exception):
    """A call of PyMongo does not end."""


@contextmanager
def interrupt_after(seconds: float | None, note: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Interrupt the main thread in the block after each interval.

    :param seconds: Interval in seconds, or None for no interrupts.
    :param note: Function that runs before the error, because the interrupted call may catch the error.
    :raises SilentServerError: The interval has passed.
    """

    def interrupt(*_: Any) -> None:
        if not done.is_set():
            note()
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
