"""Executor and operations of a client with automatic encryption. Events and logs show the encrypted documents.

Clients without automatic encryption do not import this module.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, DocumentDict, Value
from gmongo._encryption.automatic import Encrypter
from gmongo._encryption.encoding import command_document
from gmongo._traceback_scrub import clears_locals
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.sessions import SessionHandle
from gmongo.sdam.selection import Selector
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import WHOLE_BELOW

if TYPE_CHECKING:
    from gmongo.execution.transaction import Transaction

# The maximum size of the commands of a bulk write before encryption, in bytes. Encryption makes commands larger.
SPLIT_AT = 2 * 1024 * 1024
# The driver decodes only the names of the top-level fields of an encrypted command.
_ENCODED: CodecOptions[Value] = CodecOptions(
    document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS
)


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
            return encrypted.decrypted(result)
        except BaseException:
            self.reap(operation, result)
            raise


class EncryptedOperation(Operation):
    """Operation that encrypts the command of another operation, and decrypts the reply.

    This class defines each method of Operation explicitly, so that no method can bypass the encryption.
    """

    def __init__(self, inner: Operation, encrypter: Encrypter, deadline: float | None) -> None:
        # Use the default codec options, because the command is already encoded.
        super().__init__(inner.context.replace(codec_options=DEFAULT_CODEC_OPTIONS))
        for name in Operation.__annotations__:
            self.__dict__[name] = getattr(inner, name)
        self.inner = inner
        self._encrypter = encrypter
        self._deadline = deadline
        self._command: DocumentDict | None = None  # the encrypted command, which a retry sends again
        self._body: Buffer = b""
        self._address: Address | None = None  # the address of the server that replied
        self._pin: PinnedConnection | None = None  # the connection to which the cursor of the reply is pinned

    @property
    def title(self) -> str:
        return self.inner.title

    @property
    def collection(self) -> str:
        return self.inner.collection

    @property
    def is_causally_consistent(self) -> bool:
        return self.inner.is_causally_consistent

    @property
    def needs_retry_writes(self) -> bool:
        return self.inner.needs_retry_writes

    def command(self, hello: Hello) -> DocumentDict:
        """Build and encrypt the command at the first call. Later calls return the same command."""
        if self._command is None:
            smaller = copy(hello)
            smaller.max_batch_size = min(hello.max_batch_size, SPLIT_AT)
            command = self.inner.command(smaller)
            body = bson.encode(command, False, self.inner.context.codec_options)
            body = command_document(self.inner.message(0, 0, body, smaller))
            self._command = _fields_of(self._encrypter.encrypt(self.context.database, body, self._deadline))
        return dict(self._command)

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        return bson.decode(bson.encode(command))

    def reply_for_monitoring(self, reply: DocumentDict) -> DocumentDict:
        return self.inner.reply_for_monitoring(reply)

    def decode(self, body: Buffer) -> DocumentDict:
        # Copy a small body, because the next message overwrites its buffer. A large body has its own buffer.
        self._body = body if len(body) > WHOLE_BELOW else bytes(body)
        return self.inner.decode(self._body)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        self._address = address
        return self.inner.result(reply, address)

    def decrypted(self, result: Result) -> Result:
        """Decrypt the reply after the check-in of the connection, and return the result of the decrypted reply."""
        if self._address is None:
            return result  # no server has replied
        decrypted = self._encrypter.decrypt(self._body, self._deadline)
        if decrypted is None:
            return result
        plain = self.inner.result(self.inner.decode(decrypted), self._address)
        return plain if self._pin is None else self.inner.pinned(plain, self._pin)

    def unacknowledged_result(self) -> Result:
        return self.inner.unacknowledged_result()

    def keeps_cursor_open(self, result: Result) -> bool:
        return self.inner.keeps_cursor_open(result)

    def orphaned_cursor(self, reply: DocumentDict, address: Address) -> Result:
        return self.inner.orphaned_cursor(reply, address)

    def late_cursor(self, body: Buffer, address: Address) -> Result:
        return self.inner.late_cursor(body, address)

    def pinned(self, result: Result, pin: PinnedConnection) -> Result:
        self._pin = pin
        return self.inner.pinned(result, pin)

    def selector_in_transaction(self, transaction: Transaction) -> Selector:
        return self.inner.selector_in_transaction(transaction)

    def notify_transaction(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        self.inner.notify_transaction(transaction, error, overloaded)


def _fields_of(command: bytes) -> DocumentDict:
    fields: Document = RawBSONDocument(command, _ENCODED)
    return dict(fields)
