"""A command whose document is known beforehand: those of the user, and those that only administer."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo.cmap.hello import Hello
from gmongo.cmap.shape import OWN_FIELDS
from gmongo.errors import InvalidOperation
from gmongo.execution.classify import raise_write_concern_error
from gmongo.execution.operation import Operation
from gmongo.operations.find import CursorOperation
from gmongo.sdam.selection import WRITABLE
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import PLAIN_REPLY


class RunCommand(Operation):
    """Run a command as it is given.

    :param command: its name first.
    :param selector: which servers suit.
    :param codec_options: how the command is encoded and its reply decoded.
    """

    is_generic = True

    __slots__ = ("_command", "name")

    def __init__(
        self,
        database: str,
        command: Mapping[str, Any],
        selector: Any = WRITABLE,
        codec_options: CodecOptions[Any] = DEFAULT_CODEC_OPTIONS,
    ) -> None:
        super().__init__(database)
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]
        self.selector = selector
        self.codec_options = codec_options

    def command(self, hello: Hello) -> dict[str, Any]:
        return dict(self._command)

    def decode(self, body: Buffer) -> dict[str, Any]:
        options = self.codec_options
        reply: dict[str, Any] = bson.decode(body, options)
        if options is not DEFAULT_CODEC_OPTIONS and options.type_registry != DEFAULT_CODEC_OPTIONS.type_registry:
            # The user's types must not reach what the driver itself reads.
            own = bson.decode(body)
            if isinstance(reply, MutableMapping):
                reply.update((name, own[name]) for name in OWN_FIELDS & own.keys())
        return reply


class WriteCommand(RunCommand):
    """A command that changes the schema: it takes a write concern, whose error is raised, and is not retried.

    :param codec_options: how the command is encoded, which may hold values of the user's, as a validator does.
    """

    is_write = True
    is_generic = False

    __slots__ = ()

    def __init__(
        self,
        database: str,
        command: Mapping[str, Any],
        codec_options: CodecOptions[Any],
        write_concern: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(database, command, codec_options=codec_options)
        self.write_concern = write_concern
        self.takes_session = write_concern is None or write_concern.get("w") != 0

    def decode(self, body: Buffer) -> dict[str, Any]:
        return bson.decode(body, PLAIN_REPLY)

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        raise_write_concern_error(reply)
        return reply


class ReadCommand(RunCommand):
    """A command that only reads, and may be tried again. Its reply is the server's."""

    retryable = True
    is_generic = False

    __slots__ = ()

    def decode(self, body: Buffer) -> dict[str, Any]:
        return bson.decode(body, PLAIN_REPLY)


class Explain(RunCommand):
    """How the server would run a command. It only reads, and may be tried again."""

    retryable = True
    is_generic = False

    __slots__ = ()


class CursorCommand(CursorOperation):
    """A command as it is given, whose reply is a cursor.

    :param selector: which servers suit.
    :param retryable: whether it may be tried again.
    :param decoded_as: how the documents are decoded; None is `codec_options`.
    """

    __slots__ = ("_command", "name")

    def __init__(
        self,
        database: str,
        command: Mapping[str, Any],
        codec_options: CodecOptions[Any],
        selector: Any = WRITABLE,
        retryable: bool = True,
        raw: bool = False,
        decoded_as: CodecOptions[Any] | None = None,
    ) -> None:
        super().__init__(database, codec_options, raw)
        self.decoded_as = decoded_as
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]
        self.selector = selector
        self.retryable = retryable

    def command(self, hello: Hello) -> dict[str, Any]:
        return dict(self._command)


class RunCursorCommand(CursorCommand):
    """A command of the application's own, whose reply should be a cursor. It is not tried again."""

    __slots__ = ()

    def __init__(
        self, database: str, command: Mapping[str, Any], codec_options: CodecOptions[Any], selector: Any
    ) -> None:
        super().__init__(database, command, codec_options, selector, retryable=False)

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        if "cursor" not in reply:
            raise InvalidOperation(f"{self.name} does not return a cursor; command() runs it")
        return super().result(reply, address)
