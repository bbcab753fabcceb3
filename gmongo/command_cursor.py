"""Cursors over the results of commands such as `aggregate`, `listCollections` and `listIndexes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from bson.codec_options import CodecOptions

from gmongo._documents import Document, DocumentDict, Value
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.engines.iteration import document_runs, limits_each_iteration
from gmongo.engines.read_ahead import DEFAULT_MAX_BYTES, check_not_explicit, checked_read_ahead_limits
from gmongo.engines.server_cursor import ServerCursor
from gmongo.errors import InvalidOperation
from gmongo.execution.deadline import check_await_time
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import SessionHandle, checked_session, end_if_implicit
from gmongo.operations.find import CursorOperation, CursorReply
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.collection import Collection

T = TypeVar("T")
CursorClass = TypeVar("CursorClass", bound="CommandCursor[Value]")

__all__ = ["CommandCursor", "RawBatchCommandCursor"]

DocumentType = TypeVar("DocumentType")


class CommandCursor(Generic[DocumentType]):
    """Iterator over the documents that a command returns.

    :meth:`.Collection.aggregate`, :meth:`.Database.cursor_command` and other methods create the cursor.

    An iteration may raise the exceptions that all operations may raise (see :class:`~gmongo.collection.Collection`),
    and :class:`~gmongo.errors.CursorNotFound` if the server no longer has the cursor. :meth:`close` and the end of a
    ``with`` statement close the cursor on the server immediately. The driver closes a garbage-collected cursor in
    the background. Specification: Find, getMore and killCursors commands.

    :param collection: the collection whose codec options decode the documents.
    :param cursor_info: the field ``cursor`` of the reply, with the fields ``id``, ``ns`` and ``firstBatch``.
    :param address: the address of the server that has the cursor, as a pair of host and port.
    :param batch_size: the maximum number of documents in each later batch; 0 (the default) lets the server choose.
    :param max_await_time_ms: the server's maximum wait for a document in milliseconds; None means 1,000 ms.
    :param session: the session of ``getMore`` commands; None (the default) uses an implicit session.
    :param comment: the comment of the ``getMore`` commands; None by default.
    """

    _raw = False
    _awaits = False
    """True if the server waits for new documents, so that an empty batch does not end the cursor."""

    def __init__(
        self,
        collection: Collection[Value],
        cursor_info: DocumentDict,
        address: Address | None,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
    ) -> None:
        namespace = cursor_info.get("ns", collection.full_name)
        first_batch = cursor_info["firstBatch"]
        reply = CursorReply(cursor_info["id"], namespace, first_batch, address or ("", None), {"cursor": cursor_info})
        options = {"batch_size": batch_size, "max_await_time_ms": max_await_time_ms, "comment": comment}
        self._open(collection, collection._executor, reply, session, collection.codec_options, options)

    def _open(
        self,
        collection: Collection[Value],
        executor: Executor,
        reply: CursorReply,
        session: SessionHandle | None,
        codec_options: CodecOptions[Value],
        options: DocumentDict,
    ) -> None:
        self._collection = collection
        cursor_killer = collection.database.client._cursor_killer
        self._cursor = ServerCursor(executor, cursor_killer, reply, session, codec_options, raw=self._raw, **options)

    @classmethod
    def _run(
        cls: type[CursorClass],
        collection: Collection[Value],
        operation: CursorOperation,
        session: ClientSession | None,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        tailable: bool = False,
        awaits: bool = False,
    ) -> CursorClass:
        """Run the operation that opens a cursor on the server, and return the cursor.

        A `tailable` cursor stays open after its last document. If `awaits` is True, the server waits for new documents.
        """
        executor = collection._executor.for_operation(timeout_ms, session)
        limits_iterations = limits_each_iteration(timeout_mode, executor, tailable, operation.takes_write_concern)
        if limits_iterations and not awaits:
            operation.takes_max_time = False  # the time of later batches counts toward maxTimeMS
        handle: SessionHandle | None = None if session is None else checked_session(session)
        if session is None and operation.takes_session:
            handle = executor.implicit_session()
        deadline = executor.deadline()
        check_await_time(max_await_time_ms, deadline)
        try:
            reply = executor.run(operation, handle, deadline)
        except BaseException:
            end_if_implicit(handle)
            raise
        cursor = cls.__new__(cls)
        options = {"batch_size": batch_size, "max_await_time_ms": max_await_time_ms, "comment": comment}
        options["deadline"] = None if limits_iterations else deadline
        cursor._open(collection, executor, reply, handle, operation.decoding, options)
        return cursor

    @classmethod
    def _from_documents(
        cls, collection: Collection[Value], documents: Sequence[Document], session: ClientSession | None
    ) -> CommandCursor[Value]:
        return cls(collection, {"id": 0, "firstBatch": list(documents)}, None, session=session)

    @property
    def alive(self) -> bool:
        """True if the cursor may return more documents."""
        return self._cursor.alive

    @property
    def cursor_id(self) -> int | None:
        """The identifier of the cursor on the server. The identifier is 0 after the server has closed the cursor."""
        return self._cursor.resources.cursor_id

    @property
    def address(self) -> Address | None:
        """The address of the server that has the cursor, as a pair of host and port."""
        return self._cursor.resources.address

    @property
    def session(self) -> ClientSession | None:
        """The explicit session, or None."""
        session = self._cursor.resources.session
        return session if isinstance(session, ClientSession) else None

    def batch_size(self, batch_size: int) -> CommandCursor[DocumentType]:
        """Limit the number of documents in each later batch. The limit does not change the result.

        :param batch_size: the maximum number; 0 lets the server choose, and 1 means 2 (as in PyMongo).
        :returns: this cursor.
        :raises TypeError: `batch_size` is not an integer.
        :raises ValueError: `batch_size` is negative.
        """
        checked_non_negative("batch_size", batch_size)
        self._cursor.set_batch_size(2 if batch_size == 1 else batch_size)
        return self

    def read_ahead(self, batches: int = 1, max_bytes: int = DEFAULT_MAX_BYTES) -> CommandCursor[DocumentType]:
        """Fetch batches early, like :meth:`Cursor.read_ahead <gmongo.cursor.Cursor.read_ahead>`.

            >>> [note["title"] for note in notes.aggregate([{"$sort": {"title": 1}}]).read_ahead()]
            ['first', 'second']

        :param batches: the maximum number of batches that the driver fetches ahead; 1 by default.
        :param max_bytes: the maximum total size of these batches in bytes, 32 MiB by default. The driver assumes that
            each batch is as large as the previous batch. The limit does not apply to the first ``getMore``.
        :returns: this cursor.
        :raises TypeError: `batches` or `max_bytes` is not an integer.
        :raises ValueError: `batches` or `max_bytes` is less than 1.
        :raises InvalidOperation: the server waits for new documents, or the cursor has an explicit session.
        """
        limits = checked_read_ahead_limits(batches, max_bytes)
        check_not_explicit(self._cursor.resources.session)
        if self._awaits or self._cursor.awaits:
            raise InvalidOperation("a cursor that waits for new documents cannot read ahead")
        self._cursor.read_ahead(*limits)
        return self

    def __iter__(self) -> Iterator[DocumentType]:
        """Return an iterator, for one or more greenlets, over the remaining documents."""
        return chain.from_iterable(document_runs(self))

    def _server_cursor(self) -> ServerCursor:
        return self._cursor

    def __next__(self) -> DocumentType:
        """Wait for the next document, and return the document.

        :raises StopIteration: no document remains.
        """
        cursor = self._cursor
        for document in cursor.documents:
            return document
        return cursor.next_document()

    next = __next__

    def try_next(self) -> DocumentType | None:
        """Return the next document. Send at most one ``getMore``, and return None if the cursor then has no document.

        If the cursor is tailable or belongs to a ``$changeStream``, a later call may return a
        document even after None.
        """
        return self._cursor.try_next_document()

    def to_list(self, length: int | None = None) -> list[DocumentType]:
        """Return the remaining documents as a list.

        For a ``$changeStream``, return the changes that are currently available.

        :param length: the maximum number of documents; None (the default) means all documents.
        :raises TypeError: `length` is not an integer.
        :raises ValueError: `length` is less than 1.
        """
        return read_documents(iter(self.try_next, None) if self._awaits else self, length)

    def close(self) -> None:
        """Close the cursor in the client and on the server. Further calls do nothing."""
        self._cursor.close()

    def __enter__(self) -> CommandCursor[DocumentType]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._cursor.close_after_block(error)


class RawBatchCommandCursor(CommandCursor[bytes]):
    """Iterator over batches of encoded documents. Each item is a whole batch as ``bytes``.

    :meth:`Collection.aggregate_raw_batches <gmongo.collection.Collection.aggregate_raw_batches>` creates the cursor.
    The class has the parameters and methods of :class:`CommandCursor`.
    """

    _raw = True

    def __getitem__(self, index: int) -> NoReturn:
        raise InvalidOperation("Cannot call __getitem__ on RawBatchCommandCursor")


def read_documents(cursor: Iterable[T], length: int | None) -> list[T]:
    """Return the next documents of a cursor as a list with at most `length` elements."""
    if length is None:
        return list(cursor)
    if not isinstance(length, int):
        raise TypeError(f"to_list() length must be an integer, not {short(length)}")
    if length < 1:
        raise ValueError(f"to_list() length must be greater than 0, not {short(length)}")
    return list(islice(cursor, length))


def checked_integer(name: str, value: object) -> int:
    """Return `value`, or raise TypeError if `value` is not an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {short(value)}")
    return value


def checked_non_negative(name: str, value: object) -> int:
    """Return `value`. Raise TypeError for a non-integer, and ValueError for a negative integer."""
    number = checked_integer(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, not {number}")
    return int(number)
