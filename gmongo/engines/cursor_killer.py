"""Background work that closes cursors which the application dropped without a call of ``close``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakMethod

from bson.errors import BSONError
from gevent import Greenlet, getcurrent, joinall, spawn

from gmongo.cmap.pin import PinnedConnection
from gmongo.engines.read_ahead import ReadAhead
from gmongo.errors import PyMongoError
from gmongo.execution.executor import Executor
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import ImplicitSession
from gmongo.operations.find import CursorReply, KillCursors, context_of
from gmongo.wire.address import Address


class DroppedCursor(NamedTuple):
    """Cursor that the application dropped, and the resources of the cursor."""

    cursor_id: int
    namespace: str
    address: Address
    session: ImplicitSession | None
    pin: PinnedConnection | None
    ahead: ReadAhead | None = None
    # Server session of a cursor without a pinned connection. The owner of the session may continue to use the session.
    server_session: ServerSession | None = None

    def release(self) -> None:
        if self.ahead is not None:
            self.ahead.stop()
        if self.session is not None:
            self.session.end_implicit()
        if self.pin is not None:
            self.pin.release()


class CursorKiller:
    """Queue of dropped cursors. Finalisers add cursors at any moment and in any thread. Greenlets close the cursors."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        executor.commands.orphan_taker = WeakMethod(self.take_orphan)
        # Each entry consists of a cursor and the epoch (number of forks) in which the cursor was added.
        self._unpinned: deque[tuple[int, DroppedCursor]] = deque()
        self._pinned: deque[tuple[int, DroppedCursor]] = deque()
        self._reaping: int | None = None  # the epoch in which a greenlet for `_unpinned` runs or is scheduled
        self._running: set[Greenlet[[], None]] = set()
        self.reading: set[ReadAhead] = set()  # the read-ahead objects of the client that have a fetch in progress

    def take(self, dropped: DroppedCursor) -> None:
        """Take ownership of a cursor and its resources, without I/O and without a switch of greenlets."""
        hub, epoch = self._executor.topology.hub, self._executor.epoch
        if dropped.pin is not None:
            if hub is None:  # the client is closed
                dropped.pin.release_soon()
            else:
                # A pinned cursor has a separate queue, because `_unpinned` cursors may wait for its connection.
                self._pinned.append((epoch, dropped))
                hub.loop.run_callback_threadsafe(self._start, self._close_pinned)
            return
        self._unpinned.append((epoch, dropped))
        self._reap_soon()

    def _reap_soon(self) -> None:
        hub, epoch = self._executor.topology.hub, self._executor.epoch
        if self._reaping != epoch and hub is not None:
            self._reaping = epoch
            # The event loop spawns the greenlet, because the finaliser may run in another thread.
            hub.loop.run_callback_threadsafe(self._start, self._close_unpinned)

    def _start(self, work: Callable[[], None]) -> None:
        greenlet = spawn(work)
        self._running.add(greenlet)
        greenlet.rawlink(self._restart_if_needed)

    def _restart_if_needed(self, ended: Greenlet[[], None] | None) -> None:
        """Start another greenlet if the ended greenlet has left cursors in its queue, for example after a kill."""
        self._running.discard(ended)
        self._reaping = None
        if self._pinned:
            self._start(self._close_pinned)
        if self._unpinned:
            self._reap_soon()

    def take_orphan(self, opened: CursorReply) -> None:
        """Take ownership of a cursor that the command of an interrupted operation opened."""
        self.take(DroppedCursor(opened.cursor_id, opened.namespace, opened.address, None, opened.pin))

    def reap(self) -> None:
        """Close all cursors in the queues. Then wait for the greenlets that are closing cursors."""
        try:
            self._close_pinned()
            self._close_unpinned()
            joinall(self._running - {getcurrent()})
        finally:
            self._restart_if_needed(None)  # a finaliser or an error may have left cursors in the queue

    def _close_pinned(self) -> None:
        # One greenlet is started for each pinned cursor: while a greenlet waits for a server, other greenlets continue.
        while self._pinned:
            epoch, dropped = self._pinned.popleft()
            self._close_group(epoch, [dropped])

    def _close_unpinned(self) -> None:
        while self._unpinned:
            self._close_group(*self._next_group())

    def _next_group(self) -> tuple[int, list[DroppedCursor]]:
        """Remove the first cursor from the queue, and all cursors with the same epoch, namespace and server.

        Iteration over the queue would fail, because finalisers in other threads may append cursors concurrently.
        """
        epoch, first = self._unpinned.popleft()
        group = [first]
        for _ in range(len(self._unpinned)):
            entry = self._unpinned.popleft()
            if (entry[0], entry[1].namespace, entry[1].address) == (epoch, first.namespace, first.address):
                group.append(entry[1])
            else:
                self._unpinned.append(entry)
        return epoch, group

    def stop_reading(self) -> None:
        """Stop all fetches in progress, because the client is being closed."""
        for ahead in list(self.reading):
            ahead.stop()

    def _close_group(self, epoch: int, group: list[DroppedCursor]) -> None:
        """Close cursors of one namespace and server with one command. A pinned cursor has its own group."""
        if epoch != self._executor.epoch:  # ignore cursors of the parent process
            return
        first = group[0]
        try:
            if cursor_ids := [each.cursor_id for each in group if each.cursor_id]:
                operation = KillCursors(context_of(first.namespace), cursor_ids, first.address, first.pin)
                self._executor.run(operation, first.session)
        except (PyMongoError, BSONError):
            for dropped in group:
                self._executor.sessions.leave_cursor(dropped.server_session, dropped.address)
        finally:
            for dropped in group:
                dropped.release()
