"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from bson.binary import Binary, UuidRepresentation

from gmongo import _chance, _clock
from gmongo._documents import DocumentDict

if TYPE_CHECKING:
    from gmongo._background import Wakeup
    from gmongo.execution.operation import Operation
    from gmongo.sdam.topology import Topology
    from gmongo.wire.address import Address


class ServerSession:
    """A logical session on the server. It has one owner at a time: an operation, a cursor or a client session."""

    __slots__ = ("address", "dirty", "epoch", "last_used", "lsid", "transaction_number", "unanswered", "wakeup")

    address: Address
    """The server of the command that was interrupted last, if one was."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch  # how many forks lay behind the process that made it
        self.lsid = {"id": Binary.from_uuid(_chance.uuid4(), UuidRepresentation.STANDARD)}
        self.last_used = _clock.monotonic()
        self.dirty = False  # a network error hit one of its commands, so the server may still be busy with it
        self.transaction_number = 0
        self.unanswered = 0  # how many of its commands were interrupted, and may run on the server still
        self.wakeup: Wakeup | None = None  # of the greenlet that ends those

    def interrupted(self, address: Address) -> None:
        """Note that a greenlet was interrupted before the reply to a command.

        :param address: of the server.
        """
        self.unanswered += 1
        self.address = address

    def answered(self) -> None:
        """Note that the late reply to an interrupted command has come. Does not switch."""
        self.unanswered -= 1
        if self.wakeup is not None:
            self.wakeup.set()


class ServerSessionPool:
    """Server sessions that are not in use; the one used last is taken first.

    :param topology: knows how long the servers keep a session that is not used.
    """

    __slots__ = ("_epoch", "_idle", "_topology", "in_use", "reaper")

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._idle: deque[ServerSession] = deque()
        self._epoch = 0
        self.in_use = 0  # how many have been taken out, and not been given back
        # What ends interrupted commands and open transactions on the server; None if it is gone.
        self.reaper: Callable[[], Callable[[ServerSession, Operation | None], None] | None] = _no_reaper

    def __len__(self) -> int:
        return len(self._idle)

    def acquire(self) -> ServerSession:
        """A session that the server still knows for a while, or a new one. It counts as used now."""
        # Critical section: the look at a session's age, and its leaving the pool: no other operation takes it.
        self.in_use += 1
        idle = self._idle
        now = _clock.monotonic()
        oldest_use = now - self._topology.description.sessions_usable
        while idle:
            session = idle.pop()
            if session.last_used >= oldest_use:
                session.last_used = now
                return session
        return ServerSession(self._epoch)

    def release(self, session: ServerSession) -> None:
        """Take a session back, unless it is dirty, about to expire, or of the process that this one was forked from.

        The reaper takes a session with an interrupted command.
        """
        if session.epoch != self._epoch:  # the parent's, which `forget` does not count any more
            return
        self.in_use -= 1
        if session.unanswered:
            self.leave(session)
            return
        idle = self._idle
        oldest_use = _clock.monotonic() - self._topology.description.sessions_usable
        while idle and idle[0].last_used < oldest_use:
            idle.popleft()
        if not session.dirty and session.last_used >= oldest_use:
            idle.append(session)

    def leave(self, session: ServerSession, abort: Operation | None = None) -> None:
        """Leave a session to the reaper. Does not switch.

        :param abort: ends a transaction; None kills the session.
        """
        take = self.reaper()
        if take is not None:
            take(session, abort)

    def restore(self, session: ServerSession) -> None:
        """Take a session back from the reaper."""
        self.in_use += 1
        self.release(session)

    def drain(self) -> list[DocumentDict]:
        """Take all sessions out; returns their IDs, for ``endSessions``."""
        idle = [session.lsid for session in self._idle]
        self._idle.clear()
        return idle

    def forget(self) -> None:
        """In a forked child: all sessions are the parent's, those in use too."""
        self._idle.clear()
        self.in_use = 0
        self._epoch += 1


def _no_reaper() -> None:
    return None


class SessionOwner(Protocol):
    """The part of an executor that sessions use."""

    sessions: ServerSessionPool

    @property
    def epoch(self) -> int:
        """How many forks lie behind this process, as far as the client has seen them."""
