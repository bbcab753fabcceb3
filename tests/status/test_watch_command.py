"""The function `watch` reads keys, refreshes the terminal view, and ends after the key ``q``.

One test checks that a process replaces the socket of an ended process with the same ID.
"""

from __future__ import annotations

import io
import os
import pty
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gevent import socket
from rich.console import Console

from gmongo import _clock
from gmongo.errors import ConfigurationError
from gmongo.status import __main__ as command
from gmongo.status import screen as screen_module
from gmongo.status import workers
from gmongo.status.screen import _key_reader, watch


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Yield the file descriptors of a pseudoterminal.

    The method `sys.stdin.fileno` returns the second file descriptor.
    """
    near, far = pty.openpty()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: far))
    yield near, far
    os.close(near)
    os.close(far)


def test_key_is_read_before_end_of_line(terminal: tuple[int, int]) -> None:
    near, far = terminal
    before = termios.tcgetattr(far)
    with _key_reader() as pressed:
        assert not termios.tcgetattr(far)[3] & termios.ICANON
        assert pressed(0) == [] == pressed(-1)
        os.write(near, b"4\x1b[B2\x1b[5~\xc3\xa4q")
        assert pressed(5) == ["4", "\x1b[B", "2", "\x1b[5~", "ä", "q"]
        os.write(near, b"x" * 70)
        assert [len(pressed(5)), len(pressed(5))] == [64, 6]
        os.write(near, b"\xff")
        assert pressed(5) == []
    assert termios.tcgetattr(far) == before


def test_terminal_settings_are_restored_after_interrupt(terminal: tuple[int, int]) -> None:
    before = termios.tcgetattr(terminal[1])
    with pytest.raises(KeyboardInterrupt), _key_reader():
        raise KeyboardInterrupt
    assert termios.tcgetattr(terminal[1]) == before


class WatchRun:
    """A run of `watch` with scripted steps. A step is a list of pressed keys, or a number
    of seconds without a pressed key.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: list[str] | float) -> None:
        self._now, self._steps, self.read_count = 0.0, [*steps], 0
        self.waits: list[float] = []
        monkeypatch.setattr(_clock, "monotonic", lambda: self._now)
        monkeypatch.setattr(screen_module, "_key_reader", self._scripted_keys)
        self.text = io.StringIO()
        console = Console(file=self.text, width=80, height=24, force_terminal=True, color_system=None)
        watch(console, self._read)

    def _read(self) -> list[Any]:
        self.read_count += 1
        return []

    @contextmanager
    def _scripted_keys(self) -> Iterator[Callable[[float], list[str]]]:
        yield self._next_keys

    def _next_keys(self, seconds: float) -> list[str]:
        self.waits.append(seconds)
        step = self._steps.pop(0)
        if isinstance(step, list):
            return step
        self._now += step
        return []


def test_watch_reads_states_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    run = WatchRun(monkeypatch, 0.25, ["x"], 0.75, 1.0, ["q", "p"])
    assert run.waits == [1.0, 0.75, 0.75, 1.0, 1.0]
    assert run.read_count == 3


def test_paused_view_reads_no_states_and_resumed_view_reads_immediately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = WatchRun(monkeypatch, ["p"], 1.0, 1.0, ["p"], ["q"])
    assert run.waits == [1.0] * 5
    assert run.read_count == 2
    assert "PAUSED" in run.text.getvalue()


def test_keys_select_the_view_on_the_alternate_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = WatchRun(monkeypatch, ["2"], ["q"]).text.getvalue()
    assert "Pools: none" in text and "Operations: none" in text
    assert "\x1b[?1049h" in text and "\x1b[?1049l" in text


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records whether the command prints the states once or calls `watch`."""
    outputs: list[str] = []
    console = SimpleNamespace(is_terminal=True, width=80, print=lambda _: outputs.append("printed"))
    monkeypatch.setattr("rich.console.Console", lambda: console)
    monkeypatch.setattr(screen_module, "watch", lambda console, read: outputs.append(f"watched {read()}"))
    monkeypatch.setattr(command, "worker_states", lambda directory: [])
    return outputs


def test_command_watches_on_terminal_and_prints_otherwise(outputs: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    assert command.main([str(tmp_path)]) == 0
    assert command.main([str(tmp_path), "--once"]) == 0
    console = SimpleNamespace(is_terminal=False, width=80, print=outputs.append)
    monkeypatch.setattr("rich.console.Console", lambda: console)
    assert command.main([str(tmp_path)]) == 0
    assert outputs[:2] == ["watched []", "printed"] and len(outputs) == 3


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [(KeyboardInterrupt(), 0, ""), (ConfigurationError("no"), 1, "no\n")],
)
def test_interrupt_or_configuration_error_sets_exit_status(
    error: BaseException,
    status: int,
    message: str,
    outputs: list[str],
    tmp_path: Path,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    def raise_error(directory: Path) -> None:
        raise error

    monkeypatch.setattr(command, "worker_states", raise_error)
    assert command.main([str(tmp_path)]) == status
    assert capsys.readouterr().err == message


def test_missing_directory_or_package_sets_exit_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert command.main([str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == f"the directory {tmp_path / 'nothing'} does not exist\n"
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert command.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("python -m gmongo.status needs the package rich")


@pytest.mark.usefixtures("long_reply_timeout")
def test_sockets_of_ended_process_with_same_id_are_replaced(tmp_path: Path) -> None:
    for suffix in (".sock", ".new"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(str(tmp_path / f"{os.getpid()}{suffix}"))
    publisher = workers.Publisher(tmp_path, False)
    assert publisher.publish_after_fork() == workers._CHECK_INTERVAL
    (state,) = workers.worker_states(tmp_path)
    assert state["process"] == os.getpid() and "error" not in state
    first = publisher._server
    publisher._process_id = 0  # Simulate a fork: the publisher belongs to another process.
    publisher.publish_after_fork()
    assert first is not None and first.closed
    (state,) = workers.worker_states(tmp_path)
    assert "error" not in state
    assert [path.name for path in tmp_path.iterdir()] == [f"{os.getpid()}.sock"]
    second = publisher._server
    publisher.publish_after_fork()
    assert publisher._server is second and second is not None and not second.closed
