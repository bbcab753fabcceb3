"""The table of services: a small JSON service with several kinds of concurrency, each in one worker process."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks import load
from benchmarks.latency import quantiles_of
from benchmarks.processes import ROOT, WorkerFailed
from benchmarks.processors import pin_client, pinned_to_server_processor
from benchmarks.programs import processor_seconds
from benchmarks.rounds import Row
from benchmarks.settings import Settings
from benchmarks.worker import POOL_SIZE

TABLE = "service"
CALLER_COUNT, THREAD_COUNT = 100, 32
#: Requests per second that every service can answer.
EQUAL_RATE = 200
ROUTE_SHARES = {
    "/one": 1.0,
    "/hundred": 0.2,
}  # requests for each route, divided by the ``operations`` of the settings
COST, SATURATION, MEMORY = "CPU of a request", "requests in a second", "memory of the worker"
HALF_LATENCY, EQUAL_LATENCY = "latency at 50 %", f"latency at {EQUAL_RATE} / s"
_START_SECONDS = 120


class Service(NamedTuple):
    """Web framework, server and driver that implement the service.

    :param packages: the names of the required packages.
    :param driver: the driver of the Flask application, or an empty text.
    :param command: the arguments of ``python -m``; ``{fd}`` is the descriptor of a listening socket.
    """

    packages: tuple[str, ...]
    driver: str
    command: str


_FLASK = "gunicorn -w 1 -b fd://{fd} --keep-alive 75 --log-level warning benchmarks.services.flask_service:app"
_UVICORN = "uvicorn --fd {fd} --loop uvloop --timeout-keep-alive 75 --log-level warning"
SERVICES = {
    "Flask, gunicorn/gevent, gmongo": Service(("flask", "gunicorn"), "gmongo", f"{_FLASK} -k gevent"),
    "Flask, gunicorn/gevent, PyMongo": Service(("flask", "gunicorn"), "pymongo", f"{_FLASK} -k gevent"),
    "Flask, gunicorn/gthread, PyMongo": Service(
        ("flask", "gunicorn"), "pymongo", f"{_FLASK} -k gthread --threads {THREAD_COUNT}"
    ),
    "Starlette, uvicorn/uvloop, PyMongo": Service(
        ("starlette", "uvicorn", "uvloop"),
        "",
        f"{_UVICORN} benchmarks.services.starlette_service:app",
    ),
}


def missing_package(name: str) -> str | None:
    """Return the first required package of a service that is not installed, or None."""
    return next((package for package in SERVICES[name].packages if find_spec(package) is None), None)


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure each route of each service."""
    if TABLE not in settings.only:
        return
    names = [name for name in SERVICES if missing_package(name) is None]
    for route, share in ROUTE_SHARES.items():
        results: dict[str, dict[tuple[str, str], float]] = {}
        failures: dict[str, str] = {}
        for name in names:
            settings.show_progress(f"{name}: {route}")
            try:
                with pinned_to_server_processor():
                    results[name] = _measure_service(
                        SERVICES[name],
                        route,
                        settings,
                        max(CALLER_COUNT, round(settings.operations * share)),
                    )
            except WorkerFailed as failure:
                failures[name] = str(failure)
        for quantity, unit in next(iter(results.values()), {}):
            numbers = {name: [each[quantity, unit]] for name, each in results.items()}
            yield Row(f"{route}: {quantity}", None, unit, numbers, failures)


def _measure_service(service: Service, route: str, settings: Settings, count: int) -> dict[tuple[str, str], float]:
    uri = f"mongodb://127.0.0.1:{settings.servers.port('standalone')}/?maxPoolSize={POOL_SIZE}"
    with ExitStack() as stack:
        port, process_id = stack.enter_context(_running_service(service, uri))
        streams = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(CALLER_COUNT)]
        exchange = _make_exchange(streams[0], f"GET {route} HTTP/1.1\r\nHost: service\r\n\r\n".encode())
        load.send(streams, exchange, 2 * CALLER_COUNT)  # the first requests open the connections
        process_ids = [process_id, *_child_process_ids(process_id)]
        before = processor_seconds(process_ids)
        saturation = count / load.send(streams, exchange, count).clock
        numbers = {
            (COST, "ms"): (processor_seconds(process_ids) - before) / count * 1e3,
            (SATURATION, "/ s"): saturation,
            (MEMORY, "MB"): _resident_megabytes(process_ids[-1]),
        }
        for name, rate in ((HALF_LATENCY, saturation / 2), (EQUAL_LATENCY, EQUAL_RATE)):
            latencies = load.send(streams, exchange, max(2, count // 2), rate).latencies
            numbers |= {(f"{name}, {quantile}", "ms"): number for quantile, number in quantiles_of(latencies).items()}
        return numbers


@contextmanager
def _running_service(service: Service, uri: str) -> Iterator[tuple[int, int]]:
    """Run a service during a block. Yield the port of the service, and the ID of its first process."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        command = service.command.format(fd=listener.fileno()).split()
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, "SERVICE_DRIVER": service.driver, "SERVICE_URI": uri},
            pass_fds=[listener.fileno()],
            preexec_fn=pin_client,
        )
    try:
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def _make_exchange(stream: socket.socket, request: bytes) -> load.Exchange:
    """Send a request once, and return an exchange that contains the request and the size of the answer."""
    stream.settimeout(_START_SECONDS)
    stream.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = stream.recv(1 << 20)
        if not piece:
            raise WorkerFailed("the service has ended")
        answer += piece
    head = answer.partition(b"\r\n\r\n")[0]
    length_match = re.search(rb"(?i)content-length: (\d+)", head)
    if length_match is None or not head.startswith(b"HTTP/1.1 200"):
        raise WorkerFailed(f"the service answers {head[:80]!r}")
    size = len(head) + 4 + int(length_match[1])
    while len(answer) < size:
        answer += stream.recv(size - len(answer))
    stream.settimeout(None)
    return load.Exchange(request, b"HTTP/1.1 200", size)


def _child_process_ids(process_id: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]


def _resident_megabytes(process_id: int) -> float:
    page_count = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return page_count * os.sysconf("SC_PAGE_SIZE") / 1e6
