"""Time limits for calls of PyMongo, which a ``gevent.Timeout`` cannot interrupt without
monkey-patching.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NO_REPLY_REASON = "the server does not reply, or the call waits for documents"


class SilentServerError(Exception):
    """Raised if a call of PyMongo has not ended within its time limit."""


@contextmanager
def interrupt_after(seconds: float | None, record: Callable[[], object] = lambda: None) -> Iterator[None]:
    """While the block runs, interrupt the main thread every `seconds` seconds with a SilentServerError.

    :param seconds: Time limit in seconds, or None for no limit.
    :param record: Function to call before each interruption. The interruptions repeat, because the
        interrupted call may catch the error.
    :raises SilentServerError: The block has not ended after `seconds`.
    """

    def interrupt(*_: Any) -> None:
        if not block_ended.is_set():
            record()
            raise SilentServerError

    def watch() -> None:
        while not block_ended.wait(seconds):
            signal.pthread_kill(main_thread_id, signal.SIGUSR1)

    previous_handler = signal.signal(signal.SIGUSR1, interrupt)
    block_ended, main_thread_id = threading.Event(), threading.main_thread().ident or 0
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        block_ended.set()
        watcher.join()
        signal.signal(signal.SIGUSR1, previous_handler)
