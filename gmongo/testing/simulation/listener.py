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
    """A socket that has a port and does not listen: connections are refused, and no other program is given the port.

    :param port: 0 is any free one.
    """
    # Not gevent's socket, which would be closed later than close() returns: the port may be wanted at once.
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
    """Accepts connections on one port, each of which is served in a greenlet of its own.

    :param reserved: a socket of :func:`reserve`, which is the listener's from now on.
    :param serve: called with the socket of each connection.
    :ivar thread: the native thread whose hub serves it.
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
        """Refuse connections from now on."""
        self._watcher.close()
        self._socket.close()

    # For another thread, while this one's hub cannot run

    def is_waited_for(self) -> bool:
        """Whether a connection waits to be accepted."""
        try:
            return bool(select.select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):  # it is closed, or has too high a number for this
            return False

    def take_waiting(self) -> Iterator[Any]:
        """The sockets of those."""
        while True:
            try:
                yield self._socket.accept()[0]
            except OSError:
                return

    def _accept_all(self) -> None:
        """Take whoever waits; runs in the hub."""
        while True:
            try:
                accepted, _address = self._socket.accept()
            except OSError:  # no connection waits any more, or too many files are open: then the watcher fires again
                return
            sock = socket.socket(fileno=accepted.detach())
            release_hub(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gevent.spawn(self._serve, sock)


def release_hub(sock: Any) -> None:
    """Let waiting on a gevent socket not keep the hub running."""
    for name in ("_read_event", "_write_event"):
        watcher = getattr(sock, name, None)
        if watcher is not None:
            watcher.ref = False
