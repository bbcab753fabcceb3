"""HTTP requests to services that return credentials. A request blocks only the current greenlet."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, quote, urlsplit

from gevent import Timeout
from gevent import socket as gevent_socket
from gevent.ssl import SSLContext

from gmongo._documents import Document, DocumentDict
from gmongo.errors import OperationFailure

_AZURE_URL = "http://169.254.169.254"
_MAX_SIZE = 1 << 20  # bytes
_MAX_REASON_LENGTH = 500  # characters
_ERROR_FIELDS = ("error", "error_description", "code", "Code", "message", "Message")


class _Connection(http.client.HTTPConnection):
    """HTTP connection that uses a gevent socket, even in a process without monkey-patching."""

    def __init__(self, host: str, port: int | None, uses_tls: bool) -> None:
        super().__init__(host, port or (443 if uses_tls else 80))
        self._uses_tls = uses_tls

    def connect(self) -> None:
        self.sock = gevent_socket.create_connection((self.host, self.port))
        if self._uses_tls:
            self.sock = default_tls_context().wrap_socket(self.sock, server_hostname=self.host)


def default_tls_context() -> ssl.SSLContext:
    """Return a gevent TLS context that trusts the certificate authorities of the system."""
    context: ssl.SSLContext = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    return context


def request(
    service: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> str:
    """Send a request within `timeout` seconds, and return the body of the response.

    Error texts contain the name of the service, but no response text that quotes a header or token of the request.
    """
    parts = urlsplit(url)
    limit = Timeout(timeout)
    connection = _Connection(parts.hostname or "", parts.port, parts.scheme == "https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with limit:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            status, text = response.status, response.read(_MAX_SIZE).decode("utf-8", "replace")
    except Timeout as error:
        if error is not limit:
            raise
        raise OperationFailure(f"{service} at {parts.netloc} did not answer within {timeout:g} seconds") from None
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise OperationFailure(f"{service} at {parts.netloc} cannot be reached: {reason}") from error
    finally:
        connection.close()
    if status != 200:
        answer = f"answered {method} {parts.path} with status {status}"
        secrets = {*headers.values(), *(value for name, value in parse_qsl(body or "") if name.endswith("Token"))}
        raise OperationFailure(f"{service} at {parts.netloc} {answer}{_error_reason(text, secrets)}")
    return text


def _error_reason(text: str, secrets: Collection[str]) -> str:
    """Return the reason in an error response. JSON fields that are not in `_ERROR_FIELDS` may be secret."""
    document = _json_object(text)
    if document is not None:
        text = ", ".join(document[name] for name in _ERROR_FIELDS if isinstance(document.get(name), str))
    if not text or any(value in text for value in secrets):
        return ""
    return f": {text[:_MAX_REASON_LENGTH]!r}"


def request_json(
    service: str, method: str, url: str, headers: Mapping[str, str], timeout: float, body: str | None = None
) -> DocumentDict:
    """Send a request as :func:`request` does, and return the JSON object in the response."""
    document = _json_object(request(service, method, url, headers, timeout, body))
    if document is None:
        raise OperationFailure(f"{service} at {urlsplit(url).netloc} did not return a JSON object")
    return document


def _json_object(text: str) -> DocumentDict | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def azure_token(resource: str, timeout: float, client_id: str = "") -> DocumentDict:
    """Return the reply of the Azure metadata service, with an ``access_token`` for `resource`."""
    service = "the Azure metadata service"
    base = (os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or _AZURE_URL).rstrip("/")
    query = f"resource={quote(resource, safe='')}&api-version=2018-02-01"
    if client_id:
        query += f"&client_id={quote(client_id, safe='')}"
    headers = {"Metadata": "true", "Accept": "application/json"}
    url = f"{base}/metadata/identity/oauth2/token?{query}"
    reply = request_json(service, "GET", url, headers, timeout)
    text_fields(service, reply, "access_token")
    return reply


def text_fields(service: str, document: Document, *names: str) -> list[str]:
    """Return the values of the named fields in a response. Each value must be a non-empty string."""
    for name in names:
        if not isinstance(document.get(name), str) or not document[name]:
            raise OperationFailure(f"{service} returned no {name}")
    return [document[name] for name in names]
