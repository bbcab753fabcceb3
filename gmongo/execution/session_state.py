"""State of an explicit session for the executor. The ``ClientSession`` of the application contains the state."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from bson.timestamp import Timestamp
from gevent import getcurrent

from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import current_deadline
from gmongo.execution.operation import Operation
from gmongo.execution.server_session import ServerSession, SessionOwner
from gmongo.execution.transaction import State, Transaction

OTHER_LIMIT = "neither gmongo.timeout nor timeout_ms can change the limit inside the callback of with_transaction"
_NONE: Document = {}


class SessionState:
    """State of an explicit session and its transaction, and the greenlet that uses the session."""

    def __init__(
        self, executor: SessionOwner, server_session: ServerSession, causal_consistency: bool, snapshot: bool
    ) -> None:
        self._executor = executor
        self._epoch = executor.epoch
        self._server_session: ServerSession | None = server_session
        self._causal_consistency = causal_consistency
        self._snapshot = snapshot
        self._snapshot_time: Timestamp | None = None
        self._user: object = None  # greenlet that runs an operation in the session, or None
        self.after_use: Callable[[], None] | None = None  # ends the session or transaction after the last operation
        self._uses = 0  # number of operations in progress. A listener may run an operation in the same session
        self.transaction = Transaction()
        self.limit: float | None = None  # deadline of `with_transaction`, or None
        self.cluster_time: Document | None = None  # latest cluster time in the replies
        self.operation_time: Timestamp | None = None  # latest operation time in the replies

    @property
    def explicit(self) -> SessionState:
        """This state. For an implicit session, the property is None."""
        return self

    @property
    def server_session(self) -> ServerSession:
        """Session on the server. Raises InvalidOperation after the end of the session."""
        if self._server_session is None:
            raise InvalidOperation("Cannot use ended session")
        return self._server_session

    @property
    def has_ended(self) -> bool:
        return self._server_session is None

    @property
    def after_cluster_time(self) -> Timestamp | None:
        """Operation time that reads send as ``afterClusterTime``, or None if the session is not causally consistent."""
        return self.operation_time if self._causal_consistency else None

    def begin(self, executor: SessionOwner, operation: Operation) -> None:
        """Mark the session as in use until :meth:`end_use`, or raise an error if the operation must not use it."""
        if self._executor.sessions is not executor.sessions:
            raise InvalidOperation("Can only use session with the MongoClient that started it")
        if self._epoch != executor.epoch:
            raise InvalidOperation("the session was started before a fork, and belongs to the parent process")
        _ = self.server_session  # raises an error after the end of the session
        self.check_free()
        if self.limit is not None and current_deadline() != self.limit:
            raise InvalidOperation(OTHER_LIMIT)
        concern = operation.context.write_concern if operation.takes_write_concern else None
        # `takes_session` is also false for a write with w=0 whose reply only reports errors.
        unacknowledged = (concern or _NONE).get("w") == 0 or not operation.takes_session
        if not operation.acknowledged or (unacknowledged and not self.transaction.active):
            raise ConfigurationError("Explicit sessions are incompatible with unacknowledged write concern: w=0")
        if not self.transaction.active and not operation.ends_transaction:
            self.transaction.reset_ended()
        # set the user after all checks, because no call of `end_use` follows a failed check
        self._user = getcurrent()
        self._uses += 1

    @property
    def is_used_elsewhere(self) -> bool:
        """True if another greenlet is running an operation in the session."""
        return self._user is not None and self._user is not getcurrent()

    def check_free(self) -> None:
        """Raise InvalidOperation if another greenlet uses the session."""
        if self.is_used_elsewhere:
            raise InvalidOperation("the session is in use by another greenlet: start one session for each greenlet")

    def end_use(self) -> None:
        """Record the end of an operation. After the last operation, other greenlets may use the session."""
        self._uses -= 1
        if self._uses:
            return
        self._user = None
        if self.after_use is not None:
            after, self.after_use = self.after_use, None
            after()

    def hand_over_transaction(self) -> SessionState:
        """Move the transaction to a new session state, so that a background greenlet can abort the transaction.

        The server session becomes dirty and does not return to the pool, because the abort may outlast this session.
        """
        other = copy(self)
        other._server_session = copy(self.server_session)
        other._user, other._uses, other.limit = None, 0, None
        self.server_session.dirty = True
        self.transaction = Transaction()
        self.transaction.state = State.ABORTED
        return other

    def release(self) -> None:
        """Return the server session to the pool. Later calls do nothing."""
        session, self._server_session = self._server_session, None
        if session is not None:
            self._executor.sessions.release(session)

    def end_implicit(self) -> None:
        """Do nothing, because the application ends an explicit session."""

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

    def observe(self, reply: Document) -> None:
        """Store the checked cluster time, operation time and snapshot time of a reply."""
        if "$clusterTime" in reply:
            self.advance_cluster_time(reply["$clusterTime"])
        if "operationTime" in reply:
            self.advance_operation_time(reply["operationTime"])
        if self._snapshot and self._snapshot_time is None:
            self._snapshot_time = reply.get("cursor", reply).get("atClusterTime")

    def advance_cluster_time(self, cluster_time: Document) -> None:
        known = self.cluster_time
        if known is None or cluster_time["clusterTime"] > known["clusterTime"]:
            self.cluster_time = cluster_time

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        if self.operation_time is None or operation_time > self.operation_time:
            self.operation_time = operation_time
