"""The `bulkWrite` command: writes on several collections in one message."""

from __future__ import annotations

import bson

from gmongo._background import LongWork
from gmongo._documents import Document, DocumentDict, Value
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import InvalidOperation
from gmongo.execution.context import OperationContext
from gmongo.execution.operation import Result, required
from gmongo.operations.client_writes import Limits, Writes, check_size
from gmongo.operations.find import CursorOperation
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer, encode_op_msg
from gmongo.wire.reply_schema import COUNT, DOCUMENT, ERROR, check, unexpected

COUNTS = ("nInserted", "nUpserted", "nMatched", "nModified", "nDeleted")
_SUM = {**dict.fromkeys((*COUNTS, "nErrors"), COUNT), "writeConcernError": DOCUMENT}
_ONE = {
    **dict.fromkeys(("idx", "n", "nModified"), COUNT),
    **{name: ERROR[name] for name in ("ok", "code", "errmsg")},
    "upserted": DOCUMENT,
}


class BulkWriteBatch(CursorOperation):
    """One `bulkWrite` command, with as many operations as fit. Its reply is a cursor over their results.

    :param writes: the source of the operations.
    :param fields: further fields of the command, such as ``ordered``.
    :param limits: the assumed limits, until a connection reports its limits.
    """

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
        # Decode the counts and indexes of the reply to plain types, not to custom types.
        super().__init__(context.replace(codec_options=context.codec_options.with_options(document_class=dict)))
        self.acknowledged = self.takes_session = acknowledged
        self.operation_id = operation_id
        self.limits = limits
        self.reply: DocumentDict | None = None
        self._writes = writes
        self._fields: DocumentDict = {"bulkWrite": 1, **fields}
        self._size = len(bson.encode(self._fields, False, self.context.codec_options))
        self._fitted = False
        self.taken = writes.take(limits, self._size)
        # The server could not recognise a retry of a write of several documents.
        self.retryable = acknowledged and not any(write.multi for write in self.taken)
        self._namespaces: list[str] = []

    def command(self, hello: Hello) -> DocumentDict:
        """Return the command.

        :raises InvalidOperation: the server does not support the command.
        :raises DocumentTooLarge: the first operation does not fit alone.
        """
        if hello.max_wire_version < wire_versions.CLIENT_BULK_WRITE:
            raise InvalidOperation("MongoClient.bulk_write requires MongoDB server version 8.0+.")
        if not self._fitted:
            self._fit(
                Limits(hello.max_write_batch_size, hello.max_message_size, hello.max_bson_size, hello.max_batch_size)
            )
        return dict(self._fields)

    def _fit(self, limits: Limits) -> None:
        """Take the operations that fit for this server, and number the namespaces. A retry sends the same bytes."""
        if not self.taken or any(now < before for now, before in zip(limits, self.limits, strict=True)):
            self._writes.give_back(self.taken)
            self.taken = self._writes.take(limits, self._size)
        self.limits = limits
        if not self.taken:
            raise self._writes.too_large(limits)
        numbers: dict[str, int] = {}
        work = LongWork()
        for write in self.taken:
            if not self.acknowledged:
                check_size(write, limits, self.context.codec_options)
            write.refer_to(numbers.setdefault(write.namespace, len(numbers)))
            work.checkpoint()
        self._namespaces = list(numbers)
        self._fitted = True

    def message(self, request_id: int, flags: int, body: bytes, hello: Hello) -> list[bytes]:
        operations = [write.encoded for write in self.taken]
        namespaces = [bson.encode(each) for each in self._namespace_documents()]
        return encode_op_msg(request_id, flags, body, (("ops", operations), ("nsInfo", namespaces)))

    def _namespace_documents(self) -> list[DocumentDict]:
        return [{"ns": namespace} for namespace in self._namespaces]

    def for_monitoring(self, command: DocumentDict) -> DocumentDict:
        return {**command, "ops": [write.document for write in self.taken], "nsInfo": self._namespace_documents()}

    def decode(self, body: Buffer) -> DocumentDict:
        reply = super().decode(body)
        if reply.get("ok"):
            self.reply = reply  # a failed retry does not discard it
        return reply

    def result(self, reply: DocumentDict, address: Address) -> Result:
        check(reply, _SUM)
        opened = super().result(reply, address)
        if isinstance(opened.batch, list):
            for each in opened.batch:
                self.check_one(each)
        return opened

    def check_one(self, result: Value) -> None:
        """Check the result of one operation.

        :raises ProtocolError: `result` is malformed.
        """
        check(result, _ONE, "a result")
        index = required(result, "idx", _ONE["idx"])
        required(result, "ok", _ONE["ok"])
        if index >= len(self.taken):
            raise unexpected("idx of a result", f"from 0 to {len(self.taken) - 1}", index)

    def unacknowledged_result(self) -> None:
        return None
