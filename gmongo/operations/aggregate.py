"""The `aggregate` command."""

from __future__ import annotations

from collections.abc import Sequence

from bson.codec_options import CodecOptions

from gmongo._documents import Document, DocumentDict, Value, plain
from gmongo.cmap.hello import Hello
from gmongo.execution.operation import OperationContext, Result
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.operations.find import CursorOperation
from gmongo.operations.models import checked_mapping
from gmongo.wire.address import Address


def writes_result(pipeline: Sequence[Document]) -> bool:
    """Return True if a pipeline writes its result to a collection: its last stage is ``$out`` or ``$merge``."""
    return bool(pipeline) and next(iter(checked_mapping("a stage of pipeline", pipeline[-1])), "") in ("$out", "$merge")


class Aggregate(CursorOperation):
    """`aggregate` command. `target` is the name of the collection, or 1 if the pipeline runs on the database."""

    name = "aggregate"
    takes_read_concern = True
    concern_first = True

    __slots__ = ("_cursor_field", "fields", "pipeline", "retryable", "takes_session", "takes_write_concern", "target")

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
