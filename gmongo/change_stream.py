"""Change streams of a collection, a database or a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

import bson
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from gevent import GreenletExit, Timeout

from gmongo._documents import Document, DocumentDict, Value, without_none
from gmongo._parameter_docs import describes_parameters
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.command_cursor import checked_non_negative
from gmongo.engines.change_stream import Position, is_resumable
from gmongo.engines.cursor_killer import DroppedCursor
from gmongo.engines.server_cursor import ServerCursor
from gmongo.engines.turn import Turn
from gmongo.errors import InvalidOperation, NetworkTimeout, PyMongoError, ServerSelectionTimeoutError
from gmongo.execution.deadline import check_await_time, current_deadline, until
from gmongo.execution.sessions import ImplicitSession, SessionHandle, checked_session, end_if_implicit
from gmongo.operations.collection_commands import Aggregate
from gmongo.wire.reply import has_builtin_types
from gmongo.wire.timeout import has_passed

if TYPE_CHECKING:
    from gmongo.collection import Collection

T = TypeVar("T")

__all__ = ["ChangeStream", "ClusterChangeStream", "CollectionChangeStream", "DatabaseChangeStream"]

DocumentType = TypeVar("DocumentType", bound=Document)
Stream = TypeVar("Stream", bound="ChangeStream[Value]")

_RAW_CODEC_OPTIONS = DEFAULT_CODEC_OPTIONS.with_options(document_class=RawBSONDocument)


class ChangeStream(Generic[DocumentType]):
    """Iterator over changes, created by the ``watch`` methods of collections, databases and clients.

    ::

        with orders.watch() as stream:
            for change in stream:
                print(change["operationType"])

    After a failover or a lost connection the stream resumes: the stream opens a new cursor at its
    resume token. After a timeout of :meth:`next`, or a :class:`gevent.Timeout`, the next call of
    :meth:`next` resumes the stream. A resume loses no change. Several greenlets may share a stream:
    the stream returns each change to one greenlet. Specification: Change Streams.

    :param target: the collection, database or client to watch.
    :param pipeline: stages such as ``$match``. The stages must keep ``_id`` in each change. None adds no stages.
    :param full_document: ``"updateLookup"`` adds the current document to each update; ``"whenAvailable"`` and
        ``"required"`` add the document's state after the update (MongoDB 6.0). None adds no document.
    :param resume_after: the resume token of a change; the stream starts after this change. None sets no token.
    :param max_await_time_ms: the maximum wait of the server for a change, in milliseconds; None means 1,000 ms.
    :param batch_size: the maximum number of changes in a batch; None lets the server choose.
    :param collation: a ``Collation`` or an equivalent mapping for the pipeline; None compares the bytes of strings.
    :param start_at_operation_time: the operation time at which the stream starts. If `resume_after`,
        `start_after` and this parameter are None, the stream starts at the current time.
    :param session: the session of the stream; None uses an implicit session while the stream is open.
    :param start_after: a resume token, which may be the token of an ``invalidate`` event; None sets no token.
    :param comment: a comment in the server's log (see :class:`~gmongo.collection.Collection`); None by default.
    :param full_document_before_change: ``"whenAvailable"`` or ``"required"`` adds the previous state
        of the document (MongoDB 6.0). None adds no document.
    :param show_expanded_events: True also reports changes of indexes and the schema (MongoDB 6.0); None by default.
    :param timeout_ms: the time limit for the opening of the stream, and for each iteration including a resume, in
        milliseconds. 0 means no limit, None uses the limit of the watched object. After a timeout, the next iteration
        resumes the stream. If changes are rare, the server's scan of the oplog may need a higher time limit.
    :raises TypeError: an option has the wrong type.
    :raises ConfigurationError: `max_await_time_ms` is not less than the operation's time limit.
    :raises OperationFailure: the server rejected the command, for example because the server is a standalone.
    """

    _closed = True  # True before the constructor has checked all arguments, and after `close`

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
        self._stage_options = without_none(
            {},
            fullDocument=_checked_type("full_document", full_document, str),
            fullDocumentBeforeChange=_checked_type("full_document_before_change", full_document_before_change, str),
            showExpandedEvents=_checked_type("show_expanded_events", show_expanded_events, bool),
        )
        self._pipeline = [*(_checked_type("pipeline", pipeline, (list, tuple)) or ())]
        for name, number in (("max_await_time_ms", max_await_time_ms), ("batch_size", batch_size)):
            if number is not None:
                checked_non_negative(name, number)
        self._max_await_time_ms, self._batch_size = max_await_time_ms, batch_size
        self._fields = without_none({}, collation=validate_collation_or_none(collation), comment=comment)
        self._position = Position(
            _checked_type("resume_after", resume_after, Mapping),
            _checked_type("start_after", start_after, Mapping),
            _checked_type("start_at_operation_time", start_at_operation_time, Timestamp),
        )
        self._collection, self._target = target._stream_target()
        self._client = self._collection.database.client
        self._executor = self._collection._executor.for_operation(timeout_ms, session)
        self._codec_options = self._collection.codec_options
        # The stream must send resume tokens unchanged. If the application's codec options could change a
        # token, the cursor returns raw documents, and the stream decodes them with these codec options.
        self._is_raw = not has_builtin_types(self._codec_options)
        self._decoding: CodecOptions[Value] = _RAW_CODEC_OPTIONS if self._is_raw else self._codec_options
        self._session: SessionHandle = checked_session(session) or self._executor.implicit_session()
        self._cursor: ServerCursor | None = None
        self._change: Value = None  # a change from the cursor that the stream has not yet returned
        self._turn: Turn | None = None
        self._interrupted = False
        self._closed = False

    def _open_or_close(self: Stream) -> Stream:
        """Open the cursor. After an error, close the stream."""
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
            [{"$changeStream": self._build_stage()}, *self._pipeline],
            self._fields,
            batch_size=self._batch_size,
            decoding=self._decoding,
        )
        reply = executor.run(operation, self._session)
        self._cursor = ServerCursor(
            executor,
            self._client._cursor_killer,
            reply,
            self._session,
            self._decoding,
            batch_size=self._batch_size or 0,
            max_await_time_ms=self._max_await_time_ms,
            comment=self._fields.get("comment"),
            keeps_session=True,
        )
        self._position.after_open(
            self._cursor.has_buffered_documents, self._cursor.post_batch_resume_token, reply.reply.get("operationTime")
        )
        return self._cursor

    def _build_stage(self) -> DocumentDict:
        return {**self._stage_options, **self._position.fields()}

    def _resume(self) -> ServerCursor:
        if self._cursor is not None:
            self._cursor.close()
        return self._open()

    def __iter__(self) -> ChangeStream[DocumentType]:
        return self

    def __next__(self) -> DocumentType:
        """Wait for the next change, and return the change. ``timeoutMS`` limits the wait.

        :raises StopIteration: the stream is closed, for example because the watched collection no longer exists.
        :raises PyMongoError: the time limit elapsed, or the stream could not resume after an error.
        """
        outer_deadline = current_deadline()
        with until(self._executor.deadline()):
            while not self._closed:
                change = self._try_next(outer_deadline)
                if change is not None:
                    return change
        raise StopIteration

    next = __next__

    def try_next(self) -> DocumentType | None:
        """Return the next change. Send at most one ``getMore``, and return None if the stream then has no change.

        :attr:`resume_token` can advance even if no change is available. An application can store
        the token after each call.

        :raises PyMongoError: the time limit elapsed, or the stream could not resume after an error.
        """
        outer_deadline = current_deadline()
        with until(self._executor.deadline()):
            return self._try_next(outer_deadline)

    def _try_next(self, outer_deadline: float | None) -> DocumentType | None:
        """Implement :meth:`try_next`. `outer_deadline` is the deadline of the enclosing :func:`gmongo.timeout`."""
        try:
            if (self._turn is not None and not self._wait_for_turn()) or self._closed:
                return None
            with Turn(self) as turn:
                change: DocumentType | None = self._next_change()
                turn.has_documents = change is not None
        except PyMongoError as error:
            is_own_timeout = error.timeout and current_deadline() != outer_deadline
            if is_own_timeout and not isinstance(error, ServerSelectionTimeoutError):
                limit_text = self._executor.own_limit_text
                message = f"{self._subject}: no change within {limit_text}; next() may be called again"
                raise NetworkTimeout(message) from error
            raise
        finally:
            if self._closed:  # if another greenlet closed the stream during a resume, the new cursor is open
                self.close()
        return change

    def _wait_for_turn(self) -> bool:
        """Wait until no other greenlet reads the stream. Return False early if a greenlet received no change."""
        while self._turn is not None:
            try:
                if not self._turn.wait(current_deadline()):
                    return False
            except (PyMongoError, BSONError) as error:
                if self._closed or isinstance(error, InvalidOperation) or has_passed(current_deadline()):
                    raise
        return True

    def _next_change(self) -> Value:
        try:
            if self._change is None:
                self._change = self._fetch_change()
        except PyMongoError as error:
            if self._closed:  # another greenlet has closed the cursor
                return None
            if not (self._is_resumable(error) or error.timeout or isinstance(error, InvalidOperation)):
                self.close()
            raise
        return self._deliver_change()

    def _fetch_change(self) -> Value:
        """Return the next change, or None if at most one `getMore` found no change. Reopen the cursor if necessary."""
        cursor = self._cursor
        if cursor is None or self._interrupted:
            cursor = self._resume()
        self._interrupted = True  # after any exception here, the next call resumes the stream
        try:
            change = cursor.try_next_document()
        except PyMongoError as error:
            if self._closed or not self._is_resumable(error) or has_passed(current_deadline()):
                raise
            cursor = self._resume()
            self._interrupted = True
            change = cursor.try_next_document() if cursor.has_buffered_documents else None
        except BSONError:
            self._is_raw, self._decoding = True, _RAW_CODEC_OPTIONS
            raise
        self._interrupted = False
        return change

    def _is_resumable(self, error: PyMongoError) -> bool:
        return is_resumable(error, 0 if self._cursor is None else self._cursor.wire_version)

    def _deliver_change(self) -> Value:
        """Decode the change for the application, and advance the resume position.

        The resume position advances even if the decoding raises a BSON error. After any other
        exception of the decoding, the next call decodes the same change.
        """
        change = self._change
        try:
            decoded = bson.decode(change.raw, self._codec_options) if self._is_raw and change is not None else change
        except BSONError:
            self._advance_position(change)
            raise
        self._advance_position(change)
        return decoded

    def _advance_position(self, change: Value) -> None:
        cursor, position = self._cursor, self._position
        assert cursor is not None
        if not cursor.alive:
            self.close()
        self._change = None
        if change is None:
            position.after_empty_batch(cursor.post_batch_resume_token)
        elif "_id" not in change:
            self.close()
            raise InvalidOperation("Cannot provide resume functionality when the resume token is missing.")
        else:
            batch_token = None if cursor.has_buffered_documents else cursor.post_batch_resume_token
            position.after_change(change["_id"] if batch_token is None else batch_token)

    @property
    def _subject(self) -> str:
        return f"change stream on the collection {self._collection.full_name}"

    @property
    def resume_token(self) -> Document | None:
        """The newest resume token for `resume_after` or `start_after`, or None.

        A stream that starts with this token begins after the last returned change. Any client may use a stored token.
        The token is None if the server sent no token, or if the first reply contained changes and the stream has not
        returned a change.
        """
        token = self._position.token
        if token is None or not self._is_raw:
            return token
        decoded: Document = bson.decode(bson.encode(token), CodecOptions(self._codec_options.document_class))
        return decoded

    @property
    def alive(self) -> bool:
        """True if the stream is open. An open stream may have no further changes."""
        return not self._closed

    def close(self) -> None:
        """Close the stream and its cursor on the server, and end iterations in other greenlets."""
        self._closed = True
        try:
            if self._cursor is not None:
                self._cursor.close()
        finally:
            end_if_implicit(self._session)

    def __enter__(self) -> ChangeStream[DocumentType]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (GreenletExit, Timeout)):  # this greenlet must not wait for the server
            self._close_in_background()
        else:
            self.close()

    def _close_in_background(self) -> None:
        """Let a background greenlet close the cursor and end an implicit session. Do not switch greenlets."""
        if not self._closed and self._cursor is not None:
            self._closed = True
            self._cursor.drop()
            if isinstance(self._session, ImplicitSession):
                dropped = DroppedCursor(0, "", self._cursor.resources.address, self._session, None)
                self._client._cursor_killer.take(dropped)

    def __del__(self) -> None:
        self._close_in_background()


class CollectionChangeStream(ChangeStream[DocumentType]):
    """Change stream of a collection, created by :meth:`Collection.watch <gmongo.collection.Collection.watch>`."""


class DatabaseChangeStream(ChangeStream[DocumentType]):
    """Change stream of a database, created by :meth:`Database.watch <gmongo.database.Database.watch>`."""

    @property
    def _subject(self) -> str:
        return f"change stream on the database {self._collection.database.name}"


class ClusterChangeStream(ChangeStream[DocumentType]):
    """Change stream of a deployment, created by :meth:`MongoClient.watch <gmongo.mongo_client.MongoClient.watch>`.

    The stream omits the databases ``admin``, ``config`` and ``local``.
    """

    @property
    def _subject(self) -> str:
        return "change stream on the deployment"

    def _build_stage(self) -> DocumentDict:
        return {**super()._build_stage(), "allChangesForCluster": True}


@describes_parameters(ChangeStream)
class _Watched(Generic[Stream]):
    """Base class of objects with change streams: collections, databases and clients."""

    _stream_class: type[Stream]

    def _stream_target(self) -> tuple[Collection[Value], str | int]:
        """Return two values: the collection whose options the stream uses, and the target of ``aggregate``."""
        raise NotImplementedError

    def __next__(self) -> NoReturn:
        """Raise TypeError, because a collection, a database and a client are not iterable."""
        raise TypeError(f"{type(self).__name__!r} object is not iterable")

    next = __next__
    __iter__ = None

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
        """Return a stream of the changes of a collection, a database or a deployment.

        The stream of a client contains the changes of all databases except ``admin``, ``config`` and
        ``local``. Only replica sets and sharded clusters support change streams.

        ::

            with orders.watch([{"$match": {"operationType": "insert"}}]) as stream:
                for change in stream:
                    ship(change["fullDocument"])

        The stream resumes after failovers and lost connections, in contrast to the cursor of an
        ``aggregate`` with ``$changeStream``. The read concern must be the default or ``majority``.
        Specification: Change Streams, "Driver API".

        :raises TypeError: an option has the wrong type.
        :raises ConfigurationError: `max_await_time_ms` is not less than the operation's time limit.
        :raises OperationFailure: the server rejected the command, for example because the server is a standalone.
        """
        return self._stream_class(
            self, pipeline, full_document, resume_after, max_await_time_ms, batch_size, collation,
            start_at_operation_time, session, start_after, comment, full_document_before_change, show_expanded_events,
            timeout_ms,
        )._open_or_close()  # fmt: skip


def _checked_type(name: str, value: T, kind: type | tuple[type, ...]) -> T:
    if value is not None and not isinstance(value, kind):
        required = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"{name} must be a {required}, not {short(value)}")
    return value
