"""HTTP requests to services that return credentials. A request blocks only the current greenlet."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from gevent import Timeout
from gevent import socket as gevent_socket
from gevent.ssl import SSLContext

from gmongo._documents import Document, DocumentDict
from gmongo.errors import OperationFailure

_LONGEST = 1 << 20  # bytes
_LONGEST_SHOWN = 500  # characters
_ERROR_FIELDS = ("error", "error_description", "code", "Code", "message", "Message")


class _Connection(http.client.HTTPConnection):
    """HTTP connection that uses a gevent socket, even in a process without monkey-patching."""

    def __init__(self, host: str, port: int | None, secure: bool) -> None:
        super().__init__(host, port or (443 if secure else 80))
        self._secure = secure

    def connect(self) -> None:
        self.sock = gevent_socket.create_connection((self.host, self.port))
        if self._secure:
            context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_default_certs()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def request(
    service: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> str:
    """Send a request within `timeout` seconds, and return the body of the response.

    Error texts contain the name of the service, but no part of the request body or headers.
    """
    parts = urlsplit(url)
    limit = Timeout(timeout)
    connection = _Connection(parts.hostname or "", parts.port, parts.scheme == "https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with limit:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            status, text = response.status, response.read(_LONGEST).decode("utf-8", "replace")
    except Timeout as error:
        if error is not limit:
            raise
        raise OperationFailure(f"{service} at {parts.netloc} did not answer within {timeout:g} seconds") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error or type(error).__name__
        raise OperationFailure(f"{service} at {parts.netloc} cannot be reached: {reason}") from error
    finally:
        connection.close()
    if status != 200:
        answer = f"answered {method} {parts.path} with status {status}"
        raise OperationFailure(f"{service} at {parts.netloc} {answer}{_explanation(text, headers)}")
    return text


def _explanation(text: str, headers: Mapping[str, str]) -> str:
    """Return the reason in an error response. Ignore other fields of a JSON object, which may contain credentials."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        text = ", ".join(document[name] for name in _ERROR_FIELDS if isinstance(document.get(name), str))
    if not text or any(value in text for value in headers.values()):
        return ""
    return f": {text[:_LONGEST_SHOWN]!r}"


def request_json(
    service: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> DocumentDict:
    """Send a request as :func:`request` does, and return the JSON object in the response."""
    text = request(service, method, url, headers, timeout, body)
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise OperationFailure(f"{service} at {urlsplit(url).netloc} did not return a JSON object")
    return document


def text_fields(service: str, document: Document, *names: str) -> list[str]:
    """Return the values of the named fields in a response. Each value must be a non-empty string."""
    values = []
    for name in names:
        value = document.get(name)
        if not isinstance(value, str) or not value:
            raise OperationFailure(f"{service} returned no {name}")
        values.append(value)
    return values
