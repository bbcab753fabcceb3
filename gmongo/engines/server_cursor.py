"""An open cursor: its documents that have arrived, and how to get the others."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from bson.codec_options import CodecOptions
from gevent import sleep

from gmongo import _clock
from gmongo._background import LongWork
from gmongo._server_facts import codes
from gmongo.engines.read_ahead import ReadAhead, count, refuse_inherited, size_of_next
from gmongo.engines.reaper import CursorReaper, Dropped
from gmongo.errors import InvalidOperation, OperationFailure, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle, SharedSession
from gmongo.operations.cursors import ExhaustGetMore, GetMore, GetMoreAhead, KillCursors, context_of
from gmongo.operations.find import CursorReply
from gmongo.wire.address import Address
from gmongo.wire.reply import Batch

AnyGetMore = TypeVar("AnyGetMore", bound=GetMore)


class ServerCursor:
    """A cursor on a server, after the command that opened it.

    :param executor: runs `getMore`.
    :param reaper: ends the cursor if nobody else does.
    :param opened: the reply that opened it.
    :param session: the session it was opened in. An implicit one is given back with the last batch.
    :param codec_options: how documents are decoded.
    :param limit: how many documents there are at most; 0 is without limit.
    :param batch_size: of the further batches; 0 leaves it to the server.
    :param tailable: whether an empty batch is the end for now, rather than a reason to ask again.
    :param max_await_time_ms: for a tailable cursor, how long the server waits for new documents.
    :param deadline: by which the last document must have come; None leaves each iteration its own time.
    :param exhaust: whether the server sends the further batches without being asked for each.
    :param keeps_session: whether an implicit session stays with its owner, who goes on using it after the cursor.
    """

    __slots__ = (
        "_ahead",
        "_batch",
        "_batch_size",
        "_codec_options",
        "_comment",
        "_context",
        "_deadline",
        "_epoch",
        "_executor",
        "_exhaust",
        "_keeps_session",
        "_limit",
        "_max_await_time_ms",
        "_namespace",
        "_orphan",
        "_pin",
        "_raw",
        "_reaper",
        "_session",
        "_tailable",
        "_time_limit",
        "_work",
        "address",
        "cursor_id",
        "documents",
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
        codec_options: CodecOptions[Any],
        *,
        limit: int = 0,
        batch_size: int = 0,
        max_await_time_ms: int | None = None,
        tailable: bool = False,
        comment: Any = None,
        raw: bool = False,
        deadline: float | None = None,
        exhaust: bool = False,
        keeps_session: bool = False,
    ) -> None:
        self._ahead: ReadAhead | None = None
        self._exhaust = exhaust
        self._tailable = tailable
        self._keeps_session = keeps_session
        self.wire_version = 0  # of the connection that was last asked
        self._deadline = deadline
        self._time_limit = None if deadline is None else deadline - _clock.monotonic()
        self._orphan = 0  # its number on the server, after a failure that may have left it open there
        self._pin = opened.pin
        self._executor = executor
        self._epoch = executor.epoch
        self._reaper = reaper
        self._session = session
        self._codec_options = codec_options
        self._limit = limit
        self._batch_size = batch_size
        self._max_await_time_ms = max_await_time_ms
        self._comment = comment
        self._raw = raw
        if exhaust:
            self._work = LongWork()
        self.documents: deque[Any] = deque()  # decoded, and not yet taken
        self._batch: Batch | None = None
        self.retrieved = 0
        self.cursor_id = opened.cursor_id
        self._namespace = ""
        self._take(opened)

    @property
    def alive(self) -> bool:
        """Whether there may be more documents: buffered ones, or on the server."""
        return bool(self.documents) or self._batch is not None or self.cursor_id != 0

    @property
    def has_buffered(self) -> bool:
        """Whether the present batch has further documents."""
        if not self.documents and self._batch is not None:
            self._decode_more()
        return bool(self.documents)

    @property
    def session(self) -> SessionHandle | None:
        """The session it runs in."""
        return self._session

    @property
    def awaits(self) -> bool:
        """Whether the server waits for documents that are not there yet."""
        return self._max_await_time_ms is not None

    def set_batch_size(self, batch_size: int) -> None:
        """Ask for batches of this size from now on."""
        self._batch_size = batch_size
        if self._ahead is not None:
            self._ahead.batch_size = batch_size

    def read_ahead(self, batches: int, max_bytes: int) -> None:
        """Have the next batches fetched while the application uses this one.

        :param batches: how many may wait for the application or be on their way.
        :param max_bytes: how many bytes of them.
        """
        if self.cursor_id == 0:
            return
        if self._ahead is None:
            if isinstance(self._session, ImplicitSession):
                self._session = SharedSession(self._session)
            self._ahead = self._new_read_ahead()
        self._ahead.allow(batches, max_bytes)
        self._go_ahead()

    def _new_read_ahead(self) -> ReadAhead:
        left = None
        if self._limit:
            left = self._limit - self.retrieved - (0 if self._batch is None else count(self._batch))
        session = self._session if isinstance(self._session, SharedSession) else None
        operation = self._get_more(GetMoreAhead, 0)
        reading = self._reaper.reading
        return ReadAhead(self._executor, reading, operation, session, self._deadline, self._batch_size, left)

    def _go_ahead(self) -> None:
        """See that the next `getMore` is sent before the application goes on, which may hold the loop for long."""
        if self._ahead is not None and self._ahead.start():
            sleep(0)

    def next_document(self) -> Any:
        """The next document.

        :raises StopIteration: there are no more, or a tailable cursor has none for now.
        """
        deadline = self._deadline
        while True:
            if self.documents:
                return self.documents.popleft()
            if self._batch is not None:
                self._work.checkpoint()  # an application that does nothing but iterate must not hold the loop
                self._decode_more()
                continue
            if deadline is None:
                deadline = self._executor.deadline()  # of all that this iteration needs
            if self.cursor_id == 0 or (not self._fetch(deadline) and self._tailable):
                raise StopIteration

    def try_next_document(self) -> Any:
        """The next document, or None if there is none after asking the server at most once."""
        asked = False
        while True:
            if self.documents:
                return self.documents.popleft()
            if self._batch is not None:
                self._work.checkpoint()  # an application that does nothing but iterate must not hold the loop
                self._decode_more()
            elif asked or self.cursor_id == 0:
                return None
            else:
                asked = True
                self._fetch(self._executor.deadline() if self._deadline is None else self._deadline)

    def _decode_more(self) -> None:
        assert self._batch is not None
        if self._raw:
            raw = self._batch.raw()
            self.documents = deque([raw] if raw else [])
            self._batch = None
        else:
            self.documents = self._batch.decode_run()
            if not self.documents:
                self._batch = None
        self.retrieved += len(self.documents)

    def _fetch(self, deadline: float | None) -> bool:
        """Get a further batch; False if there is nothing in it.

        :param deadline: by which it must have come; None is without limit.
        :raises AutoReconnect: the cursor is that of the process that this one was forked from.
        """
        if self._exhaust:
            self._work.checkpoint()  # there may be no wait for what has come already
        refuse_inherited(self._epoch, self._executor)
        left = None
        if self._limit:
            left = self._limit - self.retrieved
            if left <= 0:  # the server has left the cursor open all the same
                self._kill()
                return False
        try:
            self._take(self._next_reply(left, deadline))
        except InvalidOperation:
            raise  # the request was refused before it was sent, so that nothing has changed
        except BaseException as error:
            if not self._ended_quietly_by(error):
                raise
        self._go_ahead()
        return bool(self.documents) or self._batch is not None

    def _next_reply(self, left: int | None, deadline: float | None) -> CursorReply:
        """The next batch, read ahead or not.

        :param left: how many documents may come yet; None is without limit.
        :param deadline: by which it must have come; None is without limit.
        """
        if self._ahead is not None:
            return self._ahead.next(deadline)
        kind = ExhaustGetMore if self._exhaust else GetMore
        operation = self._get_more(kind, size_of_next(self._batch_size, left))
        try:
            reply: CursorReply = self._executor.run(operation, self._session, deadline)
        finally:
            self.wire_version = operation.wire_version
        return reply

    def _get_more(self, kind: type[AnyGetMore], size: int) -> AnyGetMore:
        return kind(
            self._context,
            self.cursor_id,
            self.address,
            self._pin,
            batch_size=size,
            max_time_ms=self._max_await_time_ms,
            comment=self._comment,
            raw=self._raw,
        )

    def _ended_quietly_by(self, error: BaseException) -> bool:
        """Draw the consequences of a failure; whether it is one that the application is not to see."""
        if self._ahead is not None:
            self._ahead.stop()
        if isinstance(error, OperationFailure):
            gone = error.code in codes.CURSOR_GONE
            if gone or self._exhaust:  # a server ends a stream with its cursor
                self.cursor_id = 0
            if self._pin is None or self._exhaust:  # else its connection stays with it until it is closed
                self.close()
            return gone and self._tailable  # one that falls behind the end of its capped collection ends so
        cursor_id, self.cursor_id = self.cursor_id, 0
        if self._pin is None or self._pin.connection.usable:
            self._orphan = cursor_id  # the server may have it still: closing it will see to that
        # else it went with the connection, which is kept until the cursor is closed (LB-52)
        if not isinstance(error, PyMongoError):
            self.abandon()  # this greenlet is to end: it must not wait, and may never close the cursor
        elif self._exhaust:
            self._let_go()
        return False

    def _take(self, reply: CursorReply) -> None:
        """Take a batch over. What is not decoded yet is counted when it is."""
        self.cursor_id = reply.cursor_id
        self.address: Address = reply.address
        if reply.namespace != self._namespace:
            self._namespace = reply.namespace
            self._context = context_of(reply.namespace, self._codec_options)
        self.post_batch_resume_token = reply.reply["cursor"].get("postBatchResumeToken")
        if isinstance(reply.batch, Batch):
            self._batch = reply.batch
            if not self._exhaust:
                self._work = LongWork()
        else:
            self.documents = deque(reply.batch)
            self.retrieved += len(reply.batch)
        if self.cursor_id == 0:
            self._let_go()

    # Ending

    def close(self) -> None:
        """End the cursor on the server, if it is still open there. What was buffered can still be taken.

        :raises InvalidOperation: another greenlet waits for a batch on the connection that is pinned to the cursor.
        """
        if self._pin is not None:
            if self._ahead is not None:
                self._ahead.stop()  # nothing else can be sent on its connection
            else:
                self._pin.check_free()
        self._kill()

    def _kill(self) -> None:
        cursor_id = self._end_here()
        session = self._session if self._session is not None and not self._session.has_ended else None
        try:
            if cursor_id and self._epoch == self._executor.epoch and not self._goes_with_connection():
                operation = KillCursors(self._context, [cursor_id], self.address, self._pin)
                self._executor.run(operation, session, self._deadline_for_closing())
        except PyMongoError as error:
            if error.timeout:  # it may not even have been sent
                self._drop(cursor_id)
            # else the server forgets it by itself after a while
        except BaseException:
            self._drop(cursor_id)
            raise
        finally:
            self._let_go()

    def _end_here(self) -> int:
        """Ask for nothing more; returns the number of the cursor, if it may still be open on the server."""
        cursor_id, self.cursor_id, self._orphan = self.cursor_id or self._orphan, 0, 0
        if self._ahead is None or not cursor_id:
            return cursor_id
        return self._ahead.end()

    def _goes_with_connection(self) -> bool:
        """Whether the cursor has a connection that cannot be used any more, with which the server ends it."""
        return self._pin is not None and not self._pin.connection.usable

    def _deadline_for_closing(self) -> float | None:
        """As much time again as the cursor had, which may have used it up; or what is left of a limit set meanwhile."""
        limit, current = self._time_limit, current_deadline()
        if current is not None and current > _clock.monotonic():
            return current
        return self._executor.fresh_deadline() if limit is None else _clock.monotonic() + limit

    def abandon(self) -> None:
        """Leave the cursor to the reaper. Does no I/O and does not switch, so a finaliser may call it."""
        cursor_id = self._end_here()
        self.documents.clear()
        self._batch = None
        self._drop(cursor_id)

    def _drop(self, cursor_id: int) -> None:
        if self._goes_with_connection():
            cursor_id = 0
        session, self._session = self._session, None
        pin, self._pin = self._pin, None
        ahead, self._ahead = self._ahead, None
        implicit = session if isinstance(session, ImplicitSession) and not self._keeps_session else None
        if (cursor_id or implicit or pin) and self._epoch == self._executor.epoch:  # else it is the parent's
            self._reaper.take(Dropped(cursor_id, self._namespace, self.address, implicit, pin, ahead))

    def _let_go(self) -> None:
        """Give back what the cursor held: its implicit session, and its connection."""
        if self._ahead is not None:
            self._ahead.stop()
        if isinstance(self._session, ImplicitSession) and not self._keeps_session:
            self._session.end_implicit()
            self._session = None
        pin, self._pin = self._pin, None
        if pin is not None:
            pin.release()

    def __del__(self) -> None:
        if getattr(self, "cursor_id", 0) or getattr(self, "_orphan", 0) or getattr(self, "_pin", None):
            self.abandon()
