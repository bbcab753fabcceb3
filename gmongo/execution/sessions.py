"""Implicit sessions, and the bound session, which `ClientSession.bind()` sets for a context."""

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
    """The attributes and methods of implicit and explicit sessions that the executor uses."""

    @property
    def explicit(self) -> SessionState | None:
        """State of an explicit session, or None for an implicit session."""

    @property
    def server_session(self) -> ServerSession:
        """Session on the server."""

    @property
    def has_ended(self) -> bool:
        """True if the session has ended, so that no operation can run in the session."""

    @property
    def transaction(self) -> Transaction | None:
        """Transaction of an explicit session, or None for an implicit session."""

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Mark the session as in use until :meth:`end_use`.

        Raise an exception if the session cannot run the operation.
        """

    def end_use(self) -> None:
        """Record that an operation of the session ended."""

    def end_implicit(self) -> None:
        """End the session if it is implicit.

        Do nothing if the session is explicit, because the application ends an explicit session.
        """


class SessionHandle(Protocol):
    """Session object that higher layers pass to the executor: a ``ClientSession`` or an implicit session."""

    @property
    def has_ended(self) -> bool:
        """True if the session has ended, so that no operation can run in the session."""


def state_of(session: object) -> ImplicitSession | SessionState:
    """Return the state of a session. The state of an implicit session is the session itself.

    :raises ValueError: `session` is not a session.
    """
    if isinstance(session, (ImplicitSession, SessionState)):
        return session
    state = getattr(session, "_state", None)
    if not isinstance(state, SessionState):
        raise ValueError(f"session must be a ClientSession or None, not an instance of {type(session).__name__}")
    return state


def checked_session(session: T) -> T:
    """Check that `session` is a session or None, and return `session`.

    :raises ValueError: `session` is neither a session nor None.
    """
    if session is not None:
        state_of(session)
    return session


def refuse_other_limit(session: SessionHandle | None) -> None:
    """Refuse a timeout of a single operation in a ``with_transaction`` callback, whose operations share one deadline.

    :raises InvalidOperation: a ``with_transaction`` callback is running in `session`.
    """
    if session is not None and getattr(state_of(session), "limit", None) is not None:
        raise InvalidOperation(OTHER_LIMIT)


def end_if_implicit(session: SessionHandle | None) -> None:
    """End an implicit session.

    Do nothing if `session` is None or an explicit session, which the application ends.
    """
    if isinstance(session, ImplicitSession):
        session.end_implicit()


_bound: ContextVar[tuple[SessionOwner, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)


binding = _bound.get
"""Return the executor and the bound session of its client, or None."""


def bound_session(executor: SessionOwner) -> SessionHandle | None:
    """Return the session that `bind()` set for this context, or None.

    :raises InvalidOperation: the bound session belongs to another client.
    """
    bound = _bound.get()
    if bound is None:
        return None
    if bound[0].sessions is not executor.sessions:
        raise InvalidOperation("only operations of the client whose session is bound here can run inside bind()")
    return bound[1]


def in_transaction(executor: SessionOwner, session: SessionHandle | None) -> bool:
    """Return True if an operation that receives `session` runs in a transaction.

    :param session: explicit session, or None for the bound session.
    """
    effective = bound_session(executor) if session is None else session
    if effective is None:
        return False
    transaction = state_of(effective).transaction
    return transaction is not None and transaction.active


@contextmanager
def bind_session(executor: SessionOwner, session: SessionHandle) -> Iterator[None]:
    """Bind `session` inside the block, so that the operations of its client run in `session`."""
    token = _bound.set((executor, session))
    try:
        yield
    finally:
        _bound.reset(token)


def server_session_of(session: SessionHandle | None) -> ServerSession | None:
    """Return the server session that `session` has acquired and has not yet returned to the pool, or None."""
    return None if session is None else state_of(session)._server_session


@contextmanager
def unbound() -> Iterator[None]:
    """Ignore the bound session inside the block. Internal operations of the driver use such a block."""
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

    The implicit session acquires a server session only for the first command, so that operations
    have no server session during the check-out of a connection.

    :param pool: pool of server sessions.
    :param server_session: server session that the caller has acquired; None means that the first
        command acquires a server session.
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
        """Session on the server. The first use of this property acquires the server session."""
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
        # Reset the attribute first: after a second release of the server session, two operations
        # could acquire the session.
        session, self._server_session = self._server_session, None
        if session is not None:
            self._pool.release(session)


class SharedSession(ImplicitSession):
    """Implicit session of a cursor that reads ahead, which has several owners.

    The last owner returns the server session to the pool.

    :param previous: previous session of the cursor, from which this session takes the server session.
    """

    __slots__ = ("_owners",)

    def __init__(self, previous: ImplicitSession) -> None:
        super().__init__(previous._pool, previous._server_session)
        previous._server_session = None  # from now on, only this session may release the server session
        self._owners = 1

    def share(self) -> None:
        """Add an owner. Each owner must call :meth:`end_implicit`."""
        self._owners += 1

    def end_implicit(self) -> None:
        """Remove an owner. Each owner must call this method once."""
        self._owners -= 1
        if self._owners == 0:
            super().end_implicit()
