"""The processes of a run: one canned server, and a fresh worker for each measurement."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SERVER_EXIT_SECONDS = 5


class WorkerFailed(Exception):
    """A worker ended without a measurement; the message is the last thing that it said."""


class Measurement(NamedTuple):
    """What one worker is asked to do.

    :param extra: what else is switched on in a driver: ``listener``, ``debug`` or nothing.
    :param listener: register a command listener, whatever else is switched on.
    """

    contender: str
    operation: str
    greenlets: int
    repeats: int
    extra: str | None = None
    listener: bool = False


class Result(NamedTuple):
    """What one worker found.

    :param microseconds: CPU time of an operation.
    :param per_second: how many operations were done in a second.
    """

    microseconds: float
    per_second: float


@contextmanager
def canned_server() -> Iterator[int]:
    """Run the canned server and give its port; it is gone afterwards, whatever happens in between.

    The listening socket is opened here, so clients may connect at once. The server also ends by itself when
    this process does, since its standard input is a pipe that only this process holds open.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.canned_server", "--fd", str(listener.fileno())]
        server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    try:
        yield port
    finally:
        _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(SERVER_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def run_worker(wanted: Measurement, port: int, timeout: float) -> Result:
    """Measure operations once, in a new process.

    :param port: port of the canned server on 127.0.0.1.
    :param timeout: seconds until the worker is killed.
    :raises WorkerFailed: it exited with an error or was killed.
    """
    found = run_python(["-m", "benchmarks.worker", *_arguments(wanted, port)], timeout)
    return Result(found["microseconds"], found["per_second"])


def run_python(arguments: Sequence[str], timeout: float) -> Any:
    """Run a new interpreter and return what it printed, which is JSON.

    :param timeout: seconds until it is killed.
    :raises WorkerFailed: it exited with an error or was killed.
    """
    command = [sys.executable, *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"not finished after {timeout:g} seconds")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise WorkerFailed(last)
    return json.loads(done.stdout)


def _arguments(wanted: Measurement, port: int) -> list[str]:
    arguments = ["--port", str(port), "--contender", wanted.contender, "--operation", wanted.operation]
    arguments += ["--greenlets", str(wanted.greenlets), "--count", str(wanted.repeats)]
    arguments += ["--extra", wanted.extra] if wanted.extra else []
    return arguments + (["--listener"] if wanted.listener else [])
