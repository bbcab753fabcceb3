"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol

from bson.binary import Binary, UuidRepresentation

# A session this close to its expiry on the server is not used any more, in seconds.
_MARGIN = 60.0


class ServerSession:
    """A logical session on the server. It has one owner at a time: an operation, a cursor or a client session."""

    __slots__ = ("dirty", "last_used", "lsid", "transaction_number")

    def __init__(self) -> None:
        self.lsid = {"id": Binary.from_uuid(uuid.uuid4(), UuidRepresentation.STANDARD)}
        self.last_used = monotonic()
        self.dirty = False  # a network error hit one of its commands, so the server may still be busy with it
        self.transaction_number = 0

    @property
    def server_session(self) -> ServerSession:
        """Itself: an implicit session is nothing more."""
        return self

    def check_use(self, executor: object, acknowledged: bool) -> None:
        """An implicit session is used only where it belongs."""

    def decorate(self, command: dict[str, Any], is_read: bool) -> None:
        """An implicit session adds nothing but its identity, which the executor does."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """An implicit session learns nothing from replies."""


class Session(Protocol):
    """What the executor needs of a session: a server session (implicit), or a client session (explicit)."""

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server."""

    def check_use(self, executor: object, acknowledged: bool) -> None:
        """Refuse an operation that must not run in the session."""

    def decorate(self, command: dict[str, Any], is_read: bool) -> None:
        """Add what the session demands of a command, such as ``afterClusterTime``."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """Learn from a reply."""


class ServerSessionPool:
    """Sessions that nobody uses now; the one used last is taken first."""

    __slots__ = ("_idle",)

    def __init__(self) -> None:
        self._idle: deque[ServerSession] = deque()

    def __len__(self) -> int:
        return len(self._idle)

    def acquire(self, timeout_minutes: int | None) -> ServerSession:
        """A session that the server still knows for a while, or a new one.

        :param timeout_minutes: how long an unused session lives on the server; None is for ever.
        """
        oldest = _oldest_use(timeout_minutes)
        while self._idle:
            session = self._idle.pop()
            if session.last_used >= oldest:
                return session
        return ServerSession()

    def release(self, session: ServerSession, timeout_minutes: int | None) -> None:
        """Take a session back, unless it is dirty or about to expire."""
        oldest = _oldest_use(timeout_minutes)
        while self._idle and self._idle[0].last_used < oldest:
            self._idle.popleft()
        if not session.dirty and session.last_used >= oldest:
            self._idle.append(session)

    def drain(self) -> list[dict[str, Any]]:
        """Take all sessions out; returns their IDs, for ``endSessions``."""
        idle = [session.lsid for session in self._idle]
        self._idle.clear()
        return idle


def _oldest_use(timeout_minutes: int | None) -> float:
    """When a session must have been used last so as not to be about to expire."""
    return 0.0 if timeout_minutes is None else monotonic() - timeout_minutes * 60 + _MARGIN
