"""The commands of cursors: `find`, `getMore` and `killCursors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.errors import InvalidBSON

from gmongo._documents import Document, DocumentDict, Value
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import InvalidOperation, ProtocolError
from gmongo.execution.operation import Operation, OperationContext, Result, required_field
from gmongo.wire.address import Address
from gmongo.wire.message import EXHAUST_ALLOWED, Buffer, encode_op_msg
from gmongo.wire.reply import LARGE_REPLY_SIZE, Batch, cut_batch, decode_cursor, is_well_formed
from gmongo.wire.reply_schema import CURSOR_SCHEMA, DOCUMENT, DOCUMENTS, check

# Modifier of a legacy query -> field of the find command. `_NAMES` contains the fields whose
# modifiers have the same name after a dollar sign.
_NAMES = ("comment", "explain", "hint", "max", "maxScan", "maxTimeMS", "min", "returnKey", "showRecordId", "snapshot")
_MODIFIERS = {f"${name}": name for name in _NAMES} | {"$orderby": "sort", "$showDiskLoc": "showRecordId"}
# Fields of a legacy query that are not modifiers. `$query` becomes the filter, and the driver ignores
# `$readPreference`.
_NOT_MODIFIERS = ("$query", "$readPreference")


def without_modifiers(filter: Document, fields: DocumentDict) -> tuple[Document, DocumentDict]:
    """Return the filter and the fields of a find command. Convert ``$query`` and legacy modifiers."""
    if "$query" not in filter:
        return filter, fields
    modifiers = {_MODIFIERS.get(name, name): value for name, value in filter.items() if name not in _NOT_MODIFIERS}
    return filter["$query"], {**fields, **modifiers}


_are_dict_types = frozenset({dict}).issuperset


class CursorReply(NamedTuple):
    """Checked reply that contains a batch of a cursor."""

    cursor_id: int
    namespace: str
    batch: list[Value] | Batch
    address: Address
    reply: Document
    pin: PinnedConnection | None = None


class CursorOperation(Operation):
    """Base class of operations whose reply contains a cursor. With `raw`, batches stay undecoded."""

    retryable = True
    batch_field = "firstBatch"
    opens_cursor = True

    __slots__ = ("decoding", "raw")

    def __init__(
        self, context: OperationContext, decoding: CodecOptions[Value] | None = None, raw: bool = False
    ) -> None:
        self.context = context
        self.decoding = decoding or context.codec_options  # options for documents of the cursor
        self.raw = raw

    def decode(self, body: Buffer) -> DocumentDict:
        decoding = self.decoding
        if self.raw:
            return cut_batch(body, decoding)
        try:
            if decoding is DEFAULT_CODEC_OPTIONS and len(body) < LARGE_REPLY_SIZE:
                return bson.decode(body, decoding)
            return decode_cursor(body, decoding, self.context.codec_options)
        except InvalidBSON:
            if not is_well_formed(body):
                raise
            # The iteration raises the error at the invalid document, and closes the cursor.
            return cut_batch(body, decoding, self.context.codec_options)

    def result(self, reply: DocumentDict, address: Address) -> Result:
        try:
            cursor = reply["cursor"]
            cursor_id, namespace, batch = cursor["id"], cursor["ns"], cursor[self.batch_field]
        except (KeyError, TypeError):
            return self._check_reply(reply, address)
        # Fast path for well-formed replies.
        if (
            isinstance(cursor_id, int)
            and namespace.__class__ is str
            and "." in namespace
            and (_are_dict_types(map(type, batch)) if batch.__class__ is list else batch.__class__ is Batch)
            and cursor.get("postBatchResumeToken", cursor).__class__ is dict
        ):
            return CursorReply(cursor_id, namespace, batch, address, reply)
        return self._check_reply(reply, address)

    def _check_reply(self, reply: DocumentDict, address: Address) -> CursorReply:
        cursor = required_field(reply, "cursor", DOCUMENT)
        check(cursor, CURSOR_SCHEMA, "a cursor")
        for name in ("id", "ns"):
            required_field(cursor, name, CURSOR_SCHEMA[name], "a cursor")
        batch = cursor.get(self.batch_field)
        if not isinstance(batch, Batch):
            batch = required_field(cursor, self.batch_field, DOCUMENTS, "a cursor")
        return CursorReply(int(cursor["id"]), cursor["ns"], batch, address, reply)

    def keeps_cursor_open(self, result: Result) -> bool:
        return isinstance(result, CursorReply) and result.cursor_id != 0

    def orphaned_cursor(self, reply: DocumentDict, address: Address) -> CursorReply | None:
        try:
            opened: CursorReply = CursorOperation.result(self, reply, address)
        except ProtocolError:  # the reply is malformed, or reports an error
            return None
        return opened if opened.cursor_id and self.opens_cursor else None

    def late_cursor(self, body: Buffer, address: Address) -> CursorReply | None:
        return self.orphaned_cursor(self.decode(body), address) if self.opens_cursor else None

    def store_pin(self, result: Result, pin: PinnedConnection) -> Result:
        return result._replace(pin=pin)

    def reply_for_monitoring(self, reply: DocumentDict) -> DocumentDict:
        cursor = reply.get("cursor")
        batch = cursor.get(self.batch_field) if isinstance(cursor, Mapping) else None
        if not isinstance(cursor, Mapping) or not isinstance(batch, Batch):
            return reply
        return {**reply, "cursor": {**cursor, self.batch_field: batch.documents()}}


class Find(CursorOperation):
    """`find` command. `fields` contains the optional fields of the command."""

    name = "find"
    takes_read_concern = True

    __slots__ = ("fields", "filter")

    def __init__(
        self,
        context: OperationContext,
        filter: Document,
        fields: Document,
        raw: bool = False,
        takes_max_time: bool = True,
    ) -> None:
        self.context = context
        self.decoding = context.codec_options
        self.raw = raw
        self.filter = filter
        self.fields = fields
        if not takes_max_time:
            self.takes_max_time = False

    def command(self, hello: Hello) -> DocumentDict:
        return {"find": self.context.collection, "filter": self.filter, **self.fields}


class ExhaustFind(Find):
    """`find` command of an exhaust cursor, whose later batches arrive on the pinned connection."""

    pins_connection = True

    def command(self, hello: Hello) -> DocumentDict:
        """Return the command, or raise InvalidOperation if the server is a mongos that is too old.

        Skip the check behind a load balancer, where the cursor sends normal `getMore`s to an old
        mongos.
        """
        is_too_old = hello.is_mongos and hello.max_wire_version < wire_versions.EXHAUST_ON_MONGOS
        if is_too_old and hello.service_id is None:
            raise InvalidOperation("an exhaust cursor needs MongoDB 7.1 or later when the server is a mongos")
        return super().command(hello)


class FindOne(Find):
    """`find` command that returns only the first document that matches."""

    opens_cursor = False

    def command(self, hello: Hello) -> DocumentDict:
        return {"find": self.context.collection, "filter": self.filter, **self.fields, "limit": 1, "singleBatch": True}

    def result(self, reply: DocumentDict, address: Address) -> Result:
        try:
            batch = reply["cursor"]["firstBatch"]
        except (KeyError, TypeError):
            batch = None
        if batch.__class__ is list and (not batch or batch[0].__class__ is dict):
            return batch[0] if batch else None
        batch = self._check_reply(reply, address).batch
        documents = batch.decode_run() if isinstance(batch, Batch) else batch
        return documents[0] if documents else None


class GetMore(CursorOperation):
    """`getMore` command. `max_time_ms` limits the wait for documents of a tailable cursor."""

    name = "getMore"
    retryable = False
    opens_cursor = False  # the object that sent the command owns the cursor
    takes_max_time = False
    waits_for_documents = True
    batch_field = "nextBatch"

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
        self.wire_version = 0  # maximum wire version of the server, which `command` sets

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
    size: int  # the size of the reply in bytes

    def decode(self, body: Buffer) -> DocumentDict:
        self.size = len(body)
        return super().decode(body)

    def next_get_more(self, reply: CursorReply) -> GetMoreAhead:
        """Return the `getMore` command that follows `reply`, the reply to this command."""
        context = context_of(reply.namespace, self.decoding)
        return GetMoreAhead(context, reply.cursor_id, reply.address, self.pin, comment=self.comment, raw=self.raw)


class ExhaustGetMore(GetMore):
    """`getMore` command of an exhaust cursor.

    After the first `getMore`, the server streams the other batches. For a further `getMore`, the
    connection sends no message, and receives the next message as the reply.
    """

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        return encode_op_msg(request_id, flags | EXHAUST_ALLOWED, body)


class KillCursors(Operation):
    """`killCursors` command for cursors of one server, with their pinned connection `pin`."""

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
    """Return the context for `getMore` and `killCursors` commands of a cursor with this namespace."""
    database, _, collection = namespace.partition(".")
    return OperationContext(database, collection, codec_options)
