"""Small HTTP requests to the services that give out credentials. Only the asking greenlet waits."""

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

_LONGEST = 1 << 20
_LONGEST_SHOWN = 500
_EXPLAINING = ("error", "error_description", "code", "Code", "message", "Message")


class _Connection(http.client.HTTPConnection):
    """A connection on a socket of gevent's, in a patched process or not."""

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
    what: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> str:
    """The body of the response to one request.

    :param what: the service that is asked, for messages. They show nothing of what is sent.
    :param timeout: seconds for all of it.
    :raises OperationFailure: it cannot be reached, does not answer in time, or refuses.
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
        raise OperationFailure(f"{what} at {parts.netloc} did not answer within {timeout:g} seconds") from None
    except (OSError, http.client.HTTPException) as error:
        raise OperationFailure(f"{what} at {parts.netloc} cannot be asked: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if status != 200:
        raise OperationFailure(
            f"{what} at {parts.netloc} answered {method} {parts.path} with status {status}{_said(text, headers)}"
        )
    return text


def _said(text: str, headers: Mapping[str, str]) -> str:
    """The error text of a response; of JSON only the fields for it, as others may hold credentials."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        text = ", ".join(document[name] for name in _EXPLAINING if isinstance(document.get(name), str))
    if not text or any(value in text for value in headers.values()):
        return ""
    return f": {text[:_LONGEST_SHOWN]!r}"


def request_json(
    what: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> DocumentDict:
    """As :func:`request`, for a response that is a JSON object."""
    text = request(what, method, url, headers, timeout, body)
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise OperationFailure(f"{what} at {urlsplit(url).netloc} did not answer with a JSON object")
    return document


def text_field(what: str, document: Document, *names: str) -> list[str]:
    """Fields of a response that must be strings.

    :raises OperationFailure: one is not there.
    """
    values = []
    for name in names:
        value = document.get(name)
        if not isinstance(value, str) or not value:
            raise OperationFailure(f"{what} answered without {name}")
        values.append(value)
    return values
