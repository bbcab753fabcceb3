"""HTTP proxy that answers every ``CONNECT`` request with a connection to one fixed port."""

from __future__ import annotations

from typing import Any

from gevent import socket, spawn
from gevent.server import StreamServer


class Proxy:
    """HTTP proxy that ignores the host in a ``CONNECT`` request, and connects to one fixed port.

    :param target: the port on the loopback interface to which the proxy forwards connections.
    :param context: the TLS context of the proxy, or None for a proxy without TLS.
    :ivar heads: the headers of each received request.
    :ivar status: the status of each reply, for example ``200 Connection established``.
    """

    def __init__(self, target: int, context: Any = None) -> None:
        self._target = target
        options = {} if context is None else {"ssl_context": context}
        self._server = StreamServer(("127.0.0.1", 0), self._serve, **options)
        self.heads: list[str] = []
        self.status = "200 Connection established"

    def __enter__(self) -> Proxy:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    @property
    def port(self) -> int:
        return self._server.server_port

    def _serve(self, sock: Any, _address: Any) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        self.heads.append(head.decode())
        sock.sendall(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
        if not self.status.startswith("200"):
            return
        other = socket.create_connection(("127.0.0.1", self._target))
        forwarding = spawn(self._forward, sock, other)
        self._forward(other, sock)
        forwarding.join()

    def _forward(self, source: Any, target: Any) -> None:
        try:
            while data := source.recv(4096):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
