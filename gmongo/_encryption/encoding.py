"""Conversion of an encoded message to one encoded command document."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from gmongo._background import LongWork
from gmongo.wire.message import HEADER_SIZE

_INT32 = struct.Struct("<i")
_ARRAY, _DOCUMENT, _END = b"\x04", b"\x03", b"\x00"
_FLAGS_SIZE = 4
_LONGEST_NAME = 64  # bytes of the longest name of a document sequence, including the zero byte at its end


def command_document(buffers: Sequence[bytes]) -> bytes:
    """Return the command of an OP_MSG of gmongo as one encoded document. Convert document sequences to arrays."""
    message = memoryview(b"".join(buffers))[HEADER_SIZE + _FLAGS_SIZE :]
    fields: list[bytes | memoryview] = []
    while message:
        kind, (size,) = message[0], _INT32.unpack_from(message, 1)
        section, message = message[1 : 1 + size], message[1 + size :]
        if kind == 0:
            fields.append(section[4:-1])
        else:
            name = bytes(section[4 : 4 + _LONGEST_NAME]).partition(_END)[0]
            fields += (_ARRAY, name, _END, _encoded_array(section[4 + len(name) + 1 :]))
    return _encoded_document(fields)


def _encoded_array(documents: memoryview) -> bytes:
    elements: list[bytes | memoryview] = []
    work = LongWork()
    for index, document in enumerate(_split_documents(documents)):
        elements += (_DOCUMENT, str(index).encode(), _END, document)
        work.checkpoint()
    return _encoded_document(elements)


def _split_documents(documents: memoryview) -> Iterator[memoryview]:
    while documents:
        (size,) = _INT32.unpack_from(documents)
        yield documents[:size]
        documents = documents[size:]


def _encoded_document(elements: Sequence[bytes | memoryview]) -> bytes:
    content = b"".join(elements)
    return _INT32.pack(len(content) + 5) + content + _END
