"""Sessions for the executor, and the session that a context has bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

from gmongo.errors import InvalidOperation
from gmongo.execution.server_session import ServerSession, ServerSessionPool, SessionOwner
from gmongo.execution.session_state import OTHER_LIMIT, SessionState

if TYPE_CHECKING:
    from gmongo.execution.operation import Operation
    from gmongo.execution.transaction import Transaction

T = TypeVar("T")


class Session(Protocol):
    """Part of an implicit or explicit session that the executor uses."""

    @property
    def explicit(self) -> SessionState | None:
        """State of an explicit session, or None for an implicit session."""

    @property
    def server_session(self) -> ServerSession:
        """Logical session on the server."""

    @property
    def has_ended(self) -> bool:
        """True if no operation can run in the session any more."""

    @property
    def transaction(self) -> Transaction | None:
        """Transaction of an explicit session, or None for an implicit session."""

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Mark the session as in use until :meth:`end_use`, or refuse the operation."""

    def end_use(self) -> None:
        """Note the end of an operation."""

    def end_implicit(self) -> None:
        """End the session if it is implicit. The application ends explicit sessions."""


class SessionHandle(Protocol):
    """Session object of higher layers: a ``ClientSession`` or an implicit session."""

    @property
    def has_ended(self) -> bool:
        """True if no operation can run in the session any more."""


def state_of(session: object) -> ImplicitSession | SessionState:
    """Return the state of a session. An implicit session is its own state.

    :raises ValueError: `session` is not a session.
    """
    if isinstance(session, (ImplicitSession, SessionState)):
        return session
    state = getattr(session, "_state", None)
    if not isinstance(state, SessionState):
        raise ValueError(f"session must be a ClientSession or None, not an instance of {type(session).__name__}")
    return state


def checked_session(session: T) -> T:
    """Check a session parameter, and return it.

    :raises ValueError: `session` is neither a session nor None.
    """
    if session is not None:
        state_of(session)
    return session


def refuse_other_limit(session: SessionHandle | None) -> None:
    """Refuse the timeout of a single operation in a ``with_transaction`` callback, which has one common timeout.

    :raises InvalidOperation: `session` belongs to such a callback.
    """
    if session is not None and getattr(state_of(session), "limit", None) is not None:
        raise InvalidOperation(OTHER_LIMIT)


def end_if_implicit(session: SessionHandle | None) -> None:
    """End an implicit session. The application ends explicit sessions."""
    if isinstance(session, ImplicitSession):
        session.end_implicit()


_bound: ContextVar[tuple[SessionOwner, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)


binding = _bound.get
"""Return the bound session and its executor, or None."""


def bound_session(executor: SessionOwner) -> SessionHandle | None:
    """Return the session that `bind()` set for this context, or None.

    :raises InvalidOperation: the session belongs to another client, so operations cannot run in it.
    """
    bound = _bound.get()
    if bound is None:
        return None
    if bound[0].sessions is not executor.sessions:
        raise InvalidOperation("only operations of the client whose session is bound here can run inside bind()")
    return bound[1]


def in_transaction(executor: SessionOwner, session: SessionHandle | None) -> bool:
    """Return True if an operation with the parameter `session` runs in a transaction."""
    effective = bound_session(executor) if session is None else session
    if effective is None:
        return False
    transaction = state_of(effective).transaction
    return transaction is not None and transaction.active


@contextmanager
def bind_session(executor: SessionOwner, session: SessionHandle) -> Iterator[None]:
    """Run the operations of this client in the block in `session`."""
    token = _bound.set((executor, session))
    try:
        yield
    finally:
        _bound.reset(token)


def server_session_of(session: SessionHandle | None) -> ServerSession | None:
    """Return the server session that a session has acquired and not yet returned, or None."""
    return None if session is None else state_of(session)._server_session


@contextmanager
def unbound() -> Iterator[None]:
    """Run internal operations in the block outside of a bound session."""
    if _bound.get() is None:
        yield
        return
    token = _bound.set(None)
    try:
        yield
    finally:
        _bound.reset(token)


class ImplicitSession:
    """Implicit session of one operation or one cursor.

    It acquires a server session only for its first command, so that operations have no session during the check-out.

    :param pool: pool of server sessions.
    :param server_session: server session that was already acquired, or None.
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
        """Logical session on the server, acquired on first use."""
        session = self._server_session
        if session is None:
            session = self._server_session = self._pool.acquire()
        return session

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Drop the server session of the parent process in a forked child."""
        if self._server_session is not None and self._server_session.epoch != executor.epoch:
            self.end_implicit()

    def end_use(self) -> None:
        """Do nothing, because an implicit session has one user."""

    def end_implicit(self) -> None:
        """Return the server session to its pool, if there is one. Later calls do nothing."""
        # Reset the attribute first: after a second release, the pool would give one session to two operations.
        session, self._server_session = self._server_session, None
        if session is not None:
            self._pool.release(session)


class SharedSession(ImplicitSession):
    """Implicit session of a cursor that reads ahead. The last owner returns the server session.

    :param implicit: previous session of the cursor, which this session replaces.
    """

    __slots__ = ("_owners",)

    def __init__(self, implicit: ImplicitSession) -> None:
        super().__init__(implicit._pool, implicit._server_session)
        implicit._server_session = None  # so that only one session releases it
        self._owners = 1

    def share(self) -> None:
        """Add an owner, which must also call :meth:`end_implicit`."""
        self._owners += 1

    def end_implicit(self) -> None:
        """Remove an owner. Each owner calls this once."""
        self._owners -= 1
        if self._owners == 0:
            super().end_implicit()
