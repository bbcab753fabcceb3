"""A command whose document is known beforehand: those of the user, and those that only administer."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo.cmap.hello import Hello
from gmongo.cmap.shape import OWN_FIELDS
from gmongo.execution.classify import raise_write_concern_error
from gmongo.execution.operation import Operation
from gmongo.operations.find import CursorOperation
from gmongo.sdam.selection import WRITABLE
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer


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


class Administer(RunCommand):
    """A command that changes the schema: it takes a write concern, whose error is raised, and is not retried."""

    is_write = True
    is_generic = False

    __slots__ = ()

    def __init__(
        self, database: str, command: Mapping[str, Any], write_concern: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(database, command)
        self.write_concern = write_concern

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        raise_write_concern_error(reply)
        return reply


class Inspect(RunCommand):
    """A command that only reads, and may be tried again."""

    retryable = True
    is_generic = False

    __slots__ = ()


class CursorCommand(CursorOperation):
    """A command as it is given, whose reply is a cursor.

    :param selector: which servers suit.
    :param retryable: whether it may be tried again.
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
    ) -> None:
        super().__init__(database, codec_options, raw)
        self._command = command
        self.name = next(iter(command))  # type: ignore[misc]
        self.selector = selector
        self.retryable = retryable

    def command(self, hello: Hello) -> dict[str, Any]:
        return dict(self._command)
