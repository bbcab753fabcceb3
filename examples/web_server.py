"""Web application in separate server processes, under gunicorn or under gevent.pywsgi."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import gevent
from gevent.pool import Pool

from examples.visitors import HOST, get
from gmongo.testing import URI_VARIABLE
from gmongo.testing.process import TetheredProcess

ROOT = Path(__file__).resolve().parent.parent
READY_TIMEOUT = 30.0


class WebServerError(Exception):
    """Raised if the server ends or does not become ready. The message contains the server's output."""


class ServerOptions(NamedTuple):
    """Options of the web server, which the command line sets."""

    server: str
    worker_count: int
    preload: bool

    def describe(self) -> str:
        """Return a short description of the web server for the output."""
        if self.server == "pywsgi":
            return "gevent.pywsgi, not patched"
        workers = "1 gevent worker" if self.worker_count == 1 else f"{self.worker_count} gevent workers"
        return f"gunicorn, {workers}" + (", preloaded" if self.preload else "")


@contextmanager
def serve(options: ServerOptions, uri: str) -> Iterator[int]:
    """Run the application on a free port for the length of a block, and yield the port.

    :param uri: the connection string of the database.
    :raises WebServerError: the server did not become ready.
    """
    with socket.create_server((HOST, 0), backlog=1024) as listener:
        port: int = listener.getsockname()[1]
        target, arguments = _command(options, listener.fileno())
        process = TetheredProcess(
            target,
            arguments,
            cwd=ROOT,
            environment={URI_VARIABLE: uri},
            pass_fds=[listener.fileno()],
        )
    with process:
        _wait_until_ready(process, port)
        yield port


def _command(options: ServerOptions, fd: int) -> tuple[str, list[str]]:
    if options.server == "pywsgi":
        return "examples.wsgi_app:main", ["--fd", str(fd)]
    arguments = ["-k", "gevent", "-w", str(options.worker_count), "-b", f"fd://{fd}", "--log-level", "warning"]
    if options.preload:
        arguments.append("--preload")
    return "gunicorn.app.wsgiapp:run", [*arguments, "examples.wsgi_app:app"]


def _wait_until_ready(process: TetheredProcess, port: int) -> None:
    deadline = monotonic() + READY_TIMEOUT
    while process.poll() is None and monotonic() < deadline:
        try:
            status, _health = get(port, "/health", timeout=deadline - monotonic())
        except (OSError, HTTPException, ValueError):
            status = 0
        if status == 200:
            return
        gevent.sleep(0.05)
    raise WebServerError(f"the web server did not become ready. Its output was:\n{process.output()}")


def worker_healths(port: int, worker_count: int) -> list[dict[str, Any]]:
    """Return the health report of each worker. Omit workers that do not answer within 30 seconds.

    Repeat the requests, because a random worker answers each request, and a worker may still be
    starting.
    """
    healths: dict[int, dict[str, Any]] = {}
    end = monotonic() + READY_TIMEOUT
    while len(healths) < worker_count and monotonic() < end:
        for status, health in Pool().map(lambda _: get(port, "/health"), range(8 * worker_count)):
            if status == 200:
                healths[health["process"]] = health
        gevent.sleep(0.01)
    return [healths[process] for process in sorted(healths)]
