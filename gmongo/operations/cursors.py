"""The commands that continue and end cursors: `getMore` and `killCursors`."""

from __future__ import annotations

from typing import Any

import bson
from bson.codec_options import CodecOptions

from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.execution.operation import Operation
from gmongo.operations.find import CursorOperation
from gmongo.wire.address import Address


class GetMore(CursorOperation):
    """The next batch of a cursor.

    :param address: of the server that has the cursor.
    :param max_time_ms: how long the server may wait for new documents of a tailable cursor, in milliseconds.
    """

    name = "getMore"
    retryable = False
    takes_max_time = False
    batch_field = "nextBatch"

    __slots__ = ("batch_size", "collection", "comment", "cursor_id", "max_time_ms", "wire_version")

    def __init__(
        self,
        namespace: str,
        cursor_id: int,
        address: Address,
        codec_options: CodecOptions[Any],
        *,
        batch_size: int = 0,
        max_time_ms: int | None = None,
        comment: Any = None,
        raw: bool = False,
    ) -> None:
        database, _, collection = namespace.partition(".")
        super().__init__(database, codec_options, raw)
        self.address = address
        self.collection = collection
        self.cursor_id = cursor_id
        self.batch_size = batch_size
        self.max_time_ms = max_time_ms
        self.comment = comment
        self.wire_version = 0  # of the connection it was sent on

    def command(self, hello: Hello) -> dict[str, Any]:
        self.wire_version = hello.max_wire_version
        command: dict[str, Any] = {"getMore": bson.Int64(self.cursor_id), "collection": self.collection}
        if self.batch_size:
            command["batchSize"] = self.batch_size
        if self.max_time_ms is not None:
            command["maxTimeMS"] = self.max_time_ms
        if self.comment is not None and hello.max_wire_version >= wire_versions.GET_MORE_COMMENT:
            command["comment"] = self.comment
        return command

    def keeps_cursor_open(self, result: Any) -> bool:
        return False  # whoever has the cursor has its connection, too

    def orphaned_cursor(self, reply: dict[str, Any], address: Address) -> Any:
        return None  # somebody has it


class KillCursors(Operation):
    """Let the server forget cursors.

    :param namespace: of the collection they are on.
    :param address: of the server that has them.
    """

    name = "killCursors"
    retries_overload = False
    waits_for_server = False

    __slots__ = ("collection", "cursor_ids")

    def __init__(self, namespace: str, cursor_ids: list[int], address: Address) -> None:
        database, _, self.collection = namespace.partition(".")
        super().__init__(database)
        self.cursor_ids = cursor_ids
        self.address = address

    def command(self, hello: Hello) -> dict[str, Any]:
        return {"killCursors": self.collection, "cursors": [bson.Int64(each) for each in self.cursor_ids]}
