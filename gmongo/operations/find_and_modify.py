"""The `findAndModify` command."""

from __future__ import annotations

from gmongo._documents import Document, DocumentDict, Value
from gmongo.cmap.hello import Hello
from gmongo.execution.operation import CollectionOperation
from gmongo.execution.operation_context import OperationContext
from gmongo.execution.reply_errors import raise_write_concern_error
from gmongo.operations.write import check_unacknowledged
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import decode_field


class FindAndModify(CollectionOperation):
    """`findAndModify` command, which changes or deletes one document, and returns the original or the new document.

    With the write concern w=0 (not `acknowledged`), the driver does not retry the write.
    """

    name = "findAndModify"
    is_write = True
    takes_write_concern = True

    __slots__ = ("acknowledged", "retryable", "takes_session")

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
