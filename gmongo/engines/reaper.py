"""Ends the cursors that the application has dropped without closing them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple
from weakref import WeakMethod

from bson.errors import BSONError
from gevent import spawn

from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import PyMongoError
from gmongo.execution.executor import Executor
from gmongo.execution.sessions import ImplicitSession
from gmongo.operations.cursors import KillCursors, context_of
from gmongo.operations.find import CursorReply
from gmongo.wire.address import Address


class Dropped(NamedTuple):
    """A cursor that nobody has any more: what it is known by, and what it held."""

    cursor_id: int
    namespace: str
    address: Address
    session: ImplicitSession | None
    pin: PinnedConnection | None


class CursorReaper:
    """Takes cursors from finalisers, which may run at any moment and in any thread, and ends them in a greenlet.

    :param executor: runs `killCursors`.
    """

    __slots__ = ("__weakref__", "_dropped", "_executor", "_reaping")

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        executor.commands.orphan_taker = WeakMethod(self.take_unopened)
        self._dropped: deque[tuple[int, Dropped]] = deque()  # with the epoch in which it was taken
        self._reaping: int | None = None  # in which epoch a greenlet is at it, or will be

    def take(self, dropped: Dropped) -> None:
        """Take a cursor over, with what it held. Does no I/O and does not switch."""
        hub = self._executor.topology.hub
        if hub is None and dropped.pin is not None:  # the client is closed
            dropped.pin.release_soon()
            return
        self._dropped.append((self._executor.epoch, dropped))
        if self._reaping != self._executor.epoch and hub is not None:
            self._reaping = self._executor.epoch
            hub.loop.run_callback_threadsafe(spawn, self.reap)

    def take_unopened(self, opened: CursorReply) -> None:
        """Take a cursor over that nobody ever had."""
        self.take(Dropped(opened.cursor_id, opened.namespace, opened.address, None, opened.pin))

    def reap(self) -> None:
        """End all cursors taken so far, but for what the parent of a forked child took: that one ends it."""
        try:
            while self._dropped:
                epoch, dropped = self._dropped.popleft()
                if epoch == self._executor.epoch:
                    self._end(dropped)
        finally:
            self._reaping = None

    def _end(self, dropped: Dropped) -> None:
        try:
            if dropped.cursor_id:
                context = context_of(dropped.namespace)
                operation = KillCursors(context, [dropped.cursor_id], dropped.address, dropped.pin)
                self._executor.run(operation, dropped.session)
        except (PyMongoError, BSONError):
            pass  # the server forgets it by itself after a while
        finally:
            if dropped.session is not None:
                dropped.session.end_implicit()
            if dropped.pin is not None:
                dropped.pin.release()
