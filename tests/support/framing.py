"""Wire protocol messages of a scripted server: decode a request, and encode a reply."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import bson

from gmongo.wire.message import OP_MSG, OP_QUERY, OP_REPLY

HEADER = struct.Struct("<iiii")
BODY_OFFSETS = {OP_MSG: 21, OP_REPLY: 36}


def command_name(command: Mapping[str, Any]) -> str:
    """Return the name of a command.

    For the first hello on a connection, the name is ``handshake``.
    """
    name = next(iter(command))
    if name.lower() not in ("hello", "ismaster"):
        return name
    return "handshake" if "client" in command else "hello"


def read_request(opcode: int, payload: bytes) -> tuple[int, dict[str, Any]]:
    """Return the flags and the command of a request.

    The command contains the documents that the request sends as document sequences.
    """
    if opcode == OP_QUERY:
        return 0, bson.decode(payload[payload.index(0, 4) + 9 :])
    (flags,) = struct.unpack_from("<I", payload)
    (size,) = struct.unpack_from("<i", payload, 5)
    command = bson.decode(payload[5 : 5 + size])
    position = 5 + size
    while position < len(payload):
        (length,) = struct.unpack_from("<i", payload, position + 1)
        identifier, _, documents = payload[position + 5 : position + 1 + length].partition(b"\x00")
        command[identifier.decode()] = bson.decode_all(documents)
        position += 1 + length
    return flags, command


def write_message(opcode: int, request_id: int, response_to: int, flags: int, reply: Mapping[str, Any]) -> bytes:
    """Encode a reply to a request whose opcode is `opcode`."""
    if opcode == OP_QUERY:
        payload, opcode = struct.pack("<iqii", 8, 0, 0, 1), OP_REPLY
    else:
        payload, opcode = struct.pack("<IB", flags, 0), OP_MSG
    payload += bson.encode(reply)
    return HEADER.pack(16 + len(payload), request_id, response_to, opcode) + payload
