"""What all operations have in common: a command to build and a reply to read, and no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import bson

from gmongo._documents import Document, DocumentDict, Value
from gmongo._short_text import short
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import InvalidOperation, ProtocolError, PyMongoError
from gmongo.execution.context import OperationContext
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg
from gmongo.wire.reply_schema import Check, unexpected

if TYPE_CHECKING:
    from gmongo.execution.account import Account
    from gmongo.execution.transaction import Transaction


Result: TypeAlias = Any
"""What an operation returns: a document, a value or a cursor that is open. Its class says which."""


def required(reply: Document, name: str, check: Check, where: str = "a reply") -> Value:
    """A field that a reply must have.

    :param check: what it has to be.
    :param where: what has the field, for the message.
    :raises ProtocolError: the reply does not have it, or it is something else.
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

    A subclass says in class attributes what kind it is, builds the command, and reads the reply. It may be asked to
    build the command again for another connection, when the operation is retried.

    :param context: what it takes from the object that it is called on.
    """

    name: ClassVar[str]
    is_write: ClassVar[bool] = False
    retryable: bool = False
    """Whether it may be tried again after an error of the network or an election."""
    address: Address | None = None
    """The one server it must run on, if it continues something there."""
    waits_for_server: ClassVar[bool] = True
    """Whether it waits for that server, if the last check of it failed; not what only cleans up."""
    acknowledged: bool = True
    """Whether there is a reply."""
    takes_session: bool = True
    """Whether an implicit session is used."""
    operation_id: int | None = None
    """Ties the commands of one bulk together in events."""
    takes_read_concern: ClassVar[bool] = False
    """Whether it is a read that takes a read concern."""
    takes_write_concern: bool = False
    """Whether it takes a write concern."""
    concern_first: ClassVar[bool] = False
    """Whether its write concern error is raised although the command itself failed."""
    transaction_number: int | None = None
    """What the server knows the second try of a write by; given by the executor."""
    is_generic: ClassVar[bool] = False
    """Whether it is a command of the application's own, which may be a read or a write."""
    retries_overload: ClassVar[bool] = True
    """Whether it is tried again when the server was too busy for it; not so with housekeeping commands."""
    ends_transaction: ClassVar[bool] = False
    """Whether it commits or aborts."""
    takes_max_time: bool = True
    """Whether the server is told of a deadline; not for the further batches of a cursor, which has its own."""
    waits_for_documents: ClassVar[bool] = False
    """Whether its own ``maxTimeMS`` is how long the server waits for documents that are not there yet."""
    opens_cursor: bool = False
    """Whether its result may be a cursor that is open still."""
    leaves_cursor: ClassVar[bool] = False
    """True if a cursor may stay open on the server after a network error."""
    pins_connection: bool = False
    """Whether the connection stays with the cursor that it opens, also where there is no load balancer."""
    pin: PinnedConnection | None = None
    """The one connection it must run on, if it continues something there."""
    in_background: bool = False
    """Whether it runs in a greenlet of the driver's, which must not keep the hub running."""
    selector_is_explicit: bool = False
    """Whether its read preference was given for this very operation, so that a transaction does not override it."""
    account: Account | None = None
    """What is known of it while it runs, if the client is observed."""

    __slots__ = ("__dict__", "context")

    def __init__(self, context: OperationContext) -> None:
        self.context = context

    @property
    def title(self) -> str:
        """What the API's specifications call it; mostly that is the name of its command."""
        return self.name

    @property
    def collection(self) -> str:
        """The collection that it runs on; empty if there is none."""
        collection = self.context.collection
        return "" if collection.startswith("$cmd") or self.context.database == "admin" else collection

    @property
    def is_causally_consistent(self) -> bool:
        """Whether a causally consistent session has it see what went before: reads and writes, not any command."""
        return self.takes_read_concern or self.is_write

    @property
    def needs_retry_writes(self) -> bool:
        """Whether it is tried again only with ``retryWrites``, after an error labelled as retryable."""
        return self.is_write

    def command(self, hello: Hello) -> DocumentDict:
        """The command, its name first, without what the executor adds."""
        raise NotImplementedError

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        """The buffers of the message that an encoded command is sent as."""
        return encode_op_msg(request_id, flags, body)

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        """The command as events and logs show it, with the documents that travel beside it."""
        return command

    def reply_for_monitoring(self, reply: DocumentDict) -> DocumentDict:
        """A reply as events and logs show it."""
        return reply

    def decode(self, body: Buffer) -> DocumentDict:
        """Decode the reply."""
        return bson.decode(body)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        """What the operation returns for a reply that is not an error.

        :param address: of the server that replied.
        """
        return reply

    def unacknowledged_result(self) -> Result:
        """What the operation returns when it asked for no reply."""
        return None

    def keeps_cursor_open(self, result: Result) -> bool:
        """Whether a result is a cursor that is still open, so that its connection is kept behind a load balancer."""
        return False

    def orphaned_cursor(self, reply: DocumentDict, address: Address) -> object:
        """The cursor that the reply to an interrupted operation opened; None if there is none."""
        return None

    def late_cursor(self, body: Buffer, address: Address) -> object:
        """The cursor that the reply to an interrupted operation opened; None if there is none.

        :param body: of the reply, which has come late.
        :raises ProtocolError: it is no good reply; :class:`bson.errors.BSONError` if it cannot be decoded.
        """
        return None

    def pinned(self, result: Result, pin: PinnedConnection) -> Result:
        """The same result with the connection that is kept for it."""
        return result

    # In a transaction

    def selector_in(self, transaction: Transaction) -> Selector:
        """The read preference that holds in a transaction.

        :raises InvalidOperation: a read would not go to the primary.
        """
        if self.is_write:
            return WRITABLE
        selector = self.context.selector if self.selector_is_explicit else transaction.settings.selector
        if selector.mode != 0:
            raise InvalidOperation(f"read preference in a transaction must be primary, not: {selector!r}")
        return selector

    def failed_in(self, transaction: Transaction, error: PyMongoError, overloaded: bool) -> None:
        """Let a transaction know of an error.

        :param overloaded: whether the server was too busy to look at the command.
        """
        transaction.failed(error)


class CollectionOperation(Operation):
    """A command on a collection that consists of its fields.

    :param fields: of the command, as the server names them.
    """

    __slots__ = ("fields",)

    def __init__(self, context: OperationContext, fields: Document) -> None:
        super().__init__(context)
        self.fields = fields

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: self.context.collection, **self.fields}
