"""The `bulkWrite` command: the encoded write models, and the operations that fit into one message."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import bson
from bson.codec_options import CodecOptions

from gmongo._background import LongWork, with_checkpoints
from gmongo._documents import Document, DocumentDict, Value, plain, without_none
from gmongo._server_facts import sizes, wire_versions
from gmongo._truncated_repr import short
from gmongo.cmap.hello import Hello
from gmongo.errors import DocumentTooLarge, InvalidOperation
from gmongo.execution.operation import OperationContext, Result, required_field
from gmongo.operations import models
from gmongo.operations.find import CursorOperation
from gmongo.operations.write import ensure_id, needs_reply_error
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg
from gmongo.wire.reply_schema import COUNT, DOCUMENT, ERROR_SCHEMA, check, unexpected

_INT32 = struct.Struct("<i")
_Model: TypeAlias = models.WriteModel[Value]


class Limits(NamedTuple):
    """Limits of one `bulkWrite` command: the number of operations, and sizes in bytes."""

    write_count: int
    message_size: int
    document_size: int
    batch_size: int  # the maximum size of a message with several operations


# The usual limits of servers since MongoDB 3.6, which the driver assumes before the first hello.
USUAL_LIMITS = Limits(sizes.USUAL_WRITE_BATCH_SIZE, sizes.MAX_MESSAGE_SIZE, sizes.MAX_BSON_SIZE, sizes.MAX_MESSAGE_SIZE)


class Write:
    """Encoded operation of a client bulk write, with the index of its write model."""

    __slots__ = ("document", "encoded", "index", "kind", "multi", "namespace", "stored_document")

    def __init__(self, index: int, model: _Model, codec_options: CodecOptions[Value]) -> None:
        self.index = index
        self.namespace: str = model.namespace or ""
        self.document = _convert_to_document(model)
        self.kind = next(iter(self.document))
        self.multi: bool = self.document.get("multi", False)
        self.encoded: bytes = bson.encode(self.document, False, codec_options)
        replaces = isinstance(model, models.ReplaceOne)
        self.stored_document = self.document["updateMods"] if replaces else self.document.get("document", {})

    @property
    def inserted_id(self) -> Value:
        """The ``_id`` of the inserted document, or None for a raw document without ``_id``."""
        return self.document["document"].get("_id")

    def set_namespace_index(self, namespace_index: int) -> None:
        """Set the first field of the document and of the encoded bytes to an index in ``nsInfo``."""
        self.document[self.kind] = namespace_index
        start = 4 + 1 + len(self.kind) + 1
        packed_index = _INT32.pack(namespace_index)
        if self.encoded[start : start + 4] != packed_index:
            self.encoded = b"".join((self.encoded[:start], packed_index, self.encoded[start + 4 :]))


class Writes:
    """Remaining operations of a client bulk write. The object encodes each operation on demand."""

    def __init__(self, requests: Iterable[_Model], codec_options: CodecOptions[Value]) -> None:
        self._models: Iterator[tuple[int, _Model]] = iter(enumerate(requests))
        self._codec_options = codec_options
        self.encoded: deque[Write] = deque()  # encoded operations that are not yet part of a batch

    def __bool__(self) -> bool:
        return self._peek() is not None

    def take(self, limits: Limits, command_size: int) -> list[Write]:
        """Remove and return the operations for one message, whose command has `command_size` bytes.

        The list is empty if no operation remains, or if the next operation does not fit into a
        message.
        """
        taken: list[Write] = []
        namespaces: set[str] = set()
        size = sizes.BULK_WRITE_OVERHEAD + command_size
        work = LongWork()
        while len(taken) < limits.write_count:
            write = self._peek()
            if write is None:
                break
            size += len(write.encoded)
            if write.namespace not in namespaces:
                size += len(bson.encode({"ns": write.namespace}))
            if size > (limits.batch_size if taken else limits.message_size):
                break
            namespaces.add(write.namespace)
            taken.append(self.encoded.popleft())
            work.checkpoint()
        return taken

    def too_large_error(self, limits: Limits) -> DocumentTooLarge:
        write = self._peek()
        assert write is not None
        return DocumentTooLarge(
            f"the {write.kind} at index {write.index} is {len(write.encoded)} bytes with a namespace of "
            f"{len(write.namespace)} characters, but the server takes messages of at most {limits.message_size} bytes"
        )

    def _peek(self) -> Write | None:
        if not self.encoded:
            index, model = next(self._models, (0, None))
            if model is None:
                return None
            self.encoded.append(Write(index, model, self._codec_options))
        return self.encoded[0]


def check_size(write: Write, limits: Limits, codec_options: CodecOptions[Value]) -> None:
    """Check the document size of an unacknowledged operation, for which the server sends no error."""
    size, limit = len(write.encoded), limits.document_size
    is_too_large = size > limit + sizes.COMMAND_OVERHEAD
    if is_too_large or (size > limit and len(bson.encode(write.stored_document, False, codec_options)) > limit):
        raise DocumentTooLarge(
            f"the {write.kind} at index {write.index} is {size} bytes, but the server takes documents "
            f"of at most {limit} bytes"
        )


def checked_models(requests: object) -> list[_Model]:
    """Check that `requests` is a list of write models with namespaces, and return `requests`."""
    if not isinstance(requests, list):
        raise TypeError(f"models must be a list of write models, not {short(requests)}")
    if not requests:
        raise InvalidOperation("No operations to execute")
    for index, model in enumerate(with_checkpoints(requests)):
        if not isinstance(model, models.WRITE_MODELS):
            raise TypeError(f"models[{index}] is not a write model such as InsertOne or UpdateOne: {short(model)}")
        if model.namespace is None:
            raise InvalidOperation(
                f"models[{index}] ({type(model).__name__}) has no namespace, which MongoClient.bulk_write needs"
            )
    return requests


def check_unacknowledged_models(requests: list[_Model]) -> None:
    """Raise ConfigurationError if a model has an option that an unacknowledged write cannot use."""
    for model in requests:
        for name, option in (("collation", "collation"), ("arrayFilters", "array_filters")):
            if getattr(model, option, None) is not None:
                raise needs_reply_error(name)


def _convert_to_document(model: _Model) -> DocumentDict:
    """Convert a write model to an element of the field ``ops``, with the namespace index 0."""
    if isinstance(model, models.InsertOne):
        models.check_is_mapping("document", model.document)
        return {"insert": 0, "document": _with_id_first(model.document)}
    if isinstance(model, (models.DeleteOne, models.DeleteMany)):
        document = {"delete": 0, "filter": model.filter, "multi": isinstance(model, models.DeleteMany)}
        return without_none(document, collation=model.collation, hint=model.hint)
    change, is_multi = models.checked_change(model), isinstance(model, models.UpdateMany)
    return without_none(
        {"update": 0, "filter": model.filter, "updateMods": change, "multi": is_multi},
        upsert=model.upsert,
        collation=model.collation,
        arrayFilters=getattr(model, "array_filters", None),
        hint=model.hint,
        sort=getattr(model, "sort", None),
    )


def _with_id_first(document: Value) -> Value:
    """Return the document to insert. Put a missing ``_id`` first, except in a raw document."""
    has_id = "_id" in document
    ensure_id(document)
    fields = document if isinstance(document, dict) else plain(document)
    return fields if has_id or "_id" not in fields else {"_id": fields["_id"], **fields}


COUNT_FIELDS = ("nInserted", "nUpserted", "nMatched", "nModified", "nDeleted")
_SUMMARY_SCHEMA = {**dict.fromkeys((*COUNT_FIELDS, "nErrors"), COUNT), "writeConcernError": DOCUMENT}
_RESULT_SCHEMA = {
    **dict.fromkeys(("idx", "n", "nModified"), COUNT),
    **{name: ERROR_SCHEMA[name] for name in ("ok", "code", "errmsg")},
    "upserted": DOCUMENT,
}


class BulkWriteBatch(CursorOperation):
    """`bulkWrite` command with the operations that fit into a message. The reply has a cursor."""

    name = "bulkWrite"
    is_write = True
    takes_write_concern = True

    def __init__(
        self,
        context: OperationContext,
        writes: Writes,
        fields: Document,
        limits: Limits,
        operation_id: int,
        acknowledged: bool,
    ) -> None:
        # Decode dicts instead of custom document classes, because the driver reads the reply.
        super().__init__(context.replace(codec_options=context.codec_options.with_options(document_class=dict)))
        self.acknowledged = self.takes_session = acknowledged
        self.operation_id = operation_id
        self.limits = limits  # assumed limits until `command` reads the limits of the server
        self.reply: DocumentDict | None = None
        self._writes = writes
        self._fields: DocumentDict = {"bulkWrite": 1, **fields}
        self._size = len(bson.encode(self._fields, False, self.context.codec_options))
        self.batch_writes = writes.take(limits, self._size)
        # The server cannot recognise the retry of an operation that changes several documents.
        self.retryable = acknowledged and not any(write.multi for write in self.batch_writes)
        self._namespaces: list[str] = []  # an empty list before the first attempt

    def command(self, hello: Hello) -> DocumentDict:
        if hello.max_wire_version < wire_versions.CLIENT_BULK_WRITE:
            raise InvalidOperation("MongoClient.bulk_write requires MongoDB server version 8.0+.")
        if not self._namespaces:
            write_count, message_size = hello.max_write_batch_size, hello.max_message_size
            self._select_operations(Limits(write_count, message_size, hello.max_bson_size, hello.max_batch_size))
        return dict(self._fields)

    def _select_operations(self, limits: Limits) -> None:
        """Select the operations that fit into the message, and set their namespace indexes."""
        if not self.batch_writes or any(now < before for now, before in zip(limits, self.limits, strict=True)):
            self._writes.encoded.extendleft(reversed(self.batch_writes))
            self.batch_writes = self._writes.take(limits, self._size)
        self.limits = limits
        if not self.batch_writes:
            raise self._writes.too_large_error(limits)
        namespace_indexes: dict[str, int] = {}
        work = LongWork()
        for write in self.batch_writes:
            if not self.acknowledged:
                check_size(write, limits, self.context.codec_options)
            write.set_namespace_index(namespace_indexes.setdefault(write.namespace, len(namespace_indexes)))
            work.checkpoint()
        self._namespaces = list(namespace_indexes)

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        operations = [write.encoded for write in self.batch_writes]
        namespaces = [bson.encode(each) for each in self._namespace_documents()]
        return encode_op_msg(request_id, flags, body, (("ops", operations), ("nsInfo", namespaces)))

    def _namespace_documents(self) -> list[DocumentDict]:
        return [{"ns": namespace} for namespace in self._namespaces]

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        return {**command, "ops": [each.document for each in self.batch_writes], "nsInfo": self._namespace_documents()}

    def decode(self, body: Buffer) -> DocumentDict:
        reply = super().decode(body)
        if reply.get("ok"):
            self.reply = reply  # the last reply with ok: 1
        return reply

    def result(self, reply: DocumentDict, address: Address) -> Result:
        check(reply, _SUMMARY_SCHEMA)
        cursor_reply = super().result(reply, address)
        if isinstance(cursor_reply.batch, list):
            for each in cursor_reply.batch:
                self.check_result(each)
        return cursor_reply

    def check_result(self, result: Value) -> None:
        """Check the result of one operation. The result is a document of the cursor."""
        check(result, _RESULT_SCHEMA, "a result")
        index = required_field(result, "idx", _RESULT_SCHEMA["idx"])
        required_field(result, "ok", _RESULT_SCHEMA["ok"])
        if index >= len(self.batch_writes):
            raise unexpected("idx of a result", f"from 0 to {len(self.batch_writes) - 1}", index)
