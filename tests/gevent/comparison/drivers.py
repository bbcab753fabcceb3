"""Functions of the comparison programs, for example to exchange lines with the test."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any


def import_driver(name: str) -> Any:
    """Import a driver, and return its module. Call ``monkey.patch_all()`` before PyMongo's import.

    A program must call this function before it imports modules that ``monkey.patch_all()`` changes.
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
    """Wait for the next line that the test sends, and return the line. Other greenlets run meanwhile.

    Return an empty text if standard input has ended.
    """
    line: bytes = _stdin().readline()
    return line.decode().strip()


@cache
def _stdin() -> Any:
    from gevent.fileobject import FileObjectPosix

    return FileObjectPosix(sys.stdin.fileno(), "rb", close=False)


def error_text(error: BaseException | None) -> str:
    """Return the class name and the start of the message of an error, or an empty text for None."""
    return "" if error is None else f"{type(error).__name__}: {str(error)[:60]}"


def create_event_counter(driver: Any) -> Any:
    """Create a listener that counts commands without an end event, concurrent pings, servers marked
    Unknown, and cleared pools.
    """
    monitoring = driver.monitoring

    class EventCounter(  # type: ignore[misc]
        monitoring.CommandListener, monitoring.ServerListener, monitoring.ConnectionPoolListener
    ):
        def __init__(self) -> None:
            self.open_commands: Counter[int] = Counter()
            self.open_ping_count = self.max_pings = 0
            self.unknown_count = self.clear_count = 0

        def started(self, event: Any) -> None:
            self.open_commands[event.request_id] += 1
            if event.command_name == "ping":
                self.open_ping_count += 1
                self.max_pings = max(self.max_pings, self.open_ping_count)

        def succeeded(self, event: Any) -> None:
            self.open_commands[event.request_id] -= 1
            self.open_ping_count -= event.command_name == "ping"

        failed = succeeded

        @property
        def open_command_count(self) -> int:
            return sum(count > 0 for count in self.open_commands.values())

        def description_changed(self, event: Any) -> None:
            was_known = event.previous_description.is_server_type_known
            self.unknown_count += was_known and not event.new_description.is_server_type_known

        def pool_cleared(self, event: Any) -> None:
            self.clear_count += 1

        def _ignore(self, event: Any) -> None:
            pass

        opened = closed = pool_created = pool_ready = pool_closed = _ignore
        connection_created = connection_ready = connection_closed = _ignore
        connection_check_out_started = connection_check_out_failed = _ignore
        connection_checked_out = connection_checked_in = _ignore

    return EventCounter()
