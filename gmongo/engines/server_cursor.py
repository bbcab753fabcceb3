"""An open cursor: its documents that have arrived, and how to get the others."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import TypeVar

from bson.codec_options import CodecOptions
from bson.errors import BSONError
from gevent import GreenletExit, Timeout, sleep

from gmongo import _clock
from gmongo._background import LongWork
from gmongo._documents import Value
from gmongo._server_facts import codes
from gmongo.engines.lease import Lease
from gmongo.engines.read_ahead import ReadAhead, count, size_of_next
from gmongo.engines.reaper import CursorReaper
from gmongo.engines.turn import Turn
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure, PyMongoError
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import SessionHandle
from gmongo.operations.cursors import ExhaustGetMore, GetMore, GetMoreAhead
from gmongo.operations.find import CursorReply
from gmongo.wire.address import address_text
from gmongo.wire.reply import Batch

AnyGetMore = TypeVar("AnyGetMore", bound=GetMore)


class ServerCursor:
    """A cursor on a server, after the command that opened it.

    :param executor: runs `getMore`.
    :param reaper: ends the cursor if it is dropped.
    :param opened: the reply that opened it.
    :param session: the session it was opened in. An implicit one is given back with the last batch.
    :param codec_options: how documents are decoded.
    :param limit: how many documents there are at most; 0 is without limit, and below it the first batch is the last.
    :param batch_size: of the further batches; 0 leaves it to the server.
    :param tailable: whether an empty batch is the end for now, rather than a reason to ask again.
    :param max_await_time_ms: for a tailable cursor, how long the server waits for new documents.
    :param deadline: by which the last document must have come; None leaves each iteration its own time.
    :param exhaust: whether the server sends the further batches without being asked for each.
    :param keeps_session: whether an implicit session stays with its owner, which goes on using it after the cursor.
    """

    __slots__ = (
        "_batch",
        "_batch_size",
        "_comment",
        "_deadline",
        "_executor",
        "_exhaust",
        "_interrupted",
        "_limit",
        "_max_await_time_ms",
        "_raw",
        "_reaper",
        "_tailable",
        "_turn",
        "_work",
        "documents",
        "lease",
        "post_batch_resume_token",
        "retrieved",
        "wire_version",
    )

    def __init__(
        self,
        executor: Executor,
        reaper: CursorReaper,
        opened: CursorReply,
        session: SessionHandle | None,
        codec_options: CodecOptions[Value],
        *,
        limit: int = 0,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        tailable: bool = False,
        comment: Value = None,
        raw: bool = False,
        deadline: float | None = None,
        exhaust: bool = False,
        keeps_session: bool = False,
    ) -> None:
        time_limit = None if deadline is None else deadline - _clock.monotonic()
        self.lease = Lease(executor, reaper, opened, session, codec_options, time_limit, keeps_session)
        self._executor = executor
        self._reaper = reaper
        self._deadline = deadline
        self._exhaust = exhaust
        self._tailable = tailable
        self._limit = limit
        self._batch_size = batch_size
        self._max_await_time_ms = max_await_time_ms
        self._comment = comment
        self._raw = raw
        if exhaust:
            self._work = LongWork()
        self.documents: Iterator[Value] = iter(())  # decoded, and not yet taken; always that of a list
        self._batch: Batch | None = None
        self._interrupted = False  # whether an interrupted getMore has ended the cursor
        self._turn: Turn | None = None
        self.retrieved = 0
        self.wire_version = 0  # of the connection that was last asked
        self._take(opened)

    @property
    def alive(self) -> bool:
        """Whether there may be more documents: buffered ones, or on the server."""
        return length_hint(self.documents) > 0 or self._batch is not None or self.lease.cursor_id != 0

    @property
    def has_ended(self) -> bool:
        """Whether all documents are in :attr:`documents` or have been taken."""
        return self.lease.cursor_id == 0 and self._batch is None and self._turn is None and not self._interrupted

    @property
    def has_buffered(self) -> bool:
        """Whether the present batch has further documents."""
        return length_hint(self.documents) > 0 or (self._batch is not None and self._batch.has_more)

    @property
    def awaits(self) -> bool:
        """Whether the server waits for documents that are not there yet."""
        return self._max_await_time_ms is not None

    def set_batch_size(self, batch_size: int) -> None:
        """Ask for batches of this size from now on."""
        self._batch_size = batch_size
        if self.lease.ahead is not None:
            self.lease.ahead.batch_size = batch_size

    def read_ahead(self, batches: int, max_bytes: int) -> None:
        """Have the next batches fetched while the application uses this one.

        :param batches: how many may wait for the application or be on their way.
        :param max_bytes: how many bytes of them.
        """
        lease = self.lease
        if lease.cursor_id == 0:
            return
        if lease.ahead is None:
            lease.ahead = self._new_read_ahead()
        lease.ahead.allow(batches, max_bytes)
        self._go_ahead()

    def _new_read_ahead(self) -> ReadAhead:
        left = None
        if self._limit:
            left = self._limit - self.retrieved - (0 if self._batch is None else count(self._batch))
        session = self.lease.share_session()
        operation = self._get_more(GetMoreAhead, 0)
        reading = self._reaper.reading
        return ReadAhead(self._executor, reading, operation, session, self._deadline, self._batch_size, left)

    def _go_ahead(self) -> None:
        """See that the next `getMore` is sent before the application goes on, which may hold the loop for long."""
        if self.lease.ahead is not None and self.lease.ahead.start():
            sleep(0)

    def next_document(self) -> Value:
        """The next document.

        :raises StopIteration: there are no more, or a tailable cursor has none for now.
        """
        if self.advance():
            return next(self.documents)
        raise StopIteration

    def try_next_document(self) -> Value:
        """The next document, or None if there is none after asking the server at most once."""
        return next(self.documents) if self.advance(asks_once=True) else None

    def advance(self, asks_once: bool = False) -> bool:
        """See that :attr:`documents` has the next document. Greenlets that share the cursor wait for each other.

        :param asks_once: whether an empty batch ends the search. It ends that of a tailable cursor in any case.
        :returns: whether it has; not if there are no more, or none for now.
        :raises AutoReconnect: the cursor ended early, because a greenlet was interrupted that waited for a batch.
        """
        deadline = self._deadline
        while not length_hint(self.documents):
            if self.has_ended:
                return False
            if deadline is None:
                deadline = self._executor.deadline()  # of all that this iteration needs
            if not self._step(deadline) and (asks_once or self._tailable):
                return False
        return True

    def _step(self, deadline: float | None) -> bool:
        """Decode documents, or get a batch, or wait for the greenlet that does so.

        :returns: False if the batch was empty.
        """
        if self._turn is not None:
            return self._turn.wait(deadline)
        with Turn(self) as turn:
            if self._batch is not None:
                self._decode_more(self._batch)
            else:
                turn.found = self._fetch(deadline)
        return turn.found

    def _decode_more(self, batch: Batch) -> None:
        self._work.checkpoint()  # an application that does nothing but iterate must not block the event loop
        try:
            if self._raw:
                raw = batch.raw()
                run = [raw] if raw else []
            else:
                run = batch.decode_run()
        except (PyMongoError, BSONError):  # another error comes from the application, and may pass
            self.drop()
            raise
        if self._batch is batch:  # a rewind has not dropped it meanwhile
            if self._raw or not batch.has_more:
                self._batch = None
            self.documents = iter(run)
            self.retrieved += len(run)

    def _fetch(self, deadline: float | None) -> bool:
        """Get a further batch; False if there is nothing in it.

        :param deadline: by which it must have come; None is without limit.
        :raises AutoReconnect: the cursor is that of the process that this one was forked from.
        """
        if self._interrupted:
            where = address_text(self.lease.address)
            raise AutoReconnect(f"{where}: a getMore was interrupted, which has ended the cursor early")
        if self._exhaust:
            self._work.checkpoint()  # there may be no wait for what has come already
        self.lease.refuse_inherited()
        left = None
        if self._limit:
            left = self._limit - self.retrieved
            if left <= 0:  # the server has left the cursor open all the same
                self.close()
                return False
        session = self.lease.session
        try:
            reply = self._next_reply(left, deadline)
        except InvalidOperation:
            raise  # the request was refused before it was sent, so that nothing has changed
        except BaseException as error:
            if self._was_closed(session):
                if not isinstance(error, PyMongoError):
                    raise
            elif not self._on_failure(error):
                raise
        else:
            self._take(reply._replace(cursor_id=0) if self._was_closed(session) else reply)
            self._go_ahead()
        return self.has_buffered

    def _was_closed(self, session: SessionHandle | None) -> bool:
        """Return whether another greenlet has closed the cursor during this getMore.

        :param session: the session of the getMore.
        """
        if self.lease.cursor_id:
            return False
        self.lease.end_again(session)
        return True

    def _next_reply(self, left: int | None, deadline: float | None) -> CursorReply:
        """The next batch, read ahead or not.

        :param left: how many documents may come yet; None is without limit.
        :param deadline: by which it must have come; None is without limit.
        """
        if self.lease.ahead is not None:
            return self.lease.ahead.next(deadline)
        kind = ExhaustGetMore if self._exhaust else GetMore
        operation = self._get_more(kind, size_of_next(self._batch_size, left))
        try:
            reply: CursorReply = self._executor.run(operation, self.lease.session, deadline)
        finally:
            self.wire_version = operation.wire_version
        return reply

    def _get_more(self, kind: type[AnyGetMore], size: int) -> AnyGetMore:
        return kind(
            self.lease.context,
            self.lease.cursor_id,
            self.lease.address,
            self.lease.pin,
            batch_size=size,
            max_time_ms=self._max_await_time_ms,
            comment=self._comment,
            raw=self._raw,
        )

    def _on_failure(self, error: BaseException) -> bool:
        """End the cursor as far as a failed command has ended it.

        :returns: whether the application sees no error, only the end of the documents.
        """
        lease = self.lease
        if lease.ahead is not None:
            lease.ahead.stop()
        if isinstance(error, OperationFailure):
            gone = error.code in codes.CURSOR_GONE
            if gone or self._exhaust:  # a server ends a stream with its cursor
                lease.cursor_id = 0
            if lease.pin is None or self._exhaust:  # a pinned connection stays with the cursor until that is closed
                self.close()
            return gone and self._tailable  # a tailable cursor ends so when its place has been overwritten
        lease.give_up()
        if not isinstance(error, PyMongoError):
            self._interrupted = not isinstance(error, BSONError)
            self.drop()  # this greenlet is to end: it must not wait, and may never close the cursor
        elif self._exhaust:
            lease.release()
        return False

    def _take(self, reply: CursorReply) -> None:
        """Take a batch over. Documents that are not decoded yet are counted in `retrieved` when they are decoded."""
        self.post_batch_resume_token = reply.reply["cursor"].get("postBatchResumeToken")
        if isinstance(reply.batch, Batch):
            self._batch = reply.batch if reply.batch.has_more else None
            if not self._exhaust:
                self._work = LongWork()
        else:
            self.documents = iter(reply.batch)
            self.retrieved += len(reply.batch)
        # Last: it may check a connection in, which may be interrupted, and the batch must be here then.
        self.lease.renew(reply)

    # Ending

    def close(self) -> None:
        """End the cursor on the server, if it is still open there. What was buffered can still be taken.

        :raises InvalidOperation: another greenlet waits for a batch on the connection that is pinned to the cursor.
        """
        self._interrupted = False
        self.lease.close()

    def leave(self, error: BaseException | None) -> None:
        """End the cursor when a ``with`` block ends.

        :param error: leaves the block. A greenlet that is killed or timed out does not wait for the server.
        """
        if isinstance(error, (GreenletExit, Timeout)):
            self.drop()
        else:
            self.close()

    def drop(self) -> None:
        """Forget what was buffered, and leave the cursor to the reaper. Does no I/O and does not switch."""
        for _document in self.documents:  # it may be iterated over
            pass
        self._batch = None
        self.lease.drop()
