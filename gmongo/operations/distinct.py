"""The `distinct` and `count` commands."""

from __future__ import annotations

from gmongo._documents import DocumentDict
from gmongo.execution.operation import CollectionOperation, Result, required_field
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import decode_field
from gmongo.wire.reply_schema import COUNT, LIST


class Distinct(CollectionOperation):
    """`distinct` command, which returns the distinct values of a field."""

    name = "distinct"
    takes_read_concern = True
    retryable = True

    __slots__ = ()

    def decode(self, body: Buffer) -> DocumentDict:
        return decode_field(body, self.context.codec_options, "values")

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return required_field(reply, "values", LIST)


class Count(CollectionOperation):
    """`count` command, which returns the document count from the metadata of the collection."""

    name = "count"
    takes_read_concern = True
    retryable = True

    __slots__ = ()

    def result(self, reply: DocumentDict, address: Address) -> Result:
        return int(required_field(reply, "n", COUNT))
