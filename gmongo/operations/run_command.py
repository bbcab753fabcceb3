"""Operations for commands of the application, and for administrative commands of the driver."""

from __future__ import annotations

from collections.abc import MutableMapping

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, DocumentDict, Value
from gmongo._redaction import redacted
from gmongo.cmap.hello import Hello
from gmongo.errors import InvalidOperation
from gmongo.events.command import SENSITIVE_COMMANDS
from gmongo.execution.operation import Operation, OperationContext, Result
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import PLAIN_REPLY_OPTIONS
from gmongo.wire.reply_schema import DRIVER_FIELDS

# Command fields with secrets. The driver withholds an error message that quotes one of their values.
_SECRET_FIELDS = ("pwd", "payload", "key")
# Command -> operation name in the API specifications. The first field contains the collection name.
_TITLES = {"create": "createCollection", "drop": "dropCollection"}


class RunCommand(Operation):
    """Operation that sends a complete command, whose first field is the command name."""

    is_generic = True
    title = "runCommand"

    def __init__(self, context: OperationContext, command: Document, selector_is_explicit: bool = False) -> None:
        super().__init__(context)
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]
        self.selector_is_explicit = selector_is_explicit

    def command(self, hello: Hello) -> DocumentDict:
        return dict(self._command)

    def decode(self, body: Buffer) -> DocumentDict:
        options = self.context.codec_options
        reply: DocumentDict = bson.decode(body, options)
        if options is not DEFAULT_CODEC_OPTIONS and options.type_registry != DEFAULT_CODEC_OPTIONS.type_registry:
            # Decode again, without custom types, the fields that the driver reads.
            plain_reply = bson.decode(body)
            if isinstance(reply, MutableMapping):
                reply.update((name, plain_reply[name]) for name in DRIVER_FIELDS & plain_reply.keys())
        if str(self.name).lower() in SENSITIVE_COMMANDS:
            return dict(redacted(reply, [self._command.get(field) for field in _SECRET_FIELDS]))
        return reply


class _OwnCommand(RunCommand):
    """Administrative command of the driver, with the operation name of the API specifications."""

    is_generic = False

    @property
    def title(self) -> str:  # type: ignore[override]
        return _TITLES.get(self.name, self.name)

    @property
    def collection(self) -> str:
        return str(self._command[self.name]) if self.name in _TITLES else super().collection

    def decode(self, body: Buffer) -> DocumentDict:
        return bson.decode(body, PLAIN_REPLY_OPTIONS)


class WriteCommand(_OwnCommand):
    """Command that changes the schema, with a write concern. Only overload errors cause a retry."""

    is_write = True
    takes_write_concern = True
    concern_first = True

    def __init__(self, context: OperationContext, command: Document) -> None:
        super().__init__(context, command)
        self.takes_session = context.write_concern is None or context.write_concern.get("w") != 0

    def result(self, reply: DocumentDict, address: Address) -> Result:
        raise_write_concern_error(reply)
        return reply


class ReadCommand(_OwnCommand):
    """Retryable read command. The result is the reply of the server."""

    retryable = True


class Explain(_OwnCommand):
    """Retryable `explain` command."""

    retryable = True
    decode = RunCommand.decode


class ExplainedQuery(Explain):
    """`explain` command for a legacy query. The result is a cursor over the query plan."""

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return CursorReply(0, "", [reply], address, {"cursor": {}})


class CursorCommand(CursorOperation):
    """Operation that sends a complete command. The reply to the command contains a cursor."""

    def __init__(self, context: OperationContext, command: Document, decoding: CodecOptions[Value]) -> None:
        super().__init__(context, decoding)
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]

    def command(self, hello: Hello) -> DocumentDict:
        return dict(self._command)


class RunCursorCommand(CursorCommand):
    """Cursor command of the application. Only overload errors cause a retry."""

    retryable = False
    title = "runCursorCommand"

    def result(self, reply: DocumentDict, address: Address) -> Result:
        if "cursor" not in reply:
            raise InvalidOperation(f"{self.name} does not return a cursor; use command() instead")
        return super().result(reply, address)
