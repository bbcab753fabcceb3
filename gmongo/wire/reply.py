"""Decoding replies that hold documents of the user's, which are decoded by the user's codec options.

A 15 MB batch takes a tenth of a second to decode. Done at once, that holds the loop and every other greenlet with it;
so a large batch is cut out of its reply by moving lengths, and decoded in small runs while the cursor is iterated.
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

# About 0.3 ms of decoding.
WHOLE_BELOW = 64 * 1024
_RUN_SIZE = 32 * 1024

_INT32 = struct.Struct("<i")
_size_at = _INT32.unpack_from
_DOCUMENT, _ARRAY = 3, 4
_SHORTEST_DOCUMENT = 5
_EMPTY_ARRAY = b"\x05\x00\x00\x00\x00"
_FIXED_SIZES = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 0xFF: 0, 0x7F: 0}
_LENGTH_PREFIXED = {2: 4, 13: 4, 14: 4, 5: 5, 3: 0, 4: 0, 12: 16, 15: 0}  # what the int32 length leaves out


class Batch:
    """The undecoded documents of one batch.

    :param array: the BSON array of documents.
    :param codec_options: how each document is to be decoded.
    """

    __slots__ = ("_array", "_codec_options", "_position", "_ready")

    def __init__(self, array: Buffer, codec_options: CodecOptions[Value]) -> None:
        self._array = memoryview(array)
        self._codec_options = codec_options
        self._position = 4
        self._ready: deque[list[Value]] = deque()  # decoded ahead: what lies before the position and was not taken

    def decode_run(self) -> list[Value]:
        """Decode the next documents, about 32 KB of them and at least one; the list is empty at the end.

        After an error, the next call begins with the same documents.

        :raises ProtocolError: one of them is no document, or a length is false.
        """
        while not self._ready:
            if not self._decode():
                return []
        return self._ready.popleft()

    def _decode(self) -> bool:
        start = self._position
        end = _run_end(self._array, start)
        if end == start:
            return False
        run = _decode_documents(self._array, start, end, self._codec_options)
        if self._position == start:  # a decoder that switches lets another greenlet decode the same documents
            self._position = end
            self._ready.append(run)
        return True

    def decode_ahead(self) -> bool:
        """Decode the next documents, and keep them for :meth:`decode_run`.

        :returns: whether there were any. :meth:`decode_run` raises the errors of the others.
        """
        try:
            return self._decode()
        except (Exception, Timeout):
            return False

    @property
    def has_more(self) -> bool:
        """Whether there are documents that :meth:`decode_run` has not returned."""
        return bool(self._ready) or self._array[self._position] != 0

    def count(self) -> int:
        """How many documents have not been decoded.

        :raises ProtocolError: a length is false.
        """
        count = 0
        position = self._position
        work = LongWork()
        while self._array[position] != 0:
            position = _element_end(self._array, position)
            count += 1
            work.checkpoint()
        return count

    def __iter__(self) -> Iterator[Value]:
        """All documents, whatever has been taken, decoded as they are asked for."""
        again = Batch(self._array, self._codec_options)
        while run := again.decode_run():
            yield from run

    def documents(self) -> list[Value]:
        """All documents, decoded at once, whatever has been taken."""
        return _decode_documents(self._array, 4, len(self._array) - 1, self._codec_options)

    def raw(self) -> bytes:
        """All documents, encoded, one after the other."""
        work = LongWork()
        documents = []
        for document in _documents(self._array, 4, len(self._array) - 1):
            documents.append(document)
            work.checkpoint()
        return b"".join(documents)


def _documents(array: memoryview, start: int, end: int) -> Iterator[memoryview]:
    """The documents of a part of an array, encoded.

    :raises ProtocolError: one of them is no document, or a length is false.
    """
    while start < end:
        if array[start] != _DOCUMENT:
            raise _no_document(array[start])
        element_end = _element_end(array, start)
        yield array[_value_start(array, start) : element_end]
        start = element_end


def _decode_documents(array: memoryview, start: int, end: int, codec_options: CodecOptions[Value]) -> list[Value]:
    """Decode a part of an array of documents. Neither their keys nor the user's class decide on their order, or on
    whether one is left out: the class may have an order of its own.
    """
    if codec_options.document_class is dict:
        return _decode_values(array[start:end], codec_options)
    return bson.decode_all(b"".join(_documents(array, start, end)), codec_options)


def _decode_values(elements: memoryview, codec_options: CodecOptions[Value]) -> list[Value]:
    """Decode elements of an array. They are wrapped as an array that is the only field of a document."""
    size = len(elements) + _SHORTEST_DOCUMENT
    document = b"".join((_INT32.pack(size + 8), b"\x040\x00", _INT32.pack(size), elements, b"\x00\x00"))
    (values,) = bson.decode(document, codec_options).values()
    return list(values)


def _run_end(array: memoryview, start: int) -> int:
    """Where about 32 KB of documents end that begin at `start`: at least one document, if there is one.

    The keys of an array are numbers, so they are almost always as long as the one before.

    :raises ProtocolError: one of them is no document, or a length is false.
    """
    end, limit, enough, key = start, len(array), start + _RUN_SIZE, 3
    while end < enough and (kind := array[end]) != 0:
        if kind != _DOCUMENT:
            raise _no_document(kind)
        value = end + key
        if value + 4 >= limit or array[value - 1] or not array[value - 2]:
            value = _value_start(array, end)
            key = value - end
        size = _size_at(array, value)[0] if value + 4 < limit else 0
        if _SHORTEST_DOCUMENT <= size < limit - value:
            end = value + size
        else:  # which says what is wrong
            end = _element_end(array, end)
    return end


def _no_document(kind: int) -> ProtocolError:
    return ProtocolError(f"a batch must have documents only, but an element of it has the BSON type {kind:#x}")


def decode_cursor(
    body: Buffer, codec_options: CodecOptions[Value], of_errors: CodecOptions[Value] | None = None
) -> DocumentDict:
    """Decode a reply that holds a batch of documents.

    :param of_errors: the user's, where the batch is decoded otherwise.

    A small reply is decoded whole. In a large one, or where the user's types must not reach the server's own fields,
    ``cursor.firstBatch`` or ``cursor.nextBatch`` becomes a :class:`Batch`.
    """
    if len(body) < WHOLE_BELOW and (codec_options is DEFAULT_CODEC_OPTIONS or decodes_plainly(codec_options)):
        return bson.decode(body, codec_options)
    return cut_batch(body, codec_options, of_errors)


# A server's texts may quote bytes of the user's that are no UTF-8.
PLAIN_REPLY = DEFAULT_CODEC_OPTIONS.with_options(unicode_decode_error_handler="replace")


def reply_options(codec_options: CodecOptions[Value]) -> CodecOptions[Value]:
    """How a reply is decoded that is the server's, but may hold single values of the user's."""
    return codec_options.with_options(
        document_class=dict, type_registry=DEFAULT_CODEC_OPTIONS.type_registry, unicode_decode_error_handler="replace"
    )


def decode_field(body: Buffer, codec_options: CodecOptions[Value], field: str) -> DocumentDict:
    """Decode a reply of which `field`, a document or an array, is the user's.

    :raises ProtocolError: a length inside the reply is false.
    """
    if decodes_plainly(codec_options):
        return bson.decode(body, codec_options)
    reply: DocumentDict = bson.decode(body, _error_options(codec_options))
    view = memoryview(body)
    for kind in (_DOCUMENT, _ARRAY):
        start = _find(view, 0, field.encode(), kind)
        if start is not None:
            value = view[start : start + _INT32.unpack_from(view, start)[0]]
            if kind == _DOCUMENT:
                reply[field] = bson.decode(value, codec_options)
            else:
                reply[field] = _decode_values(value[4:-1], codec_options)
    return reply


def decodes_plainly(codec_options: CodecOptions[Value]) -> bool:
    """Whether the server's own fields come out the same with these options as without."""
    return codec_options.document_class is dict and codec_options.type_registry == DEFAULT_CODEC_OPTIONS.type_registry


def _error_options(codec_options: CodecOptions[Value]) -> CodecOptions[Value]:
    """How an error is decoded: its `details` are of the user's class, if that is a dict."""
    if issubclass(codec_options.document_class, dict):
        return DEFAULT_CODEC_OPTIONS.with_options(document_class=codec_options.document_class)
    return DEFAULT_CODEC_OPTIONS


_LENIENT: CodecOptions[Value] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_MS
)


def is_sound(body: Buffer) -> bool:
    """Return whether some codec options can decode a document."""
    try:
        bson.decode(body, _LENIENT)
    except InvalidBSON:
        return False
    return True


def cut_batch(
    body: Buffer, codec_options: CodecOptions[Value], of_errors: CodecOptions[Value] | None = None
) -> DocumentDict:
    """Decode a reply with its batch, if it has one, as a :class:`Batch`.

    :param of_errors: the user's, where the batch is decoded otherwise.
    :raises ProtocolError: a length inside the reply is false.
    """
    view = memoryview(body)
    if len(view) < _SHORTEST_DOCUMENT or _INT32.unpack_from(view)[0] != len(view):
        raise ProtocolError(f"a reply of {len(view)} bytes does not have the length that it states")
    cursor = _find(view, 0, b"cursor", _DOCUMENT)
    if cursor is None or not (
        found := _find(view, cursor, b"firstBatch", _ARRAY) or _find(view, cursor, b"nextBatch", _ARRAY)
    ):
        return bson.decode(view, _error_options(of_errors or codec_options))
    size = _INT32.unpack_from(view, found)[0]
    cut = size - len(_EMPTY_ARRAY)
    rest = bytearray(view[:found]) + _EMPTY_ARRAY + view[found + size :]
    for position in (0, cursor):
        _INT32.pack_into(rest, position, _INT32.unpack_from(rest, position)[0] - cut)
    reply = bson.decode(rest)
    array = view[found : found + size]
    if not isinstance(reply["cursor"], dict):
        raise ProtocolError("a reply has two fields with the name 'cursor'")
    field = "nextBatch" if "nextBatch" in reply["cursor"] else "firstBatch"
    # A small message lies in a buffer that the next one overwrites.
    reply["cursor"][field] = Batch(bytes(array) if len(view) < WHOLE_BELOW else array, codec_options)
    return reply


def _find(view: memoryview, document: int, name: bytes, kind: int) -> int | None:
    """Where the value of the element `name` begins in the document at `document`, or None."""
    position = document + 4
    while view[position] != 0:
        end = _element_end(view, position)
        value = _value_start(view, position)
        if view[position] == kind and bytes(view[position + 1 : value - 1]) == name:
            return value
        position = end
    return None


def _value_start(view: memoryview, element: int) -> int:
    position = element + 1
    while view[position] != 0:
        position += 1
    return position + 1


def _element_end(view: memoryview, element: int) -> int:
    """Where the element at `element` ends.

    :raises ProtocolError: not within the document.
    """
    try:
        end = _claimed_end(view, element)
    except (IndexError, struct.error) as error:
        raise ProtocolError("a reply ends inside an element") from error
    if not element < end < len(view):
        raise ProtocolError(f"a reply has an element of {end - element} bytes where {len(view) - element} remain")
    return end


def _claimed_end(view: memoryview, element: int) -> int:
    kind = view[element]
    value = _value_start(view, element)
    if kind in _FIXED_SIZES:
        return value + _FIXED_SIZES[kind]
    if kind in _LENGTH_PREFIXED:
        length = _INT32.unpack_from(view, value)[0]
        if length < (_SHORTEST_DOCUMENT if kind in (_DOCUMENT, _ARRAY) else 0):
            raise ProtocolError(f"a reply has an element with the length {length}")
        return int(value + length + _LENGTH_PREFIXED[kind])
    if kind == 11:  # a regular expression is two strings that end with a zero byte
        return _value_start(view, _value_start(view, value - 1) - 1)
    raise ProtocolError(f"a reply has an element of the unknown BSON type {kind:#x}")
