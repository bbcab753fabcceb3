"""Implicit sessions, and the bound session, which `ClientSession.bind()` sets for a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar

from gmongo.errors import InvalidOperation
from gmongo.execution.operation import Operation
from gmongo.execution.server_session import ServerSession, ServerSessionPool, SessionOwner
from gmongo.execution.session_state import OTHER_LIMIT, SessionState

T = TypeVar("T")


class SessionHandle(Protocol):
    """Session object that higher layers pass to the executor: a ``ClientSession`` or an implicit session."""

    @property
    def has_ended(self) -> bool: ...


def state_of(session: object) -> Session:
    """Return the state of a session. The state of an implicit session is the session itself."""
    if isinstance(session, (ImplicitSession, SessionState)):
        return session
    state = getattr(session, "_state", None)
    if not isinstance(state, SessionState):
        raise ValueError(f"session must be a ClientSession or None, not an instance of {type(session).__name__}")
    return state


def checked_session(session: T) -> T:
    """Check that `session` is a session or None, and return `session`."""
    if session is not None:
        state_of(session)
    return session


def refuse_limit_in_with_transaction(session: SessionHandle | None) -> None:
    """Raise InvalidOperation if the operations of a ``with_transaction`` callback in `session` share one deadline."""
    if session is not None and getattr(state_of(session), "limit", None) is not None:
        raise InvalidOperation(OTHER_LIMIT)


def end_if_implicit(session: SessionHandle | None) -> None:
    """End an implicit session. The application ends an explicit session."""
    if isinstance(session, ImplicitSession):
        session.end_implicit()


_bound: ContextVar[tuple[SessionOwner, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)
binding = _bound.get  # returns the executor and the bound session of its client, or None


def bound_session(executor: SessionOwner) -> SessionHandle | None:
    """Return the session that `bind()` set for this context, or None. Raise an error if another client is bound."""
    bound = _bound.get()
    if bound is None:
        return None
    if bound[0].sessions is not executor.sessions:
        raise InvalidOperation("inside bind(), only the client of the bound session can run operations")
    return bound[1]


def in_transaction(executor: SessionOwner, session: SessionHandle | None) -> bool:
    """Return True if an operation in `session` runs in a transaction. None means the bound session."""
    effective = bound_session(executor) if session is None else session
    if effective is None:
        return False
    transaction = state_of(effective).transaction
    return transaction is not None and transaction.active


def server_session_of(session: SessionHandle | None) -> ServerSession | None:
    """Return the server session that `session` has acquired and has not yet returned to the pool, or None."""
    return None if session is None else state_of(session)._server_session


@contextmanager
def bind_session(binding: tuple[SessionOwner, SessionHandle] | None) -> Iterator[None]:
    """Run the operations of a client inside the block in a session. For None, ignore the session of an outer block."""
    token = _bound.set(binding)
    try:
        yield
    finally:
        _bound.reset(token)


class ImplicitSession:
    """Implicit session of one operation or one cursor. The first command acquires the server session.

    Operations therefore have no server session while they check out a connection.
    """

    __slots__ = ("_pool", "_server_session")

    explicit = None
    has_ended = False
    transaction = None

    def __init__(self, pool: ServerSessionPool, server_session: ServerSession | None = None) -> None:
        self._pool = pool
        self._server_session = server_session

    @property
    def server_session(self) -> ServerSession:
        """Session on the server, which the first use of this property acquires."""
        session = self._server_session
        if session is None:
            session = self._server_session = self._pool.acquire()
        return session

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """In a forked child, drop the server session of the parent process."""
        if self._server_session is not None and self._server_session.epoch != executor.epoch:
            self.end_implicit()

    def end_use(self) -> None:
        """Do nothing, because only one operation or cursor uses an implicit session."""

    def end_implicit(self) -> None:
        """Return the server session, if there is one, to the pool. Later calls do nothing."""
        # Reset the attribute first: after a second release, two operations could acquire the session.
        session, self._server_session = self._server_session, None
        if session is not None:
            self._pool.release(session)


class SharedSession(ImplicitSession):
    """Implicit session of a cursor that reads ahead. This session takes over the server session of `previous`.

    The last owner ends the session.
    """

    __slots__ = ("_owners",)

    def __init__(self, previous: ImplicitSession) -> None:
        super().__init__(previous._pool, previous._server_session)
        previous._server_session = None  # from now on, only this session may release the server session
        self._owners = 1

    def share(self) -> None:
        """Add an owner, which must call :meth:`end_implicit`."""
        self._owners += 1

    def end_implicit(self) -> None:
        """Remove an owner. Each owner must call this method once."""
        self._owners -= 1
        if self._owners == 0:
            super().end_implicit()


Session: TypeAlias = ImplicitSession | SessionState
