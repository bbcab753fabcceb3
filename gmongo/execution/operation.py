"""Base classes of operations, which build commands and read replies without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import bson

from gmongo._documents import Document, DocumentDict, Value
from gmongo._truncated_repr import short
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import InvalidOperation, ProtocolError, PyMongoError
from gmongo.execution.operation_context import OperationContext
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg
from gmongo.wire.reply_schema import Check, unexpected

if TYPE_CHECKING:
    from gmongo.execution.operation_trace import OperationTrace
    from gmongo.execution.transaction import Transaction


Result: TypeAlias = Any
"""Result of an operation: a document, a value or an open cursor."""


def required_field(reply: Document, name: str, check: Check, where: str = "a reply") -> Value:
    """Return a field that a reply must have.

    :param check: check of the value.
    :param where: name of the document, for errors.
    :raises ProtocolError: the field is missing or has an invalid value.
    """
    if name not in reply:
        raise ProtocolError(f"{where} lacks the field {name}: {short(reply)}")
    value = reply[name]
    rule = check(value)
    if rule is not None:
        raise unexpected(f"{name} of {where}", rule, value)
    return value


class Operation:
    """One command, for any server.

    A subclass describes its kind in class attributes, builds the command, and reads the reply. A retry builds the
    command again for another connection.

    :param context: namespace and options.
    """

    name: ClassVar[str]
    is_write: ClassVar[bool] = False
    retryable: bool = False
    """True if it may be retried after a network error or an election."""
    address: Address | None = None
    """Server that it must run on, for example the server of a cursor; None means any server."""
    waits_for_server: ClassVar[bool] = True
    """True if it waits while `address` is Unknown. Cleanup commands do not wait."""
    acknowledged: bool = True
    """True if the server sends a reply."""
    takes_session: bool = True
    """True if it uses an implicit session."""
    operation_id: int | None = None
    """ID in events that all commands of one bulk write share."""
    takes_read_concern: ClassVar[bool] = False
    """True for a read that takes a read concern."""
    takes_write_concern: bool = False
    """True if it takes a write concern."""
    concern_first: ClassVar[bool] = False
    """True if its write concern error precedes the error of the command."""
    transaction_number: int | None = None
    """Number by which the server recognizes the retry of a write, set by the executor."""
    is_generic: ClassVar[bool] = False
    """True for a command of the application (``Database.command``), which may read or write."""
    retries_overload: ClassVar[bool] = True
    """True if it is retried after overload errors. Cleanup commands are not retried."""
    ends_transaction: ClassVar[bool] = False
    """True if it commits or aborts a transaction."""
    takes_max_time: bool = True
    """True if a deadline sets its ``maxTimeMS``; False for getMore and for cursors that outlive the deadline."""
    waits_for_documents: ClassVar[bool] = False
    """True if its own ``maxTimeMS`` limits how long the server waits for new documents."""
    opens_cursor: bool = False
    """True if its result may be an open cursor."""
    pins_connection: bool = False
    """True if its connection stays pinned to its cursor even without a load balancer."""
    pin: PinnedConnection | None = None
    """Pinned connection that it must run on, or None."""
    in_background: bool = False
    """True if it runs in a background greenlet, which must not keep the event loop alive."""
    selector_is_explicit: bool = False
    """True if the read preference was set for this operation, so that a transaction does not override it."""
    trace: OperationTrace | None = None
    """Progress for the observers of the client, or None."""

    __slots__ = ("__dict__", "context")

    def __init__(self, context: OperationContext) -> None:
        self.context = context

    @property
    def title(self) -> str:
        """Name in the API specifications, by default the name of the command."""
        return self.name

    @property
    def collection(self) -> str:
        """Collection name, or an empty string."""
        collection = self.context.collection
        return "" if collection.startswith("$cmd") or self.context.database == "admin" else collection

    @property
    def is_causally_consistent(self) -> bool:
        """True for reads and writes, which causally consistent sessions order. False for other commands."""
        return self.takes_read_concern or self.is_write

    @property
    def needs_retry_writes(self) -> bool:
        """True if a retry after an error with a retryable label requires ``retryWrites``."""
        return self.is_write

    def command(self, hello: Hello) -> DocumentDict:
        """Return the command, its name first, without the fields that the executor adds."""
        raise NotImplementedError

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        """Return the buffers of the message with an encoded command."""
        return encode_op_msg(request_id, flags, body)

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        """Return the command for events and logs, with the documents of its other sections."""
        return command

    def reply_for_monitoring(self, reply: DocumentDict) -> DocumentDict:
        """Return a reply for events and logs."""
        return reply

    def decode(self, body: Buffer) -> DocumentDict:
        """Decode the reply."""
        return bson.decode(body)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        """Return the result of the operation for a successful reply.

        :param address: address of the server.
        """
        return reply

    def unacknowledged_result(self) -> Result:
        """Return the result of an unacknowledged operation."""
        return None

    def keeps_cursor_open(self, result: Result) -> bool:
        """Return True if a result is an open cursor, which keeps its connection behind a load balancer."""
        return False

    def orphaned_cursor(self, reply: DocumentDict, address: Address) -> object:
        """Return the cursor that the reply to an interrupted operation opened, or None."""
        return None

    def late_cursor(self, body: Buffer, address: Address) -> object:
        """Return the cursor that a late reply to an interrupted operation opened, or None.

        :param body: body of the reply.
        :raises ProtocolError: the reply is malformed; :class:`bson.errors.BSONError`: its BSON is invalid.
        """
        return None

    def pinned(self, result: Result, pin: PinnedConnection) -> Result:
        """Add the pinned connection to a result, and return the result."""
        return result

    # In a transaction

    def selector_in_transaction(self, transaction: Transaction) -> Selector:
        """Return the read preference inside a transaction.

        :raises InvalidOperation: the read preference of a read is not primary.
        """
        if self.is_write:
            return WRITABLE
        selector = self.context.selector if self.selector_is_explicit else transaction.settings.selector
        if selector.mode != 0:
            raise InvalidOperation(f"read preference in a transaction must be primary, not: {selector!r}")
        return selector

    def notify_transaction(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        """Notify a transaction of an error.

        :param overloaded: True if the server rejected the command because of overload.
        """
        transaction.failed(error)


class CollectionOperation(Operation):
    """Command on a collection that consists only of given fields.

    :param fields: command fields with the names of the server.
    """

    __slots__ = ("fields",)

    def __init__(self, context: OperationContext, fields: Document) -> None:
        super().__init__(context)
        self.fields = fields

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: self.context.collection, **self.fields}
