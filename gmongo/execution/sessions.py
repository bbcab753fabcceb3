"""Explicit and implicit sessions of operations, and the session of `ClientSession.bind()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from bson.timestamp import Timestamp
from gevent import getcurrent

from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import current_deadline
from gmongo.execution.operation import Operation
from gmongo.execution.server_session import ServerSession, ServerSessionPool, SessionOwner
from gmongo.execution.transaction import State, Transaction

T = TypeVar("T")
OTHER_LIMIT_TEXT = "neither gmongo.timeout nor timeout_ms can change the limit inside the callback of with_transaction"


@dataclass(eq=False, repr=False)
class SessionState:
    """State of an explicit session and its transaction, and the greenlet that uses the session.

    The ``ClientSession`` of the application contains the state.
    """

    _executor: SessionOwner
    _server_session: ServerSession | None
    _causal_consistency: bool
    _snapshot: bool
    _snapshot_time: Timestamp | None = None
    _user: object = None  # greenlet that runs an operation in the session, or None
    after_use: Callable[[], None] | None = None  # ends the session or transaction after the last use
    _use_count: int = 0  # number of operations in progress. A listener may start a second operation
    transaction: Transaction = field(default_factory=Transaction)
    deadline: float | None = None  # deadline of `with_transaction`, or None
    cluster_time: Document | None = None  # latest cluster time that the session knows
    operation_time: Timestamp | None = None  # latest operation time that the session knows

    def __post_init__(self) -> None:
        self._epoch = self._executor.epoch

    @property
    def explicit(self) -> SessionState:
        """The session state itself. For an implicit session, the attribute is None."""
        return self

    @property
    def server_session(self) -> ServerSession:
        """Session on the server. After :meth:`release`, the property raises InvalidOperation."""
        if self._server_session is None:
            raise InvalidOperation("Cannot use ended session")
        return self._server_session

    @property
    def has_ended(self) -> bool:
        return self._server_session is None

    @property
    def after_cluster_time(self) -> Timestamp | None:
        """Operation time for ``afterClusterTime`` of reads, or None without causal consistency."""
        return self.operation_time if self._causal_consistency else None

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Mark the session as in use by an operation until :meth:`end_use`, or raise an error."""
        if self._executor.sessions is not executor.sessions:
            raise InvalidOperation("Can only use session with the MongoClient that started it")
        if self._epoch != executor.epoch:
            raise InvalidOperation("the session was started before a fork, and belongs to the parent process")
        _ = self.server_session  # raises an error after the end of the session
        self.check_free()
        has_other_limit = self.deadline is not None and current_deadline() not in (None, self.deadline)
        if has_other_limit and not operation.ends_transaction:
            raise InvalidOperation(OTHER_LIMIT_TEXT)
        concern = operation.context.write_concern if operation.takes_write_concern else None
        # `takes_session` is False for each write with w=0, even if the server replies to the write.
        unacknowledged = (concern or {}).get("w") == 0 or not operation.takes_session
        if not operation.acknowledged or (unacknowledged and not self.transaction.active):
            raise ConfigurationError("Explicit sessions are incompatible with unacknowledged write concern: w=0")
        # Set the user after all checks, because no call of `end_use` follows a failed check.
        self._user = getcurrent()
        self._use_count += 1
        if not self.transaction.active and not operation.ends_transaction:
            try:
                self.transaction.reset_ended()  # may switch to other greenlets, which must not use the session
            except BaseException:
                self.end_use()
                raise

    @property
    def is_used_elsewhere(self) -> bool:
        return self._user is not None and self._user is not getcurrent()

    def check_free(self) -> None:
        if self.is_used_elsewhere:
            raise InvalidOperation("the session is in use by another greenlet: start one session for each greenlet")

    def end_use(self) -> None:
        """End the use by an operation. After the last use, other greenlets may use the session."""
        self._use_count -= 1
        if self._use_count:
            return
        self._user = None
        if self.after_use is not None:
            after_use, self.after_use = self.after_use, None
            after_use()

    def hand_over_transaction(self) -> SessionState:
        """Move the transaction to a new session state, for an abort in a background greenlet.

        The server session becomes dirty and stays out of the pool, because the client session may end
        before the abort.
        """
        new_state = copy(self)
        new_state._server_session = copy(self.server_session)
        new_state._user, new_state._use_count, new_state.deadline = None, 0, None
        self.server_session.dirty = True
        self.transaction = Transaction()
        self.transaction.state = State.ABORTED
        return new_state

    def release(self) -> None:
        """Return the server session to the pool. Later calls do nothing."""
        session, self._server_session = self._server_session, None
        if session is not None:
            if self.transaction.possible_abort is not None:
                self._executor.sessions.hand_to_reaper(session, self.transaction.possible_abort)
            self._executor.sessions.release(session)

    def add_read_concern(self, command: DocumentDict, is_causally_consistent: bool, hello: Hello) -> None:
        """Add the read concern for causal consistency or snapshot reads to a command."""
        if self._snapshot:
            if hello.max_wire_version < wire_versions.SNAPSHOT_READS:
                raise ConfigurationError("Snapshot reads require MongoDB 5.0 or later")
            command["readConcern"] = {"level": "snapshot"}
            if self._snapshot_time is not None:
                command["readConcern"]["atClusterTime"] = self._snapshot_time
        elif is_causally_consistent and self.after_cluster_time is not None:
            command["readConcern"] = {**command.get("readConcern", {}), "afterClusterTime": self.after_cluster_time}

    def store_times(self, reply: Document) -> None:
        """Store the cluster time, operation time and snapshot time of a reply with valid times."""
        if "$clusterTime" in reply:
            self.advance_cluster_time(reply["$clusterTime"])
        if "operationTime" in reply:
            self.advance_operation_time(reply["operationTime"])
        if self._snapshot and self._snapshot_time is None:
            self._snapshot_time = reply.get("cursor", reply).get("atClusterTime")

    def advance_cluster_time(self, cluster_time: Document) -> None:
        self.cluster_time = newer_cluster_time(self.cluster_time, cluster_time)

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        if self.operation_time is None or operation_time > self.operation_time:
            self.operation_time = operation_time


class SessionHandle(Protocol):
    """Session that a caller passes: a ``ClientSession``, a `SessionState` or an implicit session."""

    @property
    def has_ended(self) -> bool: ...


def newer_cluster_time(first: Document | None, second: Document | None) -> Document | None:
    """Return the later of two cluster times, or the only cluster time if an argument is None."""
    if first is None or second is None:
        return first or second
    return second if second["clusterTime"] > first["clusterTime"] else first


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
    """Raise InvalidOperation if `session` runs a ``with_transaction`` that has a deadline."""
    if session is not None and getattr(state_of(session), "deadline", None) is not None:
        raise InvalidOperation(OTHER_LIMIT_TEXT)


def end_if_implicit(session: SessionHandle | None) -> None:
    """End `session` if the session is implicit. The application ends an explicit session."""
    if isinstance(session, ImplicitSession):
        session.end_implicit()


_binding: ContextVar[tuple[SessionOwner, SessionHandle] | None] = ContextVar("gmongo_bound_session", default=None)
current_binding = _binding.get  # returns the pair (executor, bound session), or None


def bound_session(executor: SessionOwner) -> SessionHandle | None:
    """Return the bound session of the context, or None. Reject an executor of a different client."""
    binding = _binding.get()
    if binding is None:
        return None
    if binding[0].sessions is not executor.sessions:
        raise InvalidOperation("inside bind(), only the client of the bound session can run operations")
    return binding[1]


def in_transaction(executor: SessionOwner, session: SessionHandle | None) -> bool:
    """Return True if `session`, or the bound session if `session` is None, is in a transaction."""
    used_session = bound_session(executor) if session is None else session
    if used_session is None:
        return False
    transaction = state_of(used_session).transaction
    return transaction is not None and transaction.active


def server_session_of(session: SessionHandle | None) -> ServerSession | None:
    """Return the server session that `session` has acquired from the pool, or None."""
    return None if session is None else state_of(session)._server_session


@contextmanager
def bind_session(binding: tuple[SessionOwner, SessionHandle] | None) -> Iterator[None]:
    """Bind the session in `binding` to the block. None hides the bound session of outer blocks."""
    token = _binding.set(binding)
    try:
        yield
    finally:
        _binding.reset(token)


class ImplicitSession:
    """Implicit session of one operation or one cursor. The first command acquires the server session.

    Therefore the first operation checks out a connection before it acquires a server session.
    """

    __slots__ = ("_has_owner", "_pool", "_server_session", "_use_count")

    explicit = None
    has_ended = False
    transaction = None

    def __init__(self, pool: ServerSessionPool, server_session: ServerSession | None = None) -> None:
        self._pool = pool
        self._server_session = server_session
        self._has_owner = True  # False after end_implicit()
        self._use_count = 0  # number of operations in progress. A killCursors may run during getMore

    @property
    def server_session(self) -> ServerSession:
        """Session on the server, which the first use of this property acquires."""
        session = self._server_session
        if session is None:
            session = self._server_session = self._pool.acquire()
        return session

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Count a use by an operation. In a forked child, drop the server session of the parent process."""
        self._use_count += 1
        if self._server_session is not None and self._server_session.epoch != executor.epoch:
            self.forget()

    def forget(self) -> None:
        """Forget the server session of the parent process."""
        self._server_session = None

    def end_use(self) -> None:
        self._use_count -= 1
        if not self._has_owner:
            self.end_implicit()

    def end_implicit(self) -> None:
        """Return any server session to the pool after the last use. Later calls do nothing."""
        self._has_owner = False
        if self._use_count:
            return
        # Reset the attribute first: a second release would let two operations acquire the session.
        session, self._server_session = self._server_session, None
        if session is not None:
            self._pool.release(session)


Session: TypeAlias = ImplicitSession | SessionState
