"""The server sessions of a deployment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gevent.event import Event

from gmongo.testing import clock

if TYPE_CHECKING:
    from gmongo.testing.store.transactions import Transaction

TIMEOUT_SECONDS = 30 * 60


def _create_idle_event() -> Event:
    event = Event()
    event.set()
    return event


@dataclass
class Session:
    """A server session."""

    id: bytes  # the ID of the session
    # The highest transaction number that the session has used. -1 means no transaction number.
    number: int = -1
    transaction: Transaction | None = None  # the transaction that has this number, or None
    # The reply to the retryable write with this number, or None if the write has not completed.
    reply: dict[str, Any] | None = None
    # An event that is set while no command with a transaction number runs in the session.
    idle: Event = field(default_factory=_create_idle_event)
    # The monotonic time in seconds at which a command last used the session.
    last_used: float = field(default_factory=clock.monotonic)


class Sessions:
    """The sessions of a deployment."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}

    def use(self, session_id: bytes) -> Session:
        """Return the session with this ID, and record the time of use. If the ID is unknown, create a session."""
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(session_id)
        session.last_used = clock.monotonic()
        return session

    def get(self, session_id: bytes) -> Session | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: bytes) -> Session | None:
        return self._sessions.pop(session_id, None)

    def list_idle(self) -> list[bytes]:
        """Return the IDs of the sessions that no command has used for 30 minutes."""
        oldest_use = clock.monotonic() - TIMEOUT_SECONDS
        return [session.id for session in self._sessions.values() if session.last_used < oldest_use]

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))
