"""The `distinct` and `count` commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.codec_options import CodecOptions

from gmongo.cmap.hello import Hello
from gmongo.execution.operation import Operation, required
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import decode_field


class Distinct(Operation):
    """The distinct values of a field.

    :param fields: of the command, as the server names them.
    """

    name = "distinct"
    takes_read_concern = True
    retryable = True

    __slots__ = ("collection", "fields")

    def __init__(
        self, database: str, collection: str, fields: Mapping[str, Any], codec_options: CodecOptions[Any]
    ) -> None:
        super().__init__(database)
        self.collection = collection
        self.fields = fields
        self.codec_options = codec_options

    def command(self, hello: Hello) -> dict[str, Any]:
        return {"distinct": self.collection, **self.fields}

    def decode(self, body: Buffer) -> dict[str, Any]:
        return decode_field(body, self.codec_options, "values")

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        return required(reply, "values")


class Count(Operation):
    """The number of documents, from the collection's metadata."""

    name = "count"
    takes_read_concern = True
    retryable = True

    __slots__ = ("collection", "fields")

    def __init__(self, database: str, collection: str, fields: Mapping[str, Any]) -> None:
        super().__init__(database)
        self.collection = collection
        self.fields = fields

    def command(self, hello: Hello) -> dict[str, Any]:
        return {"count": self.collection, **self.fields}

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        return int(required(reply, "n"))
