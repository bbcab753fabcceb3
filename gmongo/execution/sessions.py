"""Sessions as the executor sees them, and the session that a greenlet has bound."""

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
    """What the executor needs of a session, be it implicit or the application's."""

    @property
    def explicit(self) -> SessionState | None:
        """The session, if it is the application's."""

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be run in it any more."""

    @property
    def transaction(self) -> Transaction | None:
        """Its transaction; None if it can have none."""

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Refuse an operation that must not run in the session; else it is in use until :meth:`end_use`."""

    def end_use(self) -> None:
        """The operation has ended."""

    def end_implicit(self) -> None:
        """End the session if it is implicit; the application ends its own."""


class SessionHandle(Protocol):
    """What the floors above give the executor as a session: a ``ClientSession``, or an implicit session."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be run in it any more."""


def state_of(session: object) -> ImplicitSession | SessionState:
    """The state of a session; an implicit session is a state itself.

    :raises ValueError: it is no session.
    """
    if isinstance(session, (ImplicitSession, SessionState)):
        return session
    state = getattr(session, "_state", None)
    if not isinstance(state, SessionState):
        raise ValueError(f"session must be a ClientSession or None, not an instance of {type(session).__name__}")
    return state


def checked_session(session: T) -> T:
    """What the caller gave as a session.

    :raises ValueError: it is neither a session nor None.
    """
    if session is not None:
        state_of(session)
    return session


def refuse_other_limit(session: SessionHandle | None) -> None:
    """Refuse a limit of time for a single operation in the callback of ``with_transaction``, which has one for all.

    :raises InvalidOperation: `session` is that of such a callback.
    """
    if session is not None and getattr(state_of(session), "limit", None) is not None:
        raise InvalidOperation(OTHER_LIMIT)


def end_if_implicit(session: SessionHandle | None) -> None:
    """End a session that the driver has taken; the application ends its own."""
    if isinstance(session, ImplicitSession):
        session.end_implicit()


_bound: ContextVar[tuple[SessionOwner, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)


binding = _bound.get
"""None if no session at all is bound here."""


def bound_session(executor: SessionOwner) -> SessionHandle | None:
    """The session that operations use here without being given it, if there is one.

    :raises InvalidOperation: it is another client's, in which these operations would silently not take part.
    """
    bound = _bound.get()
    if bound is None:
        return None
    if bound[0].sessions is not executor.sessions:
        raise InvalidOperation("only operations of the client whose session is bound here can run inside bind()")
    return bound[1]


def in_transaction(executor: SessionOwner, session: SessionHandle | None) -> bool:
    """Whether an operation that is given `session` runs in a transaction."""
    chosen = bound_session(executor) if session is None else session
    if chosen is None:
        return False
    transaction = state_of(chosen).transaction
    return transaction is not None and transaction.active


@contextmanager
def bind_session(executor: SessionOwner, session: SessionHandle) -> Iterator[None]:
    """Have operations of this client in the block run in `session`."""
    token = _bound.set((executor, session))
    try:
        yield
    finally:
        _bound.reset(token)


@contextmanager
def unbound() -> Iterator[None]:
    """Run operations of the driver's own, in the block, outside of a session that the application has bound."""
    if _bound.get() is None:
        yield
        return
    token = _bound.set(None)
    try:
        yield
    finally:
        _bound.reset(token)


class ImplicitSession:
    """The session of one operation or one cursor. It takes a server session when the first command is about to be sent,
    so that operations which wait for a connection hold none.

    :param pool: where the server session comes from and goes to.
    :param server_session: that was taken already, if one was.
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
        """The logical session on the server."""
        session = self._server_session
        if session is None:
            session = self._server_session = self._pool.acquire()
        return session

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """In a forked child, leave the parent's server session to the parent."""
        if self._server_session is not None and self._server_session.epoch != executor.epoch:
            self.end_implicit()

    def end_use(self) -> None:
        """Nothing to do: only its owner uses it."""

    def end_implicit(self) -> None:
        """Give the server session back, if there is one. It may be called again."""
        # Taken before it is given back, as this may be called again: a session that is in the pool twice would be used
        # by two operations at a time.
        session, self._server_session = self._server_session, None
        if session is not None:
            self._pool.release(session)


class SharedSession(ImplicitSession):
    """The implicit session of a cursor that reads ahead: the last of its holders to end it gives it back.

    :param implicit: the session of the cursor so far, which this one takes the place of.
    """

    __slots__ = ("_holders",)

    def __init__(self, implicit: ImplicitSession) -> None:
        super().__init__(implicit._pool, implicit._server_session)
        implicit._server_session = None  # so that it is given back once
        self._holders = 1

    def share(self) -> None:
        """One more holder, which must end it too."""
        self._holders += 1

    def end_implicit(self) -> None:
        """One holder less. Each calls it once."""
        self._holders -= 1
        if self._holders == 0:
            super().end_implicit()
