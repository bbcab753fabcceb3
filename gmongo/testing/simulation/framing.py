"""The server side of the wire protocol: decode requests, and encode replies."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.dbref import DBRef

from gmongo.errors import ProtocolError
from gmongo.wire.checksum import CHECKSUM_SIZE, append_checksum, verify
from gmongo.wire.message import CHECKSUM_PRESENT, EXHAUST_ALLOWED, HEADER_SIZE, MORE_TO_COME, OP_MSG, OP_QUERY, OP_REPLY

HEADER = struct.Struct("<iiii")
_INT32 = struct.Struct("<i")
_OP_REPLY_FIELDS = struct.Struct("<iqii")
_MSG_FLAGS_AND_KIND = struct.Struct("<IB")
_AWAIT_CAPABLE_FLAG = 8
_REQUIRED_FLAG_BITS = 0xFFFF
# The size in bytes of a value without a length field, by the number of the BSON type.
_FIXED_SIZES = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 127: 0, 255: 0}
# The number of bytes that a value's length field does not count, by BSON type. The default is 4.
_UNCOUNTED_SIZES = {3: 0, 4: 0, 5: 5, 12: 16, 15: 0}
_REGEX_TYPE = 11
_REFERENCE_NAME = b"$ref\0"
# DATETIME_AUTO also decodes dates that Python's `datetime` cannot represent.
_CODEC_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    document_class=dict, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


class MalformedMessage(Exception):
    """The received bytes are not a message. The member closes the connection."""


class MalformedCommand(Exception):
    """A document in a message is malformed. The member replies with an error."""


@dataclass
class Message:
    """A decoded request."""

    opcode: int  # OP_MSG or OP_QUERY
    flags: int  # 0 for an OP_QUERY
    body: dict[str, Any]  # A document sequence of the message is a field whose value is a list of documents.
    database: str
    size: int = 0  # the size of the message in bytes, without the header
    repeated: str | None = None  # the name of a field that occurs twice in the command

    @property
    def wants_reply(self) -> bool:
        return not self.flags & MORE_TO_COME

    @property
    def exhaust_allowed(self) -> bool:
        """True if the client accepts an exhaust stream: several replies to one request."""
        return bool(self.flags & EXHAUST_ALLOWED)


def receive_exactly(sock: Any, size: int) -> bytes:
    """Receive `size` bytes from a socket. Raise ConnectionResetError if the connection ends before the last byte."""
    data = b""
    while len(data) < size:
        chunk: bytes = sock.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the connection ended in a message")
        data += chunk
    return data


def read_message(opcode: int, payload: bytes, request_id: int = 0) -> Message:
    """Decode a message. `payload` is the message without the header, and `request_id` is the request ID."""
    try:
        if opcode == OP_MSG:
            return _read_op_msg(payload, request_id)
        if opcode == OP_QUERY:
            return _read_op_query(payload)
    except (struct.error, ValueError, IndexError) as error:
        raise MalformedMessage(str(error)) from error
    except bson.InvalidBSON as error:
        raise MalformedCommand(str(error)) from error
    raise MalformedMessage(f"opcode {opcode} is not supported")


def _read_op_query(payload: bytes) -> Message:
    end = payload.index(0, 4)
    namespace = payload[4:end].decode()
    body = _decode(payload[end + 9 :])
    query_body = body.get("$query")
    return Message(
        OP_QUERY, 0, query_body if isinstance(query_body, dict) else body, namespace.partition(".")[0], len(payload)
    )


def _read_op_msg(payload: bytes, request_id: int) -> Message:
    flags = int.from_bytes(payload[:4], "little")
    if flags & _REQUIRED_FLAG_BITS & ~(CHECKSUM_PRESENT | MORE_TO_COME):
        raise MalformedMessage(f"OP_MSG flags {flags:#x} have an unknown required bit")
    end = len(payload)
    if flags & CHECKSUM_PRESENT:
        end -= CHECKSUM_SIZE
        try:
            verify(HEADER.pack(HEADER_SIZE + len(payload), request_id, 0, OP_MSG), memoryview(payload))
        except ProtocolError as error:
            raise MalformedMessage(str(error)) from error
    body: dict[str, Any] | None = None
    repeated = None
    sequences: dict[str, list[dict[str, Any]]] = {}
    position = 4
    while position < end:
        (size,) = _INT32.unpack_from(payload, position + 1)
        section = payload[position + 1 : min(position + 1 + size, end)]
        if size != len(section) or size < 5:
            raise MalformedMessage(f"section length {size} does not fit the message")
        if payload[position] == 0 and body is None:
            body, repeated = _decode(section), _find_repeated_field(section)
        elif payload[position] == 1:
            name_end = section.index(0, 4)
            sequences[section[4:name_end].decode()] = _decode(section[name_end + 1 :], bson.decode_all)
        else:
            raise MalformedMessage(f"section kind {payload[position]} is not expected here")
        position += 1 + size
    if body is None:
        raise MalformedMessage("the message has no body")
    repeated = next(iter(set(body) & set(sequences)), repeated)
    return Message(OP_MSG, flags, {**body, **sequences}, _find_database(body), len(payload), repeated)


def _find_repeated_field(document: bytes) -> str | None:
    """Return the name of a field that occurs twice in a BSON document. Return None if no field occurs twice."""
    names: set[bytes] = set()
    position = 4
    while position < len(document) - 1:
        kind, end = document[position], document.index(0, position + 1)
        name = document[position + 1 : end]
        if name in names:
            return name.decode()
        names.add(name)
        position = end + 1
        if kind in _FIXED_SIZES:
            position += _FIXED_SIZES[kind]
        elif kind == _REGEX_TYPE:
            position = document.index(0, document.index(0, position) + 1) + 1
        else:
            (size,) = _INT32.unpack_from(document, position)
            position += size + _UNCOUNTED_SIZES.get(kind, 4)
    return None


def _find_database(body: Mapping[str, Any]) -> str:
    name = body.get("$db")
    if not isinstance(name, str) or not name:
        raise MalformedCommand("OP_MSG requests require a $db argument")
    return name


def _decode(data: bytes, decode: Callable[..., Any] = bson.decode) -> Any:
    decoded = decode(data, _CODEC_OPTIONS)
    return _convert_references(decoded) if _REFERENCE_NAME in data else decoded


def _convert_references(value: Any) -> Any:
    """Replace each DBRef in `value` by a document, because a server has no type for references."""
    if isinstance(value, DBRef):
        value = value.as_doc()
    if isinstance(value, dict):
        return {name: _convert_references(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_convert_references(child) for child in value]
    return value


def write_reply(opcode: int, reply_id: int, response_to: int, flags: int, reply: Mapping[str, Any]) -> bytes:
    """Return the bytes of a reply to a request with this opcode. The flag CHECKSUM_PRESENT adds a checksum."""
    if opcode == OP_QUERY:
        fields, opcode = _OP_REPLY_FIELDS.pack(_AWAIT_CAPABLE_FLAG, 0, 0, 1), OP_REPLY
    else:
        fields = _MSG_FLAGS_AND_KIND.pack(flags, 0)
    message = fields + bson.encode(reply)
    length = HEADER_SIZE + len(message)
    if opcode == OP_MSG and flags & CHECKSUM_PRESENT:
        return append_checksum(HEADER.pack(length + CHECKSUM_SIZE, reply_id, response_to, opcode) + message)
    return HEADER.pack(length, reply_id, response_to, opcode) + message
