"""The commands `aggregate`, `count`, `distinct` and `findAndModify`."""

from __future__ import annotations

from collections.abc import Sequence

from bson.codec_options import CodecOptions

from gmongo._documents import Document, DocumentDict, Value, plain
from gmongo.cmap.hello import Hello
from gmongo.execution.operation import Operation, OperationContext, Result, required_field
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.operations.find import CursorOperation
from gmongo.operations.models import checked_mapping
from gmongo.operations.write import check_unacknowledged
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import decode_field
from gmongo.wire.reply_schema import COUNT, LIST


class _CollectionOperation(Operation):
    """Operation whose command consists of the collection name and constant fields."""

    def __init__(self, context: OperationContext, fields: Document) -> None:
        super().__init__(context)
        self.fields = fields

    def command(self, hello: Hello) -> DocumentDict:
        return {self.name: self.context.collection, **self.fields}


class Distinct(_CollectionOperation):
    """`distinct` command, which returns the distinct values of a field."""

    name = "distinct"
    takes_read_concern = True
    retryable = True

    def decode(self, body: Buffer) -> DocumentDict:
        return decode_field(body, self.context.codec_options, "values")

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return required_field(reply, "values", LIST)


class Count(_CollectionOperation):
    """`count` command, which returns the document count from the metadata of the collection."""

    name = "count"
    takes_read_concern = True
    retryable = True

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return int(required_field(reply, "n", COUNT))


class FindAndModify(_CollectionOperation):
    """`findAndModify` command, which returns the original or the new document."""

    name = "findAndModify"
    is_write = True
    takes_write_concern = True

    def __init__(self, context: OperationContext, fields: Document, acknowledged: bool) -> None:
        super().__init__(context, fields)
        self.acknowledged = self.retryable = self.takes_session = acknowledged

    def command(self, hello: Hello) -> DocumentDict:
        if not self.acknowledged:
            check_unacknowledged(self.name, self.fields, hello)
        return super().command(hello)

    def decode(self, body: Buffer) -> DocumentDict:
        return decode_field(body, self.context.codec_options, "value")

    def result(self, reply: DocumentDict, address: Address) -> Value:
        raise_write_concern_error(reply)
        return reply.get("value")


def writes_result(pipeline: Sequence[Document]) -> bool:
    """Return True if the last stage of the pipeline is ``$out`` or ``$merge``."""
    return bool(pipeline) and next(iter(checked_mapping("a stage of pipeline", pipeline[-1])), "") in ("$out", "$merge")


class Aggregate(CursorOperation):
    """`aggregate` command. `target` is the name of a collection, or 1 for the database."""

    name = "aggregate"
    takes_read_concern = True
    concern_first = True

    def __init__(
        self,
        context: OperationContext,
        target: str | int,
        pipeline: Sequence[Document],
        fields: Document,
        acknowledged: bool = True,
        batch_size: int | None = None,
        decoding: CodecOptions[Value] | None = None,
        raw: bool = False,
    ) -> None:
        super().__init__(context, decoding, raw)
        self.target = target
        self.pipeline = [stage if isinstance(stage, dict) else plain(stage) for stage in pipeline]
        self.fields = fields
        self.takes_write_concern = writes_result(pipeline)
        self.takes_session = acknowledged or not self.takes_write_concern
        self.retryable = not self.takes_write_concern
        self._cursor_field = {"batchSize": batch_size} if batch_size is not None and self.retryable else {}

    def command(self, hello: Hello) -> DocumentDict:
        return {"aggregate": self.target, "pipeline": self.pipeline, "cursor": self._cursor_field, **self.fields}

    def result(self, reply: DocumentDict, address: Address) -> Result:
        raise_write_concern_error(reply)
        return super().result(reply, address)
