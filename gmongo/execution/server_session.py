"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from bson.binary import Binary, UuidRepresentation

from gmongo import _clock, _random
from gmongo._documents import DocumentDict

if TYPE_CHECKING:
    from gmongo._background import Wakeup
    from gmongo.execution.operation import Operation
    from gmongo.sdam.topology import Topology
    from gmongo.wire.address import Address


class ServerSession:
    """Logical session on the server. A server session has one owner: an operation, a cursor or a client session."""

    __slots__ = ("dirty", "epoch", "last_used", "lsid", "transaction_number", "unanswered", "wakeup")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch  # number of forks before the creation of the session
        self.lsid = {"id": Binary.from_uuid(_random.uuid4(), UuidRepresentation.STANDARD)}
        self.last_used = _clock.monotonic()
        self.dirty = False  # True after a network error, because the server may still run a command of the session
        self.transaction_number = 0
        # Server -> number of interrupted commands that the server may still run. A session can use several servers.
        self.unanswered: dict[Address, int] = {}
        self.wakeup: Wakeup | None = None  # wakes the reaper, which waits for the late replies to these commands

    def interrupted(self, address: Address) -> None:
        """Record that a command was interrupted before its reply arrived.

        :param address: address of the server.
        """
        self.unanswered[address] = self.unanswered.get(address, 0) + 1

    def answered(self, address: Address) -> None:
        """Record that the late reply to an interrupted command arrived, without a switch of greenlets.

        :param address: address of the server.
        """
        self.unanswered[address] -= 1
        if not self.unanswered[address]:
            del self.unanswered[address]
        if self.wakeup is not None:
            self.wakeup.set()


class ServerSessionPool:
    """Pool of idle server sessions. :meth:`acquire` returns the session that was used last.

    :param topology: topology of the client, with the session timeout of the servers.
    """

    __slots__ = ("_epoch", "_idle", "_topology", "in_use", "reaper")

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._idle: deque[ServerSession] = deque()
        self._epoch = 0
        self.in_use = 0  # number of acquired sessions
        # Returns the function that ends interrupted commands and open transactions. Returns None after the garbage
        # collection of the reaper.
        self.reaper: Callable[[], Callable[[ServerSession, Operation | None], None] | None] = _no_reaper

    def __len__(self) -> int:
        return len(self._idle)

    def acquire(self) -> ServerSession:
        """Return an idle session that does not expire soon, or a new session."""
        # Critical section without a switch of greenlets: no other operation takes the session between the check of its
        # age and its removal.
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
        """Return a session to the pool.

        Discard a session that is dirty, expires soon, or belongs to the parent process.

        If a server may still run interrupted commands of the session, hand the session to the reaper.
        """
        if session.epoch != self._epoch:  # `in_use` does not count a session of the parent process
            return
        self.in_use -= 1
        if session.unanswered:
            self.hand_to_reaper(session)
            return
        idle = self._idle
        oldest_use = _clock.monotonic() - self._topology.description.sessions_usable
        while idle and idle[0].last_used < oldest_use:
            idle.popleft()
        if not session.dirty and session.last_used >= oldest_use:
            idle.append(session)

    def leave_cursor(self, session: ServerSession | None, address: Address) -> None:
        """Record that a cursor of the session may be open. At the end of the session, `killSessions` kills the cursor.

        :param session: server session of the cursor. Another operation may already use the session, or the session is
            idle. None does nothing.
        :param address: address of the server on which the cursor may be open.
        """
        if session is None or session.epoch != self._epoch:
            return
        session.dirty = True
        session.interrupted(address)
        if session in self._idle:
            self._idle.remove(session)
            self.hand_to_reaper(session)

    def hand_to_reaper(self, session: ServerSession, abort: Operation | None = None) -> None:
        """Hand a session to the reaper, without a switch of greenlets.

        :param abort: operation with which the reaper aborts the open transaction; None to kill the session instead.
        """
        take = self.reaper()
        if take is not None:
            take(session, abort)

    def restore(self, session: ServerSession) -> None:
        """Return a session from the reaper to the pool."""
        self.in_use += 1
        self.release(session)

    def drain(self) -> list[DocumentDict]:
        """Remove all idle sessions, and return the session IDs for ``endSessions``."""
        idle = [session.lsid for session in self._idle]
        self._idle.clear()
        return idle

    def forget(self) -> None:
        """Forget all sessions in a forked child, because they belong to the parent process."""
        self._idle.clear()
        self.in_use = 0
        self._epoch += 1


def _no_reaper() -> None:
    return None


class SessionOwner(Protocol):
    """Attributes of an executor that sessions use."""

    sessions: ServerSessionPool

    @property
    def epoch(self) -> int:
        """Number of forks of the process since the creation of the client."""
