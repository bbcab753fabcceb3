"""Messages of the MongoDB wire protocol: OP_MSG, and OP_QUERY/OP_REPLY for the legacy hello.

The functions do no I/O, and check every length from the network before its use. For invalid data, a
function raises :class:`~gmongo.errors.ProtocolError`, whose text describes the fault.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import TypeAlias

from gmongo.errors import ProtocolError
from gmongo.wire.checksum import CHECKSUM_SIZE, verify

OP_REPLY = 1
OP_QUERY = 2004
OP_COMPRESSED = 2012
OP_MSG = 2013

CHECKSUM_PRESENT = 1 << 0
MORE_TO_COME = 1 << 1
EXHAUST_ALLOWED = 1 << 16

HEADER_SIZE = 16
# Number of bytes before the body of an OP_MSG: header, flags and section kind.
BODY_OFFSET = 21
_JOIN_THRESHOLD = 64 * 1024

# A client must reject an OP_MSG that sets an unknown flag in the low 16 bits.
_UNKNOWN_REQUIRED_FLAGS = 0xFFFF & ~(CHECKSUM_PRESENT | MORE_TO_COME)

_HEADER = struct.Struct("<iiii")
_HEADER_FLAGS_AND_KIND = struct.Struct("<iiiiIB")
_INT32 = struct.Struct("<i")
_FLAGS = struct.Struct("<I")
_FLAGS_KIND_AND_SIZE = struct.Struct("<IBi")
_OP_REPLY_FIELDS = struct.Struct("<iqii")
# Function that returns fields of an OP_MSG: length, responseTo, opcode, flags, kind of the first
# section, size of the first section.
read_beginning = struct.Struct("<i4xiiIBi").unpack_from

# Header of a message (16 bytes): length, request ID, responseTo, opcode.
Header = tuple[int, int, int, int]
Buffer: TypeAlias = bytes | bytearray | memoryview
# Pair: the encoded body of a reply, and True if the server sends a further reply without a request.
Reply = tuple[Buffer, bool]
# Pair: the name and the encoded documents of a document sequence section. For example, an insert
# command has the sequence ``documents``.
DocumentSequence = tuple[str, Sequence[bytes]]

REQUEST_IDS = range(1, 2**31)
next_request_id: Callable[[], int] = chain.from_iterable(repeat(REQUEST_IDS)).__next__
"""Return the next request ID of the process: from 1 to 2**31 - 1, and then from 1 again."""


def encode_op_msg(request_id: int, flags: int, body: bytes, sequences: Sequence[DocumentSequence] = ()) -> list[bytes]:
    """Return the buffers of an OP_MSG. A message without sequences, or of at most 64 KiB, has one buffer."""
    if not sequences:
        head = _HEADER_FLAGS_AND_KIND.pack(21 + len(body), request_id, 0, OP_MSG, flags, 0)
        return [head + body]
    length = 21 + len(body)
    buffers = [body]
    for name, documents in sequences:
        identifier = name.encode() + b"\x00"
        section_size = 4 + len(identifier) + sum(map(len, documents))
        length += 1 + section_size
        buffers[-1] += b"\x01" + _INT32.pack(section_size) + identifier
        buffers += documents
    buffers[0] = _HEADER_FLAGS_AND_KIND.pack(length, request_id, 0, OP_MSG, flags, 0) + buffers[0]
    return buffers if length > _JOIN_THRESHOLD else [b"".join(buffers)]


def encode_single_document_op_msg(
    request_id: int, flags: int, body: bytes, identifier: bytes, document: bytes
) -> list[bytes]:
    """Return the buffers of an OP_MSG with one document in the sequence `identifier` (a C string)."""
    section_size = 4 + len(identifier) + len(document)
    length = 22 + len(body) + section_size
    head = _HEADER_FLAGS_AND_KIND.pack(length, request_id, 0, OP_MSG, flags, 0)
    start = b"%b%b\x01%b%b" % (head, body, _INT32.pack(section_size), identifier)
    return [start, document] if length > _JOIN_THRESHOLD else [start + document]


def join_buffers(buffers: Iterable[bytes]) -> Iterator[bytes]:
    """Join small buffers into buffers of at least 64 KiB (except the last), to save system calls."""
    group: list[bytes] = []
    size = 0
    for buffer in buffers:
        group.append(buffer)
        size += len(buffer)
        if size >= _JOIN_THRESHOLD:
            yield b"".join(group)
            group, size = [], 0
    if group:
        yield b"".join(group)


def encode_op_query(request_id: int, namespace: str, body: bytes) -> list[bytes]:
    """Encode an OP_QUERY that requests one document. Only the legacy hello uses OP_QUERY."""
    encoded_namespace = namespace.encode() + b"\x00"
    length = HEADER_SIZE + 4 + len(encoded_namespace) + 8 + len(body)
    # Flag 4 is secondaryOk, which allows any member to reply.
    head = _HEADER.pack(length, request_id, 0, OP_QUERY) + _INT32.pack(4)
    return [head + encoded_namespace + _INT32.pack(0) + _INT32.pack(-1) + body]


def allows_stream(buffers: Sequence[bytes]) -> bool:
    """Return True if an OP_MSG request allows the server to send several replies."""
    return bool(_FLAGS.unpack_from(buffers[0], HEADER_SIZE)[0] & EXHAUST_ALLOWED)


class OutOfStepError(ProtocolError):
    """Error: the received data is not a reply to the request, so the connection is unusable."""


def decode_header(
    buffer: Buffer, offset: int, max_message_size: int, request_id: int, other_request_id: int | None = None
) -> Header:
    """Return the checked header, whose responseTo is `request_id` or `other_request_id`."""
    header: Header = _HEADER.unpack_from(buffer, offset)
    if not HEADER_SIZE <= header[0] <= max_message_size:
        raise OutOfStepError(f"message length {header[0]} is not between {HEADER_SIZE} and {max_message_size} bytes")
    if header[2] != request_id and header[2] != other_request_id:
        raise OutOfStepError(f"reply is to request {header[2]}, expected {request_id}")
    return header


def decode_reply(opcode: int, payload: memoryview, reply_id: int = 0, request_id: int = 0) -> Reply:
    """Decode a reply. Only its checksum needs the fields `reply_id` and `request_id` (responseTo)."""
    if opcode != OP_MSG:
        return _decode_op_reply(opcode, payload)
    end = len(payload)
    if end < 10:
        raise ProtocolError(f"OP_MSG of {end} bytes after the header is too short for a document")
    flags, kind, size = _FLAGS_KIND_AND_SIZE.unpack_from(payload)
    if flags & _UNKNOWN_REQUIRED_FLAGS:
        raise ProtocolError(f"OP_MSG flags {flags:#x} have an unknown required bit")
    if flags & CHECKSUM_PRESENT:
        end -= CHECKSUM_SIZE
        verify(_HEADER.pack(HEADER_SIZE + len(payload), reply_id, request_id, OP_MSG), payload)
    is_body_alone = kind == 0 and size == end - 5 and size >= 5
    return payload[5:end] if is_body_alone else _find_body(payload, end), flags & MORE_TO_COME != 0


def _find_body(payload: memoryview, end: int) -> memoryview:
    """Return the body of an OP_MSG with several sections."""
    body = None
    position = 4
    while position < end:
        kind = payload[position]
        position += 1
        room = end - position
        size = _INT32.unpack_from(payload, position)[0] if room >= 4 else -1
        if not 5 <= size <= room:
            raise ProtocolError(f"OP_MSG section length {size} is not between 5 and the {room} bytes that remain")
        if kind == 0 and body is None:
            body = payload[position : position + size]
        elif kind != 1:
            raise ProtocolError(f"OP_MSG has a section of kind {kind} where a document sequence was expected")
        position += size
    if body is None:
        raise ProtocolError("OP_MSG has no body section")
    return body


def _decode_op_reply(opcode: int, payload: memoryview) -> Reply:
    if opcode != OP_REPLY:
        raise ProtocolError(f"opcode {opcode} is not the opcode of a reply ({OP_MSG} or {OP_REPLY})")
    if len(payload) < 25:
        raise ProtocolError(f"OP_REPLY of {len(payload)} bytes after the header is too short for a document")
    _flags, _cursor_id, _start, count = _OP_REPLY_FIELDS.unpack_from(payload)
    (size,) = _INT32.unpack_from(payload, 20)
    if count != 1 or size != len(payload) - 20:
        raise ProtocolError(
            f"OP_REPLY must have one document of {len(payload) - 20} bytes, "
            f"but has {count} documents, the first of {size} bytes"
        )
    return payload[20:], False
