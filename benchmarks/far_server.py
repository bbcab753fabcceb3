"""Server behind a simulated slow network: ``python -m benchmarks.far_server --fd N --latency MS``.

The server has one long cursor, and sends each reply MS milliseconds after the arrival of its request.
A delayed message does not delay later messages. Therefore, the batches of an exhaust cursor arrive
without pauses. The server exits at the end of its standard input.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import bson
import gevent
from bson import Int64
from gevent.fileobject import FileObject
from gevent.queue import Queue
from gevent.server import StreamServer
from gevent.socket import socket as GeventSocket

from benchmarks.documents import DATABASE, DOCUMENT_BYTES, stored_documents
from benchmarks.processors import pin_server
from benchmarks.replies import HEADER, MORE_TO_COME, OP_MSG, OP_QUERY, Replies

#: The number of batches of the cursor, and the number of documents in a batch.
BATCH_COUNT, BATCH_SIZE = 100, 1000
COLLECTION = "long"
EXHAUST_ALLOWED = 1 << 16
CURSOR_ID = 77


class LongCursor:
    """Encoded bodies of the replies with the documents of the cursor."""

    def __init__(self) -> None:
        documents = stored_documents(BATCH_SIZE, DOCUMENT_BYTES)
        self.first_body = self._body(documents, "firstBatch", CURSOR_ID)
        self.next_body = self._body(documents, "nextBatch", CURSOR_ID)
        self.last_body = self._body(documents, "nextBatch", 0)

    @staticmethod
    def _body(documents: list[dict[str, Any]], field: str, cursor_id: int) -> bytes:
        cursor = {field: documents, "id": Int64(cursor_id), "ns": f"{DATABASE}.{COLLECTION}"}
        return bson.encode({"cursor": cursor, "ok": 1.0})


class Conversation:
    """Connection of a client, with the replies whose latency has not yet elapsed.

    :param latency: seconds from a request to its reply.
    """

    # The server counts the sent batches of all connections together, because a cursor may use
    # several connections.
    sent_batch_count = 0

    def __init__(self, sock: GeventSocket, cursor: LongCursor, replies: Replies, latency: float) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._cursor = cursor
        self._replies = replies
        self._latency = latency
        self._delayed_messages: Queue[tuple[float, bytes]] = Queue()

    def serve(self) -> None:
        """Read requests, and send each reply after the latency."""
        sender = gevent.spawn(self._send)
        stream = self._socket.makefile("rb")
        try:
            while len(head := stream.read(16)) == 16:
                length, request_id, _response_to, opcode = HEADER.unpack(head)
                due = time.monotonic() + self._latency
                for message in self._answer(head + stream.read(length - 16), request_id, opcode):
                    self._delayed_messages.put((due, message))
        except OSError:
            pass
        finally:
            sender.kill()

    def _send(self) -> None:
        while True:
            due, message = self._delayed_messages.get()
            gevent.sleep(max(0.0, due - time.monotonic()))
            self._socket.sendall(message)

    def _answer(self, request: bytes, request_id: int, opcode: int) -> Iterator[bytes]:
        name = b"" if opcode == OP_QUERY else request[26 : request.index(0, 26)]
        if name == b"find":
            Conversation.sent_batch_count = 1
            yield _message(request_id, request_id, 0, self._cursor.first_body)
        elif name == b"getMore":
            flags = int.from_bytes(request[16:20], "little")
            yield from self._batches(request_id, bool(flags & EXHAUST_ALLOWED))
        else:
            yield from self._replies.answer(request)

    def _batches(self, request_id: int, is_exhaust: bool) -> Iterator[bytes]:
        while True:
            Conversation.sent_batch_count += 1
            has_more = Conversation.sent_batch_count < BATCH_COUNT
            reply_id = 1_000_000 + Conversation.sent_batch_count
            body = self._cursor.next_body if has_more else self._cursor.last_body
            yield _message(reply_id, request_id, MORE_TO_COME if is_exhaust and has_more else 0, body)
            if not is_exhaust or not has_more:
                return
            request_id = reply_id


def _message(message_id: int, response_to: int, flags: int, body: bytes) -> bytes:
    payload = flags.to_bytes(4, "little") + b"\x00" + body
    return HEADER.pack(16 + len(payload), message_id, response_to, OP_MSG) + payload


def main() -> None:
    """Run the server that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.far_server", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="file descriptor of an inherited listening socket")
    parser.add_argument("--latency", type=float, default=5, help="milliseconds from a request to its reply (default 5)")
    options = parser.parse_args()
    pin_server()
    cursor, replies = LongCursor(), Replies()

    def serve(sock: GeventSocket, _address: Any) -> None:
        Conversation(sock, cursor, replies, options.latency / 1000).serve()

    listener = GeventSocket(fileno=options.fd)
    listener.setblocking(False)
    StreamServer(listener, serve).start()
    FileObject(sys.stdin.buffer, "rb").read()  # the stream ends when the benchmark ends or closes the pipe


if __name__ == "__main__":
    main()
