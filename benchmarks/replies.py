"""What the canned server says.

Every reply is encoded once, a batch when it is first asked for, and only the header is made per request.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

import bson

from benchmarks.documents import (
    BATCH,
    DATABASE,
    DOCUMENT_BYTES,
    HUNDRED,
    LARGE,
    LARGE_BATCH,
    LARGE_DOCUMENT_BYTES,
    ONE,
    SAVED,
    saved,
)

HEADER = struct.Struct("<iiii")
INT32 = struct.Struct("<i")
OP_REPLY = 1
OP_QUERY = 2004
OP_MSG = 2013
#: OP_MSG flag: the sender expects no reply.
MORE_TO_COME = 2
#: A body of so many bytes is sent by itself: the client would notice the time that copying it takes.
LARGE_BODY = 1 << 20

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


def _op_msg(document: dict[str, Any]) -> bytes:
    return b"\x00\x00\x00\x00\x00" + bson.encode(document)


_OK = _op_msg({"ok": 1.0})
_BY_COMMAND = {
    b"hello": _op_msg(_HELLO),
    b"ismaster": _op_msg(_HELLO),
    b"buildinfo": _op_msg({"version": "8.0.0", "versionArray": [8, 0, 0, 0], "ok": 1.0}),
    b"insert": _op_msg({"n": 1, "ok": 1.0}),
    b"update": _op_msg({"n": 1, "nModified": 1, "ok": 1.0}),
    b"delete": _op_msg({"n": 1, "ok": 1.0}),
}
_BATCHES: dict[bytes, Callable[[], list[dict[str, Any]]]] = {
    ONE.encode(): lambda: [SAVED],
    HUNDRED.encode(): lambda: saved(BATCH, DOCUMENT_BYTES),
    LARGE.encode(): lambda: saved(LARGE_BATCH, LARGE_DOCUMENT_BYTES),
}
# OP_REPLY: flags, cursor id, starting from, number returned, then the document.
_LEGACY_HELLO = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(_HELLO)


@cache
def _batch(collection: bytes) -> bytes:
    cursor = {
        "firstBatch": _BATCHES[collection](),
        "id": bson.Int64(0),
        "ns": f"{DATABASE}.{collection.decode()}",
    }
    return _op_msg({"cursor": cursor, "ok": 1.0})


def _command_offset(message: bytes) -> int:
    """Where the command's name starts, after any document sequences sent before the command."""
    offset = 20
    while message[offset] == 1:
        offset += 1 + INT32.unpack_from(message, offset + 1)[0]
    return offset + 6


def _op_msg_body(message: bytes) -> bytes:
    start = _command_offset(message)
    end = message.index(0, start)
    name = message[start:end].lower()
    if name != b"find":
        return _BY_COMMAND.get(name, _OK)
    collection = message[end + 5 : message.index(0, end + 5)]
    return _batch(collection)


def answer(message: bytes) -> list[bytes]:
    """The reply to one whole request, in pieces; none when the request wants no reply.

    :param message: an ``OP_MSG``, or an ``OP_QUERY`` that can only be a legacy hello.
    :raises ValueError: for any other opcode.
    """
    _, request_id, _, opcode = HEADER.unpack_from(message)
    if opcode == OP_MSG:
        return [] if message[16] & MORE_TO_COME else _reply(request_id, OP_MSG, _op_msg_body(message))
    if opcode == OP_QUERY:
        return _reply(request_id, OP_REPLY, _LEGACY_HELLO)
    raise ValueError(f"opcode {opcode} is none of OP_MSG ({OP_MSG}) and OP_QUERY ({OP_QUERY})")


def _reply(request_id: int, opcode: int, body: bytes) -> list[bytes]:
    header = HEADER.pack(16 + len(body), request_id, request_id, opcode)
    return [header + body] if len(body) < LARGE_BODY else [header, body]
