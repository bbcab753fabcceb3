"""Ends PyMongo's waits, which no ``gevent.Timeout`` reaches: a server of another make may never answer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SILENT = "it does not answer, or has nothing for a cursor that waits"


class SilentServerError(Exception):
    """A call through PyMongo does not end."""


@contextmanager
def interrupted(seconds: float | None, note: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Interrupt what the main thread waits for in the block, again and again, each time that so many seconds are over.

    :param seconds: None is never.
    :param note: is called before; the call may catch the error.
    :raises SilentServerError: it is interrupted.
    """

    def interrupt(*_: Any) -> None:
        if not done.is_set():
            note()
            raise SilentServerError

    def look() -> None:
        while not done.wait(seconds):
            signal.pthread_kill(thread, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    done, thread = threading.Event(), threading.main_thread().ident or 0
    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
        signal.signal(signal.SIGUSR1, before)
