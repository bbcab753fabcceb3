"""Replies of the canned servers.

The server encodes most replies before the first request, and a batch at the first request for the
batch. For later requests, the server creates only the header of the reply.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any

import bson
from bson import Int64, ObjectId, Timestamp

from benchmarks.documents import (
    BATCH_SIZE,
    DATABASE,
    DOCUMENT_BYTES,
    HUNDRED,
    LARGE,
    LARGE_BATCH_SIZE,
    LARGE_DOCUMENT_BYTES,
    MEGABYTE,
    MEGABYTE_BATCH_SIZE,
    ONE,
    SAVED,
    ZIPF,
    ZIPF_BYTES,
    stored_documents,
    stored_documents_of_sizes,
)
from benchmarks.variants import REPLICA_SET_NAME

HEADER = struct.Struct("<iiii")
INT32 = struct.Struct("<i")
OP_REPLY = 1
OP_QUERY = 2004
OP_MSG = 2013
#: OP_MSG flag: the sender expects no reply.
MORE_TO_COME = 2
#: From this size in bytes on, the body is a separate piece of the reply, because a copy of the body
#: would delay the client.
LARGE_BODY_SIZE = 1 << 20
_CLUSTER_TIME = Timestamp(1704067200, 1)

_HELLO: dict[str, Any] = {
    "helloOk": True,
    "isWritablePrimary": True,
    "ismaster": True,
    "maxBsonObjectSize": 16777216,
    "maxMessageSizeBytes": 48000000,
    "maxWriteBatchSize": 100000,
    "localTime": datetime(2024, 1, 1),
    "logicalSessionTimeoutMinutes": 30,
    "connectionId": 1,
    "minWireVersion": 0,
    "maxWireVersion": 25,
    "readOnly": False,
    "ok": 1.0,
}


class Replies:
    """Replies of a server.

    :param address: the host and port of the primary of a replica set; None for a standalone.
    """

    def __init__(self, address: str | None = None) -> None:
        self._times: dict[str, Any] = {} if address is None else _cluster_times()
        hello = _HELLO if address is None else {**_HELLO, **_primary(address)}
        self._ok = self._op_msg({"ok": 1.0})
        self._by_command = {
            b"hello": self._op_msg(hello),
            b"ismaster": self._op_msg(hello),
            b"buildinfo": self._op_msg({"version": "8.0.0", "versionArray": [8, 0, 0, 0], "ok": 1.0}),
            b"insert": self._op_msg({"n": 1, "ok": 1.0}),
            b"update": self._op_msg({"n": 1, "nModified": 1, "ok": 1.0}),
            b"delete": self._op_msg({"n": 1, "ok": 1.0}),
        }
        # OP_REPLY: flags, cursor id, starting from, number returned, then the document.
        self._legacy_hello = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode({**hello, **self._times})
        self._batches: dict[bytes, bytes] = {}

    def _op_msg(self, document: dict[str, Any]) -> bytes:
        return b"\x00\x00\x00\x00\x00" + bson.encode({**document, **self._times})

    def _batch(self, collection: bytes) -> bytes:
        if collection not in self._batches:
            namespace = f"{DATABASE}.{collection.decode()}"
            cursor = {"firstBatch": _BATCHES[collection](), "id": Int64(0), "ns": namespace}
            self._batches[collection] = self._op_msg({"cursor": cursor, "ok": 1.0})
        return self._batches[collection]

    def _op_msg_body(self, message: bytes) -> bytes:
        start = _command_offset(message)
        end = message.index(0, start)
        name = message[start:end].lower()
        if name != b"find":
            return self._by_command.get(name, self._ok)
        return self._batch(message[end + 5 : message.index(0, end + 5)])

    def answer(self, message: bytes) -> list[bytes]:
        """Return the pieces of the reply to a request.

        The list is empty if the request expects no reply.

        :param message: an ``OP_MSG``, or an ``OP_QUERY`` with a legacy hello.
        :raises ValueError: the message has neither of these opcodes.
        """
        _, request_id, _, opcode = HEADER.unpack_from(message)
        if opcode == OP_MSG:
            return [] if message[16] & MORE_TO_COME else _reply(request_id, OP_MSG, self._op_msg_body(message))
        if opcode == OP_QUERY:
            return _reply(request_id, OP_REPLY, self._legacy_hello)
        raise ValueError(f"opcode {opcode} is neither OP_MSG ({OP_MSG}) nor OP_QUERY ({OP_QUERY})")


def _primary(address: str) -> dict[str, Any]:
    op_time = {"ts": _CLUSTER_TIME, "t": Int64(1)}
    return {
        "setName": REPLICA_SET_NAME,
        "setVersion": 1,
        "hosts": [address],
        "me": address,
        "primary": address,
        "secondary": False,
        "electionId": ObjectId("7fffffff0000000000000001"),
        "lastWrite": {
            "opTime": op_time,
            "lastWriteDate": datetime(2024, 1, 1),
            "majorityOpTime": op_time,
            "majorityWriteDate": datetime(2024, 1, 1),
        },
    }


def _cluster_times() -> dict[str, Any]:
    """Return the constant cluster time and operation time of all replies of a replica set.

    A client needs the same CPU time for constant values as for increasing values.
    """
    signature = {"hash": bytes(20), "keyId": Int64(7300000000000000001)}
    return {
        "$clusterTime": {"clusterTime": _CLUSTER_TIME, "signature": signature},
        "operationTime": _CLUSTER_TIME,
    }


_BATCHES: dict[bytes, Callable[[], list[dict[str, Any]]]] = {
    ONE.encode(): lambda: [SAVED],
    HUNDRED.encode(): lambda: stored_documents(BATCH_SIZE, DOCUMENT_BYTES),
    LARGE.encode(): lambda: stored_documents(LARGE_BATCH_SIZE, LARGE_DOCUMENT_BYTES),
    MEGABYTE.encode(): lambda: stored_documents(MEGABYTE_BATCH_SIZE, LARGE_DOCUMENT_BYTES),
    ZIPF.encode(): lambda: stored_documents_of_sizes(ZIPF_BYTES),
}


def _command_offset(message: bytes) -> int:
    """Return the offset of the command name. Skip document sequences that precede the command."""
    offset = 20
    while message[offset] == 1:
        offset += 1 + INT32.unpack_from(message, offset + 1)[0]
    return offset + 6


def _reply(request_id: int, opcode: int, body: bytes) -> list[bytes]:
    header = HEADER.pack(16 + len(body), request_id, request_id, opcode)
    return [header + body] if len(body) < LARGE_BODY_SIZE else [header, body]
