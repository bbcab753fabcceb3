"""Base classes of operations, which build commands and read replies without I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, DocumentDict, Value
from gmongo._truncated_repr import short
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import InvalidOperation, ProtocolError, PyMongoError
from gmongo.execution.operation_trace import OperationTrace
from gmongo.execution.transaction import Transaction
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg
from gmongo.wire.reply_schema import Check, unexpected

Result: TypeAlias = Any  # the result of an operation, such as a document or an open cursor


def required_field(reply: Document, name: str, check: Check, document_name: str = "a reply") -> Value:
    """Return the value of a required field. Raise ProtocolError if the field is absent or invalid."""
    if name not in reply:
        raise ProtocolError(f"{document_name} lacks the field {name}: {short(reply)}")
    value = reply[name]
    rule = check(value)
    if rule is not None:
        raise unexpected(f"{name} of {document_name}", rule, value)
    return value


@dataclass(slots=True)
class OperationContext:
    """Namespace and options of operations. The operations of a collection share one context."""

    database: str
    collection: str = ""  # an empty name for operations of a database or a client
    codec_options: CodecOptions[Value] = DEFAULT_CODEC_OPTIONS  # for documents of the application
    selector: Selector = WRITABLE  # server selector of reads: a read preference, or `WRITABLE`
    read_concern: Document | None = None  # None uses the default of the server
    write_concern: Document | None = None  # None uses the default of the server

    def replace(self, **changes: Any) -> OperationContext:
        return replace(self, **changes)


class Operation:
    """Base class of operations, which build the command of each attempt, and read the reply."""

    name: ClassVar[str]
    is_write: ClassVar[bool] = False
    retryable: bool = False  # True allows a retry after a network error or an election
    address: Address | None = None  # the required server, or None for any suitable server
    waits_for_server: ClassVar[bool] = True  # True if the operation waits while its server is Unknown
    acknowledged: bool = True  # True if the server sends a reply
    takes_session: bool = True  # False for unacknowledged writes and some internal commands
    operation_id: int | None = None  # the ID in command events. A bulk write has one ID
    takes_read_concern: ClassVar[bool] = False
    takes_write_concern: bool = False
    concern_first: ClassVar[bool] = False  # True if a write concern error has priority over a command error
    transaction_number: int | None = None  # the number by which the server recognizes a retried write
    is_generic: ClassVar[bool] = False  # True for a command of `Database.command`
    retries_overload: ClassVar[bool] = True  # True if the operation is retried after overload errors
    ends_transaction: ClassVar[bool] = False  # True if the operation commits or aborts a transaction
    takes_max_time: bool = True  # True if a deadline sets `maxTimeMS`
    waits_for_documents: ClassVar[bool] = False  # True if `maxTimeMS` limits the wait for documents
    opens_cursor: bool = False  # True if the result may be an open cursor
    pins_connection: bool = False  # True if the cursor pins a connection even without a load balancer
    pin: PinnedConnection | None = None  # the pinned connection for the operation, or None
    in_background: bool = False  # True if the operation must not keep the event loop alive
    selector_is_explicit: bool = False  # True to ignore the read preference of the transaction
    trace: OperationTrace | None = None  # the record of the progress for observers, or None

    __slots__ = ("__dict__", "context")

    def __init__(self, context: OperationContext) -> None:
        self.context = context

    @property
    def title(self) -> str:
        """Name of the operation in the API specifications."""
        return self.name

    @property
    def collection(self) -> str:
        """Collection name for observers, empty for commands on ``admin`` or without a collection."""
        collection = self.context.collection
        return "" if collection.startswith("$cmd") or self.context.database == "admin" else collection

    @property
    def is_causally_consistent(self) -> bool:
        """True for writes, and for reads that accept a read concern."""
        return self.takes_read_concern or self.is_write

    @property
    def needs_retry_writes(self) -> bool:
        """True if retries of the operation after a ``RetryableError`` require ``retryWrites``."""
        return self.is_write or self.takes_write_concern

    def command(self, hello: Hello) -> DocumentDict:
        """Return the command without the common fields. The first field is the command name."""
        raise NotImplementedError

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        """Return the OP_MSG message of an encoded command as a list of buffers."""
        return encode_op_msg(request_id, flags, body)

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        """Return the command for events and logs, including the document sequences of its message."""
        return command

    def reply_for_monitoring(self, reply: DocumentDict) -> DocumentDict:
        return reply

    def decode(self, body: Buffer) -> DocumentDict:
        return bson.decode(body)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        """Convert the reply of a successful command to the result of the operation."""
        return reply

    def unacknowledged_result(self) -> Result:
        return None

    def keeps_cursor_open(self, result: Result) -> bool:
        """Return True if `result` is an open cursor, to which a connection may stay pinned."""
        return False

    def orphaned_cursor(self, reply: DocumentDict, address: Address) -> object:
        """Return the open cursor in the reply to an interrupted operation, or None."""
        return None

    def late_cursor(self, body: Buffer, address: Address) -> object:
        """Return the open cursor in a late reply to an interrupted operation, or None."""
        return None

    def store_pin(self, result: Result, pin: PinnedConnection) -> Result:
        """Store the pinned connection in `result`, and return `result`."""
        return result

    def selector_in_transaction(self, transaction: Transaction) -> Selector:
        """Return the server selector for a transaction, in which all reads must use the primary."""
        if self.is_write:
            return WRITABLE
        selector = self.context.selector if self.selector_is_explicit else transaction.settings.selector
        if selector.mode != 0:
            raise InvalidOperation(f"read preference in a transaction must be primary, not: {selector!r}")
        return selector

    def notify_transaction(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        """Notify the transaction of an error. `overloaded` is True for an overload error."""
        transaction.label_error(error)
