"""Scripted server with the MongoDB wire protocol on the loopback interface.

The server runs in greenlets of the test process. A test sets ``replies``, replaces the next replies
by faults with :meth:`ScriptedServer.fail`, and reads the received commands.
"""

from __future__ import annotations

import itertools
import socket
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gevent
from bson import Int64, ObjectId
from gevent.event import Event
from gevent.queue import Queue
from gevent.server import StreamServer

from gmongo.testing.simulation.listener import reserve
from gmongo.wire.message import EXHAUST_ALLOWED, MORE_TO_COME, OP_MSG
from tests.support.faults import Fault
from tests.support.framing import HEADER, command_name, read_request, write_message
from tests.support.wait import eventually

LIMITS: dict[str, Any] = {
    "maxBsonObjectSize": 16 * 1024 * 1024,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "minWireVersion": 0,
    "maxWireVersion": 21,
    "logicalSessionTimeoutMinutes": 30,
}


class Received(NamedTuple):
    """A command that the server received.

    The first hello of a connection has the name ``handshake``.
    """

    name: str
    command: dict[str, Any]
    connection: int
    flags: int
    opcode: int
    payload: bytes


def cursor_reply(documents: list[Any], cursor_id: int = 0, field: str = "firstBatch") -> dict[str, Any]:
    """Return a reply that contains one batch of a cursor.

    The default cursor ID 0 means that the server has no more documents.
    """
    return {"cursor": {"id": Int64(cursor_id), "ns": "db.c", field: documents}, "ok": 1}


# The reply to a find contains the requested _id. If an operation reads the reply to the find of
# another operation, a test therefore finds a wrong _id.
REPLIES: dict[str, Any] = {
    "find": lambda command: cursor_reply([{"_id": command["filter"].get("_id")}]),
    "insert": lambda command: {"ok": 1, "n": len(command["documents"])},
}


class ServerConnection:
    """Server side of one connection."""

    _numbers = itertools.count(1)
    _reply_numbers = itertools.count(1_000_000)

    def __init__(self, server: ScriptedServer, sock: Any) -> None:
        self.server = server
        self.number = next(self._numbers)
        self._socket = sock
        self._requests: Queue[tuple[int, int, bytes]] = Queue()

    def serve(self) -> None:
        """Reply to requests in order until the connection ends."""
        answerer = gevent.spawn(self._answer_all)
        try:
            while True:
                length, request_id, _, opcode = HEADER.unpack(self._read(16))
                self.server.reading.wait()
                self._requests.put((request_id, opcode, self._read(length - 16)))
        except OSError:
            pass
        finally:
            answerer.kill(block=False)
            self.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()
        self.server.peers.pop(self.number, None)

    def _read(self, size: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self._socket.recv(min(size - len(chunks), 1 << 20))
            if not chunk:
                raise ConnectionResetError
            chunks += chunk
        return bytes(chunks)

    def _answer_all(self) -> None:
        try:
            while self.number in self.server.peers:
                self._answer(*self._requests.get())
        except OSError:
            self.close()

    def _answer(self, request_id: int, opcode: int, payload: bytes) -> None:
        flags, command = read_request(opcode, payload)
        name = command_name(command)
        self.server.received.append(Received(name, command, self.number, flags, opcode, payload))
        self.server.answering.wait()
        if flags & MORE_TO_COME:
            return
        if name == "hello" and flags & EXHAUST_ALLOWED:
            self._stream(request_id, command)
        else:
            self._reply(name, self.server.reply_to(name, command), request_id, opcode, 0)

    def _reply(self, name: str, reply: Mapping[str, Any], response_to: int, opcode: int, flags: int) -> int:
        number = next(self._reply_numbers)
        message = write_message(opcode, number, response_to, flags, reply)
        faults = self.server.faults[name]
        fault = faults.popleft() if faults else None
        if fault is None:
            self.send(message)
        else:
            fault(self, message)
        return number

    def _stream(self, response_to: int, command: dict[str, Any]) -> None:
        """Send a hello reply at each change of the server, and after ``maxAwaitTimeMS`` without a
        change.
        """
        while True:
            reply = self.server.reply_to("hello", command)
            continues = self.server.exhausts and reply["ok"] == 1 and "topologyVersion" in reply
            response_to = self._reply("hello", reply, response_to, OP_MSG, MORE_TO_COME if continues else 0)
            if not continues:
                return
            command = {**command, "topologyVersion": reply["topologyVersion"]}
            self.server.answering.wait()


class ScriptedServer:
    """Context manager of a standalone server. With the argument `member`, the server is a member of a
    replica set.

    :param replies: Replies, keyed by the command name. A reply can be a function that receives the
        command.
    :param member: Function that returns the fields that a replica set member adds to each hello
        reply.
    :param streams: True if hello replies contain ``topologyVersion``, with which clients request a
        stream of hello replies.
    """

    def __init__(
        self,
        replies: Mapping[str, Any] | None = None,
        *,
        member: Callable[[ScriptedServer], Mapping[str, Any]] | None = None,
        streams: bool = False,
    ) -> None:
        self.replies: dict[str, Any] = {**REPLIES, **(replies or {})}
        self.received: list[Received] = []
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.peers: dict[int, ServerConnection] = {}
        self.connection_count = 0
        # After a test clears `answering`, the server sends no replies. After a test clears
        # `reading`, the server reads no requests. After `Event.set`, the server resumes.
        self.answering, self.reading = Event(), Event()
        self.hello_extra: dict[str, Any] = {}
        # Function that receives the hello command and the usual reply, and returns the hello reply
        # to send.
        self.hello_edit: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None
        self._member = member
        self.streams = streams
        # False if the server sends only one reply to a hello that requests a stream of replies.
        self.exhausts = True
        self._process, self._version = ObjectId(), 0
        self._changed = Event()
        self._listener: StreamServer | None = None
        self._reserved: socket.socket | None = None  # socket that reserves the port while the server is stopped
        self.port = 0

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    # Start and stop

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Listen on a new port at the first start, and on the same port at each later start."""
        self.answering.set()
        self.reading.set()
        self._process = ObjectId()
        if self._reserved is None:
            self._reserved = reserve(self.port)
            self.port = self._reserved.getsockname()[1]
        self._listener = StreamServer(("127.0.0.1", self.port), self._accept)
        self._listener.start()
        # Connections inherit TCP_NODELAY. Without TCP_NODELAY, the second of two consecutive replies
        # takes 40 ms longer.
        self._listener.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def stop(self) -> None:
        """Close all connections, and refuse new connections.

        The port stays reserved for this server.
        """
        if self._listener is not None:
            self._listener.stop(timeout=0)
            self._listener = None
        for peer in list(self.peers.values()):
            peer.close()

    def close(self) -> None:
        """Stop the server, and release the port."""
        self.stop()
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _accept(self, sock: Any, _address: Any) -> None:
        self.connection_count += 1
        peer = ServerConnection(self, sock)
        self.peers[peer.number] = peer
        peer.serve()

    # Scripted replies

    def fail(self, name: str, *faults: Fault) -> None:
        """Replace the next replies to the command `name` (``handshake``, ``hello``, ``find``, ...) by
        `faults`.
        """
        self.faults[name].extend(faults)

    def changed(self) -> None:
        """Increase the topology version, and reply to the hello commands that wait for a change."""
        self._version += 1
        self._changed.set()
        self._changed = Event()

    def reply_to(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        if name in ("hello", "handshake"):
            self._await_change(command)
            reply = self._hello_reply()
            return self.hello_edit(command, reply) if self.hello_edit is not None else reply
        reply = self.replies.get(name, {"ok": 1})
        return dict(reply(command) if callable(reply) else reply)

    @property
    def topology_version(self) -> dict[str, Any]:
        return {"processId": self._process, "counter": Int64(self._version)}

    def _await_change(self, command: Mapping[str, Any]) -> None:
        if command.get("topologyVersion") == self.topology_version:
            self._changed.wait(command["maxAwaitTimeMS"] / 1000)

    def _hello_reply(self) -> dict[str, Any]:
        fields = {"ok": 1, "helloOk": True, "isWritablePrimary": True, "ismaster": True, **LIMITS}
        fields |= self._member(self) if self._member else {}
        fields |= {"topologyVersion": self.topology_version} if self.streams else {}
        return fields | self.hello_extra

    # Received commands

    def commands(self, name: str) -> list[dict[str, Any]]:
        """Return the received commands whose name is `name`."""
        return [each.command for each in self.received if each.name == name]

    def connections_of(self, name: str) -> list[int]:
        """Return the connection number of each received command whose name is `name`."""
        return [each.connection for each in self.received if each.name == name]

    def wait_for(self, name: str, count: int = 1) -> dict[str, Any]:
        """Wait until the server has received `count` commands whose name is `name`.

        Return the last of these `count` commands.
        """
        eventually(lambda: len(self.commands(name)) >= count)
        return self.commands(name)[count - 1]
