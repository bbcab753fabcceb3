"""A proxy that notes the commands which pass through it: what a server was sent, whatever a driver says it sent."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import bson

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
SERVERS_OWN = frozenset({"admin", "config", "local"})
"""The databases that every server has."""
# What a driver sends in its own time: to find its servers, and to clean up.
_OWN_BUSINESS = frozenset(
    {"hello", "ismaster", "isMaster", "endSessions", "killCursors", "killSessions", "saslStart", "saslContinue"}
)
# What may be sent to the database `admin` where all others are foreign. What names other databases is looked at.
_HARMLESS = _OWN_BUSINESS | {
    *(
        "ping",
        "buildInfo",
        "buildinfo",
        "listDatabases",
        "commitTransaction",
        "abortTransaction",
        "bulkWrite",
        "getMore",
    ),
    "renameCollection",
}
# What concerns a server as a whole, whatever database it is sent to.
_OF_ALL = frozenset({"killAllSessions", "killAllSessionsByPattern", "killSessions", "createUser", "createRole"})
UNKNOWN = {59: "CommandNotFound", 115: "CommandNotSupported", 238: "NotImplemented", 40324: "an unknown stage"}
"""The error codes by which a server says that it does not know what it is asked for."""
_LARGEST_ERROR = 1 << 16


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
    :param unacknowledged: what the server does with a command that asks for no answer, if it is no good. Such commands
        are not passed on then.
    :param only: the one database that is the tests', if all others are foreign. Nothing that concerns the server as a
        whole is passed on then.
    """

    def __init__(
        self,
        server: tuple[str, int],
        foreign: Collection[str] = (),
        unacknowledged: str = "",
        only: str | None = None,
    ) -> None:
        self.unknown: set[str] = set()  # why the server cannot do what it was asked for
        self.used: set[str] = set()  # the databases that commands which were passed on have named
        self.refused: set[str] = set()  # the foreign databases, and the commands, that were not passed on
        self._foreign, self._only = foreign, only
        self._unacknowledged = unacknowledged
        self._sent: list[Sent] = []
        self._lock = threading.Lock()
        tap = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                own: set[int] = set()  # the requests that are a driver's own business
                with socket.create_connection(server) as upstream:
                    back = threading.Thread(target=tap._answer, args=(upstream, self.request, own), daemon=True)
                    back.start()
                    tap._listen(self.request, upstream, own)

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

    def _listen(self, client: socket.socket, upstream: socket.socket, own: set[int]) -> None:
        try:
            for header, body in _messages(client):
                _, request, _, opcode = _HEADER.unpack(header)
                if opcode == _OP_MSG:
                    flags, name, command = _command(body)
                    if not self._note(flags, name, command):
                        break
                    if name in _OWN_BUSINESS:
                        own.add(request)
                upstream.sendall(header + body)
        except OSError:
            pass
        finally:
            _shut_down(upstream)  # to close it ends neither the connection nor the thread that reads from it

    def _answer(self, upstream: socket.socket, client: socket.socket, own: set[int]) -> None:
        try:
            for header, body in _messages(upstream):
                length, _, answered, opcode = _HEADER.unpack(header)
                if opcode == _OP_MSG and length < _LARGEST_ERROR and answered not in own:
                    self._note_error(bson.decode(body[5:]))
                client.sendall(header + body)
        except OSError:
            pass
        finally:
            _shut_down(client)

    def _note_error(self, reply: dict[str, Any]) -> None:
        for error in (reply, *reply.get("writeErrors", ()), *reply.get("cursor", {}).get("firstBatch", ())):
            if isinstance(error, dict) and error.get("code") in UNKNOWN and "errmsg" in error:
                self.unknown.add(f"{UNKNOWN[error['code']]} ({error['code']}): {error['errmsg'][:80]}")

    def _note(self, flags: int, name: str, body: dict[str, Any]) -> bool:
        """Note a command.

        :returns: whether it may be passed on.
        """
        databases = _databases(body)
        if flags & 2 and self._unacknowledged:
            self.unknown.add(self._unacknowledged)
            return False
        refused = self._refused(name, body, databases)
        with self._lock:
            self.used |= databases - refused
            self.refused |= refused
            if name not in _OWN_BUSINESS:
                self._sent.append(Sent(name, body, not flags & 2))
        return not refused

    def _refused(self, name: str, body: dict[str, Any], databases: set[str]) -> set[str]:
        if self._only is None:
            return databases & set(self._foreign)
        of_all = name in _OF_ALL or (body["$db"] in SERVERS_OWN and name not in _HARMLESS)
        return (databases - {self._only}) | ({name} if of_all else set())


def _command(message: bytes) -> tuple[int, str, dict[str, Any]]:
    """The flags of a message, the name of its command, and the command with the documents that travel beside it."""
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
    return flags, next(iter(command)), {**command, **beside}


def _databases(body: dict[str, Any]) -> set[str]:
    """The databases that a command names, but for the server's own."""
    namespaces = [each["ns"] for each in body.get("nsInfo", ()) if isinstance(each, dict) and "ns" in each]
    if "renameCollection" in body:
        namespaces += [body["renameCollection"], body.get("to")]
    names = {body["$db"], *(str(namespace).partition(".")[0] for namespace in namespaces), *_written(body)}
    return names - SERVERS_OWN


def _written(body: dict[str, Any]) -> set[str]:
    """The databases that the stages of a pipeline write to, where they name one."""
    pipeline = body.get("pipeline")
    stages = [each for each in pipeline if isinstance(each, dict)] if isinstance(pipeline, list) else []
    targets = [each.get("$out") for each in stages]
    targets += [each["$merge"].get("into") for each in stages if isinstance(each.get("$merge"), dict)]
    return {str(each["db"]) for each in targets if isinstance(each, dict) and "db" in each}


def _messages(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """What comes on a connection until it ends: headers, each with what follows it."""
    while (header := _receive(connection, _HEADER.size)) is not None:
        body = _receive(connection, _HEADER.unpack(header)[0] - _HEADER.size)
        if body is None:
            return
        yield header, body


def _receive(connection: socket.socket, size: int) -> bytes | None:
    pieces = []
    while size:
        piece = connection.recv(min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _shut_down(connection: socket.socket) -> None:
    """Let the peer see the end, and whatever thread reads from the connection."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
