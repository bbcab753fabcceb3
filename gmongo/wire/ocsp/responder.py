"""HTTP queries to an OCSP responder, with limits on size and redirections."""

from __future__ import annotations

import io
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from types import SimpleNamespace
from urllib.parse import urljoin, urlsplit

from gmongo.wire.connect import connect
from gmongo.wire.ocsp.response import MAX_RESPONSE_SIZE, NoResponse
from gmongo.wire.race import Race
from gmongo.wire.transport import Transport, TransportError

_MOST_REDIRECTIONS = 3
# Maximum size of a response with its headers, in bytes. An endless response would block the event loop.
_MOST_READ = 2 * MAX_RESPONSE_SIZE
_REDIRECTIONS = (301, 302, 303, 307, 308)


def query(url: str, request: bytes, attach: Callable[[Transport | Race], None]) -> bytes:
    """Send a DER request to an OCSP responder, and return its response, without a time limit.

    `attach` receives each transport before it connects. The caller closes the transports.
    """
    for _ in range(_MOST_REDIRECTIONS + 1):
        try:
            response = _exchange(url, request, attach)
            status, location = response.status, response.getheader("Location")
            if status == 200:
                return response.read(MAX_RESPONSE_SIZE + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise NoResponse(f"the query to the OCSP responder at {_host_of(url)} failed: {error}") from error
        if status not in _REDIRECTIONS or not location:
            raise NoResponse(f"the OCSP responder at {_host_of(url)} answers with status {status}")
        url = urljoin(url, location)
    raise NoResponse(f"the OCSP responder redirects more than {_MOST_REDIRECTIONS} times")


def _exchange(url: str, request: bytes, attach: Callable[[Transport | Race], None]) -> HTTPResponse:
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
    # `HTTPResponse` calls no other method of a socket than `makefile`
    sock = SimpleNamespace(makefile=lambda _mode: io.BufferedReader(_Stream(transport)))
    response = HTTPResponse(sock)  # type: ignore[arg-type]
    response.begin()
    return response


def _host_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


class _Stream(io.RawIOBase):
    """Stream of the received bytes up to the size limit. After a transport error, the stream ends without an error."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._left = _MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._transport.receive_some(min(len(into), self._left)) if self._left else b""
        except TransportError:
            return 0
        self._left -= len(data)
        into[: len(data)] = data
        return len(data)
