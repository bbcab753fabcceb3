"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from bson.binary import Binary, UuidRepresentation

if TYPE_CHECKING:
    from gmongo.cmap.hello import Hello
    from gmongo.execution.executor import Executor
    from gmongo.execution.operation import Operation
    from gmongo.execution.transaction import Transaction

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


class Session(Protocol):
    """What the executor needs of a session, be it implicit or the application's."""

    @property
    def is_explicit(self) -> bool:
        """Whether it is the application's."""

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be run in it any more."""

    @property
    def cluster_time(self) -> Mapping[str, Any] | None:
        """The newest cluster time that it has seen by itself."""

    @property
    def operation_time_to_follow(self) -> Any:
        """The time that reads must not be older than, for causal consistency; None if any will do."""

    @property
    def transaction(self) -> Transaction | None:
        """Its transaction; None if it can have none."""

    def begin(self, executor: Executor, operation: Operation) -> None:
        """Refuse an operation that must not run in the session; else it is in use until :meth:`end_use`."""

    def end_use(self) -> None:
        """The operation has ended."""

    def decorate(self, command: dict[str, Any], follows_time: bool, hello: Hello) -> None:
        """Add what the session demands of a command outside of transactions, such as ``afterClusterTime``."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """Learn from a reply."""

    def end_implicit(self) -> None:
        """End the session if it is implicit; the application ends its own."""


_bound: ContextVar[tuple[Executor, Session] | None] = ContextVar("gmongo_bound_session", default=None)


def bound_session(executor: Executor) -> Session | None:
    """The session of this client that operations use here without being given it, if there is one."""
    bound = _bound.get()
    return bound[1] if bound is not None and bound[0] is executor else None


@contextmanager
def bind_session(executor: Executor, session: Session) -> Iterator[None]:
    """Have operations of this client in the block run in `session`."""
    token = _bound.set((executor, session))
    try:
        yield
    finally:
        _bound.reset(token)


class ImplicitSession:
    """The session of one operation or one cursor. It takes a server session when the first command is about to be sent,
    so that operations which wait for a connection hold none.

    :param take: takes a server session from the pool.
    :param give_back: gives it back.
    """

    __slots__ = ("_give_back", "_server_session", "_take")

    is_explicit = False
    has_ended = False
    cluster_time = None
    operation_time_to_follow = None
    transaction = None

    def __init__(self, take: Callable[[], ServerSession], give_back: Callable[[ServerSession], None]) -> None:
        self._take = take
        self._give_back = give_back
        self._server_session: ServerSession | None = None

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server."""
        if self._server_session is None:
            self._server_session = self._take()
        return self._server_session

    def begin(self, executor: Executor, operation: Operation) -> None:
        """It is used only where it belongs."""

    def end_use(self) -> None:
        """Its owner is the only one to use it."""

    def decorate(self, command: dict[str, Any], follows_time: bool, hello: Hello) -> None:
        """It demands nothing."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """It learns nothing."""

    def end_implicit(self) -> None:
        """Give the server session back, if there is one. It may be called again."""
        session, self._server_session = self._server_session, None
        if session is not None:
            self._give_back(session)


class ServerSessionPool:
    """Sessions that nobody uses now; the one used last is taken first."""

    __slots__ = ("_idle", "_out")

    def __init__(self) -> None:
        self._idle: deque[ServerSession] = deque()
        self._out: set[ServerSession] = set()  # what is in use; after a fork, nothing is the child's

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
                break
        else:
            session = ServerSession()
        self._out.add(session)
        return session

    def release(self, session: ServerSession, timeout_minutes: int | None) -> None:
        """Take a session back, unless it is dirty, about to expire, or of another process."""
        if session not in self._out:
            return
        self._out.remove(session)
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

    def forget(self) -> None:
        """In a forked child: all sessions are the parent's."""
        self._idle.clear()
        self._out.clear()


def _oldest_use(timeout_minutes: int | None) -> float:
    """When a session must have been used last so as not to be about to expire."""
    return 0.0 if timeout_minutes is None else monotonic() - timeout_minutes * 60 + _MARGIN
