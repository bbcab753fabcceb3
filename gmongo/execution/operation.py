"""What all operations have in common: a command to build and a reply to read, and no I/O."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.cmap.shape import Check, unexpected
from gmongo.errors import InvalidOperation, ProtocolError, PyMongoError
from gmongo.sdam.selection import WRITABLE
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, DocumentSequence, encode_op_msg

if TYPE_CHECKING:
    from gmongo.execution.transaction import Transaction


def required(reply: Mapping[str, Any], name: str, check: Check, where: str = "a reply") -> Any:
    """A field that a reply must have.

    :param check: what it has to be.
    :param where: the field is, for the message.
    :raises ProtocolError: the reply does not have it, or it is something else.
    """
    if name not in reply:
        raise ProtocolError(f"{where} lacks the field {name}: {reprlib.repr(reply)}")
    value = reply[name]
    rule = check(value)
    if rule is not None:
        raise unexpected(f"{name} of {where}", rule, value)
    return value


class Operation:
    """One command, for any server.

    A subclass says in class attributes what kind it is, builds the command, and reads the reply. It may be asked to
    build the command again for another connection, when the operation is retried.

    :param database: the name of the database it runs on.
    """

    name: ClassVar[str]
    is_write: ClassVar[bool] = False
    retryable: bool = False
    """Whether it may be tried again after an error of the network or an election."""
    selector: Any = WRITABLE
    """Which servers suit: a read preference, or ``WRITABLE``."""
    address: Address | None = None
    """The one server it must run on, if it continues something there."""
    waits_for_server: ClassVar[bool] = True
    """Whether it waits for that server, if the last check of it failed; not what only cleans up."""
    acknowledged: bool = True
    """Whether there is a reply."""
    takes_session: bool = True
    """Whether an implicit session is used."""
    codec_options: CodecOptions[Any] = DEFAULT_CODEC_OPTIONS
    """How the user's documents are encoded and decoded."""
    operation_id: int | None = None
    """Ties the commands of one bulk together in events."""
    takes_read_concern: ClassVar[bool] = False
    """Whether it is a read that takes a read concern."""
    read_concern: Mapping[str, Any] | None = None
    """A read concern to send, if any."""
    write_concern: Mapping[str, Any] | None = None
    """A write concern to send, if any."""
    transaction_number: int | None = None
    """What the server knows the second try of a write by; given by the executor."""
    is_generic: ClassVar[bool] = False
    """Whether it is a command of the application's own, which may be a read or a write."""
    retries_overload: ClassVar[bool] = True
    """Whether it is tried again when the server was too busy for it; not what is done in passing."""
    ends_transaction: ClassVar[bool] = False
    """Whether it commits or aborts."""
    takes_max_time: bool = True
    """Whether the server is told of a deadline; not for the further batches of a cursor, which has its own."""
    pin: PinnedConnection | None = None
    """The one connection it must run on, if it continues something there."""
    selector_is_explicit: bool = False
    """Whether `selector` was given for this very operation, so that a transaction does not override it."""

    __slots__ = ("__dict__", "database")

    def __init__(self, database: str) -> None:
        self.database = database

    @property
    def is_causally_consistent(self) -> bool:
        """Whether a causally consistent session has it see what went before: reads and writes, not any command."""
        return self.takes_read_concern or self.is_write

    @property
    def needs_retry_writes(self) -> bool:
        """Whether it is tried again only with ``retryWrites``, after an error labelled as retryable."""
        return self.is_write

    def command(self, hello: Hello) -> dict[str, Any]:
        """The command, its name first, without what the executor adds."""
        raise NotImplementedError

    def sequences(self, hello: Hello) -> tuple[DocumentSequence, ...]:
        """Lists of documents that travel beside the command."""
        return ()

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        """The buffers of the message that an encoded command is sent as."""
        return encode_op_msg(request_id, flags, body, self.sequences(hello))

    def for_monitoring(self, command: dict[str, Any]) -> dict[str, Any]:
        """The command as events and logs show it, with the documents that travel beside it."""
        return command

    def reply_for_monitoring(self, reply: dict[str, Any]) -> dict[str, Any]:
        """A reply as events and logs show it."""
        return reply

    def decode(self, body: Buffer) -> dict[str, Any]:
        """Decode the reply."""
        return bson.decode(body)

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        """What the operation returns for a reply that is not an error.

        :param address: of the server that replied.
        """
        return reply

    def unacknowledged_result(self) -> Any:
        """What the operation returns when it asked for no reply."""
        return None

    def keeps_cursor_open(self, result: Any) -> bool:
        """Whether a result is a cursor that is still open, so that its connection is kept behind a load balancer."""
        return False

    def orphaned_cursor(self, reply: dict[str, Any], address: Address) -> Any:
        """The cursor that a reply opened, if nobody is going to have it; None if there is none."""
        return None

    def pinned(self, result: Any, pin: PinnedConnection) -> Any:
        """The same result with the connection that is kept for it."""
        return result

    # In a transaction

    def selector_in(self, transaction: Transaction) -> Any:
        """The read preference that holds in a transaction.

        :raises InvalidOperation: a read would not go to the primary.
        """
        if self.is_write:
            return self.selector
        selector = self.selector if self.selector_is_explicit else transaction.settings.selector
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

    :param collection: the name of the collection.
    :param fields: of the command, as the server names them.
    :param codec_options: how the user's documents are encoded and decoded.
    """

    __slots__ = ("collection", "fields")

    def __init__(
        self,
        database: str,
        collection: str,
        fields: Mapping[str, Any],
        codec_options: CodecOptions[Any] = DEFAULT_CODEC_OPTIONS,
    ) -> None:
        super().__init__(database)
        self.collection = collection
        self.fields = fields
        self.codec_options = codec_options

    def command(self, hello: Hello) -> dict[str, Any]:
        return {self.name: self.collection, **self.fields}
