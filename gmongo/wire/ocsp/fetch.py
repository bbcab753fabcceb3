"""Concurrent HTTP queries to the OCSP responders of a certificate."""

from __future__ import annotations

import io
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from types import SimpleNamespace
from urllib.parse import urljoin, urlsplit

import gevent
from gevent.event import Event

from gmongo import _clock
from gmongo._background import keep_loop_alive
from gmongo._safe_log import safely
from gmongo.wire.connect import connect
from gmongo.wire.ocsp.messages import MAX_RESPONSE_SIZE, NoResponse, Request, Response, parse_response
from gmongo.wire.race import Race
from gmongo.wire.timeout import interrupt_after
from gmongo.wire.tls import ocsp_log
from gmongo.wire.transport import Transport, TransportError

_MAX_RESPONDERS = 4
_PAUSE_AFTER_FAILURE = 60.0  # seconds without queries after failed queries, so that new connections do not wait
_MAX_REDIRECTIONS = 3
# Maximum size of a response with its headers, in bytes. An endless response would block the event
# loop.
_MAX_READ_BYTES = 2 * MAX_RESPONSE_SIZE
_REDIRECTION_STATUSES = (301, 302, 303, 307, 308)


class ResponderQueries:
    """OCSP queries about one certificate in background greenlets.

    `seconds` limits each query. `store` receives the first conclusive answer. All connections that
    need the answer share the queries. If a waiting connection is closed, the queries continue.
    """

    def __init__(self, request: Request, seconds: float, store: Callable[[Request, Response], None]) -> None:
        self.answer: Response | None = None
        self._pause_ends_at = _clock.monotonic() + seconds + _PAUSE_AFTER_FAILURE
        self._transports: list[Transport | Race] = []
        self._ended = Event()
        responders = request.responders[:_MAX_RESPONDERS]
        self._pending_count = len(responders)
        for url in responders:
            greenlet = gevent.Greenlet(self._query, url, request, seconds, store)
            # the linked function runs even if the greenlet is killed before its start
            greenlet.link(self._handle_query_end)
            greenlet.start()

    @property
    def may_be_replaced(self) -> bool:
        """True if new queries may start: after an answer, or after the pause that follows failed queries."""
        return self._ended.is_set() and (self.answer is not None or _clock.monotonic() >= self._pause_ends_at)

    def wait(self, ref: bool) -> None:
        """Wait for a conclusive answer or the end of all queries. If `ref`, keep the loop alive."""
        timer = keep_loop_alive() if ref and not self._ended.is_set() else None
        try:
            self._ended.wait()
        finally:
            if timer is not None:
                timer.close()

    def mark_forked(self) -> None:
        for each in self._transports:
            each.mark_forked(TransportError("the parent process queries the OCSP responder"))

    def _query(self, url: str, request: Request, seconds: float, store: Callable[[Request, Response], None]) -> None:
        timeout_error = NoResponse(f"the OCSP responder at {url} does not answer within {seconds:g} seconds")
        transports: list[Transport | Race] = []

        def attach(transport: Transport | Race) -> None:
            transports.append(transport)
            self._transports.append(transport)

        try:
            with interrupt_after(seconds, timeout_error, ref=False):
                answer = parse_response(request, query_responder(url, request.encoded, attach))
            if answer.is_conclusive and self.answer is None:
                self.answer = answer
                store(request, answer)
                self._ended.set()
        except NoResponse as error:
            safely(ocsp_log.info, "%s", error)
        finally:
            for each in transports:
                each.close()
                self._transports.remove(each)

    def _handle_query_end(self, _greenlet: object) -> None:
        self._pending_count -= 1
        if not self._pending_count:
            self._ended.set()


def query_responder(url: str, request: bytes, attach: Callable[[Transport | Race], None]) -> bytes:
    """Query an OCSP responder. `attach` receives each transport and race, which the caller closes."""
    for _ in range(_MAX_REDIRECTIONS + 1):
        try:
            response = _send_request(url, request, attach)
            status, location = response.status, response.getheader("Location")
            if status == 200:
                return response.read(MAX_RESPONSE_SIZE + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise NoResponse(f"the query to the OCSP responder at {_get_host(url)} failed: {error}") from error
        if status not in _REDIRECTION_STATUSES or not location:
            raise NoResponse(f"the OCSP responder at {_get_host(url)} answers with status {status}")
        url = urljoin(url, location)
    raise NoResponse(f"the OCSP responder redirects more than {_MAX_REDIRECTIONS} times")


def _send_request(url: str, request: bytes, attach: Callable[[Transport | Race], None]) -> HTTPResponse:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("only HTTP URLs with a host are supported")
    transport = connect((parts.hostname, parts.port or 80), attach, ref=False)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\nConnection: close\r\n"
        f"Content-Type: application/ocsp-request\r\nContent-Length: {len(request)}\r\n\r\n"
    )
    transport.send_raw(head.encode("ascii") + request)
    # `HTTPResponse` calls only the method `makefile` of a socket
    sock = SimpleNamespace(makefile=lambda _mode: io.BufferedReader(_Stream(transport)))
    response = HTTPResponse(sock)  # type: ignore[arg-type]
    response.begin()
    return response


def _get_host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


class _Stream(io.RawIOBase):
    """Stream of the received bytes up to the size limit. A transport error ends the stream."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._bytes_left = _MAX_READ_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._transport.receive_some(min(len(into), self._bytes_left)) if self._bytes_left else b""
        except TransportError:
            return 0
        self._bytes_left -= len(data)
        into[: len(data)] = data
        return len(data)
