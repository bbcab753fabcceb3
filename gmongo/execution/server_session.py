"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from bson.binary import Binary, UuidRepresentation

from gmongo import _clock, _random
from gmongo._background import Wakeup
from gmongo._documents import DocumentDict
from gmongo.execution.operation import Operation
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address


class ServerSession:
    """Session on the server, for one operation, one cursor or one client session."""

    __slots__ = ("dirty", "epoch", "last_used", "lsid", "transaction_number", "unanswered_counts", "wakeup")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch  # number of forks between the creation of client and session
        self.lsid = {"id": Binary.from_uuid(_random.uuid4(), UuidRepresentation.STANDARD)}
        self.last_used = _clock.monotonic()
        self.dirty = False  # True if a server may still use the session, as after a network error
        self.transaction_number = 0
        self.unanswered_counts: dict[Address, int] = {}  # number of unanswered commands by server
        self.wakeup: Wakeup | None = None  # wakes the session reaper after the late replies

    def record_interruption(self, address: Address) -> None:
        """Record that a command on the server at `address` was interrupted before the reply."""
        self.unanswered_counts[address] = self.unanswered_counts.get(address, 0) + 1

    def record_reply(self, address: Address) -> None:
        """Record the late reply to an interrupted command, without a switch of greenlets."""
        self.unanswered_counts[address] -= 1
        if not self.unanswered_counts[address]:
            del self.unanswered_counts[address]
        if self.wakeup is not None:
            self.wakeup.set()


class ServerSessionPool:
    """Pool of idle server sessions. :meth:`acquire` prefers the most recently released session."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._idle: deque[ServerSession] = deque()
        self._epoch = 0
        self.in_use = 0  # number of acquired sessions
        # Function that returns `SessionReaper.take`, or None after the deletion of the client
        self.session_taker: Callable[[], Callable[[ServerSession, Operation | None], None] | None] = lambda: None

    def __len__(self) -> int:
        return len(self._idle)

    def acquire(self) -> ServerSession:
        """Return an idle session that does not expire soon, or a new session."""
        # Critical section: the age check and the removal of a session must not switch greenlets.
        self.in_use += 1
        idle = self._idle
        now = _clock.monotonic()
        oldest_use = now - self._topology.description.session_usable_seconds
        while idle:
            session = idle.pop()
            if session.last_used >= oldest_use:
                session.last_used = now
                return session
        return ServerSession(self._epoch)

    def release(self, session: ServerSession) -> None:
        """Return a session to the pool, or, after an interrupted command, to the session reaper.

        Discard a session that is dirty, expires soon, or belongs to the parent process.
        """
        if session.epoch != self._epoch:  # `in_use` does not count a session of the parent process
            return
        self.in_use -= 1
        if session.unanswered_counts:
            self.hand_to_reaper(session)
            return
        idle = self._idle
        oldest_use = _clock.monotonic() - self._topology.description.session_usable_seconds
        while idle and idle[0].last_used < oldest_use:
            idle.popleft()
        if not session.dirty and session.last_used >= oldest_use:
            idle.append(session)

    def leave_cursor(self, session: ServerSession | None, address: Address) -> None:
        """Let the session reaper later kill the cursors of `session` on the server at `address`.

        `session` may be None, an idle session, or a session in use.
        """
        if session is None or session.epoch != self._epoch:
            return
        session.dirty = True
        session.record_interruption(address)
        if session in self._idle:
            self._idle.remove(session)
            self.hand_to_reaper(session)

    def hand_to_reaper(self, session: ServerSession, abort: Operation | None = None) -> None:
        """Let the reaper run `abort`, or kill the session if `abort` is None. Do not switch."""
        take = self.session_taker()
        if take is not None:
            take(session, abort)

    def restore(self, session: ServerSession) -> None:
        """Return a session from the session reaper to the pool."""
        self.in_use += 1
        self.release(session)

    def drain(self) -> list[DocumentDict]:
        """Remove all idle sessions, and return the session IDs for ``endSessions``."""
        lsids = [session.lsid for session in self._idle]
        self._idle.clear()
        return lsids

    def forget(self) -> None:
        """Forget all sessions in a forked child, because these sessions belong to the parent."""
        self._idle.clear()
        self.in_use = 0
        self._epoch += 1


class SessionOwner(Protocol):
    """The attributes of an executor that sessions use."""

    sessions: ServerSessionPool

    @property
    def epoch(self) -> int: ...
