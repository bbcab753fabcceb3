"""The processes of a run: canned servers, and workers that take turns."""

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
from statistics import fmean
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from benchmarks.circumstances import CIRCUMSTANCES, Circumstance, ServerKind

ROOT = Path(__file__).resolve().parent.parent
SERVER_EXIT_SECONDS = 5


class WorkerFailed(Exception):
    """A worker ended without a measurement; the message is the last thing that it said."""


class Measurement(NamedTuple):
    """What a worker is asked to do in each of its turns.

    :param circumstance: what is different, by its name in ``CIRCUMSTANCES``; None for the plain case.
    :param listener: register a command listener, whatever else is different.
    """

    contender: str
    operation: str
    greenlets: int
    repeats: int
    circumstance: str | None = None
    listener: bool = False


class Result(NamedTuple):
    """What was found in one turn.

    :param microseconds: CPU time of an operation.
    :param per_second: how many operations were done in a second.
    """

    microseconds: float
    per_second: float


class CannedServers(ExitStack):
    """The canned servers of a run, each started when it is first needed. They are gone afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._ports: dict[ServerKind, int] = {}

    def port(self, kind: ServerKind) -> int:
        """The port on 127.0.0.1 of a server of that kind."""
        if kind not in self._ports:
            self._ports[kind] = self.enter_context(canned_server(kind))
        return self._ports[kind]


@contextmanager
def canned_server(kind: ServerKind = "standalone") -> Iterator[int]:
    """Run a canned server and give its port; it is gone afterwards, whatever happens in between.

    The listening socket is opened here, so clients may connect at once. The server also ends by itself when
    this process does, since its standard input is a pipe that only this process holds open.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port: int = listener.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.canned_server", "--fd", str(listener.fileno()), "--kind", kind]
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


class Worker:
    """A process that measures the same thing whenever it is its turn. Between its turns it waits.

    :param port: port of the canned server on 127.0.0.1.
    :param timeout: seconds until a turn is given up.
    """

    def __init__(self, wanted: Measurement, port: int, timeout: float) -> None:
        self._timeout = timeout
        self._errors = TemporaryFile("w+")  # noqa: SIM115
        command = [sys.executable, "-m", "benchmarks.worker", "--turns", *worker_arguments(wanted, port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )

    def begin(self) -> None:
        """It is its turn."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"\n")
        except BrokenPipeError:
            pass  # it has ended, as `result` tells

    def result(self) -> Result:
        """What it finds in the turn that has begun.

        :raises WorkerFailed: it has ended with an error, or is not done in time.
        """
        stdout, end, line = self._process.stdout, time.monotonic() + self._timeout, b""
        assert stdout is not None
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise WorkerFailed(f"not finished after {self._timeout:g} seconds")
            piece = stdout.read(4096)
            if not piece:
                raise WorkerFailed(last_words(self._process, self._errors, self._timeout))
            line += piece
        found = json.loads(line)
        return Result(found["microseconds"], found["per_second"])

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def last_words(process: subprocess.Popen[bytes], errors: IO[str], timeout: float) -> str:
    """The last line that a process wrote before it ended.

    :param errors: the file that it wrote to.
    :param timeout: seconds until it is given up.
    """
    status = process.wait(timeout)
    errors.seek(0)
    return (errors.read().strip().splitlines() or [f"exit status {status}"])[-1]


class Workers(ExitStack):
    """The processes that take turns for a row. Each is started for its first turn; they are gone afterwards.

    :param timeout: seconds until a turn is given up.
    """

    def __init__(self, servers: CannedServers, timeout: float) -> None:
        super().__init__()
        self._servers = servers
        self._timeout = timeout
        self._crews: dict[Measurement, list[Worker]] = {}

    def run(self, wanted: Measurement) -> Result:
        """Measure once. Where several processes do the same, they do it at the same time.

        :raises WorkerFailed: it did not work.
        """
        if wanted not in self._crews:
            circumstance = CIRCUMSTANCES[wanted.circumstance] if wanted.circumstance else Circumstance()
            port = self._servers.port(circumstance.server)
            self._crews[wanted] = [Worker(wanted, port, self._timeout) for _ in range(circumstance.workers)]
            for worker in self._crews[wanted]:
                self.callback(worker.close)
        crew = self._crews[wanted]
        for worker in crew:
            worker.begin()
        results = [worker.result() for worker in crew]
        return Result(fmean(each.microseconds for each in results), sum(each.per_second for each in results))


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


def worker_arguments(wanted: Measurement, port: int) -> list[str]:
    """The command line of a worker process."""
    arguments = ["--port", str(port), "--contender", wanted.contender, "--operation", wanted.operation]
    arguments += ["--greenlets", str(wanted.greenlets), "--count", str(wanted.repeats)]
    arguments += ["--circumstance", wanted.circumstance] if wanted.circumstance else []
    return arguments + (["--listener"] if wanted.listener else [])
