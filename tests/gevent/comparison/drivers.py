"""Functions for all comparison programs: import a driver, and exchange lines with the test."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any


def import_driver(name: str) -> Any:
    """Import a driver. Before the import of PyMongo, call ``monkey.patch_all()``.

    A program must call this function before its other imports.
    """
    if name == "pymongo":
        from gevent import monkey

        monkey.patch_all()
    driver = import_module(name)
    import_module(f"{name}.monitoring")
    return driver


def send_line(*words: Any) -> None:
    """Print a line, which the test reads from standard output."""
    print(*words, flush=True)


def receive_line() -> str:
    """Wait for a line that the test sends, while other greenlets run.

    Return an empty text at the end of the test.
    """
    line: bytes = _stdin().readline()
    return line.decode().strip()


@cache
def _stdin() -> Any:
    from gevent.fileobject import FileObjectPosix

    return FileObjectPosix(sys.stdin.fileno(), "rb", close=False)


def error_text(error: BaseException | None) -> str:
    """Return the class of an error and the first 60 characters of its message."""
    return "" if error is None else f"{type(error).__name__}: {str(error)[:60]}"


def create_event_counter(driver: Any) -> Any:
    """Create a listener that counts commands without an end event, servers marked Unknown, and
    cleared pools.
    """
    monitoring = driver.monitoring

    class EventCounter(  # type: ignore[misc]
        monitoring.CommandListener, monitoring.ServerListener, monitoring.ConnectionPoolListener
    ):
        def __init__(self) -> None:
            self.open_commands: Counter[int] = Counter()
            self.open_pings = self.most_pings = 0
            self.marked_unknown = self.pools_cleared = 0

        def started(self, event: Any) -> None:
            self.open_commands[event.request_id] += 1
            if event.command_name == "ping":
                self.open_pings += 1
                self.most_pings = max(self.most_pings, self.open_pings)

        def succeeded(self, event: Any) -> None:
            self.open_commands[event.request_id] -= 1
            self.open_pings -= event.command_name == "ping"

        failed = succeeded

        @property
        def commands_without_end(self) -> int:
            return sum(count > 0 for count in self.open_commands.values())

        def description_changed(self, event: Any) -> None:
            known = event.previous_description.is_server_type_known
            self.marked_unknown += known and not event.new_description.is_server_type_known

        def pool_cleared(self, event: Any) -> None:
            self.pools_cleared += 1

        def _ignore(self, event: Any) -> None:
            pass

        opened = closed = pool_created = pool_ready = pool_closed = _ignore
        connection_created = connection_ready = connection_closed = _ignore
        connection_check_out_started = connection_check_out_failed = _ignore
        connection_checked_out = connection_checked_in = _ignore

    return EventCounter()
