"""Listening sockets on the loopback interface, and a load balancer."""

from __future__ import annotations

import itertools
import select
import socket as plain_socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import gevent
from gevent import monkey, socket

from gmongo.testing.simulation import stalled

if TYPE_CHECKING:
    from gmongo.testing.simulation.member import Member

HOST = "127.0.0.1"
_BACKLOG = 1024
_READ_EVENT = 1
_RawSocket: type[plain_socket.socket] = monkey.get_original("socket", "socket")


def reserve(port: int) -> plain_socket.socket:
    """Bind a socket to `port` (0: any free port). Return the socket, which does not listen yet."""
    # The function uses a native socket, because `close` of a gevent socket is delayed. After `close`,
    # another socket may need the port immediately.
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
    """A listener on a socket from `reserve`. A new greenlet calls `serve` for each connection."""

    def __init__(self, reserved_socket: plain_socket.socket, serve: Callable[[Any], None]) -> None:
        self._serve = serve
        self._socket = reserved_socket
        try:
            self._socket.listen(_BACKLOG)
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._watcher = gevent.get_hub().loop.io(self._socket.fileno(), _READ_EVENT, ref=False)
        self._watcher.start(self._accept_all)
        self.thread_id = threading.get_ident()
        stalled.watch_listeners(self)

    def close(self) -> None:
        """Refuse further connections."""
        self._watcher.close()
        self._socket.close()

    # The watcher thread of the module `stalled` calls the following two methods.

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
            for name in ("_read_event", "_write_event"):
                if (watcher := getattr(sock, name, None)) is not None:
                    watcher.ref = False  # the socket does not keep the hub running
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gevent.spawn(self._serve, sock)


class LoadBalancer:
    """A load balancer, which forwards each connection to the next mongos that is alive."""

    def __init__(self, services: Sequence[Member], port: int = 0) -> None:
        self._services = services
        self._next_services = itertools.cycle(services)
        self._listener = Listener(reserve(port), self._forward)
        self.address = f"{HOST}:{self._listener.port}"
        self.close = self._listener.close

    def _forward(self, sock: Any) -> None:
        for service in itertools.islice(self._next_services, len(self._services)):
            if service.alive:
                service.accept(sock)
                return
        sock.close()
