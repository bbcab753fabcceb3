"""Open server cursors: the received documents, and the commands for further batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from operator import length_hint
from typing import TypeVar

from bson.codec_options import CodecOptions
from bson.errors import BSONError
from gevent import GreenletExit, Timeout, sleep

from gmongo import _clock
from gmongo._background import LongWork
from gmongo._documents import Value
from gmongo._server_facts import codes
from gmongo.engines.cursor_killer import CursorKiller, CursorResources
from gmongo.engines.read_ahead import ReadAhead, document_count, next_batch_size, refuse_inherited
from gmongo.engines.turn import Turn
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure, PyMongoError
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import SessionHandle
from gmongo.operations.find import CursorReply, ExhaustGetMore, GetMore, GetMoreAhead
from gmongo.wire.address import address_text
from gmongo.wire.reply import Batch

AnyGetMore = TypeVar("AnyGetMore", bound=GetMore)
_NO_DOCUMENTS: Iterator[Value] = iter(())


@dataclass(eq=False, repr=False)
class ServerCursor:
    """Cursor that a command has opened on a server, and the documents of its current batch."""

    _executor: Executor
    _cursor_killer: CursorKiller
    opened: InitVar[CursorReply]
    session: InitVar[SessionHandle | None]
    codec_options: InitVar[CodecOptions[Value]]
    limit: int = 0  # maximum number of documents. 0 means no limit. A negative limit allows one batch
    batch_size: int = 0  # the number of documents in each later batch, or 0 if the server chooses
    max_await_time_ms: int | None = None
    tailable: bool = False  # True if an empty batch ends an iteration
    comment: Value = None
    raw: bool = False
    deadline: float | None = None  # deadline of the cursor, or None if each iteration has a deadline
    exhaust: bool = False
    keeps_session: InitVar[bool] = False  # True if another object ends the session
    documents: Iterator[Value] = _NO_DOCUMENTS  # iterator over decoded documents, with a length hint
    _batch: Batch | None = None
    _interrupted: bool = False  # True if the interruption of a getMore has ended the cursor
    _turn: Turn | None = None
    retrieved: int = 0
    wire_version: int = 0  # the wire version of the server that received the last getMore

    def __post_init__(
        self,
        opened: CursorReply,
        session: SessionHandle | None,
        codec_options: CodecOptions[Value],
        keeps_session: bool,
    ) -> None:
        time_limit = None if self.deadline is None else self.deadline - _clock.monotonic()
        self.resources = CursorResources(
            self._executor, self._cursor_killer, opened, session, codec_options, time_limit, keeps_session
        )
        if self.exhaust:
            self._work = LongWork()
        self._store_batch(opened)

    @property
    def alive(self) -> bool:
        """True if the buffer or the server may contain more documents of the cursor."""
        return length_hint(self.documents) > 0 or self._batch is not None or self.resources.cursor_id != 0

    @property
    def has_ended(self) -> bool:
        """True if :attr:`documents` contains all remaining documents."""
        return self.resources.cursor_id == 0 and self._batch is None and self._turn is None and not self._interrupted

    @property
    def has_buffered_documents(self) -> bool:
        """True if the current batch contains documents for the application."""
        return length_hint(self.documents) > 0 or (self._batch is not None and self._batch.has_more)

    @property
    def awaits(self) -> bool:
        """True if the server waits for documents before the reply (``maxAwaitTimeMS``)."""
        return self.max_await_time_ms is not None

    def set_batch_size(self, batch_size: int) -> None:
        self.batch_size = batch_size
        if self.resources.read_ahead is not None:
            self.resources.read_ahead.batch_size = batch_size

    def read_ahead(self, batches: int, max_bytes: int) -> None:
        """Fetch the next batches, up to the limits, while the application uses the current batch."""
        resources = self.resources
        if resources.cursor_id == 0:
            return
        if resources.read_ahead is None:
            resources.read_ahead = self._create_read_ahead()
        resources.read_ahead.max_batches, resources.read_ahead.max_bytes = batches, max_bytes
        self._fetch_ahead()

    def _create_read_ahead(self) -> ReadAhead:
        documents_left = None
        if self.limit:
            documents_left = self.limit - self.retrieved - (0 if self._batch is None else document_count(self._batch))
        operation = self._create_get_more(GetMoreAhead, 0)
        busy_read_aheads, session = self._cursor_killer.busy_read_aheads, self.resources.session
        limits = (self.deadline, self.batch_size, documents_left)
        return ReadAhead(self._executor, busy_read_aheads, operation, session, *limits)

    def _fetch_ahead(self) -> None:
        """Send the next `getMore` before the application can block the event loop."""
        if self.resources.read_ahead is not None and self.resources.read_ahead.start():
            sleep(0)

    def next_document(self) -> Value:
        if self.advance():
            return next(self.documents)
        raise StopIteration

    def try_next_document(self) -> Value:
        """Return the next document, or None if no document is available after at most one `getMore`."""
        return next(self.documents) if self.advance(at_most_once=True) else None

    def advance(self, at_most_once: bool = False) -> bool:
        """Store the next documents in :attr:`documents`. Return False at the end of the cursor.

        If `at_most_once`, or if the cursor is tailable, also return False after an empty batch.
        """
        deadline = self.deadline
        while not length_hint(self.documents):
            if self.has_ended:
                return False
            if deadline is None:
                deadline = self._executor.deadline()  # all steps of an iteration share one deadline
            if not self._step(deadline) and (at_most_once or self.tailable):
                return False
        return True

    def _step(self, deadline: float | None) -> bool:
        """Decode documents, fetch a batch, or wait for another reader. Return False after an empty batch."""
        if self._turn is not None:
            return self._turn.wait(deadline)
        with Turn(self) as turn:
            if self._batch is not None:
                self._decode_documents(self._batch)
            else:
                turn.has_documents = self._fetch(deadline)
        return turn.has_documents

    def _decode_documents(self, batch: Batch) -> None:
        self._work.checkpoint()  # a loop over documents must not block the event loop
        try:
            if self.raw:
                raw = batch.raw()
                run = [raw] if raw else []
            else:
                run = batch.decode_run()
        except (PyMongoError, BSONError):  # even a temporary error of a type decoder ends the cursor
            self.drop()
            raise
        if self._batch is batch:  # a concurrent rewind() may have dropped the batch
            if self.raw or not batch.has_more:
                self._batch = None
            self.documents = iter(run)
            self.retrieved += len(run)

    def _fetch(self, deadline: float | None) -> bool:
        if self._interrupted:
            where = address_text(self.resources.address)
            raise AutoReconnect(f"{where}: a getMore was interrupted, which has ended the cursor early")
        if self.exhaust:
            self._work.checkpoint()  # let other greenlets run, even if many replies have arrived
        refuse_inherited(self.resources.epoch, self._executor)
        documents_left = None
        if self.limit:
            documents_left = self.limit - self.retrieved
            if documents_left <= 0:  # some servers do not close a cursor at its document limit
                self.close()
                return False
        try:
            reply = self._fetch_reply(documents_left, deadline)
        except InvalidOperation:
            raise  # the driver rejected the command before the send, and the cursor is unchanged
        except BaseException as error:
            if self.resources.cursor_id == 0:  # another greenlet has closed the cursor
                if not isinstance(error, PyMongoError):
                    raise
            elif not self._handle_failure(error):
                raise
        else:
            self._store_batch(reply if self.resources.cursor_id else reply._replace(cursor_id=0))
            self._fetch_ahead()
        return self.has_buffered_documents

    def _fetch_reply(self, documents_left: int | None, deadline: float | None) -> CursorReply:
        """Return the next reply, from the read-ahead object or a `getMore` for `documents_left` documents."""
        if self.resources.read_ahead is not None:
            return self.resources.read_ahead.next(deadline)
        kind = ExhaustGetMore if self.exhaust else GetMore
        operation = self._create_get_more(kind, next_batch_size(self.batch_size, documents_left))
        try:
            reply: CursorReply = self._executor.run(operation, self.resources.session, deadline)
        finally:
            self.wire_version = operation.wire_version
        return reply

    def _create_get_more(self, kind: type[AnyGetMore], size: int) -> AnyGetMore:
        return kind(
            self.resources.context,
            self.resources.cursor_id,
            self.resources.address,
            self.resources.pin,
            batch_size=size,
            max_time_ms=self.max_await_time_ms,
            comment=self.comment,
            raw=self.raw,
        )

    def _handle_failure(self, error: BaseException) -> bool:
        """Handle a failed `getMore`. Return True if the iteration ends without an exception."""
        resources = self.resources
        if resources.read_ahead is not None:
            resources.read_ahead.stop()
        if isinstance(error, OperationFailure):
            is_gone = error.code in codes.CURSOR_GONE
            if is_gone or self.exhaust:  # an error ends an exhaust cursor
                resources.cursor_id = 0
            if resources.pin is None or self.exhaust:  # a pinned cursor keeps its connection
                self.close()
            return is_gone and self.tailable  # new documents may have overwritten the position
        resources.stop_fetching()
        if not isinstance(error, PyMongoError):
            self._interrupted = not isinstance(error, BSONError)
            self.drop()  # an interrupted greenlet must not wait, and may never call close()
        elif self.exhaust:
            resources.release()
        return False

    def _store_batch(self, reply: CursorReply) -> None:
        """Store the batch of a reply. :attr:`retrieved` counts only decoded documents."""
        self.post_batch_resume_token = reply.reply["cursor"].get("postBatchResumeToken")
        if isinstance(reply.batch, Batch):
            self._batch = reply.batch if reply.batch.has_more else None
            if not self.exhaust:
                self._work = LongWork()
        else:
            self.documents = iter(reply.batch)
            self.retrieved += len(reply.batch)
        # Store the batch before update(), whose check-in may be interrupted.
        self.resources.update(reply)

    def close(self) -> None:
        """Close the cursor on the server. Buffered documents remain available."""
        self._interrupted = False
        self.resources.close()

    def close_after_block(self, error: BaseException | None) -> None:
        """Close the cursor at the end of a ``with`` block, without a wait after a kill or timeout."""
        if isinstance(error, (GreenletExit, Timeout)):
            self.drop()
        else:
            self.close()

    def drop(self) -> None:
        """Discard buffered documents. Let the cursor killer close the cursor. Do not switch greenlets."""
        # Exhaust the iterator, because an iteration in progress may still use the iterator.
        for _document in self.documents:
            pass
        self._batch = None
        self.resources.drop()
