"""The baseline: hand-written code that sends the requests of the benchmark at minimum cost.

The baseline uses non-blocking sockets and ``bson``. The pool is a list of connections and a queue of
waiting greenlets. Each connection reuses two watchers and one receive buffer. The baseline has no
monitoring, no retries, no timeouts and no error handling. The difference between a driver and the
baseline is the cost of the driver features. The tables name the baseline ``floor``.
"""

from __future__ import annotations

import _socket
import itertools
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import bson
import gevent
from bson.binary import Binary
from bson.objectid import ObjectId

from benchmarks.documents import CHANGE, DATABASE, HUNDRED, MEGABYTE, ONE, QUERY, UNSAVED, ZIPF, documents_without_id
from benchmarks.replies import HEADER, INT32, OP_MSG

_READ, _WRITE = 1, 2
_FLAGS_AND_KIND = b"\x00\x00\x00\x00\x00"
#: The offset of the document in a reply, after header, flags and section kind.
_DOCUMENT_OFFSET = 21

Document = dict[str, Any]


class Channel:
    """Connection, and the ID of the server session that all commands on the connection use."""

    def __init__(self, port: int) -> None:
        self._sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        self._sock.connect(("127.0.0.1", port))
        self._sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        self._sock.setblocking(False)
        self._hub = gevent.get_hub()
        self._read_watcher = self._hub.loop.io(self._sock.fileno(), _READ)
        self._write_watcher = self._hub.loop.io(self._sock.fileno(), _WRITE)
        self._buffer = memoryview(bytearray(65536))
        self.session = {"id": Binary(uuid.uuid4().bytes, 4)}

    def exchange(self, message: bytes) -> Document:
        """Send a request, and return the document of its reply."""
        sent = self._sock.send(message)
        if sent != len(message):
            self._send_remaining(memoryview(message)[sent:])
        buffer = self._buffer
        byte_count = self._receive(buffer)
        length: int = INT32.unpack_from(buffer)[0]
        if length > len(buffer):
            buffer = memoryview(bytearray(length))
            buffer[:byte_count] = self._buffer[:byte_count]
        while byte_count < length:
            byte_count += self._receive(buffer[byte_count:])
        return bson.decode(buffer[_DOCUMENT_OFFSET:length])

    def _send_remaining(self, rest: memoryview) -> None:
        while rest:
            self._write_watcher.start(gevent.getcurrent().switch)
            try:
                self._hub.switch()
            finally:
                self._write_watcher.stop()
            rest = rest[self._sock.send(rest) :]

    def _receive(self, target: memoryview) -> int:
        self._read_watcher.start(gevent.getcurrent().switch)
        try:
            self._hub.switch()
        finally:
            self._read_watcher.stop()
        received = self._sock.recv_into(target)
        if not received:
            raise ConnectionError("the server closed the connection")
        return received

    def close(self) -> None:
        self._read_watcher.close()
        self._write_watcher.close()
        self._sock.close()


class Baseline:
    """The operations of the benchmark, on a pool of open connections.

    :param port: the port of the canned server on 127.0.0.1.
    :param connection_count: the number of connections in the pool.
    """

    def __init__(self, port: int, connection_count: int) -> None:
        self._channels = [Channel(port) for _ in range(connection_count)]
        self._waiting_greenlets: deque[gevent.Greenlet] = deque()
        self._hub = gevent.get_hub()
        self._next_id = itertools.count(1).__next__

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    def find_one(self) -> Document:
        command = {"find": ONE, "filter": QUERY, "limit": 1, "singleBatch": True}
        document: Document = self._run(command)["cursor"]["firstBatch"][0]
        return document

    def find_all(self, collection: str) -> Iterable[Document]:
        batch: list[Document] = self._run({"find": collection, "filter": {}})["cursor"]["firstBatch"]
        return batch

    def insert_one(self) -> int:
        document = {"_id": ObjectId(), **UNSAVED}
        payload = bson.encode(document)
        inserted_count: int = self._run({"insert": ONE, "ordered": True}, b"documents\x00", payload)["n"]
        return inserted_count

    def insert_many(self) -> int:
        documents = documents_without_id()
        for document in documents:
            document["_id"] = ObjectId()
        payload = b"".join([bson.encode(document) for document in documents])
        self._run({"insert": ONE, "ordered": True}, b"documents\x00", payload)
        return len(documents)

    def update_one(self) -> int:
        statement = {"q": QUERY, "u": CHANGE, "multi": False, "upsert": False}
        updated_count: int = self._run({"update": ONE, "ordered": True}, b"updates\x00", bson.encode(statement))["n"]
        return updated_count

    def delete_one(self) -> int:
        statement = {"q": QUERY, "limit": 1}
        deleted_count: int = self._run({"delete": ONE, "ordered": True}, b"deletes\x00", bson.encode(statement))["n"]
        return deleted_count

    def _run(self, command: Document, identifier: bytes = b"", payload: bytes = b"") -> Document:
        channel = self._channels.pop() if self._channels else self._wait_for_channel()
        try:
            command["lsid"] = channel.session
            command["$db"] = DATABASE
            return channel.exchange(self._message(command, identifier, payload))
        finally:
            self._return_channel(channel)

    def _wait_for_channel(self) -> Channel:
        self._waiting_greenlets.append(gevent.getcurrent())
        channel: Channel = self._hub.switch()
        return channel

    def _return_channel(self, channel: Channel) -> None:
        if self._waiting_greenlets:
            self._hub.loop.run_callback(self._waiting_greenlets.popleft().switch, channel)
        else:
            self._channels.append(channel)

    def _message(self, command: Document, identifier: bytes, payload: bytes) -> bytes:
        sections = _FLAGS_AND_KIND + bson.encode(command)
        if payload:
            sequence = identifier + payload
            sections += b"\x01" + INT32.pack(4 + len(sequence)) + sequence
        return HEADER.pack(16 + len(sections), self._next_id(), 0, OP_MSG) + sections


def operations(baseline: Baseline) -> dict[str, Callable[[], Any]]:
    """Return the operations, with their names in the benchmark as keys."""

    def iterate(collection: str) -> int:
        count = 0
        for _document in baseline.find_all(collection):
            count += 1
        return count

    return {
        "find_one": baseline.find_one,
        "insert_one": baseline.insert_one,
        "insert_many": baseline.insert_many,
        "update_one": baseline.update_one,
        "delete_one": baseline.delete_one,
        "find_100": lambda: iterate(HUNDRED),
        "find_zipf": lambda: iterate(ZIPF),
        "find_megabyte": lambda: iterate(MEGABYTE),
    }
