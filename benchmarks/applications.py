"""``python -m benchmarks.applications``: whole applications under gunicorn, on both drivers.

The Flask-PyMongo and the MongoEngine application of ``examples`` run unchanged in one gevent worker, on a simulated
deployment in a process of its own. The line of ``gunicorn.conf.py`` is all that differs. What is measured is CPU of the
worker for a request, with everything that Flask, the library and the driver do.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import gevent
import gevent.socket
from gevent.pool import Pool

from gmongo.testing import DeploymentProcess

ROOT = Path(__file__).resolve().parents[1]
DRIVERS = ("pymongo", "gmongo")
_TICK = os.sysconf("SC_CLK_TCK")
_WARM_UP = 200


class Route(NamedTuple):
    """What is asked for, again and again, and what has to be there before."""

    application: str
    prepare: tuple[tuple[str, str, dict[str, object]], ...]
    path: str
    shows: str


ROUTES = (
    Route("flask_pymongo", (("PUT", "/artists/ada", {"born": 1901}),), "/artists/ada", "one `find_one`"),
    Route(
        "mongoengine",
        (("PUT", "/authors/ada", {}), *(("POST", "/authors/ada/posts", {"title": f"Post {n}"}) for n in range(5))),
        "/authors/ada",
        "a document, and a query of 5 documents that refer to it",
    ),
)


class Measured(NamedTuple):
    """Of one run."""

    cpu: float  # milliseconds of the worker's, for a request
    rate: float  # requests in a second


def ask(port: int, method: str, path: str, body: dict[str, object] | None = None) -> int:
    """The status of the answer."""
    content = json.dumps(body).encode() if body is not None else b""
    head = f"{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    with gevent.socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + content)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(answer.split()[1])


@contextmanager
def served(route: Route, driver: str, uri: str) -> Iterator[tuple[int, int]]:
    """The port and the process of the only worker."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        settings = ROOT / "examples" / route.application / "gunicorn.conf.py"
        options = ["-c", str(settings)] if driver == "gmongo" else []
        command = ["-m", "gunicorn", "-k", "gevent", "-w", "1", "-b", f"fd://{listener.fileno()}", *options]
        process = subprocess.Popen(
            [sys.executable, *command, "--log-level", "warning", f"examples.{route.application}.app:app"],
            cwd=ROOT,
            env={**os.environ, "MONGO_URI": uri},
            pass_fds=[listener.fileno()],
        )
    try:
        for method, path, body in route.prepare:
            if ask(port, method, path, body) != 201:
                raise RuntimeError(f"{driver}: {method} {path} failed")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield port, int(children[0])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def measure(route: Route, driver: str, requests: int, concurrency: int) -> Measured:
    """One run of an application on a driver."""
    with DeploymentProcess("--standalone") as deployment:
        uri = f"{deployment.uri.rstrip('/')}/measured"
        with served(route, driver, uri) as (port, worker):
            crowd = Pool(concurrency)
            crowd.map(lambda _: ask(port, "GET", route.path), range(_WARM_UP))
            before, began = cpu_of(worker), time.perf_counter()
            statuses = set(crowd.map(lambda _: ask(port, "GET", route.path), range(requests)))
            took, spent = time.perf_counter() - began, cpu_of(worker) - before
    if statuses != {200}:
        raise RuntimeError(f"{driver}: answers with {statuses}")
    return Measured(spent * 1000 / requests, requests / took)


def cpu_of(process: int) -> float:
    """Seconds of CPU that a process has used; see proc(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def main() -> None:
    """Print a table for the docs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applications", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the drivers take turns this many times (default 3)")
    parser.add_argument("--requests", type=int, default=2000, help="of a run (default 2000)")
    parser.add_argument("--concurrency", type=int, default=20, help="requests at a time (default 20)")
    options = parser.parse_args()
    print("| application | a request | CPU with PyMongo | with gmongo | ratio | requests/s | |")
    print("|---|---|---|---|---|---|---|")
    for route in ROUTES:
        runs: dict[str, list[Measured]] = {driver: [] for driver in DRIVERS}
        for _ in range(options.rounds):
            for driver in DRIVERS:
                runs[driver].append(measure(route, driver, options.requests, options.concurrency))
        theirs, ours = (statistics.median(each.cpu for each in runs[driver]) for driver in DRIVERS)
        rates = [statistics.median(each.rate for each in runs[driver]) for driver in DRIVERS]
        print(
            f"| `examples/{route.application}` | {route.shows} | {theirs:.2f} ms | {ours:.2f} ms | {ours / theirs:.2f} "
            f"| {rates[0]:.0f} | {rates[1]:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
