"""The commands `getMore`, which reads from a cursor, and `killCursors`."""

from __future__ import annotations

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions

from gmongo._documents import DocumentDict, Value
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.execution.operation import Operation, OperationContext
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.wire.address import Address
from gmongo.wire.message import EXHAUST_ALLOWED, Buffer, encode_op_msg


class GetMore(CursorOperation):
    """`getMore` command. `max_time_ms` limits the server's wait for new documents of a tailable cursor."""

    name = "getMore"
    retryable = False
    opens_cursor = False  # the object that sent the command owns the cursor
    takes_max_time = False
    waits_for_documents = True
    batch_field = "nextBatch"

    __slots__ = ("address", "batch_size", "comment", "cursor_id", "max_time_ms", "pin", "wire_version")

    def __init__(
        self,
        context: OperationContext,
        cursor_id: int,
        address: Address,
        pin: PinnedConnection | None,
        *,
        batch_size: int = 0,
        max_time_ms: int | None = None,
        comment: Value = None,
        raw: bool = False,
    ) -> None:
        super().__init__(context, raw=raw)
        self.address = address
        self.pin = pin
        self.cursor_id = cursor_id
        self.batch_size = batch_size
        self.max_time_ms = max_time_ms
        self.comment = comment
        self.wire_version = 0  # maximum wire version of the server. The method `command` sets this attribute

    def command(self, hello: Hello) -> DocumentDict:
        self.wire_version = hello.max_wire_version
        command: DocumentDict = {"getMore": bson.Int64(self.cursor_id), "collection": self.context.collection}
        if self.batch_size:
            command["batchSize"] = self.batch_size
        if self.max_time_ms is not None:
            command["maxTimeMS"] = self.max_time_ms
        if self.comment is not None and hello.max_wire_version >= wire_versions.GET_MORE_COMMENT:
            command["comment"] = self.comment
        return command


class GetMoreAhead(GetMore):
    """`getMore` command of a driver greenlet that reads ahead."""

    in_background = True

    address: Address
    size: int  # bytes of the reply

    def decode(self, body: Buffer) -> DocumentDict:
        self.size = len(body)
        return super().decode(body)

    def next_get_more(self, reply: CursorReply) -> GetMoreAhead:
        """Return the `getMore` command that follows this command and its `reply`."""
        context = context_of(reply.namespace, self.decoding)
        return GetMoreAhead(context, reply.cursor_id, reply.address, self.pin, comment=self.comment, raw=self.raw)


class ExhaustGetMore(GetMore):
    """`getMore` command of an exhaust cursor.

    After the first `getMore`, the server streams all batches. For each further `getMore`, the connection sends nothing,
    and reads the next message as the reply.
    """

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        return encode_op_msg(request_id, flags | EXHAUST_ALLOWED, body)


class KillCursors(Operation):
    """`killCursors` command, which closes cursors of one server. `pin` is the pinned connection of the cursors."""

    name = "killCursors"
    retries_overload = False
    waits_for_server = False

    def __init__(
        self, context: OperationContext, cursor_ids: list[int], address: Address, pin: PinnedConnection | None
    ) -> None:
        super().__init__(context)
        self.cursor_ids = cursor_ids
        self.address = address
        self.pin = pin

    def command(self, hello: Hello) -> DocumentDict:
        return {"killCursors": self.context.collection, "cursors": [bson.Int64(each) for each in self.cursor_ids]}


def context_of(namespace: str, codec_options: CodecOptions[Value] = DEFAULT_CODEC_OPTIONS) -> OperationContext:
    """Return the context for the `getMore` and `killCursors` commands of a cursor with this namespace."""
    database, _, collection = namespace.partition(".")
    return OperationContext(database, collection, codec_options)
