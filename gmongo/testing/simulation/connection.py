"""A connection between a client and a member. The member replies to the requests in the order of arrival."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.queue import Queue

from gmongo.testing.command import Request, error
from gmongo.testing.simulation import compression
from gmongo.testing.simulation.authentication.session import Authentication
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.framing import (
    HEADER,
    MalformedCommand,
    MalformedMessage,
    Message,
    read_message,
    write_reply,
)
from gmongo.testing.simulation.hello import HELLO_COMMANDS
from gmongo.testing.simulation.tls import Stream
from gmongo.testing.simulation.waiting import pause, wait_for
from gmongo.wire.message import CHECKSUM_PRESENT, HEADER_SIZE, MORE_TO_COME, OP_COMPRESSED, OP_MSG, OP_QUERY

if TYPE_CHECKING:
    from gmongo.testing.simulation.member import Member

_log = logging.getLogger("gmongo.testing")
_MAX_MESSAGE_SIZE = 48_000_000
_OPCODES = (OP_MSG, OP_QUERY, OP_COMPRESSED)
_CHUNK_SIZE = 1 << 16
_QUEUE_SIZE = 64  # the number of requests that the member reads in advance
_WAITING_COMMANDS = HELLO_COMMANDS | {"getMore"}  # the commands that may wait long for an event
_reply_numbers = itertools.count(1)

_Frame = tuple[int, int, bytes]


class Connection:
    """The server side of a connection."""

    def __init__(self, member: Member, stream: Stream, peer_port: int, peer_certificate: dict[str, Any] | None) -> None:
        self.number = next(member.cluster.connection_numbers)  # the connectionId
        self.member = member
        self.peer_port = peer_port  # the TCP port of the client
        self.busy_with: str | None = None  # the name of the running command, or None
        self.app_name: str | None = None  # the name of the application in the handshake
        self.greeted = False  # True after the first hello
        self.internal = False  # True if the client is a MongoDB server
        self.operations: Counter[str] = Counter()  # the number of received commands by command name
        self._last_command_is_commit = False  # True if the last command was commitTransaction
        self.compressors: list[str] = []
        self.authentication = Authentication(member.cluster.users, peer_certificate)
        # `closed` is set when the client or the member closes the connection. `closed_by_member` is
        # set when the member closes the connection. After the client has closed the connection, the
        # member executes the received requests before the member closes the connection.
        self.closed_by_member, self.closed = Event(), Event()
        self._stream = stream
        self._unread = bytearray()
        self._streamed_cursor_id: int | None = None  # the cursor whose batches the member sends as an exhaust stream
        self._requests: Queue[_Frame | None] = Queue(_QUEUE_SIZE)
        self._replier = gevent.Greenlet(self._reply_to_all)

    def __repr__(self) -> str:
        return f"<Connection {self.number} of {self.member.address}>"

    @property
    def is_open(self) -> bool:
        return self.number in self.member.connections

    def serve(self) -> None:
        self._replier.start()
        try:
            while True:
                self._requests.put(self._read_frame())
        except (OSError, MalformedMessage):
            pass
        finally:
            self._end()

    def close(self) -> None:
        self.closed_by_member.set()
        self.closed.set()
        self._stream.close()
        self.member.forget(self)

    def abort_transaction(self) -> None:
        """Abort the open transaction of this connection if a load balancer is in use."""
        # After `commitTransaction`, the client may retry the commit on another mongos.
        if self.member.service_id is not None and not self._last_command_is_commit:
            self.member.cluster.store.handle_connection_loss(self.number)

    def _end(self) -> None:
        self.closed.set()
        self.member.forget(self)
        self.abort_transaction()
        if self.busy_with in _WAITING_COMMANDS or self.closed_by_member.is_set():
            self._replier.kill(block=False)
        else:
            # A client may close the connection after an unacknowledged write. Therefore the member
            # executes the requests in the queue.
            self._requests.put(None)
            self._replier.join()
        self.close()

    def _read_frame(self) -> _Frame:
        length, request_id, _response_to, opcode = HEADER.unpack(self._read(HEADER_SIZE))
        if not HEADER_SIZE <= length <= _MAX_MESSAGE_SIZE:
            raise MalformedMessage(f"length {length}")
        if opcode not in _OPCODES:  # for example a TLS handshake instead of a message
            raise MalformedMessage(f"opcode {opcode}")
        return request_id, opcode, self._read(length - HEADER_SIZE)

    def _read(self, size: int) -> bytes:
        while len(self._unread) < size:
            chunk = self._stream.recv(_CHUNK_SIZE)
            if not chunk:
                raise ConnectionResetError
            self._unread += chunk
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data

    def _reply_to_all(self) -> None:
        try:
            while (frame := self._requests.get()) is not None:
                wait_for(self.member.faults.not_frozen)
                if not self.member.faults.partitioned:
                    self._reply_to_frame(*frame)
                self.busy_with = None
        except (OSError, MalformedMessage, CloseConnection):
            self.close()
        except Exception:  # for example a reply that cannot be encoded
            _log.exception("the simulated deployment cannot reply to %s on %r", self.busy_with, self)
            self.close()

    def _reply_to_frame(self, request_id: int, opcode: int, payload: bytes) -> None:
        compressor = None
        if opcode == OP_COMPRESSED:
            opcode, payload, compressor = compression.decompress(payload)
        try:
            message = read_message(opcode, payload, request_id)
        except MalformedCommand as problem:
            reply = error(22, str(problem)).reply()
            self._send("", write_reply(OP_MSG, next(_reply_numbers), request_id, 0, reply), None)
            return
        self._reply_to_message(request_id, message, compressor)

    def _reply_to_message(self, request_id: int, message: Message, compressor: compression.Compressor | None) -> None:
        """Execute the command of the message, and send a reply, an exhaust stream of replies, or no reply."""
        body = message.body
        request = Request(next(iter(body), ""), body, message.database, self.member.address, self.number)
        request.repeated = message.repeated
        call = Call(request, self.member, self, legacy=message.opcode != OP_MSG)
        if call.name in HELLO_COMMANDS and self.closed.is_set():
            raise CloseConnection  # the client has closed the connection, and needs no reply
        self.member.cluster.log.add(call.request, message.size)
        self.operations[call.name] += 1
        self._last_command_is_commit = call.name == "commitTransaction"
        try:
            self._execute_call(call, request_id, message, compressor)
        except BaseException:
            if self._streamed_cursor_id is not None:  # the connection ended during the exhaust stream
                self.member.cluster.store.close_cursor(self._streamed_cursor_id)
            raise
        finally:
            self._streamed_cursor_id = None

    def _execute_call(
        self, call: Call, request_id: int, message: Message, compressor: compression.Compressor | None
    ) -> None:
        while True:
            self.busy_with = call.name
            reply = self.member.answer(call)
            if not message.wants_reply:
                return
            next_call = self._create_streamed_call(call, reply) if message.exhaust_allowed else None
            flags = (MORE_TO_COME if next_call else 0) | message.flags & CHECKSUM_PRESENT  # as in replies of mongod
            reply_number = next(_reply_numbers) & 0x7FFFFFFF
            self._send(call.name, write_reply(message.opcode, reply_number, request_id, flags, reply), compressor)
            if next_call is None:
                return
            self._streamed_cursor_id = next_call.body.get("getMore")
            call, request_id = next_call, reply_number

    def _create_streamed_call(self, call: Call, reply: dict[str, Any]) -> Call | None:
        """Return the next command of an exhaust stream, or None if the stream ends."""
        if not reply.get("ok"):
            return None
        body = call.body
        is_streamed = call.name == "getMore" and call.cluster.topology.streams_cursors(call.cluster.version)
        if "topologyVersion" in body and "maxAwaitTimeMS" in body:
            body = {**body, "topologyVersion": reply["topologyVersion"]}
        elif not is_streamed or not reply["cursor"]["id"]:
            return None
        request = Request(call.name, body, call.request.database, call.request.member, self.number)
        return Call(request, self.member, self)

    def _send(self, command: str, message: bytes, compressor: compression.Compressor | None) -> None:
        network, faults = self.member.cluster.network, self.member.faults
        if compressor is not None:
            message = compression.compress(message, compressor)
        pause(network.latency + faults.delay)
        wait_for(faults.not_frozen)
        if faults.partitioned:
            return
        if network.loses():
            raise CloseConnection
        if faults.take_garbage(command):
            message = b"\xff" * len(message)
        cut_length = faults.take_cut(command)
        self._stream.sendall(message if cut_length is None else message[:cut_length])
        if cut_length is not None:
            raise CloseConnection
