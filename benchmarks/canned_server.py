"""A server that sends canned replies. The server is so fast that a measurement shows the cost of the client.

The server is a standalone, with or without TLS, or the primary of a replica set with one member.
``python -m benchmarks.canned_server --port 27100`` serves until SIGINT. The benchmark passes a
listening socket (``--fd``). With ``--fd``, the server exits at the end of its standard input.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import ssl
import sys
from typing import NamedTuple, get_args

from benchmarks.processors import pin_server
from benchmarks.replies import INT32, Replies
from benchmarks.variants import ServerKind

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Peer:
    """Client connection, with received bytes of unanswered requests and bytes of replies that are not yet sent."""

    __slots__ = ("_answer", "incoming", "outgoing", "selector", "sock")

    def __init__(self, sock: socket.socket, selector: selectors.BaseSelector, server: Server) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls is not None:
            sock = server.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.sock = sock
        self._answer = server.replies.answer
        self.selector = selector
        self.incoming = bytearray()
        self.outgoing = memoryview(b"")
        selector.register(sock, READ, self.transfer)

    def transfer(self, events: int) -> None:
        """Send and receive on the socket if the selector reports that the socket is ready.

        Close a broken connection.
        """
        try:
            if events & WRITE:
                self._write(self.outgoing)
            if events & READ:
                self._receive()
        except ssl.SSLWantReadError:
            pass  # the TLS handshake or the TLS record is incomplete
        except (ConnectionError, ssl.SSLError):
            self._close()
        except ValueError as error:
            print(f"canned server: {error}", file=sys.stderr)
            self._close()

    def _receive(self) -> None:
        received = self.sock.recv(262144)
        if not received:
            self._close()
            return
        # Extend the buffer in place, without a copy of the earlier pieces of a large message.
        data = self.incoming
        data += received
        while len(data) >= 16:
            length: int = INT32.unpack_from(data)[0]
            if len(data) < length:
                break
            message = bytes(data[:length])
            del data[:length]
            for piece in self._answer(message):
                self._send(piece)

    def _send(self, reply: bytes) -> None:
        unsent = memoryview(bytes(self.outgoing) + reply if self.outgoing else reply)
        if unsent:
            self._write(unsent)

    def _write(self, unsent: memoryview) -> None:
        """Send as many bytes as the kernel accepts, and keep the rest."""
        try:
            sent = self.sock.send(unsent)
        except (BlockingIOError, ssl.SSLWantWriteError):
            sent = 0
        was_blocked, self.outgoing = bool(self.outgoing), unsent[sent:]
        if was_blocked != bool(self.outgoing):
            events = READ | WRITE if self.outgoing else READ
            self.selector.modify(self.sock, events, self.transfer)

    def _close(self) -> None:
        self.selector.unregister(self.sock)
        self.sock.close()


class Server(NamedTuple):
    """Replies and TLS settings that all connections of a server share."""

    replies: Replies
    tls: ssl.SSLContext | None


def server_of_kind(kind: ServerKind, address: tuple[str, int]) -> Server:
    """Return the replies and TLS settings of a server of the given kind.

    :param address: the host and port on which the server listens.
    """
    if kind == "tls":
        return Server(Replies(), _tls_context())
    return Server(Replies(f"{address[0]}:{address[1]}" if kind == "replica set" else None), None)


def _tls_context() -> ssl.SSLContext:
    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def serve(listener: socket.socket, kind: ServerKind = "standalone", lifeline: int | None = None) -> None:
    """Accept all clients of a listening socket, and reply to their requests.

    :param listener: a bound, listening TCP socket.
    :param kind: the kind of the server.
    :param lifeline: a file descriptor. At the end of the file, the function returns. With None, the
        function does not return.
    """
    selector = selectors.DefaultSelector()
    listener.setblocking(False)
    server = server_of_kind(kind, listener.getsockname())

    def accept(_events: int) -> None:
        try:
            Peer(listener.accept()[0], selector, server)
        except (BlockingIOError, ConnectionError):
            pass  # the client closed the connection before the call of `accept`

    selector.register(listener, READ, accept)
    if lifeline is not None:
        selector.register(lifeline, READ, None)
    while True:
        for key, events in selector.select():
            if key.data is None:
                return
            key.data(events)


def main() -> None:
    """Run the server that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canned_server", description=__doc__)
    socket_options = parser.add_mutually_exclusive_group(required=True)
    socket_options.add_argument("--port", type=int, help="listen on this port of 127.0.0.1")
    socket_options.add_argument("--fd", type=int, help="file descriptor of an inherited listening socket")
    parser.add_argument("--kind", choices=get_args(ServerKind), default="standalone")
    options = parser.parse_args()
    pin_server()
    if options.fd is not None:
        serve(socket.socket(fileno=options.fd), options.kind, lifeline=sys.stdin.fileno())
        return
    try:
        serve(socket.create_server(("127.0.0.1", options.port), backlog=1024), options.kind)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
