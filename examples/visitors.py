"""Visitors of the web application: HTTP requests over gevent sockets, in a process without monkey-patching."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from socket import IPPROTO_TCP, TCP_NODELAY
from time import perf_counter
from typing import Any, NamedTuple

from gevent import socket as gevent_socket
from gevent.pool import Pool

HOST = "127.0.0.1"
REQUEST_TIMEOUT = 30.0  # seconds


class Visit(NamedTuple):
    """Result of a visit. A visit posts a note, and reads the note again."""

    latencies: list[float]
    is_stored: bool
    failure: str | None


class Connection(HTTPConnection):
    """HTTP connection on a gevent socket."""

    def connect(self) -> None:
        """Connect without blocking other greenlets."""
        self.sock = gevent_socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)

    def request_json(self, method: str, path: str, content: Any = None) -> tuple[int, Any]:
        """Send a request with JSON content, and return the status and the content of the response."""
        body = None if content is None else json.dumps(content)
        self.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = self.getresponse()
        return response.status, json.loads(response.read())


def get(port: int, path: str, timeout: float = REQUEST_TIMEOUT) -> tuple[int, Any]:
    """Send a GET request on a new connection, and return the status and the content of the response.

    :raises OSError: the server is unreachable or does not answer within `timeout` seconds.
    :raises HTTPException: the response is malformed.
    """
    connection = Connection(HOST, port, timeout=timeout)
    try:
        return connection.request_json("GET", path)
    finally:
        connection.close()


def run_visits(
    port: int, topic: str, visit_count: int, concurrency: int, report_visit: Callable[[int], object]
) -> list[Visit]:
    """Run visits in greenlets, each with a separate connection, and return the results.

    :param topic: the topic of all notes.
    :param concurrency: the number of concurrent visitors.
    :param report_visit: the function that receives, after each visit, the number of requests of the
        visit.
    """

    def visit(number: int) -> Visit:
        result = _visit(port, topic, f"note {number}")
        report_visit(len(result.latencies))
        return result

    return Pool(concurrency).map(visit, range(visit_count))


def _visit(port: int, topic: str, text: str) -> Visit:
    connection = Connection(HOST, port, timeout=REQUEST_TIMEOUT)
    latencies: list[float] = []
    is_stored = False
    try:
        status, posted_note = _send_and_time(latencies, connection, "POST", "/notes", {"text": text, "topic": topic})
        is_stored = status == 201
        if not is_stored:
            return Visit(latencies, is_stored, f"POST /notes: status {status}, {posted_note}")
        status, note = _send_and_time(latencies, connection, "GET", f"/notes/{posted_note['id']}")
        matches = status == 200 and note["text"] == text
        return Visit(latencies, is_stored, None if matches else f"GET: status {status}, {note}")
    except (OSError, HTTPException, ValueError) as error:
        return Visit(latencies, is_stored, f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def _send_and_time(latencies: list[float], connection: Connection, *request: Any) -> tuple[int, Any]:
    start = perf_counter()
    try:
        return connection.request_json(*request)
    finally:
        latencies.append(perf_counter() - start)


def percentile(latencies: list[float], percent: float) -> float:
    """Return the percentile `percent` by the nearest-rank method, or 0 for an empty list."""
    if not latencies:
        return 0.0
    return sorted(latencies)[max(0, math.ceil(len(latencies) * percent / 100) - 1)]
