"""Read-ahead: fetch the next batches of a cursor while the application uses the current batch."""

from __future__ import annotations

from collections import deque
from dataclasses import InitVar, dataclass

from gevent import Greenlet, sleep, spawn

from gmongo._background import LongWork, keep_loop_alive
from gmongo._truncated_repr import short
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle
from gmongo.operations.find import CursorReply, GetMoreAhead
from gmongo.wire.address import address_text
from gmongo.wire.reply import Batch
from gmongo.wire.timeout import interrupt_after, limit_text, remaining

_MAX_DECODED_BYTES = 1024 * 1024  # the maximum number of bytes that are decoded in advance
DEFAULT_MAX_BYTES = 32 * 1024 * 1024  # the default maximum size of all waiting batches, in bytes


@dataclass(eq=False, repr=False)
class ReadAhead:
    """Batches of one cursor that the driver fetches before the application needs the batches.

    A new greenlet fetches each batch. The greenlet does not refer to the cursor, so that Python can
    free the cursor during a fetch. The greenlet and the cursor share the implicit session and the
    pinned connection. The last user releases the session and the connection. Without a session, each
    fetch has a new implicit session.
    """

    _executor: Executor
    _busy_read_aheads: set[ReadAhead]  # the read-ahead objects of the client that fetch a batch
    operation: InitVar[GetMoreAhead]
    _session: SessionHandle | None
    _deadline: float | None
    batch_size: int
    _documents_left: int | None  # the number of documents that the limit of the cursor still allows, or None
    max_batches: int = 0  # the maximum number of batches that are waiting or being fetched
    max_bytes: int = 0  # the maximum total size of these batches in bytes
    _waiting_bytes: int = 0  # the total size of the received batches that the application does not use yet, in bytes
    _last_size: int = 0  # the size of the last batch in bytes
    _is_awaited: bool = False  # True if the application waits for the batch that is being fetched
    _error: Exception | None = None  # the error of the last getMore
    _greenlet: Greenlet[[], None] | None = None

    def __post_init__(self, operation: GetMoreAhead) -> None:
        self._epoch = self._executor.epoch
        self._address = address_text(operation.address)
        self._operation: GetMoreAhead | None = operation  # the next getMore, or None
        self.cursor_id = operation.cursor_id  # the cursor ID of the last reply
        self._arrived_replies: deque[tuple[CursorReply, int]] = deque()  # received replies and their sizes in bytes
        self._raw = operation.raw

    def next(self, deadline: float | None) -> CursorReply:
        """Wait until `deadline` for the next batch, and return the reply that contains the batch."""
        while not self._arrived_replies:
            if self._error is not None or self._operation is None:
                error, self._error = self._error or self._create_interruption_error(), None
                try:
                    raise error
                finally:
                    del error  # prevent a reference cycle between this frame and the error
            self.start(needed=True)
            self._wait(deadline)
        reply, size = self._arrived_replies.popleft()
        self._waiting_bytes -= size
        return reply

    def start(self, needed: bool = False) -> bool:
        """Start a fetch if possible. A `needed` batch may exceed limits. Do not switch greenlets."""
        is_fetching = self._greenlet is not None and not self._greenlet.ready()
        if is_fetching or self._operation is None or self._error is not None:
            return False
        # The size of the last batch is the estimate for the size of the next batch.
        fits = len(self._arrived_replies) < self.max_batches and self._waiting_bytes + self._last_size <= self.max_bytes
        if fits or needed:
            observers = self._executor.observers
            self._greenlet = spawn(self._fetch if observers is None else observers.bind_context(self._fetch))
        return fits or needed

    def end(self) -> int:
        """Discard the fetched batches, and stop requesting batches, without a switch of greenlets.

        :returns: the ID of the cursor if the cursor may still be open on the server, or 0.
        """
        self._operation = None
        self._arrived_replies.clear()
        return self.cursor_id

    def stop(self) -> None:
        """Stop without a switch of greenlets. An interrupted fetch closes its connection."""
        self.end()
        greenlet, self._greenlet = self._greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)

    def _fetch(self) -> None:
        operation = self._operation
        if operation is None:  # end() was called before the greenlet started
            return
        operation.batch_size = next_batch_size(self.batch_size, self._documents_left)
        pin = operation.pin and operation.pin.share()
        self._busy_read_aheads.add(self)
        try:
            # The process may have forked before the start of the greenlet.
            refuse_inherited(self._epoch, self._executor)
            self._store_reply(operation, self._executor.run(operation, self._session, self._deadline))
        except Exception as error:
            self._error = _remove_tracebacks(error)
        except BaseException:  # the client was closed, or the application killed the greenlet
            self._error = self._create_interruption_error()
        finally:
            self._busy_read_aheads.discard(self)
            self._greenlet = None
            if pin is not None:
                pin.release()
        if self.start():
            sleep(0)  # let the new greenlet send the next getMore before the decoding
        if not self._is_awaited and self._arrived_replies:
            self._decode(*self._arrived_replies[-1])

    def _decode(self, reply: CursorReply, size: int) -> None:
        """Decode a received batch in advance, until the application takes the batch.

        Decode only small batches, because decoded documents need several times the memory of their
        BSON, and large batches do not fit into the processor caches.
        """
        batch, work = reply.batch, LongWork()
        if not isinstance(batch, Batch) or self._raw or size * len(self._arrived_replies) > _MAX_DECODED_BYTES:
            return
        while any(each is reply for each, _size in self._arrived_replies) and batch.decode_ahead():
            work.checkpoint()

    def _store_reply(self, operation: GetMoreAhead, reply: CursorReply) -> None:
        self.cursor_id = reply.cursor_id
        if self._documents_left is not None:
            self._documents_left -= document_count(reply.batch)
        if self._operation is None:  # the cursor has ended
            return
        self._last_size = operation.size
        self._waiting_bytes += operation.size
        self._arrived_replies.append((reply, operation.size))
        has_more = reply.cursor_id != 0 and (self._documents_left is None or self._documents_left > 0)
        self._operation = operation.next_get_more(reply) if has_more else None

    def _create_interruption_error(self) -> AutoReconnect:
        return AutoReconnect(f"{self._address}: the read-ahead of a batch was interrupted")

    def _wait(self, deadline: float | None) -> None:
        """Wait for the fetch in progress, or raise NetworkTimeout at the deadline."""
        greenlet = self._greenlet
        assert greenlet is not None
        # A deadline of the whole cursor already limits the fetch.
        seconds_left = remaining(deadline) if self._deadline is None else None
        keep_alive = keep_loop_alive()  # the fetching greenlet does not keep the event loop alive
        self._is_awaited = True
        try:
            text = f"{self._address}: {limit_text(seconds_left)} ended while a batch was read ahead"
            with interrupt_after(seconds_left, NetworkTimeout(text)):
                greenlet.join()
        finally:
            self._is_awaited = False
            keep_alive.close()


def checked_read_ahead_limits(batches: int, max_bytes: int) -> tuple[int, int]:
    """Check and return the arguments of ``read_ahead``."""
    for name, value in (("batches", batches), ("max_bytes", max_bytes)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, not {short(value)}")
        if value < 1:
            raise ValueError(f"{name} must be >= 1, not {value}")
    return batches, max_bytes


def check_not_explicit(session: SessionHandle | None) -> None:
    """Raise InvalidOperation for an explicit session, whose command order the application sets."""
    if session is not None and not isinstance(session, ImplicitSession):
        raise InvalidOperation(
            "a cursor in an explicit session cannot read ahead: a session runs one command at a time, in the order of "
            "the application"
        )


def refuse_inherited(epoch: int, executor: Executor) -> None:
    """Raise AutoReconnect if the process has forked since the `epoch` of the cursor.

    If the child and the parent read one cursor, each process receives only a part of the documents.
    """
    if epoch != executor.epoch:
        raise AutoReconnect("the cursor was opened before a fork, and belongs to the parent process")


def document_count(batch: list[object] | Batch) -> int:
    """Return the number of documents in a batch."""
    return batch.count() if isinstance(batch, Batch) else len(batch)


def next_batch_size(batch_size: int, documents_left: int | None) -> int:
    """Return the `batchSize` for at most `documents_left` documents, or 0 if the server chooses the size."""
    if documents_left is None:
        return batch_size
    return min(batch_size, documents_left) if batch_size else documents_left


def _remove_tracebacks(error: Exception) -> Exception:
    """Remove the tracebacks of an error and its causes, and return the error."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error
