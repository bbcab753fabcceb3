"""One connection of a client to a member: requests are read and answered, one after the other."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.queue import Queue

from gmongo.testing.command import Request
from gmongo.testing.simulation import compression
from gmongo.testing.simulation.authentication.session import Authentication
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.framing import (
    HEADER,
    MalformedCommand,
    MalformedMessage,
    Message,
    read_message,
    write_reply,
)
from gmongo.testing.simulation.tls import Stream
from gmongo.testing.simulation.waiting import pause, wait_for
from gmongo.wire.message import CHECKSUM_PRESENT, HEADER_SIZE, MORE_TO_COME, OP_COMPRESSED, OP_MSG, OP_QUERY

if TYPE_CHECKING:
    from gmongo.testing.simulation.member import Member

_log = logging.getLogger("gmongo.testing")
_MAX_MESSAGE_SIZE = 48_000_000
_OPCODES = (OP_MSG, OP_QUERY, OP_COMPRESSED)
_CHUNK = 1 << 16
_PIPELINE = 64  # requests read ahead of their turn
_HELLOS = frozenset({"hello", "isMaster", "ismaster"})
_WAITING = _HELLOS | {"getMore"}  # these may wait for long
_reply_numbers = itertools.count(1)

_Frame = tuple[int, int, bytes]


class Connection:
    """A connection.

    :ivar number: the connectionId.
    :ivar app_name: what the handshake told.
    :ivar gone: set when the connection is closed, by the client with nothing in hand, or by the member.
    :ivar left: set when the client has left, or the member closed it.
    :ivar peer_port: the client's port.
    :ivar busy_with: the command in hand.
    :ivar operations: how many commands of each name it received.
    """

    def __init__(self, member: Member, stream: Stream, peer_port: int, peer_certificate: dict[str, Any] | None) -> None:
        self.number = next(member.cluster.connection_numbers)
        self.member = member
        self.peer_port = peer_port
        self.busy_with: str | None = None
        self.app_name: str | None = None
        self.greeted = False
        self.internal = False
        self.operations: Counter[str] = Counter()
        self._commits = False  # whether the last command was to commit
        self.compressors: list[str] = []
        self.authentication = Authentication(member.cluster.users, peer_certificate)
        self.gone = Event()
        self.left = Event()
        self._stream = stream
        self._unread = bytearray()
        self._streamed: int | None = None  # the cursor whose batches are sent without being asked for
        self._requests: Queue[_Frame | None] = Queue(_PIPELINE)
        self._answerer = gevent.Greenlet(self._answer_all)

    def __repr__(self) -> str:
        return f"<Connection {self.number} of {self.member.address}>"

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""
        return self.number in self.member.connections

    # Life

    def serve(self) -> None:
        """Read and answer until the connection ends."""
        self._answerer.start()
        try:
            while True:
                self._requests.put(self._read_frame())
        except (OSError, MalformedMessage):
            pass
        finally:
            self._end()

    def close(self) -> None:
        """Close the connection."""
        self.gone.set()
        self.left.set()
        self._stream.close()
        self.member.forget(self)

    def abort_transaction(self) -> None:
        """Abort what runs on the connection, as a service behind a load balancer does when it is closed. What is to be
        committed is not aborted, since a client may ask for that again elsewhere.
        """
        if self.member.service_id is not None and not self._commits:
            self.member.cluster.store.connection_lost(self.number)

    def _end(self) -> None:
        self.left.set()
        self.member.forget(self)
        self.abort_transaction()
        if self.busy_with in _WAITING or self.gone.is_set():
            self._answerer.kill(block=False)
        else:
            # What was sent before is still done: a client may close after an unacknowledged write.
            self._requests.put(None)
            self._answerer.join()
        self.close()

    # Reading

    def _read_frame(self) -> _Frame:
        length, number, _response_to, opcode = HEADER.unpack(self._read(HEADER_SIZE))
        if not HEADER_SIZE <= length <= _MAX_MESSAGE_SIZE:
            raise MalformedMessage(f"length {length}")
        if opcode not in _OPCODES:  # as in the header of TLS, whose length would be waited for
            raise MalformedMessage(f"opcode {opcode}")
        return number, opcode, self._read(length - HEADER_SIZE)

    def _read(self, size: int) -> bytes:
        while len(self._unread) < size:
            chunk = self._stream.recv(_CHUNK)
            if not chunk:
                raise ConnectionResetError
            self._unread += chunk
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data

    # Answering

    def _answer_all(self) -> None:
        try:
            while (frame := self._requests.get()) is not None:
                wait_for(self.member.faults.answering)
                if not self.member.faults.partitioned:
                    self._answer(*frame)
                self.busy_with = None
        except (OSError, MalformedMessage, CloseConnection):
            self.close()
        except Exception:  # such as a reply that cannot be encoded
            _log.exception("the simulated deployment cannot answer %s on %r", self.busy_with, self)
            self.close()

    def _answer(self, number: int, opcode: int, payload: bytes) -> None:
        compressor = None
        if opcode == OP_COMPRESSED:
            opcode, payload, compressor = compression.decompress(payload)
        try:
            message = read_message(opcode, payload, number)
        except MalformedCommand as problem:
            reply = error(22, str(problem)).reply()
            self._send("", write_reply(OP_MSG, next(_reply_numbers), number, 0, reply), None)
            return
        self._converse(number, message, compressor)

    def _converse(self, number: int, message: Message, compressor: compression.Compressor | None) -> None:
        """Answer once, or again and again if the client takes it and there is more to come."""
        call = self._call(message)
        if call.name in _HELLOS and self.left.is_set():
            raise CloseConnection  # it would wait for what nothing reads any more
        self.member.cluster.log.add(call.request, message.size)
        self.operations[call.name] += 1
        self.member.operations.requests += 1
        self.member.operations.received += message.size
        self._commits = call.name == "commitTransaction"
        try:
            self._answer_call(call, number, message, compressor)
        except BaseException:
            if self._streamed is not None:  # a client that ends a stream ends its cursor
                self.member.cluster.store.end_cursor(self._streamed)
            raise
        finally:
            self._streamed = None

    def _answer_call(
        self, call: Call, number: int, message: Message, compressor: compression.Compressor | None
    ) -> None:
        while True:
            self.busy_with = call.name
            reply = self.member.answer(call)
            if not message.wants_reply:
                return
            following = self._next(call, reply) if message.exhaust_allowed else None
            flags = (MORE_TO_COME if following else 0) | message.flags & CHECKSUM_PRESENT  # as servers do
            reply_number = next(_reply_numbers) & 0x7FFFFFFF
            self._send(call.name, write_reply(message.opcode, reply_number, number, flags, reply), compressor)
            if following is None:
                return
            self._streamed = following.body.get("getMore")
            call, number = following, reply_number

    def _call(self, message: Message) -> Call:
        body = message.body
        request = Request(next(iter(body), ""), body, message.database, self.member.address, self.number)
        request.repeated = message.repeated
        return Call(request, self.member, self, legacy=message.opcode != OP_MSG)

    def _next(self, call: Call, reply: dict[str, Any]) -> Call | None:
        """The request that a client of a stream would send next; None at its end."""
        if not reply.get("ok"):
            return None
        body = call.body
        streams = call.name == "getMore" and call.cluster.topology.streams_cursors(call.cluster.version)
        if "topologyVersion" in body and "maxAwaitTimeMS" in body:
            body = {**body, "topologyVersion": reply["topologyVersion"]}
        elif not streams or not reply["cursor"]["id"]:
            return None
        request = Request(call.name, body, call.request.database, call.request.member, self.number)
        return Call(request, self.member, self)

    # Sending

    def _send(self, command: str, message: bytes, compressor: compression.Compressor | None) -> None:
        network, faults = self.member.cluster.network, self.member.faults
        if compressor is not None:
            message = compression.compress(message, compressor)
        pause(network.latency + faults.delay)
        wait_for(faults.answering)
        if faults.partitioned:
            return
        if network.loses():
            raise CloseConnection
        if faults.take_garbage(command):
            message = b"\xff" * len(message)
        cut = faults.take_cut(command)
        self.member.operations.sent += len(message)
        self._stream.sendall(message if cut is None else message[:cut])
        if cut is not None:
            raise CloseConnection
