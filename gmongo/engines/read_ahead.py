"""Reading ahead: the next batches of a cursor are on their way while the application uses this one."""

from __future__ import annotations

from collections import deque

from gevent import Greenlet, sleep, spawn

from gmongo._background import LongWork, hold_hub
from gmongo._short_text import short
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession, SessionHandle, SharedSession
from gmongo.operations.cursors import GetMoreAhead
from gmongo.operations.find import CursorReply
from gmongo.wire.address import address_text
from gmongo.wire.limit import interrupt_after, limit_text, remaining
from gmongo.wire.reply import Batch

# Of the batches that wait, so many bytes are decoded.
_DECODED = 1024 * 1024
# Of the batches that are read ahead. A batch is of 16 MB at most.
MAX_BYTES = 32 * 1024 * 1024


class ReadAhead:
    """The batches of one cursor that have arrived, or are on their way, before they are asked for.

    Each batch is fetched by a greenlet of its own, one after the other. The greenlet knows this object, and not the
    cursor: a cursor that the application drops is found by its finaliser, whatever is on its way. While a batch is
    fetched, the greenlet holds the cursor's session and its pinned connection together with the cursor; the last of
    them gives each back.

    :param executor: runs `getMore`.
    :param reading: of the client; this is in it while a batch is on its way.
    :param operation: the first `getMore`.
    :param session: of the cursor; None takes one for each batch.
    :param deadline: of the cursor, by which its last document must have come.
    :param batch_size: of the batches; 0 leaves it to the server.
    :param left: how many documents may come yet; None is without limit.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_arrived",
        "_batches",
        "_bytes",
        "_deadline",
        "_epoch",
        "_error",
        "_executor",
        "_greenlet",
        "_is_awaited",
        "_last_size",
        "_left",
        "_max_bytes",
        "_operation",
        "_raw",
        "_reading",
        "_session",
        "batch_size",
        "cursor_id",
    )

    def __init__(
        self,
        executor: Executor,
        reading: set[ReadAhead],
        operation: GetMoreAhead,
        session: SharedSession | None,
        deadline: float | None,
        batch_size: int,
        left: int | None,
    ) -> None:
        self._executor = executor
        self._epoch = executor.epoch
        self._reading = reading
        self._address = address_text(operation.address)
        self._operation: GetMoreAhead | None = operation  # the next one; None when there is none
        self._session = session
        self._deadline = deadline
        self.batch_size = batch_size
        self._left = left
        self._batches = self._max_bytes = 0
        self.cursor_id = operation.cursor_id  # as the server's last reply had it
        self._arrived: deque[tuple[CursorReply, int]] = deque()  # with the size of each in bytes
        self._bytes = 0  # of all of them
        self._last_size = 0
        self._raw = operation.raw
        self._is_awaited = False  # whether the application waits for the batch that is on its way
        self._error: Exception | None = None  # which ended the last one
        self._greenlet: Greenlet[[], None] | None = None

    def allow(self, batches: int, max_bytes: int) -> None:
        """Set how many batches, and how many bytes, may wait for the application or be on their way."""
        self._batches = batches
        self._max_bytes = max_bytes

    @property
    def is_fetching(self) -> bool:
        """Whether a batch is on its way, or about to be asked for."""
        return self._greenlet is not None and not self._greenlet.ready()

    def next(self, deadline: float | None) -> CursorReply:
        """The next batch; waits for it.

        :param deadline: by which it must have come; None is without limit.
        :raises PyMongoError: what its `getMore` has raised.
        """
        while not self._arrived:
            if self._error is not None or self._operation is None:
                error, self._error = self._error or self._interrupted(), None
                try:
                    raise error
                finally:
                    del error  # it refers to this frame
            self.start(needed=True)
            self._wait(deadline)
        reply, size = self._arrived.popleft()
        self._bytes -= size
        return reply

    def start(self, needed: bool = False) -> bool:
        """Have the next batch fetched, if there is one, and room for it. Does not switch.

        :param needed: whether the application waits for it, so that the room does not matter.
        :returns: whether a greenlet begins.
        """
        if self._operation is None or self._error is not None or self.is_fetching:
            return False
        # The next batch will probably be as large as the last one.
        room = len(self._arrived) < self._batches and self._bytes + self._last_size <= self._max_bytes
        if room or needed:
            observers = self._executor.observers
            self._greenlet = spawn(self._fetch if observers is None else observers.carried(self._fetch))
        return room or needed

    def end(self) -> int:
        """Ask for nothing more, and forget what has arrived. Does not switch; a finaliser may call it.

        :returns: the number of the cursor, if it may still be open on the server.
        """
        self._operation = None
        self._arrived.clear()
        return self.cursor_id

    def stop(self) -> None:
        """End, and interrupt what is on its way, at the cost of its connection. Does not switch."""
        self.end()
        greenlet, self._greenlet = self._greenlet, None
        if greenlet is not None:
            greenlet.kill(block=False)

    # In the greenlet

    def _fetch(self) -> None:
        operation, session = self._operation, self._session
        if operation is None:  # it has ended before this began
            return
        operation.batch_size = size_of_next(self.batch_size, self._left)
        pin = operation.pin and operation.pin.share()
        if session is not None:
            session.share()
        self._reading.add(self)
        try:
            refuse_inherited(self._epoch, self._executor)  # there may have been a fork before this greenlet began
            self._take(operation, self._executor.run(operation, session, self._deadline))
        except Exception as error:
            self._error = _without_frames(error)
        except BaseException:  # the client is closed, or the application kills greenlets of the driver's
            self._error = self._interrupted()
        finally:
            self._reading.discard(self)
            self._greenlet = None
            if session is not None:
                session.end_implicit()
            if pin is not None:
                pin.release()
        if self.start():
            sleep(0)  # the request is on its way before anything else takes time
        if not self._is_awaited and self._arrived:
            self._decode(*self._arrived[-1])

    def _decode(self, reply: CursorReply, size: int) -> None:
        """Decode the batch that has just come for as long as it waits, since the application waits for something else.

        There is a limit to it: documents take several times the memory of their BSON, and what does not fit into the
        caches of the processor costs more to use.
        """
        batch, work = reply.batch, LongWork()
        if not isinstance(batch, Batch) or self._raw or size * len(self._arrived) > _DECODED:
            return
        while any(each is reply for each, _size in self._arrived) and batch.decode_ahead():
            work.checkpoint()

    def _take(self, operation: GetMoreAhead, reply: CursorReply) -> None:
        self.cursor_id = reply.cursor_id
        if self._left is not None:
            self._left -= count(reply.batch)
        if self._operation is None:  # the cursor has ended
            return
        self._last_size = operation.size
        self._bytes += operation.size
        self._arrived.append((reply, operation.size))
        more = reply.cursor_id != 0 and (self._left is None or self._left > 0)
        self._operation = operation.following(reply) if more else None

    def _interrupted(self) -> AutoReconnect:
        return AutoReconnect(f"{self._address}: the batch that was read ahead was interrupted")

    # In the greenlet of the application

    def _wait(self, deadline: float | None) -> None:
        """Wait until the batch that is on its way has come, or has failed.

        :raises NetworkTimeout: the limit of time was over first.
        """
        greenlet = self._greenlet
        assert greenlet is not None
        left = remaining(deadline) if self._deadline is None else None  # that of the cursor is the `getMore`'s
        holding = hold_hub()  # the greenlet does not
        self._is_awaited = True
        try:
            text = f"{self._address}: {limit_text(left)} ended while a batch was read ahead"
            with interrupt_after(left, NetworkTimeout(text)):
                greenlet.join()
        finally:
            self._is_awaited = False
            holding.close()


def checked_allowance(batches: int, max_bytes: int) -> tuple[int, int]:
    """The arguments of ``read_ahead``.

    :raises TypeError: one is no integer.
    :raises ValueError: one is less than 1.
    """
    for name, value in (("batches", batches), ("max_bytes", max_bytes)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, not {short(value)}")
        if value < 1:
            raise ValueError(f"{name} must be >= 1, not {value}")
    return batches, max_bytes


def check_session(session: SessionHandle | None) -> None:
    """Refuse to read ahead in a session in which the application orders the commands.

    :raises InvalidOperation: `session` is the application's.
    """
    if session is not None and not isinstance(session, ImplicitSession):
        raise InvalidOperation(
            "a cursor in a session of the application's cannot read ahead: a session runs one command at a time, and "
            "the application orders them"
        )


def refuse_inherited(epoch: int, executor: Executor) -> None:
    """Refuse to go on with a cursor of the parent process, which would miss what this process took.

    :param epoch: in which the cursor was opened.
    :raises AutoReconnect: there was a fork since.
    """
    if epoch != executor.epoch:
        raise AutoReconnect("the cursor was opened before a fork, and belongs to the parent process")


def count(batch: list[object] | Batch) -> int:
    """How many documents a batch has."""
    return batch.count() if isinstance(batch, Batch) else len(batch)


def size_of_next(batch_size: int, left: int | None) -> int:
    """How many documents to ask for; 0 leaves it to the server.

    :param batch_size: what the application wants; 0 if it does not say.
    :param left: how many may come yet; None is without limit.
    """
    if left is None:
        return batch_size
    return min(batch_size, left) if batch_size else left


def _without_frames(error: Exception) -> Exception:
    """The error, and those that it came from, without what their frames refer to."""
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = None
        seen = seen.__cause__ or seen.__context__
    return error
