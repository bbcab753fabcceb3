"""Proxy that records the commands that drivers send to a server."""

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
SYSTEM_DATABASES = frozenset({"admin", "config", "local"})
"""Names of the system databases of every server."""
# Commands for discovery, authentication and clean-up, which are not part of an outcome.
_INTERNAL_COMMANDS = frozenset(
    {"hello", "ismaster", "isMaster", "endSessions", "killCursors", "killSessions", "saslStart", "saslContinue"}
)
# Commands to system databases that a call may send, even if `permitted_database` names another
# database.
_SAFE_COMMANDS = _INTERNAL_COMMANDS | {
    "ping",
    "buildInfo",
    "buildinfo",
    "listDatabases",
    "commitTransaction",
    "abortTransaction",
    "bulkWrite",
    "getMore",
    "renameCollection",
}
# Commands that affect the whole server.
_SERVER_COMMANDS = frozenset(
    {"killAllSessions", "killAllSessionsByPattern", "killSessions", "createUser", "createRole"}
)
UNSUPPORTED = {59: "CommandNotFound", 115: "CommandNotSupported", 238: "NotImplemented", 40324: "an unknown stage"}
"""Error codes with which a server rejects unsupported commands and stages, with a text for each code."""
_MAX_ERROR_REPLY_SIZE = 1 << 16


class RecordedCommand(NamedTuple):
    """A command that the proxy has received.

    The body contains the documents of document sequences.
    """

    name: str
    body: dict[str, Any]
    acknowledged: bool


class RecordingProxy:
    """Proxy that records the commands that clients send to one server.

    The proxy runs in native threads, because PyMongo blocks the main thread.

    :param server: Host and port of the server.
    :param forbidden_databases: Databases that existed before the tests. If a command uses one of
        these databases, the proxy closes the connection.
    :param fault_of_unacknowledged: Text that states how the server violates the protocol for
        unacknowledged commands. If the text is not empty, the proxy rejects unacknowledged
        commands.
    :param permitted_database: The only database that calls may use. With this parameter, the proxy
        also rejects commands that affect the whole server. None permits all databases except
        `forbidden_databases`.
    """

    def __init__(
        self,
        server: tuple[str, int],
        forbidden_databases: Collection[str] = (),
        fault_of_unacknowledged: str = "",
        permitted_database: str | None = None,
    ) -> None:
        # Descriptions of the features that the server does not support.
        self.unsupported_features: set[str] = set()
        self.used_databases: set[str] = set()  # Names of the databases that forwarded commands use.
        # Names of the forbidden databases that commands used, and of rejected commands.
        self.refused_names: set[str] = set()
        self._forbidden_databases, self._permitted_database = forbidden_databases, permitted_database
        self._fault_of_unacknowledged = fault_of_unacknowledged
        self._sent_commands: list[RecordedCommand] = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                internal_request_ids: set[int] = set()  # request IDs of the commands in `_INTERNAL_COMMANDS`
                with socket.create_connection(server) as upstream:
                    reply_thread = threading.Thread(
                        target=proxy._forward_replies, args=(upstream, self.request, internal_request_ids), daemon=True
                    )
                    reply_thread.start()
                    proxy._forward_commands(self.request, upstream, internal_request_ids)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.port: int = self._server.server_address[1]

    def take_commands(self) -> list[RecordedCommand]:
        """Return the commands that the proxy has recorded since the last call of this method."""
        with self._lock:
            sent, self._sent_commands = self._sent_commands, []
        return sent

    def close(self) -> None:
        """Close the listening socket."""
        self._server.shutdown()
        self._server.server_close()

    def _forward_commands(self, client: socket.socket, upstream: socket.socket, internal_request_ids: set[int]) -> None:
        try:
            for header, body in _read_messages(client):
                _, request_id, _, opcode = _HEADER.unpack(header)
                if opcode == _OP_MSG:
                    flags, name, command = _read_command(body)
                    if not self._record(flags, name, command):
                        break
                    if name in _INTERNAL_COMMANDS:
                        internal_request_ids.add(request_id)
                upstream.sendall(header + body)
        except OSError:
            pass
        finally:
            # In contrast to `close`, `shutdown` ends the thread that reads from the socket.
            _shut_down(upstream)

    def _forward_replies(self, upstream: socket.socket, client: socket.socket, internal_request_ids: set[int]) -> None:
        try:
            for header, body in _read_messages(upstream):
                length, _, answered_id, opcode = _HEADER.unpack(header)
                if opcode == _OP_MSG and length < _MAX_ERROR_REPLY_SIZE and answered_id not in internal_request_ids:
                    self._record_error(bson.decode(body[5:]))
                client.sendall(header + body)
        except OSError:
            pass
        finally:
            _shut_down(client)

    def _record_error(self, reply: dict[str, Any]) -> None:
        for error in (reply, *reply.get("writeErrors", ()), *reply.get("cursor", {}).get("firstBatch", ())):
            if isinstance(error, dict) and error.get("code") in UNSUPPORTED and "errmsg" in error:
                self.unsupported_features.add(f"{UNSUPPORTED[error['code']]} ({error['code']}): {error['errmsg'][:80]}")

    def _record(self, flags: int, name: str, body: dict[str, Any]) -> bool:
        """Record a command. Return True if the proxy may forward the command."""
        databases = _used_databases(body)
        if flags & 2 and self._fault_of_unacknowledged:
            self.unsupported_features.add(self._fault_of_unacknowledged)
            return False
        refused = self._forbidden_names(name, body, databases)
        with self._lock:
            self.used_databases |= databases - refused
            self.refused_names |= refused
            if name not in _INTERNAL_COMMANDS:
                self._sent_commands.append(RecordedCommand(name, body, not flags & 2))
        return not refused

    def _forbidden_names(self, name: str, body: dict[str, Any], databases: set[str]) -> set[str]:
        if self._permitted_database is None:
            return databases & set(self._forbidden_databases)
        affects_server = name in _SERVER_COMMANDS or (body["$db"] in SYSTEM_DATABASES and name not in _SAFE_COMMANDS)
        return (databases - {self._permitted_database}) | ({name} if affects_server else set())


def _read_command(message: bytes) -> tuple[int, str, dict[str, Any]]:
    """Return the flags, the command name, and the command. The command contains the documents of
    document sequences.
    """
    flags = struct.unpack_from("<I", message)[0]
    command: dict[str, Any] = {}
    sequences: dict[str, list[Any]] = {}
    position = 4
    while position < len(message):
        kind = message[position]
        (size,) = struct.unpack_from("<i", message, position + 1)
        section = message[position + 1 : position + 1 + size]
        if kind == 0:
            command = bson.decode(section)
        else:
            end = section.index(b"\0", 4)
            sequences[section[4:end].decode()] = bson.decode_all(section[end + 1 :])
        position += 1 + size
    return flags, next(iter(command)), {**command, **sequences}


def _used_databases(body: dict[str, Any]) -> set[str]:
    """Return the databases that a command uses. Omit the system databases."""
    namespaces = [each["ns"] for each in body.get("nsInfo", ()) if isinstance(each, dict) and "ns" in each]
    if "renameCollection" in body:
        namespaces += [body["renameCollection"], body.get("to")]
    names = {body["$db"], *(str(namespace).partition(".")[0] for namespace in namespaces), *_target_databases(body)}
    return names - SYSTEM_DATABASES


def _target_databases(body: dict[str, Any]) -> set[str]:
    """Return the databases to which stages of a pipeline write. Omit stages that name no database."""
    pipeline = body.get("pipeline")
    stages = [each for each in pipeline if isinstance(each, dict)] if isinstance(pipeline, list) else []
    targets = [each.get("$out") for each in stages]
    targets += [each["$merge"].get("into") for each in stages if isinstance(each.get("$merge"), dict)]
    return {str(each["db"]) for each in targets if isinstance(each, dict) and "db" in each}


def _read_messages(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """Yield the header and the body of each message until the connection ends."""
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
    """Shut down a socket.

    The thread that reads from the socket then ends, and the peer receives the end of the stream.
    """
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
