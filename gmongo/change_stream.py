"""Change streams: cursors over the changes of a collection, a database or a whole deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from gevent import GreenletExit, Timeout

from gmongo._documents import Document, DocumentDict, Value, without_none
from gmongo._short_text import short
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.engines.change_stream import Position, is_resumable
from gmongo.engines.reaper import Dropped
from gmongo.engines.server_cursor import ServerCursor
from gmongo.engines.turn import Turn
from gmongo.errors import InvalidOperation, NetworkTimeout, PyMongoError, ServerSelectionTimeoutError
from gmongo.execution.deadline import check_await_time, current_deadline, until
from gmongo.execution.sessions import ImplicitSession, SessionHandle, checked_session, end_if_implicit
from gmongo.operations.aggregate import Aggregate
from gmongo.wire.limit import remaining
from gmongo.wire.reply import decodes_plainly

if TYPE_CHECKING:
    from gmongo.collection import Collection

T = TypeVar("T")

__all__ = ["ChangeStream", "ClusterChangeStream", "CollectionChangeStream", "DatabaseChangeStream"]

DocumentType = TypeVar("DocumentType", bound=Document)
Stream = TypeVar("Stream", bound="ChangeStream[Value]")

_RAW = DEFAULT_CODEC_OPTIONS.with_options(document_class=RawBSONDocument)


class ChangeStream(Generic[DocumentType]):
    """Iterates over changes; made by the ``watch`` methods of collections, databases and clients.

    ::

        with orders.watch() as stream:
            for change in stream:
                print(change["operationType"])

    It outlives failovers and lost connections: it opens a new cursor where it stood. So it also outlives a time-out, or
    a :class:`gevent.Timeout` thrown into :meth:`next`: the next call goes on, and no change is lost. Greenlets may
    share a stream: each change goes to one of them.

    Specification: Change Streams.

    :param target: the collection, database or client to watch.
    :param pipeline: further stages, such as ``$match`` and ``$project``; ``_id`` has to stay. None is without.
    :param full_document: ``"updateLookup"`` adds the present document to each update, ``"whenAvailable"`` and
        ``"required"`` add that right after the update (MongoDB 6.0). None adds none.
    :param resume_after: a resume token; begin after that change.
    :param max_await_time_ms: how long the server waits for changes before it replies that there are none, in
        milliseconds; None leaves it to the server (a second).
    :param batch_size: the most changes in one reply; None leaves it to the server.
    :param collation: by which rules strings are compared in the pipeline: a :class:`~gmongo.collation.Collation` or its
        document. None compares bytes.
    :param start_at_operation_time: begin at this time.
    :param session: to run in; None (the default) takes one for as long as the stream is open.
    :param start_after: a resume token, like `resume_after`, but also that of an ``invalidate``.
    :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
    :param full_document_before_change: ``"whenAvailable"`` or ``"required"`` adds the document as it was (MongoDB 6.0).
        None adds none.
    :param show_expanded_events: True also reports changes of indexes and of the schema (MongoDB 6.0).
    :param timeout_ms: the limit of time, in milliseconds, of opening the stream, and again of each iteration, with all
        that it takes to resume; 0 is without limit, None (the default) takes that of what is watched. After a time-out
        the next call goes on. If no change has come yet by then, the server may need longer to find the place in its
        oplog: open another stream, with a higher limit.
    :raises TypeError: an option has the wrong type.
    :raises ConfigurationError: `max_await_time_ms` is not below the time limit of the operation.
    :raises OperationFailure: the server refuses, for example because it is a standalone.
    """

    _closed = True  # until the constructor has checked everything

    def __init__(
        self,
        target: _Watched[Value],
        pipeline: Sequence[Document] | None,
        full_document: str | None,
        resume_after: Document | None,
        max_await_time_ms: int | None,
        batch_size: int | None,
        collation: Document | Collation | None,
        start_at_operation_time: Timestamp | None,
        session: ClientSession | None,
        start_after: Document | None,
        comment: Value = None,
        full_document_before_change: str | None = None,
        show_expanded_events: bool | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        self._options = without_none(
            {},
            fullDocument=_checked("full_document", full_document, str),
            fullDocumentBeforeChange=_checked("full_document_before_change", full_document_before_change, str),
            showExpandedEvents=_checked("show_expanded_events", show_expanded_events, bool),
        )
        self._pipeline = [*(_checked("pipeline", pipeline, (list, tuple)) or ())]
        self._max_await_time_ms = _natural("max_await_time_ms", max_await_time_ms)
        self._batch_size = _natural("batch_size", batch_size)
        self._fields = without_none({}, collation=validate_collation_or_none(collation), comment=comment)
        self._position = Position(
            _checked("resume_after", resume_after, Mapping),
            _checked("start_after", start_after, Mapping),
            _checked("start_at_operation_time", start_at_operation_time, Timestamp),
        )
        self._collection, self._target = target._watched()
        self._client = self._collection.database.client
        self._executor = self._collection._executor.for_operation(timeout_ms, session)
        self._codec_options = self._collection.codec_options
        # The token of a change goes back to the server as it came, whatever the application decodes changes into.
        self._decodes = not decodes_plainly(self._codec_options)
        self._decoding: CodecOptions[Value] = _RAW if self._decodes else self._codec_options
        self._session: SessionHandle = checked_session(session) or self._executor.implicit_session()
        self._cursor: ServerCursor | None = None
        self._change: Value = None  # taken from the cursor, but not delivered
        self._turn: Turn | None = None
        self._interrupted = False
        self._closed = False

    # The cursor

    def _opened(self: Stream) -> Stream:
        """Open the cursor now.

        :raises ConfigurationError: ``maxAwaitTimeMS`` is not below ``timeoutMS``.
        :raises PyMongoError: it could not be opened. The stream is closed then.
        """
        try:
            deadline = self._executor.deadline()
            check_await_time(self._max_await_time_ms, deadline)
            with until(deadline):
                self._open()
        except BaseException:
            self.close()
            raise
        return self

    def _open(self) -> ServerCursor:
        collection, executor = self._collection, self._executor
        operation = Aggregate(
            collection._context,
            self._target,
            [{"$changeStream": self._stage()}, *self._pipeline],
            self._fields,
            batch_size=self._batch_size,
            decoding=self._decoding,
        )
        reply = executor.run(operation, self._session)
        self._cursor = ServerCursor(
            executor,
            self._client._reaper,
            reply,
            self._session,
            self._decoding,
            batch_size=self._batch_size or 0,
            max_await_time_ms=self._max_await_time_ms,
            comment=self._fields.get("comment"),
            keeps_session=True,
        )
        self._position.opened(
            self._cursor.has_buffered, self._cursor.post_batch_resume_token, reply.reply.get("operationTime")
        )
        self._interrupted = False
        return self._cursor

    def _stage(self) -> DocumentDict:
        """The fields of the ``$changeStream`` stage."""
        return {**self._options, **self._position.fields()}

    def _resume(self) -> ServerCursor:
        self._interrupted = True
        if self._cursor is not None:
            self._cursor.close()
        return self._open()

    # Changes

    def __iter__(self) -> ChangeStream[DocumentType]:
        return self

    def __next__(self) -> DocumentType:
        """The next change; waits for it without end (or for ``timeoutMS``).

        :raises StopIteration: the stream is closed, or what it watched is gone.
        :raises PyMongoError: the server or the network failed, and the stream could not be resumed either.
        """
        outer = current_deadline()
        with until(self._executor.deadline()):
            while not self._closed:
                change = self._try_next(outer)
                if change is not None:
                    return change
        raise StopIteration

    next = __next__

    def try_next(self) -> DocumentType | None:
        """The next change, or None if there is none after asking the server at most once.

        Together with :attr:`resume_token` it lets an application store the newest token even while nothing changes.

        :raises PyMongoError: the server or the network failed, and the stream could not be resumed either.
        """
        outer = current_deadline()
        with until(self._executor.deadline()):
            return self._try_next(outer)

    def _try_next(self, outer: float | None) -> DocumentType | None:
        """Take one change.

        :param outer: the deadline of a :func:`gmongo.timeout` around the iteration.
        """
        try:
            if (self._turn is not None and not self._wait_for_turn()) or self._closed:
                return None
            with Turn(self) as turn:
                change: DocumentType | None = self._next_change()
                turn.found = change is not None
        except PyMongoError as error:
            if error.timeout and current_deadline() != outer and not isinstance(error, ServerSelectionTimeoutError):
                limit = self._executor.own_limit
                message = f"{self._subject}: no change within {limit}; next() may be called again"
                raise NetworkTimeout(message) from error
            raise
        finally:
            if self._closed:  # perhaps by another greenlet, which has left the session to this one
                self.close()
        return change

    def _wait_for_turn(self) -> bool:
        """Wait until no other greenlet asks for a change.

        :returns: False if the server has been asked, and has none.
        """
        while self._turn is not None:
            try:
                if not self._turn.wait(current_deadline()):
                    return False
            except (PyMongoError, BSONError) as error:
                left = remaining(current_deadline())
                if self._closed or isinstance(error, InvalidOperation) or (left is not None and left <= 0):
                    raise
        return True

    def _next_change(self) -> Value:
        try:
            if self._change is None:
                self._change = self._ask()
        except PyMongoError as error:
            if self._closed:  # another greenlet has ended the cursor
                return None
            if not (self._is_resumable(error) or error.timeout):
                self.close()
            raise
        return self._deliver()

    def _ask(self) -> Value:
        """The next change, after at most one `getMore`; the cursor is opened anew before it, after it, or both."""
        cursor = self._cursor
        if cursor is None or self._interrupted:
            cursor = self._resume()
        self._interrupted = True  # whatever is thrown in here, the next call resumes
        try:
            change = cursor.try_next_document()
        except PyMongoError as error:
            if self._closed or not self._is_resumable(error):
                raise
            cursor = self._resume()
            return cursor.try_next_document() if cursor.has_buffered else None
        self._interrupted = False
        return change

    def _is_resumable(self, error: PyMongoError) -> bool:
        return is_resumable(error, 0 if self._cursor is None else self._cursor.wire_version)

    def _deliver(self) -> Value:
        """Decode the change for the application, and move on behind it.

        After an error of BSON the next call gives the next change. After another error of a decoder it gives this one.
        """
        change = self._change
        try:
            decoded = bson.decode(change.raw, self._codec_options) if self._decodes and change is not None else change
        except BSONError:
            self._move_on(change)
            raise
        self._move_on(change)
        return decoded

    def _move_on(self, change: Value) -> None:
        cursor, position = self._cursor, self._position
        assert cursor is not None
        if not cursor.alive:
            self.close()
        self._change = None
        if change is None:
            position.saw_nothing(cursor.post_batch_resume_token)
        elif "_id" not in change:
            self.close()
            raise InvalidOperation("Cannot provide resume functionality when the resume token is missing.")
        else:
            batch_token = None if cursor.has_buffered else cursor.post_batch_resume_token
            position.delivered(change["_id"] if batch_token is None else batch_token)

    # The state

    @property
    def _subject(self) -> str:
        """The name of the stream in errors."""
        return f"change stream on the collection {self._collection.full_name}"

    @property
    def resume_token(self) -> Document | None:
        """The token to go on with after the change returned last, by `resume_after` or `start_after`; None before there
        is one. It may be stored: any client can go on with it.
        """
        token = self._position.token
        if token is None or not self._decodes:
            return token
        token = token.raw if isinstance(token, RawBSONDocument) else bson.encode(token)
        plain: Document = bson.decode(token, CodecOptions(self._codec_options.document_class))
        return plain

    @property
    def alive(self) -> bool:
        """Whether there may be more changes. True does not promise that there will be one."""
        return not self._closed

    def close(self) -> None:
        """End the stream, on the server too. It may be called again. An iteration in another greenlet ends."""
        self._closed = True
        try:
            if self._cursor is not None:
                self._cursor.close()
        finally:
            if self._turn is None:
                end_if_implicit(self._session)

    def __enter__(self) -> ChangeStream[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (GreenletExit, Timeout)):  # the greenlet must not wait for the server
            self._drop()
        else:
            self.close()

    def _drop(self) -> None:
        """Leave the cursor and the session to the background. Does not switch."""
        if not self._closed and self._cursor is not None:
            self._closed = True
            self._cursor.drop()
            if isinstance(self._session, ImplicitSession):
                self._client._reaper.take(Dropped(0, "", self._cursor.lease.address, self._session, None))

    def __del__(self) -> None:
        self._drop()


class CollectionChangeStream(ChangeStream[DocumentType]):
    """The changes of one collection; made by :meth:`Collection.watch <gmongo.collection.Collection.watch>`."""


class DatabaseChangeStream(ChangeStream[DocumentType]):
    """The changes of all collections of a database; made by :meth:`Database.watch <gmongo.database.Database.watch>`."""

    @property
    def _subject(self) -> str:
        return f"change stream on the database {self._collection.database.name}"


class ClusterChangeStream(ChangeStream[DocumentType]):
    """The changes of all databases but ``admin``, ``config`` and ``local``; made by :meth:`MongoClient.watch
    <gmongo.mongo_client.MongoClient.watch>`.
    """

    @property
    def _subject(self) -> str:
        return "change stream on the deployment"

    def _stage(self) -> DocumentDict:
        return {**super()._stage(), "allChangesForCluster": True}


class _Watched(Generic[Stream]):
    """What can be watched: a collection, a database or a client."""

    _changes: type[Stream]

    def _watched(self) -> tuple[Collection[Value], str | int]:
        """The collection whose options hold, and what to aggregate."""
        raise NotImplementedError

    def watch(
        self,
        pipeline: Sequence[Document] | None = None,
        full_document: str | None = None,
        resume_after: Document | None = None,
        max_await_time_ms: int | None = None,
        batch_size: int | None = None,
        collation: Document | Collation | None = None,
        start_at_operation_time: Timestamp | None = None,
        session: ClientSession | None = None,
        start_after: Document | None = None,
        comment: Value = None,
        full_document_before_change: str | None = None,
        show_expanded_events: bool | None = None,
        timeout_ms: float | None = None,
    ) -> Stream:
        """Watch the changes of a collection, of all collections of a database, or of all databases but ``admin``,
        ``config`` and ``local`` (replica sets and sharded clusters only).

        ::

            with orders.watch([{"$match": {"operationType": "insert"}}]) as stream:
                for change in stream:
                    ship(change["fullDocument"])

        The stream resumes by itself after failovers and lost connections, which a plain aggregation with
        ``$changeStream`` does not. The read concern must be the default or ``majority``.

        Specification: Change Streams, "Driver API".

        :param pipeline: further stages, such as ``$match`` and ``$project``; ``_id`` has to stay. None is without.
        :param full_document: ``"updateLookup"`` adds the present document to each update, ``"whenAvailable"`` and
            ``"required"`` add that right after the update (MongoDB 6.0). None adds none.
        :param resume_after: a resume token; begin after that change.
        :param max_await_time_ms: how long the server waits for changes before it replies that there are none, in
            milliseconds; None leaves it to the server (a second).
        :param batch_size: the most changes in one reply; None leaves it to the server.
        :param collation: by which rules strings are compared in the pipeline: a :class:`~gmongo.collation.Collation` or
            its document. None compares bytes.
        :param start_at_operation_time: begin at this time.
        :param session: to run in; None (the default) takes one for as long as the stream is open.
        :param start_after: a resume token, like `resume_after`, but also that of an ``invalidate``.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param full_document_before_change: ``"whenAvailable"`` or ``"required"`` adds the document as it was (MongoDB
            6.0). None adds none.
        :param show_expanded_events: True also reports changes of indexes and of the schema (MongoDB 6.0).
        :param timeout_ms: the limit of time, in milliseconds, of opening the stream, and again of each iteration, with
            all that it takes to resume; 0 is without limit, None (the default) takes that of this object. After a
            time-out the next call goes on.
        :raises TypeError: an option has the wrong type.
        :raises ConfigurationError: `max_await_time_ms` is not below the time limit of the operation.
        :raises OperationFailure: the server refuses, for example because it is a standalone.
        """
        return self._changes(
            self, pipeline, full_document, resume_after, max_await_time_ms, batch_size, collation,
            start_at_operation_time, session, start_after, comment, full_document_before_change, show_expanded_events,
            timeout_ms,
        )._opened()  # fmt: skip


def _checked(name: str, value: T, kind: type | tuple[type, ...]) -> T:
    if value is not None and not isinstance(value, kind):
        wanted = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"{name} must be a {wanted}, not {short(value)}")
    return value


def _natural(name: str, value: int | None) -> int | None:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {short(value)}")
    if value is not None and _checked(name, value, int) < 0:
        raise ValueError(f"{name} must be >= 0, not {value}")
    return value
