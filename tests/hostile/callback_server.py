"""A fast server, which calls a callback for each command. The callback returns the reply."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import bson
from bson import Int64, ObjectId, Timestamp
from gevent.server import StreamServer

_HEADER = struct.Struct("<iiii")
_HELLO_NAMES = ("hello", "ismaster", "isMaster")
OP_QUERY, OP_COMPRESSED, OP_MSG = 2004, 2012, 2013
MORE_TO_COME, EXHAUST_ALLOWED = 2, 1 << 16

# The callback receives the command name, the command, the request ID and the message flags. The
# callback returns the encoded reply message, or None to close the connection.
AnswerCallback = Callable[[str, dict[str, Any], int, int], bytes | None]


def read_command(opcode: int, body: bytes) -> dict[str, Any]:
    """Return the command of a request.

    The command contains the documents that the request sends as document sequences.
    """
    if opcode == OP_COMPRESSED:  # The tests use no other compressor than zlib.
        return read_command(struct.unpack_from("<i", body)[0], zlib.decompress(body[9:]))
    if opcode == OP_QUERY:
        return bson.decode(body[body.index(0, 4) + 1 + 8 :])
    size = struct.unpack_from("<i", body, 5)[0]
    command = bson.decode(body[5 : 5 + size])
    position = 5 + size
    while position < len(body) - 4:
        length = struct.unpack_from("<i", body, position + 1)[0]
        name, _, documents = body[position + 5 : position + 1 + length].partition(b"\0")
        command[name.decode()] = bson.decode_all(documents)
        position += 1 + length
    return command


def message(body: bytes, response_to: int, flags: int = 0, number: int = 1) -> bytes:
    """Return an encoded OP_MSG message."""
    return struct.pack("<iiiiIB", 21 + len(body), number, response_to, OP_MSG, flags, 0) + body


class CallbackServer:
    """Context manager of a server on the loopback interface.

    :param answer: callback of the type :data:`AnswerCallback`.
    """

    def __init__(self, answer: AnswerCallback, **options: Any) -> None:
        self.answer = answer
        self.sockets: set[Any] = set()
        self.closed_count = 0  # number of connections that the client or the server has closed
        self._server = StreamServer(("127.0.0.1", 0), self._serve, **options)
        self._server.start()
        self.port: int = self._server.server_port

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.stop(timeout=0)
        for each in list(self.sockets):
            each.close()

    def __enter__(self) -> CallbackServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, sock: Any, _address: Any) -> None:
        self.sockets.add(sock)
        stream = sock.makefile("rb")
        try:
            while len(head := stream.read(16)) == 16:
                length, request_id, _, opcode = _HEADER.unpack(head)
                body = stream.read(length - 16)
                flags = struct.unpack_from("<I", body)[0] if opcode == OP_MSG else 0
                command = read_command(opcode, body)
                name = next(iter(command))
                reply = self.answer("hello" if name in _HELLO_NAMES else name, command, request_id, flags)
                if reply is None:
                    return
                if not flags & MORE_TO_COME:
                    sock.sendall(reply)
        except (OSError, ValueError):
            pass
        finally:
            self.sockets.discard(sock)
            self.closed_count += 1
            stream.close()
            sock.close()


def hello(name: str) -> dict[str, Any]:
    """Return the hello reply of a primary that is the only member of its replica set."""
    return {
        "ok": 1.0, "helloOk": True, "isWritablePrimary": True, "ismaster": True, "setName": "rs", "setVersion": 1,
        "electionId": ObjectId(b"e" * 12), "hosts": [name], "me": name, "primary": name, "minWireVersion": 0,
        "maxWireVersion": 25, "maxBsonObjectSize": 16 * 1024 * 1024, "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000, "logicalSessionTimeoutMinutes": 30, "connectionId": 7,
        "topologyVersion": {"processId": ObjectId(b"p" * 12), "counter": Int64(1)},
        "lastWrite": {"lastWriteDate": bson.datetime_ms.DatetimeMS(1_700_000_000_000)},
        **TIME_FIELDS,
    }  # fmt: skip


TIME_FIELDS: dict[str, Any] = {
    "$clusterTime": {"clusterTime": Timestamp(9, 1), "signature": {"hash": b"h" * 20, "keyId": Int64(7)}},
    "operationTime": Timestamp(9, 1),
}


def _cursor(batch: list[Any], cursor_id: int = 0, field: str = "firstBatch") -> dict[str, Any]:
    return {"cursor": {"id": Int64(cursor_id), "ns": "d.c", field: batch, "postBatchResumeToken": {"_data": "82"}}}


def good_reply(name: str, command: dict[str, Any]) -> dict[str, Any]:
    """Return a correct reply to a command."""
    return {**_reply_content(name, command), "ok": 1.0, **TIME_FIELDS}


def _reply_content(name: str, command: dict[str, Any]) -> dict[str, Any]:
    if name == "find":
        requested_id = command["filter"].get("_id", 1)
        return _cursor([{"_id": requested_id}, {"_id": 2}], 0 if "limit" in command else 77)
    if name == "getMore":
        return _cursor([{"_id": 3}, {"_id": {"_data": "83"}, "operationType": "insert"}], 0, "nextBatch")
    if name == "aggregate":
        if command["pipeline"] and "$changeStream" in command["pipeline"][0]:
            return _cursor([{"_id": {"_data": "82"}, "operationType": "insert"}], 78)
        return _cursor([{"_id": 1, "n": 1}])
    if name in ("insert", "delete"):
        return {"n": len(command.get("documents") or command.get("deletes") or ()), "electionId": ObjectId()}
    if name == "update":
        upserts = [{"index": number, "_id": 9} for number, each in enumerate(command["updates"]) if each.get("upsert")]
        return {"n": len(command["updates"]), "nModified": 0, **({"upserted": upserts} if upserts else {})}
    if name == "bulkWrite":
        results = [{"ok": 1.0, "idx": number, "n": 1, "nModified": 0} for number in range(len(command["ops"]))]
        counts = dict.fromkeys(("nErrors", "nInserted", "nUpserted", "nMatched", "nModified", "nDeleted"), 0)
        return {**_cursor(results), **counts}
    return _OTHER_CONTENT.get(name, {})


_OTHER_CONTENT: dict[str, dict[str, Any]] = {
    "findAndModify": {"value": {"_id": 1}, "lastErrorObject": {"n": 1, "updatedExisting": True}},
    "distinct": {"values": [1, "a", {"b": 1}]},
    "count": {"n": 5},
    "listCollections": _cursor([{"name": "c", "type": "collection", "options": {}, "info": {}}]),
    "listIndexes": _cursor([{"v": 2, "key": {"_id": 1}, "name": "_id_"}]),
    "listDatabases": {"databases": [{"name": "d", "sizeOnDisk": 1, "empty": False}], "totalSize": 1},
    "validate": {"valid": True, "result": "fine", "raw": {"shard": {"valid": True}}},
    "commitTransaction": {"recoveryToken": {"a": 1}},
}
