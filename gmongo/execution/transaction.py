"""States and command fields of a transaction (Transactions specification), without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import codes
from gmongo._server_facts.labels import RETRYABLE_WRITE, TRANSIENT, UNKNOWN_RESULT
from gmongo.cmap.connection import Purpose
from gmongo.cmap.pin import PinnedConnection
from gmongo.errors import (
    ConnectionFailure,
    ExecutionTimeout,
    InvalidOperation,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.wire.address import Address

_COMMIT_RETRY_WTIMEOUT = 10_000  # milliseconds


class State(Enum):
    """State of the transaction of a session."""

    NONE = "no transaction"
    STARTING = "starting transaction"
    IN_PROGRESS = "transaction in progress"
    COMMITTED = "transaction committed"
    COMMITTED_EMPTY = "transaction committed, without a command"
    ABORTED = "transaction aborted"


ACTIVE_STATES = frozenset({State.STARTING, State.IN_PROGRESS})


class TransactionSettings(NamedTuple):
    """Options of a transaction, completed with the defaults of the session and the client."""

    read_concern: Document
    write_concern: Document
    selector: Selector
    max_commit_time_ms: int | None


_NO_SETTINGS = TransactionSettings({}, {}, WRITABLE, None)


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    """State of the current or last transaction of one session."""

    state: State = State.NONE
    settings: TransactionSettings = _NO_SETTINGS
    pinned_address: Address | None = None  # address of the pinned mongos
    pin: PinnedConnection | None = None  # pinned connection, if the client uses a load balancer
    recovery_token: Document | None = None
    observer_data: Any = None  # data that an observer of the client stores about the transaction
    possible_abort: Any = None  # operation that aborts the transaction if a failed commit has no effect, or None
    _commit_is_retry: bool = False
    _end_sent: bool = False

    @property
    def active(self) -> bool:
        """True if the operations of the session run in the transaction."""
        return self.state in ACTIVE_STATES

    def start(self, settings: TransactionSettings) -> None:
        """Start the transaction in the client. The first operation starts the transaction on the server."""
        if self.active:
            raise InvalidOperation("Transaction already in progress")
        self.unpin()
        self.settings = settings
        self.recovery_token = self.possible_abort = None
        self._commit_is_retry = self._end_sent = False
        self.state = State.STARTING

    def reset_ended(self) -> None:
        """Forget an ended transaction before the next operation of the session."""
        if self.state is not State.NONE and not self.active:
            self.unpin()
            self.state = State.NONE

    def unpin(self, error: BaseException | None = None) -> None:
        """Unpin the mongos and the connection. `error` is the cause of the unpinning, or None."""
        self.pinned_address = None
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.connection.purpose = Purpose.CURSOR  # a cursor may still use the connection
            pin.release(error)

    def begin_commit(self) -> bool:
        """Prepare a commit. Return False if the driver need not send `commitTransaction`."""
        state = self.state
        if state is State.NONE:
            raise InvalidOperation("No transaction started")
        if state is State.ABORTED:
            raise InvalidOperation("Cannot call commitTransaction after calling abortTransaction")
        if state in (State.STARTING, State.COMMITTED_EMPTY):
            self.state = State.COMMITTED_EMPTY
            return False
        self._commit_is_retry = state is State.COMMITTED
        self.state = State.COMMITTED
        return True

    def begin_abort(self) -> bool:
        """Prepare an abort. Return False if the driver need not send `abortTransaction`."""
        state = self.state
        if state is State.NONE:
            raise InvalidOperation("No transaction started")
        if state is State.ABORTED:
            raise InvalidOperation("Cannot call abortTransaction twice")
        if not self.active:
            raise InvalidOperation("Cannot call abortTransaction after calling commitTransaction")
        self.state = State.ABORTED
        # The driver closes a pinned connection after an error. The server then aborts the transaction (LB-83).
        return state is State.IN_PROGRESS and (self.pin is None or self.pin.connection.error is None)

    @property
    def end_write_concern(self) -> Document:
        """Write concern of the commit or abort. A retry of a commit uses w="majority"."""
        concern = self.settings.write_concern
        if not self._commit_is_retry:
            return concern
        return {"wtimeout": _COMMIT_RETRY_WTIMEOUT, **concern, "w": "majority"}

    def add_fields(self, command: DocumentDict, after_cluster_time: object) -> None:
        """Add the transaction fields to a command. Only the first command has the read concern."""
        command["autocommit"] = False
        if self.state is State.STARTING:
            command["startTransaction"] = True
            concern = dict(self.settings.read_concern)
            if after_cluster_time is not None:
                concern["afterClusterTime"] = after_cluster_time
            if concern:
                command["readConcern"] = concern

    def record_command(self) -> None:
        """Record the start of a command. Even a first command that fails starts the transaction."""
        if self.state is State.STARTING:
            self.state = State.IN_PROGRESS
        elif self.state is not State.IN_PROGRESS:
            self._end_sent = True

    def record_interrupted_end(self) -> None:
        """Record an interrupted commit or abort. If the command was not sent, the transaction is in progress again."""
        if not self._end_sent:
            self.state = State.IN_PROGRESS

    def store_recovery_token(self, reply: Document) -> None:
        """Store the recovery token of a reply, with which any mongos can find the result of the transaction."""
        token = reply.get("recoveryToken")
        if token is not None:
            self.recovery_token = token

    @staticmethod
    def label_error(error: PyMongoError) -> None:
        """Label a connection error as transient, so that the driver unpins the server."""
        if isinstance(error, ConnectionFailure) and not isinstance(error, NotPrimaryError):
            error._add_error_label(TRANSIENT)

    def record_failed_commit(self, error: PyMongoError, overloaded: bool) -> None:
        """Record a failed commit. Unless the server is overloaded, a retry uses w="majority"."""
        if is_result_unknown(error):
            error._add_error_label(UNKNOWN_RESULT)
        if not error.has_error_label(UNKNOWN_RESULT) or isinstance(error, WriteConcernError):
            self.possible_abort = None  # the transaction has ended on the server
        if error.has_error_label(UNKNOWN_RESULT) or error.has_error_label(TRANSIENT):
            self.unpin()
        if not overloaded:
            self._commit_is_retry = True


def is_result_unknown(error: PyMongoError) -> bool:
    """Return True if a commit that failed with `error` may have succeeded on the server."""
    if isinstance(error, WriteConcernError):
        return error.code not in codes.BAD_WRITE_CONCERN
    if error.has_error_label(RETRYABLE_WRITE) or isinstance(error, ServerSelectionTimeoutError):
        return True
    if isinstance(error, ConnectionFailure):
        return not isinstance(error, NotPrimaryError)
    return isinstance(error, ExecutionTimeout) or (
        isinstance(error, OperationFailure) and error.code == codes.MAX_TIME_MS_EXPIRED
    )
