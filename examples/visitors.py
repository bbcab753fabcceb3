"""Visitors of the web application: HTTP requests over gevent's sockets, in a process that is not patched."""

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
REQUEST_TIMEOUT = 30.0


class Visit(NamedTuple):
    """What became of a visit, which posts a note and gets it back."""

    latencies: list[float]
    stored: bool
    failure: str | None


class Connection(HTTPConnection):
    """The standard library's client, on a socket of gevent's."""

    def connect(self) -> None:
        """Connect in a way that lets other greenlets run."""
        self.sock = gevent_socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)

    def ask(self, method: str, path: str, content: Any = None) -> tuple[int, Any]:
        """Send a request with JSON content; the status and the content of the response."""
        body = None if content is None else json.dumps(content)
        self.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = self.getresponse()
        return response.status, json.loads(response.read())


def get(port: int, path: str, timeout: float = REQUEST_TIMEOUT) -> tuple[int, Any]:
    """One GET on a connection of its own.

    :raises OSError: the server cannot be reached or does not answer within `timeout` seconds.
    :raises HTTPException: it answers nonsense.
    """
    connection = Connection(HOST, port, timeout=timeout)
    try:
        return connection.ask("GET", path)
    finally:
        connection.close()


def send_visitors(port: int, topic: str, visits: int, at_once: int, finished: Callable[[int], object]) -> list[Visit]:
    """Let visitors come, each as a greenlet with a connection of its own.

    :param topic: of all their notes.
    :param at_once: how many come at the same time.
    :param finished: is called after each visit with the number of its requests.
    """

    def visit(number: int) -> Visit:
        result = _visit(port, topic, f"note {number}")
        finished(len(result.latencies))
        return result

    return Pool(at_once).map(visit, range(visits))


def _visit(port: int, topic: str, text: str) -> Visit:
    connection = Connection(HOST, port, timeout=REQUEST_TIMEOUT)
    latencies: list[float] = []
    stored = False
    try:
        status, posted = _timed(latencies, connection, "POST", "/notes", {"text": text, "topic": topic})
        stored = status == 201
        if not stored:
            return Visit(latencies, stored, f"POST /notes: status {status}, {posted}")
        status, note = _timed(latencies, connection, "GET", f"/notes/{posted['id']}")
        found = status == 200 and note["text"] == text
        return Visit(latencies, stored, None if found else f"GET: status {status}, {note}")
    except (OSError, HTTPException, ValueError) as error:
        return Visit(latencies, stored, f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def _timed(latencies: list[float], connection: Connection, *request: Any) -> tuple[int, Any]:
    start = perf_counter()
    try:
        return connection.ask(*request)
    finally:
        latencies.append(perf_counter() - start)


def percentile(latencies: list[float], percent: float) -> float:
    """The least latency that `percent` of all do not exceed; 0 if there are none."""
    if not latencies:
        return 0.0
    return sorted(latencies)[max(0, math.ceil(len(latencies) * percent / 100) - 1)]
