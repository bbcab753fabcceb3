"""Cursors of commands: aggregations, lists of collections and indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from reprlib import repr as short
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bson.codec_options import CodecOptions

from gmongo.client_session import ClientSession
from gmongo.errors import InvalidOperation
from gmongo.execution.deadline import check_await_time
from gmongo.execution.sessions import Session, checked_session
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.operations.server_cursor import ServerCursor
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.collection import Collection

__all__ = ["CommandCursor", "RawBatchCommandCursor"]

DocumentType = TypeVar("DocumentType")


class CommandCursor(Generic[DocumentType]):
    """Iterates over the documents that a command returns.

    It is made by methods of collections, databases and clients. Its parameters describe the server's reply.
    """

    _raw = False
    _awaits = False
    """Whether the server waits for documents that are not there yet, so that an empty batch is an end for now."""

    def __init__(
        self,
        collection: Collection[Any],
        cursor_info: dict[str, Any],
        address: Address | None,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        session: ClientSession | None = None,
        comment: Any = None,
    ) -> None:
        namespace = cursor_info.get("ns", collection.full_name)
        reply = CursorReply(
            cursor_info["id"], namespace, cursor_info["firstBatch"], address or ("", None), {"cursor": cursor_info}
        )
        self._open(collection, reply, collection.codec_options, batch_size, max_await_time_ms, session, comment, None)

    def _open(
        self,
        collection: Collection[Any],
        reply: CursorReply,
        codec_options: CodecOptions[Any],
        batch_size: int,
        max_await_time_ms: int | None,
        session: Session | None,
        comment: Any,
        deadline: float | None,
    ) -> None:
        client = collection.database.client
        self._cursor = ServerCursor(
            client._executor,
            client._reaper,
            reply,
            session,
            codec_options,
            batch_size=batch_size,
            max_await_time_ms=max_await_time_ms,
            comment=comment,
            raw=self._raw,
            deadline=deadline,
        )

    @classmethod
    def _run(
        cls,
        collection: Collection[Any],
        operation: CursorOperation,
        session: ClientSession | None,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        comment: Any = None,
    ) -> Any:
        """Run the operation that opens a cursor, and return the cursor."""
        executor = collection.database.client._executor
        chosen: Session = executor.implicit_session() if session is None else checked_session(session)
        deadline = executor.deadline()
        check_await_time(max_await_time_ms, deadline)
        try:
            reply = executor.run(operation, chosen, deadline)
        except BaseException:
            chosen.end_implicit()
            raise
        cursor = cls.__new__(cls)
        codec_options = operation.decoded_as or collection.codec_options
        cursor._open(collection, reply, codec_options, batch_size, max_await_time_ms, chosen, comment, deadline)
        return cursor

    @classmethod
    def _over(
        cls, collection: Collection[Any], documents: Sequence[Any], session: ClientSession | None
    ) -> CommandCursor[Any]:
        """A cursor over documents that are all there."""
        return cls(collection, {"id": 0, "firstBatch": list(documents)}, None, session=session)

    @property
    def alive(self) -> bool:
        """Whether there may be more documents. True does not promise that there is one."""
        return self._cursor.alive

    @property
    def cursor_id(self) -> int | None:
        """The server's number for the cursor; 0 when it is done there."""
        return self._cursor.cursor_id

    @property
    def address(self) -> Address | None:
        """The address of the server that has the cursor."""
        return self._cursor.address

    @property
    def session(self) -> ClientSession | None:
        """The session given by the application, if any."""
        session = self._cursor.session
        return session if isinstance(session, ClientSession) else None

    def batch_size(self, batch_size: int) -> CommandCursor[DocumentType]:
        """Ask for this many documents with each further batch; 0 leaves it to the server.

        :raises ValueError: `batch_size` is negative.
        """
        if not isinstance(batch_size, int):
            raise TypeError(f"batch_size must be an integer, not {short(batch_size)}")
        if batch_size < 0:
            raise ValueError(f"batch_size must be >= 0, not {batch_size}")
        self._cursor.set_batch_size(2 if batch_size == 1 else batch_size)
        return self

    def __iter__(self) -> CommandCursor[DocumentType]:
        return self

    def __next__(self) -> DocumentType:
        cursor = self._cursor
        return cursor.documents.popleft() if cursor.documents else cursor.next_document()

    next = __next__

    def try_next(self) -> DocumentType | None:
        """The next document, or None if there is none after asking the server at most once."""
        return self._cursor.try_next_document()

    def to_list(self, length: int | None = None) -> list[DocumentType]:
        """The remaining documents, or at most `length` of them.

        Of a ``$changeStream`` there are always more to come, so it gives those that are there.
        """
        return take_list(iter(self.try_next, None) if self._awaits else self, length)

    def close(self) -> None:
        """End the cursor, on the server too. It may be called again."""
        self._cursor.close()

    def __enter__(self) -> CommandCursor[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RawBatchCommandCursor(CommandCursor[bytes]):
    """Iterates over batches of encoded documents, each ``bytes`` of documents one after the other."""

    _raw = True

    def __getitem__(self, index: int) -> Any:
        raise InvalidOperation("Cannot call __getitem__ on RawBatchCommandCursor")


def take_list(cursor: Iterable[Any], length: int | None) -> list[Any]:
    """The remaining documents of a cursor, or at most `length` of them."""
    if length is None:
        return list(cursor)
    if not isinstance(length, int):
        raise TypeError(f"to_list() length must be an integer, not {short(length)}")
    if length < 1:
        raise ValueError(f"to_list() length must be greater than 0, not {short(length)}")
    return list(islice(cursor, length))
