"""A server of canned replies: a standalone that understands nothing, fast enough that the client's cost
shows.

``python -m benchmarks.canned_server --port 27100`` serves until interrupted. The benchmark itself hands over
a listening socket (``--fd``) and keeps the server's standard input open: the server ends when that closes.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import sys

from benchmarks.processors import pin_server
from benchmarks.replies import INT32, answer

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Peer:
    """One client connection: bytes not yet answered, bytes not yet sent."""

    __slots__ = ("incoming", "outgoing", "selector", "sock")

    def __init__(self, sock: socket.socket, selector: selectors.BaseSelector) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.selector = selector
        self.incoming = bytearray()
        self.outgoing = memoryview(b"")
        selector.register(sock, READ, self.ready)

    def ready(self, events: int) -> None:
        """Do what the selector says is possible; a broken connection is closed, never raised."""
        try:
            if events & WRITE:
                self._write(self.outgoing)
            if events & READ:
                self._receive()
        except (ConnectionError, ValueError) as error:
            if isinstance(error, ValueError):
                print(f"canned server: {error}", file=sys.stderr)
            self._close()

    def _receive(self) -> None:
        received = self.sock.recv(262144)
        if not received:
            self._close()
            return
        # Appended to and cut in place: the pieces of a large message are not copied again with each new one.
        data = self.incoming
        data += received
        while len(data) >= 16:
            length: int = INT32.unpack_from(data)[0]
            if len(data) < length:
                break
            message = bytes(data[:length])
            del data[:length]
            for piece in answer(message):
                self._send(piece)

    def _send(self, reply: bytes) -> None:
        waiting = memoryview(bytes(self.outgoing) + reply if self.outgoing else reply)
        if waiting:
            self._write(waiting)

    def _write(self, waiting: memoryview) -> None:
        """Send as much as the kernel takes, and keep the rest for later."""
        try:
            sent = self.sock.send(waiting)
        except BlockingIOError:
            sent = 0
        was_blocked, self.outgoing = bool(self.outgoing), waiting[sent:]
        if was_blocked != bool(self.outgoing):
            events = READ | WRITE if self.outgoing else READ
            self.selector.modify(self.sock, events, self.ready)

    def _close(self) -> None:
        self.selector.unregister(self.sock)
        self.sock.close()


def serve(listener: socket.socket, lifeline: int | None = None) -> None:
    """Answer every client of a listening socket.

    :param listener: a bound, listening TCP socket.
    :param lifeline: a descriptor that nobody writes to; serving ends when it reaches its end. None: never.
    """
    selector = selectors.DefaultSelector()
    listener.setblocking(False)

    def accept(_events: int) -> None:
        try:
            Peer(listener.accept()[0], selector)
        except (BlockingIOError, ConnectionError):
            pass  # the client went away between the event and the accept

    selector.register(listener, READ, accept)
    if lifeline is not None:
        selector.register(lifeline, READ, None)
    while True:
        for key, events in selector.select():
            if key.data is None:
                return
            key.data(events)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canned_server", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", type=int, help="listen on this port of 127.0.0.1")
    where.add_argument("--fd", type=int, help="serve this inherited listening socket")
    options = parser.parse_args()
    pin_server()
    if options.fd is not None:
        serve(socket.socket(fileno=options.fd), lifeline=sys.stdin.fileno())
        return
    try:
        serve(socket.create_server(("127.0.0.1", options.port), backlog=1024))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
