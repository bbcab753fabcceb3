"""Resources of open cursors, and the background greenlets that close dropped cursors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import NamedTuple
from weakref import WeakMethod

from bson.codec_options import CodecOptions
from bson.errors import BSONError
from gevent import Greenlet, getcurrent, joinall, spawn

from gmongo import _clock
from gmongo._documents import Value
from gmongo.cmap.pin import PinnedConnection
from gmongo.engines.read_ahead import ReadAhead
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import ImplicitSession, SessionHandle, server_session_of
from gmongo.operations.find import CursorReply, KillCursors, context_of
from gmongo.wire.address import Address


class DroppedCursor(NamedTuple):
    """Resources of a cursor that the application dropped without a call of ``close``."""

    cursor_id: int
    namespace: str
    address: Address
    session: ImplicitSession | None
    pin: PinnedConnection | None
    read_ahead: ReadAhead | None = None
    # the server session of a cursor without a pinned connection
    server_session: ServerSession | None = None

    def release(self) -> None:
        if self.read_ahead is not None:
            self.read_ahead.stop()
        if self.session is not None:
            self.session.end_implicit()
        if self.pin is not None:
            self.pin.release()


class CursorKiller:
    """Queues of dropped cursors. Finalisers add the cursors, and background greenlets close the cursors."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        executor.commands.orphan_taker = WeakMethod(self.take_orphan)
        # Each item consists of an epoch (the number of forks before the drop) and the dropped cursor.
        self._unpinned_cursors: deque[tuple[int, DroppedCursor]] = deque()
        self._pinned_cursors: deque[tuple[int, DroppedCursor]] = deque()
        self._reaping_epoch: int | None = None  # the epoch of the greenlet for `_unpinned_cursors`, or None
        self._running_greenlets: set[Greenlet[[], None]] = set()
        self.busy_read_aheads: set[ReadAhead] = set()  # the objects that are fetching a batch

    def take(self, dropped: DroppedCursor) -> None:
        """Add a dropped cursor to a queue, without I/O and without a switch of greenlets."""
        hub, epoch = self._executor.topology.hub, self._executor.epoch
        if dropped.pin is not None:
            if hub is None:  # the client is closed
                dropped.pin.release_soon()
            else:
                # Pinned cursors have a separate queue: the greenlet for `_unpinned_cursors` may have
                # to wait for a connection that a pinned cursor holds.
                self._pinned_cursors.append((epoch, dropped))
                hub.loop.run_callback_threadsafe(self._start, self._close_pinned)
            return
        self._unpinned_cursors.append((epoch, dropped))
        self._reap_soon()

    def _reap_soon(self) -> None:
        hub, epoch = self._executor.topology.hub, self._executor.epoch
        if self._reaping_epoch != epoch and hub is not None:
            self._reaping_epoch = epoch
            # The event loop spawns the greenlet, because the finaliser may run in another thread.
            hub.loop.run_callback_threadsafe(self._start, self._close_unpinned)

    def _start(self, work: Callable[[], None]) -> None:
        greenlet = spawn(work)
        self._running_greenlets.add(greenlet)
        greenlet.rawlink(self._restart_if_needed)

    def _restart_if_needed(self, ended: Greenlet[[], None]) -> None:
        """Start a new greenlet if the ended greenlet left cursors in a queue, for example after a kill."""
        self._running_greenlets.discard(ended)
        self._reaping_epoch = None
        if self._pinned_cursors:
            self._start(self._close_pinned)
        if self._unpinned_cursors:
            self._reap_soon()

    def take_orphan(self, opened: CursorReply) -> None:
        """Add the open cursor of an interrupted operation to a queue."""
        self.take(DroppedCursor(opened.cursor_id, opened.namespace, opened.address, None, opened.pin))

    def reap(self) -> None:
        """Close all cursors in the queues, and wait for the greenlets that are closing cursors."""
        self._close_pinned()
        self._close_unpinned()
        joinall(self._running_greenlets - {getcurrent()})

    def _close_pinned(self) -> None:
        # Each pinned cursor has its own greenlet, so that a slow server delays only its own cursors.
        while self._pinned_cursors:
            epoch, dropped = self._pinned_cursors.popleft()
            self._close_group(epoch, [dropped])

    def _close_unpinned(self) -> None:
        while self._unpinned_cursors:
            self._close_group(*self._take_next_group())

    def _take_next_group(self) -> tuple[int, list[DroppedCursor]]:
        """Remove the cursors of one epoch, namespace and server. Return the epoch and the cursors.

        Do not iterate over the queue, because finalisers may append cursors during the iteration.
        """
        epoch, first = self._unpinned_cursors.popleft()
        group = [first]
        for _ in range(len(self._unpinned_cursors)):
            each_epoch, each = self._unpinned_cursors.popleft()
            if (each_epoch, each.namespace, each.address) == (epoch, first.namespace, first.address):
                group.append(each)
            else:
                self._unpinned_cursors.append((each_epoch, each))
        return epoch, group

    def stop_reading(self) -> None:
        """Stop all fetches in progress, because the application is closing the client."""
        for read_ahead in list(self.busy_read_aheads):
            read_ahead.stop()

    def _close_group(self, epoch: int, group: list[DroppedCursor]) -> None:
        """Close the cursors of one namespace and server with one command."""
        if epoch != self._executor.epoch:  # ignore cursors of the parent process
            return
        first = group[0]
        try:
            if cursor_ids := [each.cursor_id for each in group if each.cursor_id]:
                operation = KillCursors(context_of(first.namespace), cursor_ids, first.address, first.pin)
                operation.in_background = getcurrent() in self._running_greenlets
                self._executor.run(operation, first.session)
        except (PyMongoError, BSONError):
            for dropped in group:
                self._executor.sessions.leave_cursor(dropped.server_session, dropped.address)
        finally:
            for dropped in group:
                dropped.release()


@dataclass(eq=False, repr=False)
class CursorResources:
    """Resources of a server cursor: its session, its pinned connection, and its read-ahead object.

    The last reply of the cursor, or an earlier :meth:`close`, releases the resources. The finaliser
    calls :meth:`drop`, after which a background greenlet releases the resources.
    """

    _executor: Executor
    _cursor_killer: CursorKiller
    opened: InitVar[CursorReply]
    session: SessionHandle | None
    codec_options: InitVar[CodecOptions[Value]]
    _time_limit: float | None  # seconds for the cursor. None if each command has its own time limit
    _keeps_session: bool  # True if another object ends the session
    read_ahead: ReadAhead | None = None
    _left_open_id: int = 0  # the ID of the cursor if close() or drop() must kill the cursor, or 0

    def __post_init__(self, opened: CursorReply, codec_options: CodecOptions[Value]) -> None:
        self.epoch = self._executor.epoch
        self.cursor_id = opened.cursor_id  # 0 if the driver requests no further batch
        self._namespace = opened.namespace
        self.address: Address = opened.address
        self.context = context_of(opened.namespace, codec_options)  # context of the later commands
        self.pin = opened.pin

    def update(self, reply: CursorReply) -> None:
        self.cursor_id = reply.cursor_id
        self.address = reply.address
        if reply.namespace != self._namespace:
            self._namespace = reply.namespace
            self.context = context_of(reply.namespace, self.context.codec_options)
        if self.cursor_id == 0:
            self.release()

    def stop_fetching(self) -> None:
        """Stop requesting batches. The caller must then close or drop the cursor."""
        cursor_id, self.cursor_id = self.cursor_id, 0
        if cursor_id and self.read_ahead is not None:
            cursor_id = self.read_ahead.end()
        if cursor_id and not self._ends_with_connection():
            self._left_open_id = cursor_id

    def close(self) -> None:
        """Close the cursor on the server, and release the resources."""
        if self.pin is not None:
            if self.read_ahead is not None:
                self.read_ahead.stop()  # the getMore of the read-ahead object occupies the connection
            else:
                self.pin.check_free()
        self.stop_fetching()
        session = self.session if self.session is not None and not self.session.has_ended else None
        try:
            if self._left_open_id and self.epoch == self._executor.epoch:
                operation = KillCursors(self.context, [self._left_open_id], self.address, self.pin)
                self._executor.run(operation, session, self._deadline_for_closing())
        except PyMongoError as error:
            if self.pin is None:
                self._executor.sessions.leave_cursor(server_session_of(session), self.address)
            if error.timeout or not (self.pin or isinstance(error, OperationFailure)):
                self.drop()
        except BaseException:
            self.drop()
            raise
        finally:
            self._left_open_id = 0
            self.release()

    def drop(self) -> None:
        """Let the cursor killer release the resources, without I/O or a switch of greenlets."""
        self.stop_fetching()
        cursor_id, self._left_open_id = self._left_open_id, 0
        if self._ends_with_connection():
            cursor_id = 0
        session, self.session = self.session, None
        pin, self.pin = self.pin, None
        read_ahead, self.read_ahead = self.read_ahead, None
        implicit = session if isinstance(session, ImplicitSession) and not self._keeps_session else None
        # A forked child must not close a cursor of the parent process.
        if (cursor_id or implicit or pin) and self.epoch == self._executor.epoch:
            server_session = server_session_of(session) if pin is None else None
            cursor = DroppedCursor(cursor_id, self._namespace, self.address, implicit, pin, read_ahead, server_session)
            self._cursor_killer.take(cursor)

    def __del__(self) -> None:
        # If the constructor failed, some attributes are not set.
        if getattr(self, "cursor_id", 0) or getattr(self, "_left_open_id", 0) or getattr(self, "pin", None):
            self.drop()

    def release(self) -> None:
        if self.read_ahead is not None:
            self.read_ahead.stop()
        if isinstance(self.session, ImplicitSession) and not self._keeps_session:
            self.session.end_implicit()
            self.session = None
        # Release the session before the check-in of the connection, which may be interrupted.
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.release()

    def _ends_with_connection(self) -> bool:
        """Return True if the pinned connection is unusable, so that the server closes the cursor."""
        return self.pin is not None and not self.pin.connection.usable

    def _deadline_for_closing(self) -> float | None:
        """Return the current deadline if time remains, otherwise a new deadline for the close."""
        limit, current = self._time_limit, current_deadline()
        if current is not None and current > _clock.monotonic():
            return current
        return self._executor.fresh_deadline() if limit is None else _clock.monotonic() + limit
