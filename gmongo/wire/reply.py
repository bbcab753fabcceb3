"""Decoding of replies that contain documents of the application.

Custom types apply only to these documents. Decoding a 15 MB batch takes 0.1 seconds, which would
block the event loop. Therefore the driver decodes a large batch in parts of 32 KB, called runs, while
the application iterates over the cursor.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, DatetimeConversion
from bson.errors import InvalidBSON
from gevent import Timeout

from gmongo._background import LongWork
from gmongo._documents import DocumentDict, Value
from gmongo.errors import ProtocolError
from gmongo.wire.message import Buffer

# Size in bytes. The driver decodes a smaller reply in one step (at most about 0.3 ms), and a larger batch in runs.
LARGE_REPLY_SIZE = 64 * 1024
_RUN_SIZE = 32 * 1024

_INT32 = struct.Struct("<i")
_size_at = _INT32.unpack_from
_DOCUMENT_TYPE, _ARRAY_TYPE = 3, 4
_SHORTEST_DOCUMENT = 5
_EMPTY_ARRAY = b"\x05\x00\x00\x00\x00"
_FIXED_SIZES = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 0xFF: 0, 0x7F: 0}
# BSON type of a value that starts with an int32 length -> number of bytes that the length excludes
_LENGTH_PREFIXED = {2: 4, 13: 4, 14: 4, 5: 5, 3: 0, 4: 0, 12: 16, 15: 0}


class Batch:
    """Batch of encoded documents. The driver decodes the documents in runs."""

    __slots__ = ("_array", "_codec_options", "_decoded_runs", "_position")

    def __init__(self, array: Buffer, codec_options: CodecOptions[Value]) -> None:
        self._array = memoryview(array)
        self._codec_options = codec_options
        self._position = 4
        self._decoded_runs: deque[list[Value]] = deque()  # decoded runs that `decode_run` has not yet returned

    def decode_run(self) -> list[Value]:
        """Decode and return the next documents: about 32 KB, but at least one document.

        Return [] at the end of the batch. After an error, the next call decodes the same documents
        again.
        """
        while not self._decoded_runs:
            if not self._decode():
                return []
        return self._decoded_runs.popleft()

    def _decode(self) -> bool:
        start = self._position
        end = _find_run_end(self._array, start)
        if end == start:
            return False
        run = _decode_documents(self._array, start, end, self._codec_options)
        # if a type decoder switches greenlets, another greenlet may decode this run first
        if self._position == start:
            self._position = end
            self._decoded_runs.append(run)
        return True

    def decode_ahead(self) -> bool:
        """Decode the next documents, and store them for :meth:`decode_run`.

        Return False at the end of the batch and after an error. :meth:`decode_run` first returns the
        stored documents, and then raises the error.
        """
        try:
            return self._decode()
        except (Exception, Timeout):
            return False

    @property
    def has_more(self) -> bool:
        """True if :meth:`decode_run` will return more documents."""
        return bool(self._decoded_runs) or self._array[self._position] != 0

    def count(self) -> int:
        """Return the number of documents that are not yet decoded."""
        count = 0
        position = self._position
        work = LongWork()
        while self._array[position] != 0:
            position = _find_element_end(self._array, position)
            count += 1
            work.checkpoint()
        return count

    def __iter__(self) -> Iterator[Value]:
        """Iterate over all documents of the batch, even if :meth:`decode_run` has returned some documents."""
        unread_batch = Batch(self._array, self._codec_options)
        while run := unread_batch.decode_run():
            yield from run

    def documents(self) -> list[Value]:
        """Decode all documents of the batch, even if :meth:`decode_run` returned some documents."""
        return _decode_documents(self._array, 4, len(self._array) - 1, self._codec_options)

    def raw(self) -> bytes:
        """Return the encoded documents of the batch."""
        work = LongWork()
        documents = []
        for document in _iterate_documents(self._array, 4, len(self._array) - 1):
            documents.append(document)
            work.checkpoint()
        return b"".join(documents)


def _iterate_documents(array: memoryview, start: int, end: int) -> Iterator[memoryview]:
    while start < end:
        if array[start] != _DOCUMENT_TYPE:
            raise _make_type_error(array[start])
        element_end = _find_element_end(array, start)
        yield array[_find_value_start(array, start) : element_end]
        start = element_end


def _decode_documents(array: memoryview, start: int, end: int, codec_options: CodecOptions[Value]) -> list[Value]:
    if codec_options.document_class is dict:
        return _decode_values(array[start:end], codec_options)
    # Do not decode the array with a custom document class, which may reorder or drop keys.
    return bson.decode_all(b"".join(_iterate_documents(array, start, end)), codec_options)


def _decode_values(elements: memoryview, codec_options: CodecOptions[Value]) -> list[Value]:
    """Decode array elements. Wrap the array in a document, because the decoder needs a document."""
    size = len(elements) + _SHORTEST_DOCUMENT
    document = b"".join((_INT32.pack(size + 8), b"\x040\x00", _INT32.pack(size), elements, b"\x00\x00"))
    (values,) = bson.decode(document, codec_options).values()
    return list(values)


def _find_run_end(array: memoryview, start: int) -> int:
    """Return the end offset of the run at `start`, or `start` if no element remains."""
    # The fast path assumes that each key is as long as the previous key, because array keys are consecutive numbers.
    end, limit, target_end, value_offset = start, len(array), start + _RUN_SIZE, 3
    while end < target_end and (kind := array[end]) != 0:
        if kind != _DOCUMENT_TYPE:
            raise _make_type_error(kind)
        value_start = end + value_offset
        if value_start + 4 >= limit or array[value_start - 1] or not array[value_start - 2]:
            value_start = _find_value_start(array, end)
            value_offset = value_start - end
        size = _size_at(array, value_start)[0] if value_start + 4 < limit else 0
        if _SHORTEST_DOCUMENT <= size < limit - value_start:
            end = value_start + size
        else:  # `_find_element_end` raises an error for an invalid element
            end = _find_element_end(array, end)
    return end


def _make_type_error(kind: int) -> ProtocolError:
    return ProtocolError(f"a batch must contain only documents, but has an element of the BSON type {kind:#x}")


def decode_cursor(
    body: Buffer, codec_options: CodecOptions[Value], error_options: CodecOptions[Value] | None = None
) -> DocumentDict:
    """Decode a reply with a batch of documents. `error_options` apply to an error reply.

    The batch of a large reply becomes a :class:`Batch`. With a custom document class or custom types,
    every batch becomes a :class:`Batch`, because custom types must not apply to server fields.
    """
    if len(body) < LARGE_REPLY_SIZE and (codec_options is DEFAULT_CODEC_OPTIONS or has_builtin_types(codec_options)):
        return bson.decode(body, codec_options)
    return cut_batch(body, codec_options, error_options)


# Error messages of the server may quote invalid UTF-8 of the application.
PLAIN_REPLY_OPTIONS = DEFAULT_CODEC_OPTIONS.with_options(unicode_decode_error_handler="replace")


def reply_options(codec_options: CodecOptions[Value]) -> CodecOptions[Value]:
    """Return codec options without custom types, for a reply with values of the application."""
    return codec_options.with_options(
        document_class=dict, type_registry=DEFAULT_CODEC_OPTIONS.type_registry, unicode_decode_error_handler="replace"
    )


def decode_field(body: Buffer, codec_options: CodecOptions[Value], field: str) -> DocumentDict:
    """Decode a reply. Apply custom types only to `field`, whose value is a document or an array."""
    if has_builtin_types(codec_options):
        return bson.decode(body, codec_options)
    reply: DocumentDict = bson.decode(body, _make_error_options(codec_options))
    view = memoryview(body)
    for kind in (_DOCUMENT_TYPE, _ARRAY_TYPE):
        start = _find_value(view, 0, field.encode(), kind)
        if start is not None:
            value = view[start : start + _INT32.unpack_from(view, start)[0]]
            if kind == _DOCUMENT_TYPE:
                reply[field] = bson.decode(value, codec_options)
            else:
                reply[field] = _decode_values(value[4:-1], codec_options)
    return reply


def has_builtin_types(codec_options: CodecOptions[Value]) -> bool:
    """Return True if the codec options have neither a custom document class nor custom types."""
    return codec_options.document_class is dict and codec_options.type_registry == DEFAULT_CODEC_OPTIONS.type_registry


def _make_error_options(codec_options: CodecOptions[Value]) -> CodecOptions[Value]:
    """Return codec options that decode error replies as dicts, because the `details` of an error must be a dict."""
    if issubclass(codec_options.document_class, dict):
        return DEFAULT_CODEC_OPTIONS.with_options(document_class=codec_options.document_class)
    return DEFAULT_CODEC_OPTIONS


_LENIENT_OPTIONS: CodecOptions[Value] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_MS
)


def is_well_formed(body: Buffer) -> bool:
    """Return True if the most lenient codec options can decode `body`."""
    try:
        bson.decode(body, _LENIENT_OPTIONS)
    except InvalidBSON:
        return False
    return True


def cut_batch(
    body: Buffer, codec_options: CodecOptions[Value], error_options: CodecOptions[Value] | None = None
) -> DocumentDict:
    """Decode a reply without the documents of its batch, which becomes a :class:`Batch`."""
    view = memoryview(body)
    if len(view) < _SHORTEST_DOCUMENT or _INT32.unpack_from(view)[0] != len(view):
        raise ProtocolError(f"a reply of {len(view)} bytes does not have the length that it states")
    cursor_start = _find_value(view, 0, b"cursor", _DOCUMENT_TYPE)
    if cursor_start is None or not (
        batch_start := _find_value(view, cursor_start, b"firstBatch", _ARRAY_TYPE)
        or _find_value(view, cursor_start, b"nextBatch", _ARRAY_TYPE)
    ):
        return bson.decode(view, _make_error_options(error_options or codec_options))
    size = _INT32.unpack_from(view, batch_start)[0]
    removed_size = size - len(_EMPTY_ARRAY)
    rest = bytearray(view[:batch_start]) + _EMPTY_ARRAY + view[batch_start + size :]
    for position in (0, cursor_start):
        _INT32.pack_into(rest, position, _INT32.unpack_from(rest, position)[0] - removed_size)
    reply = bson.decode(rest)
    array = view[batch_start : batch_start + size]
    if not isinstance(reply["cursor"], dict):
        raise ProtocolError("a reply has two fields with the name 'cursor'")
    field = "nextBatch" if "nextBatch" in reply["cursor"] else "firstBatch"
    # Copy the batch of a small message, because the next message overwrites the transport's buffer.
    reply["cursor"][field] = Batch(bytes(array) if len(view) < LARGE_REPLY_SIZE else array, codec_options)
    return reply


def _find_value(view: memoryview, document_start: int, name: bytes, kind: int) -> int | None:
    """Return the offset of a value in a document by name and BSON type, or None."""
    position = document_start + 4
    while view[position] != 0:
        end = _find_element_end(view, position)
        value_start = _find_value_start(view, position)
        if view[position] == kind and bytes(view[position + 1 : value_start - 1]) == name:
            return value_start
        position = end
    return None


def _find_value_start(view: memoryview, start: int) -> int:
    position = start + 1
    while view[position] != 0:
        position += 1
    return position + 1


def _find_element_end(view: memoryview, start: int) -> int:
    """Return the end offset of the element that starts at the offset `start`."""
    try:
        end = _compute_claimed_end(view, start)
    except (IndexError, struct.error) as error:
        raise ProtocolError("a reply ends inside an element") from error
    if not start < end < len(view):
        raise ProtocolError(
            f"a reply has an element of {end - start} bytes, but only {len(view) - start - 1} bytes remain"
        )
    return end


def _compute_claimed_end(view: memoryview, start: int) -> int:
    kind = view[start]
    value_start = _find_value_start(view, start)
    if kind in _FIXED_SIZES:
        return value_start + _FIXED_SIZES[kind]
    if kind in _LENGTH_PREFIXED:
        length = _INT32.unpack_from(view, value_start)[0]
        if length < (_SHORTEST_DOCUMENT if kind in (_DOCUMENT_TYPE, _ARRAY_TYPE) else 0):
            raise ProtocolError(f"a reply has an element with the length {length}")
        return int(value_start + length + _LENGTH_PREFIXED[kind])
    if kind == 11:  # a regular expression consists of two strings, which each end with a zero byte
        return _find_value_start(view, _find_value_start(view, value_start - 1) - 1)
    raise ProtocolError(f"a reply has an element of the unknown BSON type {kind:#x}")
