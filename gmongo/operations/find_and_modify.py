"""The `findAndModify` command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.codec_options import CodecOptions

from gmongo.cmap.hello import Hello
from gmongo.execution.classify import write_concern_error
from gmongo.execution.operation import Operation
from gmongo.wire.address import Address
from gmongo.wire.message import Buffer
from gmongo.wire.reply import decode_field


class FindAndModify(Operation):
    """Change or remove one document and return it, before or after the change.

    :param fields: of the command, as the server names them.
    """

    name = "findAndModify"
    is_write = True
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
        return {"findAndModify": self.collection, **self.fields}

    def decode(self, body: Buffer) -> dict[str, Any]:
        return decode_field(body, self.codec_options, "value")

    def result(self, reply: dict[str, Any], address: Address) -> Any:
        error = write_concern_error(reply)
        if error is not None:
            raise error
        return reply.get("value")
