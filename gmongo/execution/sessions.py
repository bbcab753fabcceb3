"""Server sessions and their pool (Driver Sessions specification)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

from bson.binary import Binary, UuidRepresentation

from gmongo import _chance, _clock
from gmongo._documents import DocumentDict
from gmongo.errors import InvalidOperation
from gmongo.execution.session_state import OTHER_LIMIT, SessionState

if TYPE_CHECKING:
    from gmongo._background import Wakeup
    from gmongo.execution.executor import Executor
    from gmongo.execution.operation import Operation
    from gmongo.execution.transaction import Transaction
    from gmongo.sdam.topology import Topology
    from gmongo.wire.address import Address

T = TypeVar("T")


class ServerSession:
    """A logical session on the server. It has one owner at a time: an operation, a cursor or a client session."""

    __slots__ = ("address", "dirty", "epoch", "last_used", "lsid", "transaction_number", "unanswered", "wakeup")

    address: Address
    """The server of the command that was interrupted last, if one was."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch  # how many forks lay behind the process that made it
        self.lsid = {"id": Binary.from_uuid(_chance.uuid4(), UuidRepresentation.STANDARD)}
        self.last_used = _clock.monotonic()
        self.dirty = False  # a network error hit one of its commands, so the server may still be busy with it
        self.transaction_number = 0
        self.unanswered = 0  # how many of its commands were interrupted, and may run on the server still
        self.wakeup: Wakeup | None = None  # of the greenlet that ends those

    def interrupted(self, address: Address) -> None:
        """Note that a greenlet was interrupted before the reply to a command.

        :param address: of the server.
        """
        self.unanswered += 1
        self.address = address

    def answered(self) -> None:
        """Note that the late reply to an interrupted command has come. Does not switch."""
        self.unanswered -= 1
        if self.wakeup is not None:
            self.wakeup.set()


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

    def begin(self, executor: Executor, operation: Operation) -> None:
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


_bound: ContextVar[tuple[Executor, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)


binding = _bound.get
"""None if no session at all is bound here."""


def bound_session(executor: Executor) -> SessionHandle | None:
    """The session that operations use here without being given it, if there is one.

    :raises InvalidOperation: it is another client's, in which these operations would silently not take part.
    """
    bound = _bound.get()
    if bound is None:
        return None
    if bound[0].sessions is not executor.sessions:
        raise InvalidOperation("only operations of the client whose session is bound here can run inside bind()")
    return bound[1]


def in_transaction(executor: Executor, session: SessionHandle | None) -> bool:
    """Whether an operation that is given `session` runs in a transaction."""
    chosen = bound_session(executor) if session is None else session
    if chosen is None:
        return False
    transaction = state_of(chosen).transaction
    return transaction is not None and transaction.active


@contextmanager
def bind_session(executor: Executor, session: SessionHandle) -> Iterator[None]:
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

    def begin(self, executor: Executor, operation: Operation) -> None:
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


class ServerSessionPool:
    """Server sessions that are not in use; the one used last is taken first.

    :param topology: knows how long the servers keep a session that is not used.
    """

    __slots__ = ("_epoch", "_idle", "_topology", "in_use", "reaper")

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._idle: deque[ServerSession] = deque()
        self._epoch = 0
        self.in_use = 0  # how many have been taken out, and not been given back
        # What ends interrupted commands and open transactions on the server; None if it is gone.
        self.reaper: Callable[[], Callable[[ServerSession, Operation | None], None] | None] = _no_reaper

    def __len__(self) -> int:
        return len(self._idle)

    def acquire(self) -> ServerSession:
        """A session that the server still knows for a while, or a new one. It counts as used now."""
        # Critical section: the look at a session's age, and its leaving the pool: no other operation takes it.
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
        """Take a session back, unless it is dirty, about to expire, or of the process that this one was forked from.

        The reaper takes a session with an interrupted command.
        """
        if session.epoch != self._epoch:  # the parent's, which `forget` does not count any more
            return
        self.in_use -= 1
        if session.unanswered:
            self.leave(session)
            return
        idle = self._idle
        oldest_use = _clock.monotonic() - self._topology.description.sessions_usable
        while idle and idle[0].last_used < oldest_use:
            idle.popleft()
        if not session.dirty and session.last_used >= oldest_use:
            idle.append(session)

    def leave(self, session: ServerSession, abort: Operation | None = None) -> None:
        """Leave a session to the reaper. Does not switch.

        :param abort: ends a transaction; None kills the session.
        """
        take = self.reaper()
        if take is not None:
            take(session, abort)

    def restore(self, session: ServerSession) -> None:
        """Take a session back from the reaper."""
        self.in_use += 1
        self.release(session)

    def drain(self) -> list[DocumentDict]:
        """Take all sessions out; returns their IDs, for ``endSessions``."""
        idle = [session.lsid for session in self._idle]
        self._idle.clear()
        return idle

    def forget(self) -> None:
        """In a forked child: all sessions are the parent's, those in use too."""
        self._idle.clear()
        self.in_use = 0
        self._epoch += 1


def _no_reaper() -> None:
    return None
