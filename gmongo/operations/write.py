"""The `insert`, `update` and `delete` commands, whose statements are a document sequence."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._background import LongWork
from gmongo._documents import Document, DocumentDict, Value, plain, without_none
from gmongo._object_ids import new_object_id
from gmongo._server_facts import sizes, wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError, DocumentTooLarge, OperationFailure
from gmongo.execution.operation import Operation, OperationContext
from gmongo.execution.reply_errors import raise_write_concern_error, raise_write_error
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg, encode_single_document_op_msg
from gmongo.wire.reply import PLAIN_REPLY_OPTIONS, reply_options
from gmongo.wire.reply_schema import WRITE_SCHEMA, check, unexpected

_UNUSUAL_FIELDS = frozenset({"writeErrors", "writeConcernError", "upserted"})
_SEQUENCE_NAMES = {"insert": "documents", "update": "updates", "delete": "deletes"}
_SEQUENCE_IDENTIFIERS = {kind: name.encode() + b"\x00" for kind, name in _SEQUENCE_NAMES.items()}
# Fields that an unacknowledged write must not have, because the server would not report their errors.
_FIELDS_NEEDING_REPLY = ("collation", "arrayFilters")
# Fields that older servers reject. An unacknowledged write would hide the error. Each row contains
# the command, the field, the minimum wire version and the server release.
_FIELDS_NEEDING_RELEASE = (
    ("update", "sort", wire_versions.SORT_OF_UPDATES, "8.0"),
    ("delete", "hint", wire_versions.HINT_OF_ANY_WRITE, "4.4"),
    ("findAndModify", "hint", wire_versions.HINT_OF_ANY_WRITE, "4.4"),
    *((command, "let", wire_versions.LET_OF_WRITES, "5.0") for command in ("update", "delete", "findAndModify")),
    *(
        (kind, "comment", wire_versions.WRITE_COMMENT, "4.4")
        for kind in ("insert", "update", "delete", "findAndModify")
    ),
)
_BUFFERS_PER_STEP = 1000
_BYTES_BETWEEN_CHECKPOINTS = 16 * 1024
_MESSAGE_OVERHEAD = 256  # bytes for the header, the flags and the section headers of a message, and a reserve


class Statements:
    """Remaining statements of a write, whose `kind` is `insert`, `update` or `delete`."""

    def __init__(self, kind: str, documents: Iterable[Document], codec_options: CodecOptions[Value]) -> None:
        self.kind = kind
        self._documents: Iterator[Document] = iter(documents)
        self._codec_options = codec_options
        self.has_reply = True  # True if the server will reply to the next message
        self._next_statement: tuple[Document, bytes] | None = None  # statement and bytes for the next message

    def take(self, hello: Hello, command_size: int = 0) -> tuple[list[Document], list[bytes]]:
        """Remove and return the statements that fit into one message, and their encoded forms."""
        taken: list[Document] = []
        encoded: list[bytes] = []
        # A large comment or `let` of the command reduces the space for statements.
        overhead = max(sizes.COMMAND_OVERHEAD, command_size + _MESSAGE_OVERHEAD)
        room = hello.max_batch_size - overhead
        next_checkpoint = room
        work = LongWork()
        for document, body in islice(self._encode_remaining(hello), hello.max_write_batch_size):
            room -= len(body)
            if room < 0 and taken:
                self._next_statement = document, body
                break
            if room < 0 and len(body) > hello.max_message_size - overhead:
                raise _too_large_error(body, hello)
            taken.append(document)
            encoded.append(body)
            if room < next_checkpoint:
                work.checkpoint()
                next_checkpoint = room - _BYTES_BETWEEN_CHECKPOINTS
        return taken, encoded

    def _encode_remaining(self, hello: Hello) -> Iterator[tuple[Document, bytes]]:
        if self._next_statement is not None:
            statement, self._next_statement = self._next_statement, None
            yield statement
        codec_options = self._codec_options
        for document in self._documents:
            body = bson.encode(document if isinstance(document, dict) else plain(document), False, codec_options)
            # Without a reply, the server cannot report that a document is too large.
            if not self.has_reply and len(body) > hello.max_bson_size:
                raise _too_large_error(body, hello)
            yield document, body


def check_unacknowledged(kind: str, fields: Container[str], hello: Hello) -> None:
    """Check the field names of an unacknowledged command, because the server reports no errors."""
    for name in _FIELDS_NEEDING_REPLY:
        if name in fields:
            raise needs_reply_error(name)
    for command, name, wire_version, release in _FIELDS_NEEDING_RELEASE:
        if command == kind and name in fields and hello.max_wire_version < wire_version:
            raise ConfigurationError(f"{name} of an unacknowledged {kind} (w=0) needs MongoDB {release} or later")


def needs_reply_error(name: str) -> ConfigurationError:
    """Return the exception for the field `name`, which an unacknowledged write cannot use."""
    return ConfigurationError(f"{name} cannot be used with an unacknowledged write (w=0)")


def check_validation_not_bypassed(fields: Container[str]) -> None:
    """Raise OperationFailure if an unacknowledged bulk write sets ``bypassDocumentValidation``."""
    if "bypassDocumentValidation" in fields:
        raise OperationFailure("Cannot set bypass_document_validation with unacknowledged write concern")


def _too_large_error(encoded: bytes, hello: Hello) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"BSON document too large ({len(encoded)} bytes) - the connected server supports "
        f"BSON document sizes up to {hello.max_bson_size} bytes."
    )


class _Write(Operation):
    """Base class of `insert`, `update` and `delete` commands with `batch_statements`."""

    is_write = True
    takes_write_concern = True

    __slots__ = ("_encoded", "_fields", "acknowledged", "batch_statements", "name", "retryable", "takes_session")

    def __init__(
        self,
        context: OperationContext,
        kind: str,
        batch_statements: Sequence[Document],
        fields: Document,
        acknowledged: bool,
        retryable: bool,
    ) -> None:
        self.context = context
        self.name = kind  # type: ignore[misc]
        self.acknowledged = self.takes_session = acknowledged
        self.retryable = retryable
        self.batch_statements = batch_statements
        self._fields = fields
        self._encoded: list[bytes] | None = None  # the encoded statements, which a retry reuses

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: self.context.collection, **self._fields}

    def decode(self, body: Buffer) -> DocumentDict:
        options = self.context.codec_options
        return bson.decode(body, PLAIN_REPLY_OPTIONS if options is DEFAULT_CODEC_OPTIONS else reply_options(options))

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        return {**command, _SEQUENCE_NAMES[self.name]: list(self.batch_statements)}

    def unacknowledged_result(self) -> DocumentDict:
        return {}


class WriteBatch(_Write):
    """One `insert`, `update` or `delete` command with as many statements as fit into one message.

    `unacknowledged_fields` maps a command name to the field names of the command and of its `update`
    or `delete` statements. For an acknowledged bulk write, the mapping is empty.
    """

    def __init__(
        self,
        context: OperationContext,
        statements: Statements,
        fields: Document,
        *,
        acknowledged: bool,
        retryable: bool,
        takes_session: bool,
        operation_id: int,
        unacknowledged_fields: Mapping[str, Container[str]],
    ) -> None:
        super().__init__(context, statements.kind, (), fields, acknowledged, retryable)
        self._unacknowledged_fields = unacknowledged_fields
        # If a write has w=0 but needs a reply, its command has no session and no write concern.
        self.takes_session, self.takes_write_concern = takes_session, takes_session == acknowledged
        self.operation_id = operation_id
        self._statements = statements
        self.reply: DocumentDict | None = None  # the last reply with ok: 1

    def decode(self, body: Buffer) -> DocumentDict:
        reply = super().decode(body)
        if reply.get("ok"):
            self.reply = reply
        return reply

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        if self._encoded is None:
            self._encoded = self.encode(hello, len(body))
        return encode_op_msg(request_id, flags, body, ((_SEQUENCE_NAMES[self.name], self._encoded),))

    def encode(self, hello: Hello, command_size: int = 0) -> list[bytes]:
        for kind, field_names in self._unacknowledged_fields.items():
            check_unacknowledged(kind, field_names, hello)
        self.batch_statements, encoded = self._statements.take(hello, command_size)
        return encoded

    def result(self, reply: DocumentDict, address: Address) -> DocumentDict:
        check_write_reply(reply, len(self.batch_statements))
        return reply

    def free(self) -> None:
        """Free the sent buffers in steps, because thousands of buffers take milliseconds to free."""
        encoded, self._encoded = self._encoded, None
        work = LongWork()
        while encoded:
            del encoded[-_BUFFERS_PER_STEP:]
            work.checkpoint()


class SingleWrite(_Write):
    """`insert`, `update` or `delete` command with one statement. Write errors raise exceptions."""

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        encoded = self._encoded = self._encoded or self.encode(hello)
        return encode_single_document_op_msg(request_id, flags, body, _SEQUENCE_IDENTIFIERS[self.name], encoded[0])

    def encode(self, hello: Hello) -> list[bytes]:
        statement = self.batch_statements[0]
        if not self.acknowledged:
            check_unacknowledged(self.name, self._fields, hello)
            if self.name != "insert":
                check_unacknowledged(self.name, statement, hello)
        if not isinstance(statement, dict):
            statement = plain(statement)
        encoded = bson.encode(statement, False, self.context.codec_options)
        if len(encoded) > hello.max_bson_size and (not self.acknowledged or len(encoded) > hello.max_command_size):
            raise _too_large_error(encoded, hello)
        return [encoded]

    def result(self, reply: DocumentDict, address: Address) -> DocumentDict:
        # Fast path for replies with neither errors nor upserts.
        if _UNUSUAL_FIELDS.isdisjoint(reply) and reply.get("n").__class__ is reply.get("nModified", 0).__class__ is int:
            return reply
        check_write_reply(reply, 1)
        errors = reply.get("writeErrors")
        if errors:
            raise_write_error(errors[-1])
        if "writeConcernError" in reply:
            raise_write_concern_error(reply)
        return reply


def check_write_reply(reply: Document, count: int) -> None:
    """Check the reply to a write command with `count` statements."""
    check(reply, WRITE_SCHEMA)
    for field in ("writeErrors", "upserted"):
        for each in reply.get(field) or ():
            if not 0 <= each["index"] < count:
                raise unexpected(f"index in {field} of a reply", f"from 0 to {count - 1}", each["index"])


def ensure_id(document: Value) -> Value:
    """Add a missing ``_id`` to `document`, and return the ``_id``. Return None for a raw document."""
    if not isinstance(document, dict) and isinstance(document, bson.raw_bson.RawBSONDocument):
        return None
    if "_id" not in document:
        document["_id"] = new_object_id()
    return document["_id"]


def update_statement(
    filter: Document,
    update: Value,
    *,
    multi: bool,
    upsert: bool,
    collation: Document | None,
    array_filters: Value,
    hint: Value,
    sort: Value,
) -> DocumentDict:
    """Return a statement for the field ``updates`` of an `update` command."""
    statement: DocumentDict = {"q": filter, "u": update, "multi": multi, "upsert": upsert}
    if collation is not None:
        statement["collation"] = collation
    if array_filters is not None:
        statement["arrayFilters"] = array_filters
    if hint is not None:
        statement["hint"] = hint
    if sort is not None:
        statement["sort"] = sort
    return statement


def delete_statement(filter: Document, *, limit: int, collation: Document | None, hint: Value) -> DocumentDict:
    """Return a `delete` statement. The limit is 1 for one document, 0 for all documents."""
    return without_none({"q": filter, "limit": limit}, collation=collation, hint=hint)
