"""HTTP proxy that answers every ``CONNECT`` request with a connection to one fixed port."""

from __future__ import annotations

from typing import Any

from gevent import socket

from tests.support.proxies import ProxyServer, read, relay


class Proxy(ProxyServer):
    """HTTP proxy that ignores the host in a ``CONNECT`` request, and connects to one fixed port.

    :param target_port: the port on the loopback interface to which the proxy forwards connections.
    :param context: the TLS context of the proxy, or None for a proxy without TLS.
    :ivar heads: the request line and the headers of each received request.
    :ivar status: the status of each reply, for example ``200 Connection established``.
    """

    def __init__(self, target_port: int, context: Any = None) -> None:
        super().__init__(**({} if context is None else {"ssl_context": context}))
        self._target_port = target_port
        self.heads: list[str] = []
        self.status = "200 Connection established"

    def serve(self, sock: Any) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += read(sock, 1)
        self.heads.append(head.decode())
        sock.sendall(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
        if self.status.startswith("200"):
            with socket.create_connection(("127.0.0.1", self._target_port)) as target_socket:
                relay(sock, target_socket)
