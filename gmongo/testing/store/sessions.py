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


def _idle() -> Event:
    event = Event()
    event.set()
    return event


@dataclass
class Session:
    """A session.

    :param number: the highest transaction number, -1 for none.
    :param idle: an event that is set if no command with a transaction number runs.
    :param reply: the reply of the completed retryable write with this number.
    """

    id: bytes
    number: int = -1
    transaction: Transaction | None = None
    reply: dict[str, Any] | None = None
    idle: Event = field(default_factory=_idle)
    used: float = field(default_factory=clock.monotonic)


class Sessions:
    """The sessions of a deployment."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}

    def use(self, session_id: bytes) -> Session:
        """Return the session. An unknown session is created."""
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(session_id)
        session.used = clock.monotonic()
        return session

    def get(self, session_id: bytes) -> Session | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: bytes) -> Session | None:
        return self._sessions.pop(session_id, None)

    def idle(self) -> list[bytes]:
        """Return the sessions that were unused for 30 minutes."""
        oldest = clock.monotonic() - TIMEOUT_SECONDS
        return [one.id for one in self._sessions.values() if one.used < oldest]

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))
