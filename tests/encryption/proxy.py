"""An HTTP proxy that leads every ``CONNECT`` to one port."""

from __future__ import annotations

from typing import Any

from gevent import socket, spawn
from gevent.server import StreamServer


class Proxy:
    """The proxy.

    :param target: the port.
    :param context: of TLS; None is without.
    :ivar heads: of the requests.
    :ivar status: of the answers.
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
        there = spawn(self._pass_on, sock, other)
        self._pass_on(other, sock)
        there.join()

    def _pass_on(self, source: Any, target: Any) -> None:
        try:
            while data := source.recv(4096):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
