"""A command whose document is known beforehand: those of the user, and those that only administer."""

from __future__ import annotations

from collections.abc import MutableMapping

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import Document, DocumentDict, Value
from gmongo.cmap.hello import Hello
from gmongo.cmap.quoting import without_quotes
from gmongo.errors import InvalidOperation
from gmongo.events.command import SENSITIVE
from gmongo.execution.classify import raise_write_concern_error
from gmongo.execution.context import OperationContext
from gmongo.execution.operation import Operation, Result
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import PLAIN_REPLY
from gmongo.wire.reply_schema import OWN_FIELDS

# What the API calls operations whose commands have other names. These commands name their collection.
_SECRET_FIELDS = ("pwd", "payload", "key")  # of commands whose content is never shown
_TITLES = {"create": "createCollection", "drop": "dropCollection"}


class RunCommand(Operation):
    """Run a command as it is given.

    :param command: its name first.
    :param selector_is_explicit: whether the read preference of `context` was given for this very command.
    """

    is_generic = True
    title = "runCommand"

    __slots__ = ("_command", "name", "selector_is_explicit")

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
            # The user's types must not reach what the driver itself reads.
            own = bson.decode(body)
            if isinstance(reply, MutableMapping):
                reply.update((name, own[name]) for name in OWN_FIELDS & own.keys())
        if str(self.name).lower() in SENSITIVE:
            return dict(without_quotes(reply, [self._command.get(field) for field in _SECRET_FIELDS]))
        return reply


class _OwnCommand(RunCommand):
    """A command of the driver's own, which goes by its name."""

    is_generic = False

    __slots__ = ()

    @property
    def title(self) -> str:  # type: ignore[override]
        return _TITLES.get(self.name, self.name)

    @property
    def collection(self) -> str:
        return str(self._command[self.name]) if self.name in _TITLES else super().collection


class WriteCommand(_OwnCommand):
    """A command that changes the schema: it takes a write concern, whose error is raised, and is not retried."""

    is_write = True
    takes_write_concern = True
    concern_first = True

    __slots__ = ("takes_session",)

    def __init__(self, context: OperationContext, command: Document) -> None:
        super().__init__(context, command)
        self.takes_session = context.write_concern is None or context.write_concern.get("w") != 0

    def decode(self, body: Buffer) -> DocumentDict:
        return bson.decode(body, PLAIN_REPLY)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        raise_write_concern_error(reply)
        return reply


class ReadCommand(_OwnCommand):
    """A command that only reads, and may be tried again. Its reply is the server's."""

    retryable = True

    __slots__ = ()

    def decode(self, body: Buffer) -> DocumentDict:
        return bson.decode(body, PLAIN_REPLY)


class Explain(_OwnCommand):
    """How the server would run a command. It only reads, and may be tried again."""

    retryable = True

    __slots__ = ()


class ExplainedQuery(Explain):
    """The same for a query in its old form that asks for it by ``$explain``: the one document of its cursor."""

    __slots__ = ()

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return CursorReply(0, "", [reply], address, {"cursor": {}})


class CursorCommand(CursorOperation):
    """A command as it is given, whose reply is a cursor.

    :param decoding: how the documents are decoded.
    """

    __slots__ = ("_command", "name")

    def __init__(self, context: OperationContext, command: Document, decoding: CodecOptions[Value]) -> None:
        super().__init__(context, decoding)
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]

    def command(self, hello: Hello) -> DocumentDict:
        return dict(self._command)


class RunCursorCommand(CursorCommand):
    """A command of the application's own, whose reply should be a cursor. It is not tried again."""

    retryable = False
    title = "runCursorCommand"

    __slots__ = ()

    def result(self, reply: DocumentDict, address: Address) -> Result:
        if "cursor" not in reply:
            raise InvalidOperation(f"{self.name} does not return a cursor; command() runs it")
        return super().result(reply, address)
