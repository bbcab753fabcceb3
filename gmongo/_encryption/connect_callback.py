"""Connections to key management services (KMS) through an application's callback or an HTTP proxy."""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gevent import Timeout, socket, spawn

from gmongo._traceback_scrub import clears_locals
from gmongo.auth.http import default_tls_context
from gmongo.errors import ConfigurationError

_HEADER_NAME_PATTERN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE_PATTERN = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MAX_RESPONSE_SIZE = 64 * 1024
_BUFFER_SIZE = 64 * 1024
_END_OF_RESPONSE = b"\r\n\r\n"


@dataclass(frozen=True)
class KMSConnectContext:
    """Argument of a ``kms_connect_callback``: the address of the key management service, and the time limit.

    :param host: the host of the key management service, whose certificate must contain this name.
    :param port: the port of the key management service.
    :param timeout: the time limit in seconds: 10, or the remaining time of the operation if less.
    """

    host: str
    port: int
    timeout: float


KMSConnectCallback = Callable[[KMSConnectContext], socket.socket]
"""A function that connects to the host and port of a :class:`KMSConnectContext`, and returns the socket. gmongo calls
the function in a separate greenlet, starts TLS on the socket, and closes the socket. gmongo treats an exception of the
function as a network error, after which libmongocrypt may retry."""


class HTTPProxyKMSConnect:
    """Callback that connects to key management services through an HTTP proxy, with the method ``CONNECT``.

    ::

        AutoEncryptionOpts(..., kms_connect_callback=HTTPProxyKMSConnect("http://proxy.example.com:8080"))

    The proxy cannot read the data, because gmongo uses TLS with the key management service.

    :param proxy_url: an ``http://`` or ``https://`` URL, with optional user, password and port. The
        default port is 80 for ``http`` and 443 for ``https``.
    :param ssl_context: the context for TLS with the proxy. None (the default) trusts the system's
        authorities.
    :param headers: further headers of the CONNECT request, as a mapping; None (the default) adds no header.
    :raises TypeError: `proxy_url` is not a string, or `headers` is not a mapping.
    :raises ConfigurationError: `proxy_url` is not the URL of a proxy, `ssl_context` is set for an
        ``http://`` URL, or a header in `headers` is not allowed.
    """

    @clears_locals
    def __init__(
        self, proxy_url: str, ssl_context: ssl.SSLContext | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        if not isinstance(proxy_url, str):
            raise TypeError(f"proxy_url must be a string, not {type(proxy_url)}")
        try:
            parts = urlsplit(proxy_url)
            port = parts.port
        except ValueError as error:
            raise ConfigurationError(f"proxy_url is not a URL: {error}") from None
        if parts.scheme not in ("http", "https"):
            raise ConfigurationError("proxy_url must begin with http:// or https://")
        if not parts.hostname:
            raise ConfigurationError("proxy_url must name a host")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ConfigurationError("proxy_url must not have a path, a query or a fragment")
        uses_tls = parts.scheme == "https"
        if ssl_context is not None and not uses_tls:
            raise ConfigurationError("ssl_context is for TLS with the proxy, so proxy_url must begin with https://")
        self._address = parts.hostname, port or (443 if uses_tls else 80)
        self._ssl_context = (ssl_context or default_tls_context()) if uses_tls else None
        self._headers = _checked_headers(headers or {})
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"

    def __repr__(self) -> str:
        host, port = self._address
        return f"HTTPProxyKMSConnect({host!r}, port={port})"

    @clears_locals
    def __call__(self, context: KMSConnectContext) -> socket.socket:
        """Connect to the key management service through the proxy, and return the socket.

        :raises OSError: the proxy is unreachable or too slow, or refuses the connection.
        """
        with Timeout(context.timeout, TimeoutError(f"the proxy took more than {context.timeout:.3g} seconds")):
            sock = tcp_sock = socket.create_connection(self._address)
            try:
                if self._ssl_context is not None:
                    sock = self._ssl_context.wrap_socket(tcp_sock, server_hostname=self._address[0])
                self._open_tunnel(sock, context)
                return sock if self._ssl_context is None else _bridge_to_plain_socket(sock)
            except BaseException:
                for each in {sock, tcp_sock}:
                    each.close()
                raise

    def _open_tunnel(self, sock: socket.socket, context: KMSConnectContext) -> None:
        host = f"[{context.host}]" if ":" in context.host else context.host
        target = f"{host}:{context.port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        sock.sendall("\r\n".join(lines).encode("latin-1") + _END_OF_RESPONSE)
        response = b""
        # Read single bytes, because the bytes after the response of the proxy are TLS data.
        while not response.endswith(_END_OF_RESPONSE):
            byte = sock.recv(1)
            if not byte or len(response) > _MAX_RESPONSE_SIZE:
                raise OSError("the proxy sent a malformed response to CONNECT")
            response += byte
        status_line = response.split(b"\r\n", 1)[0].decode("latin-1")
        if status_line.split(" ")[1:2] != ["200"]:
            raise OSError(f"the proxy refused to connect to {target}: {status_line[:200]!r}")


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers must be a mapping such as a dict, not {type(headers)}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME_PATTERN.fullmatch(name):
            raise ConfigurationError(f"invalid proxy header name: {name!r}")
        if not isinstance(value, str) or not _HEADER_VALUE_PATTERN.fullmatch(value):
            raise ConfigurationError(f"the value of the proxy header {name} is not allowed")
        if name.lower() == "host":
            raise ConfigurationError("headers must not contain Host, which names the key management service")
    return dict(headers)


def _bridge_to_plain_socket(tls_socket: socket.socket) -> socket.socket:
    """Return a plain socket. Two greenlets forward its bytes to and from `tls_socket`, the connection to the proxy."""
    near_end, far_end = socket.socketpair()

    def forward(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(_BUFFER_SIZE):
                target.sendall(data)
        except OSError:
            pass
        finally:
            for each in (source, target):
                each.close()

    spawn(forward, far_end, tls_socket)
    spawn(forward, tls_socket, far_end)
    return near_end
