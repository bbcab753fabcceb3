"""Contenders: programs with a common protocol that differ in driver, language or concurrency.

A program has four arguments: the server's URI, the path of a Unix socket, the number of callers, and
the path of a file. The file contains one BSON document with the documents ``query``, ``change`` and
``unsaved``, and the array ``pipeline``.

Each caller (a greenlet, thread, task or goroutine) connects to the socket, and reads four bytes for
each request. The highest byte is the index of an operation in :data:`DOCUMENT_COUNTS`, and the other
bytes are a count. The caller runs the operation `count` times, and answers with four bytes: the
number of documents in all results. A caller ends at the end of its stream. Programs measure no times.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NamedTuple

import bson

from benchmarks.documents import (
    BATCH_SIZE,
    CHANGE,
    LARGE_DOCUMENT_BYTES,
    MANY_COUNT,
    MEGABYTE_BATCH_SIZE,
    QUERY,
    UNSAVED,
)
from benchmarks.load import Exchange
from benchmarks.processes import ROOT, WorkerFailed, last_output_line
from benchmarks.processors import pin_client
from benchmarks.real.driver_operations import PIPELINE
from benchmarks.worker import POOL_SIZE

#: The operations of a program in the order of their numbers, with the number of documents in each result.
DOCUMENT_COUNTS = {
    "find_one": 1,
    "insert_one": 1,
    "update_one": 1,
    "find_100": BATCH_SIZE,
    "find_megabyte": MEGABYTE_BATCH_SIZE,
    # The following operations need a real server.
    "find_10000": MANY_COUNT,
    "aggregate": 20,
    "bulk_write": 1000,
    "transaction": 3,
    "change_stream": 1,
    "first_operation": 1,
}
SOURCE_FOLDER, BUILD_FOLDER = Path(__file__).with_name("contenders"), ROOT / ".contenders"
assert MEGABYTE_BATCH_SIZE * LARGE_DOCUMENT_BYTES == 1_000_000
_START_SECONDS, _BUILD_SECONDS = 120, 3600


class Contender(NamedTuple):
    """Client program that the benchmark compares with other clients.

    :param title: the displayed name, with the document type if the language is not Python.
    :param tools: the programs in PATH that build and run the contender; none for contenders in
        Python.
    :param build: the commands that build the contender, in a copy of its sources.
    :param command: the command that starts the contender, with paths relative to the copy.
    """

    title: str
    tools: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    command: str = ""


CONTENDERS = {
    "gmongo": Contender("gmongo"),
    "pymongo": Contender("PyMongo, patched gevent"),
    "threads": Contender("PyMongo, threads"),
    "asyncio": Contender("PyMongo, asyncio"),
    "uvloop": Contender("PyMongo, uvloop"),
    "go": Contender("Go, `bson.M`", ("go",), ("go mod tidy", "go build -o contender ."), "./contender"),
    "rust": Contender("Rust, `Document`", ("cargo",), ("cargo build --release",), "target/release/contender"),
    "node": Contender("Node.js, objects", ("node", "npm"), ("npm install --silent",), "node main.js"),
    "floor": Contender("floor"),
}


def missing_tool(name: str) -> str | None:
    """Return the first required tool of a contender that is not installed, or None."""
    if name == "uvloop":
        from importlib.util import find_spec

        return None if find_spec("uvloop") else "uvloop"
    return next((tool for tool in CONTENDERS[name].tools if shutil.which(tool) is None), None)


def prepare_command(name: str) -> list[str]:
    """Build a contender if its sources have changed, and return its start command.

    :raises WorkerFailed: the build failed.
    """
    contender = CONTENDERS[name]
    if not contender.tools:
        return [sys.executable, "-m", "benchmarks.contenders", name]
    folder, digest_file = BUILD_FOLDER / name, BUILD_FOLDER / name / "built"
    sources = sorted(file for file in (SOURCE_FOLDER / name).rglob("*") if file.is_file())
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()
    if not digest_file.exists() or digest_file.read_text() != digest:
        shutil.copytree(SOURCE_FOLDER / name, folder, dirs_exist_ok=True)
        for step in contender.build:
            completed = subprocess.run(
                step.split(), cwd=folder, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
            )
            if completed.returncode:
                raise WorkerFailed((completed.stderr.strip().splitlines() or [f"{step} failed"])[-1])
        digest_file.write_text(digest)
    program, *arguments = contender.command.split()
    return [shutil.which(program) or str(folder / program), *(str(folder / each) for each in arguments)]


class Program:
    """Running contender: its processes, all on the first processor, and the streams of its callers."""

    def __init__(self, processes: list[subprocess.Popen[bytes]], streams: list[socket.socket]) -> None:
        self._processes = processes
        self.streams = streams

    @property
    def processor_seconds(self) -> float:
        """The CPU time of the contender's processes in seconds."""
        return processor_seconds([process.pid for process in self._processes])


def canned_uri(port: int) -> str:
    """Return the connection string of the canned server on a port of 127.0.0.1."""
    return f"mongodb://127.0.0.1:{port}/?maxPoolSize={POOL_SIZE}"


@contextmanager
def start_contender(name: str, uri: str, caller_count: int, process_count: int = 1) -> Iterator[Program]:
    """Run a contender during a block. Each process of the contender runs an equal number of callers.

    :param uri: the connection string of the server.
    :raises WorkerFailed: the build failed, or the contender did not start.
    """
    started: list[subprocess.Popen[bytes]] = []
    streams: list[socket.socket] = []
    with (
        TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as listener,
        TemporaryFile("w+") as errors,
    ):
        path, documents = str(Path(folder, "callers")), Path(folder, "documents")
        documents.write_bytes(bson.encode({"query": QUERY, "change": CHANGE, "unsaved": UNSAVED, "pipeline": PIPELINE}))
        listener.bind(path)
        listener.listen(caller_count)
        listener.settimeout(1)
        arguments = [*prepare_command(name), uri, path, str(caller_count // process_count), str(documents)]
        try:
            for _ in range(process_count):
                started.append(
                    subprocess.Popen(
                        arguments, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=errors, preexec_fn=pin_client
                    )
                )
            streams += _accept_streams(listener, caller_count, started, errors)
            yield Program(started, streams)
        finally:
            for stream in streams:
                stream.close()
            for process in started:
                process.kill()
                process.wait()


def _accept_streams(
    listener: socket.socket, caller_count: int, started: Sequence[subprocess.Popen[bytes]], errors: IO[str]
) -> Iterator[socket.socket]:
    end = time.monotonic() + _START_SECONDS
    for _ in range(caller_count):
        while True:
            try:
                yield listener.accept()[0]
                break
            except TimeoutError:
                ended = next((process for process in started if process.poll() is not None), None)
                if ended is not None:
                    raise WorkerFailed(last_output_line(ended, errors, 1))
                if time.monotonic() > end:
                    raise WorkerFailed(f"not started after {_START_SECONDS} seconds")


def processor_seconds(process_ids: Sequence[int]) -> float:
    """Return the total CPU time of processes in seconds, including all their threads (Linux)."""
    # clock_getcpuclockid(3) calculates the ID of the CPU clock of another process in this way.
    return sum(time.clock_gettime(~process_id << 3 | 2) for process_id in process_ids)


def exchange(operation: str, count: int = 1) -> Exchange:
    """Return the exchange in which a caller runs an operation `count` times."""
    request, answer = list(DOCUMENT_COUNTS).index(operation) << 24 | count, DOCUMENT_COUNTS[operation] * count
    return Exchange(request.to_bytes(4, "big"), answer.to_bytes(4, "big"), 4)
