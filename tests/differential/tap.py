"""A proxy that notes the commands which pass through it: what a server was sent, whatever a driver says it sent."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple

import bson

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
SERVERS_OWN = frozenset({"admin", "config", "local"})
"""The databases that every server has."""
# What a driver sends in its own time: to find its servers, and to clean up.
_OWN_BUSINESS = frozenset({"hello", "ismaster", "isMaster", "endSessions", "killCursors"})


class Sent(NamedTuple):
    """A command as the server gets it, with the documents that travel beside it put into it."""

    name: str
    body: dict[str, Any]
    acknowledged: bool


class Tap:
    """Stands before one server, in native threads, so that it serves a driver that blocks the thread of the test.

    :param server: the host and port to pass everything on to.
    :param foreign: the databases that are not the tests'. A command that names one is not passed on: its connection is
        closed.
    """

    def __init__(self, server: tuple[str, int], foreign: Collection[str] = ()) -> None:
        self.used: set[str] = set()  # the databases that commands which were passed on have named
        self.refused: set[str] = set()  # the foreign databases that commands have named
        self._foreign = foreign
        self._sent: list[Sent] = []
        self._lock = threading.Lock()
        tap = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(server) as upstream:
                    back = threading.Thread(target=_pump, args=(upstream, self.request), daemon=True)
                    back.start()
                    tap._listen(self.request, upstream)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.port: int = self._server.server_address[1]

    def take(self) -> list[Sent]:
        """The commands since the last call."""
        with self._lock:
            sent, self._sent = self._sent, []
        return sent

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _listen(self, client: socket.socket, upstream: socket.socket) -> None:
        try:
            while (header := _receive(client, 16)) is not None:
                length, _, _, opcode = _HEADER.unpack(header)
                body = _receive(client, length - 16)
                if body is None:
                    break
                if opcode == _OP_MSG and not self._note(body):
                    break
                upstream.sendall(header + body)
        except OSError:
            pass
        finally:
            _shut_down(upstream)  # to close it ends neither the connection nor the thread that reads from it

    def _note(self, message: bytes) -> bool:
        """Note a command.

        :returns: whether it may be passed on.
        """
        flags = struct.unpack_from("<I", message)[0]
        command: dict[str, Any] = {}
        beside: dict[str, list[Any]] = {}
        position = 4
        while position < len(message):
            kind = message[position]
            (size,) = struct.unpack_from("<i", message, position + 1)
            section = message[position + 1 : position + 1 + size]
            if kind == 0:
                command = bson.decode(section)
            else:
                end = section.index(b"\0", 4)
                beside[section[4:end].decode()] = bson.decode_all(section[end + 1 :])
            position += 1 + size
        name, body = next(iter(command)), {**command, **beside}
        databases = _databases(body)
        with self._lock:
            self.used |= databases.difference(self._foreign)
            self.refused |= databases & set(self._foreign)
            if name not in _OWN_BUSINESS:
                self._sent.append(Sent(name, body, not flags & 2))
        return databases.isdisjoint(self._foreign)


def _databases(body: dict[str, Any]) -> set[str]:
    """The databases that a command names, but for the server's own."""
    namespaces = (each["ns"] for each in body.get("nsInfo", ()) if isinstance(each, dict) and "ns" in each)
    names = {body["$db"], *(str(namespace).partition(".")[0] for namespace in namespaces)}
    return names - SERVERS_OWN


def _receive(connection: socket.socket, size: int) -> bytes | None:
    pieces = []
    while size:
        piece = connection.recv(min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(1 << 20):
            target.sendall(piece)
    except OSError:
        pass
    finally:
        _shut_down(target)


def _shut_down(connection: socket.socket) -> None:
    """Let the peer see the end, and whatever thread reads from the connection."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
