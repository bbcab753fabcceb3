"""Listening sockets on the loopback interface."""

from __future__ import annotations

import select
import socket as plain_socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gevent
from gevent import monkey, socket

from gmongo.testing.simulation import stalled

HOST = "127.0.0.1"
_BACKLOG = 1024
_READ = 1
_RawSocket: type[plain_socket.socket] = monkey.get_original("socket", "socket")


def reserve(port: int) -> plain_socket.socket:
    """Return a socket that is bound to a port but does not listen. The port refuses connections.

    :param port: the TCP port; 0 means any free port.
    """
    # The function uses a native socket, because `close` of a gevent socket is delayed. After `close`, another socket
    # may need the port immediately.
    sock = _RawSocket(plain_socket.AF_INET, plain_socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(plain_socket.SOL_SOCKET, plain_socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
    except BaseException:
        sock.close()
        raise
    return sock


class Listener:
    """Accepts connections on a port, and starts a greenlet for each connection.

    :param reserved: a socket of :func:`reserve`. The listener listens on this socket, and closes this socket.
    :param serve: the function that each greenlet calls with the socket of its connection.
    :ivar thread: the ID of the native thread that created the listener and runs its hub.
    """

    def __init__(self, reserved: plain_socket.socket, serve: Callable[[Any], None]) -> None:
        self._serve = serve
        self._socket = reserved
        try:
            self._socket.listen(_BACKLOG)
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._watcher = gevent.get_hub().loop.io(self._socket.fileno(), _READ, ref=False)
        self._watcher.start(self._accept_all)
        self.thread = threading.get_ident()
        stalled.watch(self)

    def close(self) -> None:
        """Refuse further connections."""
        self._watcher.close()
        self._socket.close()

    # Another thread calls the next two methods while the hub of this listener is blocked.

    def has_waiting_connection(self) -> bool:
        """Return True if a connection has arrived that the listener has not accepted."""
        try:
            return bool(select.select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):  # the socket is closed, or `select` does not accept such a high descriptor
            return False

    def accept_waiting(self) -> Iterator[Any]:
        """Accept all connections that have arrived, and yield their sockets."""
        while True:
            try:
                yield self._socket.accept()[0]
            except OSError:
                return

    def _accept_all(self) -> None:
        """Accept all connections that have arrived. The method runs in the hub."""
        while True:
            try:
                accepted, _address = self._socket.accept()
            except OSError:  # no further connection, or too many open files
                return
            sock = socket.socket(fileno=accepted.detach())
            release_hub(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gevent.spawn(self._serve, sock)


def release_hub(sock: Any) -> None:
    """Set ``ref=False`` in the watchers of a gevent socket, so that the socket does not keep the hub running."""
    for name in ("_read_event", "_write_event"):
        watcher = getattr(sock, name, None)
        if watcher is not None:
            watcher.ref = False
