"""The terminal in this process: keys, refreshing, what ends it; and sockets that are left or belong to others."""

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

import gevent
import pytest
from gevent import socket
from rich.console import Console

from gmongo import _clock
from gmongo.errors import ConfigurationError
from gmongo.status import __main__ as command
from gmongo.status import screen as screen_module
from gmongo.status import workers
from gmongo.status.screen import _keys, watch

# Keys


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of a terminal, of which this process reads one."""
    ours, theirs = pty.openpty()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: theirs))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_keys_are_read_one_by_one(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with _keys() as pressed:
        assert not termios.tcgetattr(theirs)[3] & termios.ICANON  # they come without a line's end
        assert pressed(0) == [] == pressed(-1)
        os.write(ours, b"4\x1b[B2\x1b[5~\xc3\xa4q")
        assert pressed(5) == ["4", "\x1b[B", "2", "\x1b[5~", "ä", "q"]
        os.write(ours, b"x" * 70)
        assert [len(pressed(5)), len(pressed(5))] == [64, 6]
        os.write(ours, b"\xff")
        assert pressed(5) == []
    assert termios.tcgetattr(theirs) == before


def test_a_terminal_is_given_back_as_it_was(terminal: tuple[int, int]) -> None:
    before = termios.tcgetattr(terminal[1])
    with pytest.raises(KeyboardInterrupt), _keys():
        raise KeyboardInterrupt
    assert termios.tcgetattr(terminal[1]) == before


def test_without_a_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waited: list[Any] = []

    def select(*arguments: Any) -> tuple[list[int], list[int], list[int]]:
        waited.append(arguments)
        return [], [], []

    monkeypatch.setattr(screen_module, "select", select)
    with (tmp_path / "file").open("w+") as file:
        file.write("qqq")
        monkeypatch.setattr(sys, "stdin", file)
        with _keys() as pressed:
            assert pressed(3) == [] == pressed(-3)
    assert waited == [([], [], [], 3), ([], [], [], 0.0)]


# What is shown, and when


class Watched:
    """What is watched with keys at known times. The clock stands still but for the waits for a key."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *keys: list[str] | float) -> None:
        self._now, self._keys, self.reads = 0.0, [*keys], 0
        self.waits: list[float] = []
        monkeypatch.setattr(_clock, "monotonic", lambda: self._now)
        monkeypatch.setattr(screen_module, "_keys", self._pressing)
        self.text = io.StringIO()
        console = Console(file=self.text, width=80, height=24, force_terminal=True, color_system=None)
        watch(console, self._read)

    def _read(self) -> list[Any]:
        self.reads += 1
        return []

    @contextmanager
    def _pressing(self) -> Iterator[Callable[[float], list[str]]]:
        yield self._pressed

    def _pressed(self, seconds: float) -> list[str]:
        self.waits.append(seconds)
        following = self._keys.pop(0)
        if isinstance(following, list):
            return following
        self._now += following
        return []


def test_states_are_read_again_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, 0.25, ["x"], 0.75, 1.0, ["q", "p"])
    assert watched.waits == [1.0, 0.75, 0.75, 1.0, 1.0]
    assert watched.reads == 3


def test_a_pause_reads_nothing_and_its_end_reads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, ["p"], 1.0, 1.0, ["p"], ["q"])
    assert watched.waits == [1.0] * 5
    assert watched.reads == 2
    assert "PAUSED" in watched.text.getvalue()


def test_keys_choose_and_the_screen_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Watched(monkeypatch, ["2"], ["q"]).text.getvalue()
    assert "Pools: none" in text and "Operations: none" in text
    assert "\x1b[?1049h" in text and "\x1b[?1049l" in text


# The command


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whether it prints or watches."""
    shown: list[str] = []
    console = SimpleNamespace(is_terminal=True, print=lambda _: shown.append("printed"))
    monkeypatch.setattr("rich.console.Console", lambda: console)
    monkeypatch.setattr(screen_module, "watch", lambda console, read: shown.append(f"watched {read()}"))
    monkeypatch.setattr(command, "worker_states", lambda directory: [])
    return shown


def test_a_terminal_is_watched_and_anything_else_is_printed_to(
    shown: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    assert command.main([str(tmp_path)]) == 0
    assert command.main([str(tmp_path), "--once"]) == 0
    monkeypatch.setattr("rich.console.Console", lambda: SimpleNamespace(is_terminal=False, print=shown.append))
    assert command.main([str(tmp_path)]) == 0
    assert shown[:2] == ["watched []", "printed"] and len(shown) == 3


@pytest.mark.parametrize(
    ("error", "status", "said"), [(KeyboardInterrupt(), 0, ""), (ConfigurationError("no"), 1, "no\n")]
)
def test_what_ends_it(
    error: BaseException, status: int, said: str, shown: list[str], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    def fail(directory: Path) -> None:
        raise error

    monkeypatch.setattr(command, "worker_states", fail)
    assert command.main([str(tmp_path)]) == status
    assert capsys.readouterr().err == said


def test_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert command.main([str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == f"the directory {tmp_path / 'nothing'} does not exist\n"
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert command.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("python -m gmongo.status needs the package rich")


# Sockets


@pytest.mark.usefixtures("patient")
def test_what_a_process_of_the_same_number_has_left_is_replaced(tmp_path: Path) -> None:
    for suffix in (".sock", ".new"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(tmp_path / f"{os.getpid()}{suffix}"))
    publisher = workers.Publisher(tmp_path, False)
    assert publisher.look() == workers._CHECK_INTERVAL
    (state,) = workers.worker_states(tmp_path)
    assert state["process"] == os.getpid() and "error" not in state
    first = publisher._server
    publisher._process = 0  # as in a child
    publisher.look()
    assert first is not None and first.closed
    (state,) = workers.worker_states(tmp_path)
    assert "error" not in state
    assert [path.name for path in tmp_path.iterdir()] == [f"{os.getpid()}.sock"]
    publisher.look()
    assert publisher._server is not None and not publisher._server.closed


@pytest.mark.parametrize(("raised", "ended"), [(ProcessLookupError, True), (PermissionError, False), (None, False)])
def test_whether_a_process_has_ended(
    raised: type[OSError] | None, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(process: int, signal: int) -> None:
        assert (process, signal) == (7, 0)
        if raised is not None:
            raise raised

    monkeypatch.setattr(workers.os, "kill", kill)
    assert workers._has_ended(7) is ended


def test_a_time_out_of_the_application_passes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = gevent.Timeout(1000)

    def read(path: Path) -> bytes:
        raise foreign

    monkeypatch.setattr(workers, "_read", read)
    with pytest.raises(gevent.Timeout) as caught:
        workers._fetch(tmp_path / "7.sock", False)
    assert caught.value is foreign


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (PermissionError(), "does not answer (PermissionError)"),
        (ConnectionResetError(), "does not answer (ConnectionResetError)"),
        (RecursionError(), "does not answer with its state: RecursionError"),
        (ValueError("a\nb"), "does not answer with its state: a\\nb"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "y"), "does not answer with its state: UnicodeDecodeError"),
    ],
)
def test_why_a_process_does_not_answer(
    raised: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> bytes:
        raise raised

    monkeypatch.setattr(workers, "_read", read)
    assert workers._fetch(tmp_path / "7.sock", False) == {"process": "7", "error": reason, "clients": []}
