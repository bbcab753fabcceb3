"""Processes of a run: canned servers, and workers that take turns in measuring."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from benchmarks.variants import VARIANTS, ServerKind, Variant

ROOT = Path(__file__).resolve().parent.parent
SERVER_EXIT_SECONDS = 5


class WorkerFailed(Exception):
    """Failure of a measured process. The message is its last error line, or describes the failure."""


class Measurement(NamedTuple):
    """Task that a worker runs in each of its turns.

    :param variant: the name of a variant in ``VARIANTS``; None means no variant.
    """

    contender: str
    operation: str
    greenlet_count: int
    operation_count: int
    variant: str | None = None


class Result(NamedTuple):
    """Result of one turn of a measurement.

    :param microseconds: the CPU time of an operation.
    :param per_second: the number of operations per second.
    """

    microseconds: float
    per_second: float


class CannedServers(ExitStack):
    """Canned servers of a run, as a context manager.

    Each server starts when a benchmark first requests its port.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ports: dict[ServerKind, int] = {}

    def port(self, kind: ServerKind) -> int:
        """Return the port on 127.0.0.1 of the server of this kind."""
        if kind not in self._ports:
            self._ports[kind] = self.enter_context(canned_server(kind))
        return self._ports[kind]


@contextmanager
def canned_server(kind: ServerKind = "standalone") -> Iterator[int]:
    """Run a canned server during a block, and yield its port.

    This process opens the listening socket, so clients may connect before the server runs. The
    server also ends when this process ends, because the end of this process closes the standard
    input of the server.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.canned_server", "--fd", str(listener.fileno()), "--kind", kind]
        server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    try:
        yield port
    finally:
        _end_server(server)


def _end_server(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(SERVER_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


class Worker:
    """Process that runs one measurement in each of its turns, and waits between the turns.

    :param port: the port of the canned server on 127.0.0.1.
    :param timeout: the time limit of a turn in seconds.
    """

    def __init__(self, measurement: Measurement, port: int, timeout: float) -> None:
        self._timeout = timeout
        self._errors = TemporaryFile("w+")  # noqa: SIM115
        command = [sys.executable, "-m", "benchmarks.worker", "--turns", *worker_arguments(measurement, port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )

    def start_turn(self) -> None:
        """Start a turn of the measurement."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"\n")
        except BrokenPipeError:
            pass  # the process has ended, and the method `result` will raise the error

    def result(self) -> Result:
        """Wait for the result of the current turn, and return the result.

        :raises WorkerFailed: the process ended, or exceeded the time limit.
        """
        stdout, end, line = self._process.stdout, time.monotonic() + self._timeout, b""
        assert stdout is not None
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise WorkerFailed(f"not finished after {self._timeout:g} seconds")
            piece = stdout.read(4096)
            if not piece:
                raise WorkerFailed(last_output_line(self._process, self._errors, self._timeout))
            line += piece
        result = json.loads(line)
        return Result(result["microseconds"], result["per_second"])

    def close(self) -> None:
        """End the worker process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def last_output_line(process: subprocess.Popen[bytes], errors: IO[str], timeout: float) -> str:
    """Wait for the end of a process. Return the last line of its error output, or its exit status.

    :param errors: the file with the error output.
    :param timeout: the time limit for the end of the process, in seconds.
    """
    status = process.wait(timeout)
    errors.seek(0)
    return (errors.read().strip().splitlines() or [f"exit status {status}"])[-1]


class Workers(ExitStack):
    """Processes that measure a row in interleaved rounds, as a context manager.

    Each process starts in its first turn.

    :param timeout: the time limit of a turn in seconds.
    """

    def __init__(self, servers: CannedServers, timeout: float) -> None:
        super().__init__()
        self._servers = servers
        self._timeout = timeout
        self._workers: dict[Measurement, Worker] = {}

    def run(self, task: Measurement) -> Result:
        """Run one turn of a measurement, and return the result.

        :raises WorkerFailed: the measurement failed.
        """
        if task not in self._workers:
            variant = VARIANTS[task.variant] if task.variant else Variant()
            self._workers[task] = Worker(task, self._servers.port(variant.server), self._timeout)
            self.callback(self._workers[task].close)
        self._workers[task].start_turn()
        return self._workers[task].result()


def run_python(arguments: Sequence[str], timeout: float) -> Any:
    """Run a new interpreter, and return the JSON value that the program prints.

    :param timeout: the time limit in seconds.
    :raises WorkerFailed: the interpreter exited with an error, or exceeded the time limit.
    """
    command = [sys.executable, *arguments]
    try:
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"not finished after {timeout:g} seconds")
    if completed.returncode:
        last = (completed.stderr.strip().splitlines() or [f"exit status {completed.returncode}"])[-1]
        raise WorkerFailed(last)
    return json.loads(completed.stdout)


def worker_arguments(task: Measurement, port: int) -> list[str]:
    """Return the command line arguments of a worker process."""
    arguments = ["--port", str(port), "--contender", task.contender, "--operation", task.operation]
    arguments += ["--greenlets", str(task.greenlet_count), "--count", str(task.operation_count)]
    return arguments + (["--variant", task.variant] if task.variant else [])
