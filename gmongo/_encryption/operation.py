"""Executor and operations of a client with automatic encryption. Events and logs show the encrypted documents.

Clients without automatic encryption do not import this module.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from copy import copy
from typing import Any

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

from gmongo._background import LongWork
from gmongo._documents import DocumentDict, Value
from gmongo._encryption.automatic import Encrypter
from gmongo._traceback_scrub import clears_locals
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.sessions import SessionHandle
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import HEADER_SIZE, Buffer
from gmongo.wire.reply import LARGE_REPLY_SIZE

# Maximum size in bytes of each bulk write command before encryption, which makes the command larger.
MAX_BATCH_SIZE = 2 * 1024 * 1024
# The driver decodes the top-level fields of an encrypted command, but not the nested documents.
_RAW_CODEC_OPTIONS: CodecOptions[Value] = CodecOptions(
    document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS
)

_INT32 = struct.Struct("<i")
_ARRAY_TYPE, _DOCUMENT_TYPE, _END = b"\x04", b"\x03", b"\x00"
_FLAGS_SIZE = 4
_MAX_NAME_SIZE = 64  # maximum size of the name of a document sequence, with its zero byte


class EncryptingExecutor(Executor):
    def __init__(
        self, topology: Topology, options: ExecutionSettings, events: CommandEvents, encrypter: Encrypter
    ) -> None:
        super().__init__(topology, options, events)
        self._encrypter = encrypter

    @clears_locals
    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        if deadline is None:
            deadline = self.deadline()
        encrypted = EncryptedOperation(operation, self._encrypter, deadline)
        result = super().run(encrypted, session, deadline)
        try:
            return encrypted.decrypt_result(result)
        except BaseException:
            self.reap(operation, result)
            raise


def _inner_attribute(name: str) -> Any:
    return property(lambda operation: getattr(operation.inner, name))


class EncryptedOperation(Operation):
    """Operation that encrypts the command of another operation, and decrypts the reply.

    The class inherits only `message`, so that no other method of Operation can bypass the encryption.
    """

    def __init__(self, inner: Operation, encrypter: Encrypter, deadline: float | None) -> None:
        # Use the default codec options, because the command is already encoded.
        super().__init__(inner.context.replace(codec_options=DEFAULT_CODEC_OPTIONS))
        for name in Operation.__annotations__:
            self.__dict__[name] = getattr(inner, name)
        self.inner = inner
        self._encrypter = encrypter
        self._deadline = deadline
        self._command: DocumentDict | None = None  # the encrypted command, which each attempt sends
        self._body: Buffer = b""
        self._address: Address | None = None  # the address of the server that replied
        self._pin: PinnedConnection | None = None  # the connection to which the cursor of the reply is pinned

    title = _inner_attribute("title")
    collection = _inner_attribute("collection")
    is_causally_consistent = _inner_attribute("is_causally_consistent")
    needs_retry_writes = _inner_attribute("needs_retry_writes")
    reply_for_monitoring = _inner_attribute("reply_for_monitoring")
    unacknowledged_result = _inner_attribute("unacknowledged_result")
    keeps_cursor_open = _inner_attribute("keeps_cursor_open")
    orphaned_cursor = _inner_attribute("orphaned_cursor")
    late_cursor = _inner_attribute("late_cursor")
    selector_in_transaction = _inner_attribute("selector_in_transaction")
    notify_transaction = _inner_attribute("notify_transaction")

    def command(self, hello: Hello) -> DocumentDict:
        """Return the encrypted command. Only the first call builds and encrypts the command."""
        if self._command is None:
            limited_hello = copy(hello)
            limited_hello.max_batch_size = min(hello.max_batch_size, MAX_BATCH_SIZE)
            command = self.inner.command(limited_hello)
            body = bson.encode(command, False, self.inner.context.codec_options)
            body = command_document(self.inner.message(0, 0, body, limited_hello))
            encrypted = self._encrypter.encrypt(self.context.database, body, self._deadline)
            self._command = dict(RawBSONDocument(encrypted, _RAW_CODEC_OPTIONS))
        return dict(self._command)

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        return bson.decode(bson.encode(command))

    def decode(self, body: Buffer) -> DocumentDict:
        # Copy a small body, because the next message overwrites its buffer. A large body has its own buffer.
        self._body = body if len(body) > LARGE_REPLY_SIZE else bytes(body)
        return self.inner.decode(self._body)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        self._address = address
        return self.inner.result(reply, address)

    def decrypt_result(self, result: Result) -> Result:
        """Decrypt the reply after the check-in of the connection, and return the result of the decrypted reply."""
        if self._address is None:
            return result  # no server has replied
        decrypted = self._encrypter.decrypt(self._body, self._deadline)
        if decrypted is None:
            return result
        decrypted_result = self.inner.result(self.inner.decode(decrypted), self._address)
        return decrypted_result if self._pin is None else self.inner.store_pin(decrypted_result, self._pin)

    def store_pin(self, result: Result, pin: PinnedConnection) -> Result:
        self._pin = pin
        return self.inner.store_pin(result, pin)


def command_document(buffers: Sequence[bytes]) -> bytes:
    """Return the command of an OP_MSG as one document. Convert document sequences to arrays."""
    message = memoryview(b"".join(buffers))[HEADER_SIZE + _FLAGS_SIZE :]
    fields: list[bytes | memoryview] = []
    while message:
        kind, (size,) = message[0], _INT32.unpack_from(message, 1)
        section, message = message[1 : 1 + size], message[1 + size :]
        if kind == 0:
            fields.append(section[4:-1])
        else:
            name = bytes(section[4 : 4 + _MAX_NAME_SIZE]).partition(_END)[0]
            fields += (_ARRAY_TYPE, name, _END, _encoded_array(section[4 + len(name) + 1 :]))
    return _encoded_document(fields)


def _encoded_array(documents: memoryview) -> bytes:
    elements: list[bytes | memoryview] = []
    work, index = LongWork(), 0
    while documents:
        (size,) = _INT32.unpack_from(documents)
        elements += (_DOCUMENT_TYPE, str(index).encode(), _END, documents[:size])
        documents, index = documents[size:], index + 1
        work.checkpoint()
    return _encoded_document(elements)


def _encoded_document(elements: Sequence[bytes | memoryview]) -> bytes:
    content = b"".join(elements)
    return _INT32.pack(len(content) + 5) + content + _END
