"""The transaction of a session: its states, and what it adds to commands (Transactions specification). No I/O."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from gmongo._documents import Document, DocumentDict
from gmongo._server_facts import codes
from gmongo._server_facts.labels import RETRYABLE_WRITE, TRANSIENT, UNKNOWN_RESULT
from gmongo.cmap.connection import Purpose
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

if TYPE_CHECKING:
    from gmongo.cmap.pin import PinnedConnection
    from gmongo.wire.address import Address

_COMMIT_RETRY_WTIMEOUT = 10_000  # milliseconds


class State(Enum):
    """Where a session stands with its transaction."""

    NONE = "no transaction"
    STARTING = "starting transaction"
    IN_PROGRESS = "transaction in progress"
    COMMITTED = "transaction committed"
    COMMITTED_EMPTY = "transaction committed, without a command"
    ABORTED = "transaction aborted"


ACTIVE = frozenset({State.STARTING, State.IN_PROGRESS})


class TransactionSettings(NamedTuple):
    """What a transaction runs with, after everything was inherited.

    :param read_concern: of its first command.
    :param write_concern: of its commit or abort.
    :param selector: the read preference of its reads.
    :param max_commit_time_ms: how long a commit may take on the server, in milliseconds.
    """

    read_concern: Document
    write_concern: Document
    selector: Selector
    max_commit_time_ms: int | None


class Transaction:
    """The transaction of one session, from one start to the next."""

    __slots__ = (
        "_commit_is_retry",
        "_end_sent",
        "observed",
        "pin",
        "pinned_address",
        "recovery_token",
        "settings",
        "state",
    )

    def __init__(self) -> None:
        self.state = State.NONE
        self.settings = TransactionSettings({}, {}, WRITABLE, None)
        self.pinned_address: Address | None = None  # the mongos it runs on
        self.pin: PinnedConnection | None = None  # behind a load balancer, the connection it runs on
        self.recovery_token: Document | None = None
        self.observed: Any = None  # what an observer of the client keeps of it
        self._commit_is_retry: bool
        self._end_sent: bool

    @property
    def active(self) -> bool:
        """Whether operations run in it now."""
        return self.state in ACTIVE

    def start(self, settings: TransactionSettings) -> None:
        """Begin; nothing is sent before the first operation.

        :raises InvalidOperation: it has begun already.
        """
        if self.active:
            raise InvalidOperation("Transaction already in progress")
        self.unpin()
        self.settings = settings
        self.recovery_token = None
        self._commit_is_retry = self._end_sent = False
        self.state = State.STARTING

    def leave(self) -> None:
        """Another operation of the session follows a transaction that has ended."""
        if self.state is not State.NONE and not self.active:
            self.unpin()
            self.recovery_token = None
            self.state = State.NONE

    def unpin(self, error: BaseException | None = None) -> None:
        """Let go of the mongos, and of the connection.

        :param error: what has ended the transaction; None is a good end.
        """
        self.pinned_address = None
        pin, self.pin = self.pin, None
        if pin is not None:
            pin.connection.purpose = Purpose.CURSOR  # if one that was opened in the transaction still holds it
            pin.release(error)

    # Ending

    def begin_commit(self) -> bool:
        """Before a commit; False if there is nothing to send.

        :raises InvalidOperation: there is nothing to commit.
        """
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
        """Before an abort; False if there is nothing to send.

        :raises InvalidOperation: there is nothing to abort.
        """
        state = self.state
        if state is State.NONE:
            raise InvalidOperation("No transaction started")
        if state is State.ABORTED:
            raise InvalidOperation("Cannot call abortTransaction twice")
        if not self.active:
            raise InvalidOperation("Cannot call abortTransaction after calling commitTransaction")
        self.state = State.ABORTED
        # Behind a load balancer, a service aborts a transaction with its connection (LB-83).
        return state is State.IN_PROGRESS and (self.pin is None or self.pin.connection.error is None)

    @property
    def commit_write_concern(self) -> Document:
        """A commit that is tried again asks for the majority, so as not to be told of a result that is undone later."""
        concern = self.settings.write_concern
        if not self._commit_is_retry:
            return concern
        return {"wtimeout": _COMMIT_RETRY_WTIMEOUT, **concern, "w": "majority"}

    # Commands

    def decorate(self, command: DocumentDict, after: object) -> None:
        """Put on a command what makes it part of the transaction; the first one also starts it.

        :param after: the time that a causally consistent session has reached, or None.
        """
        command["autocommit"] = False
        if self.state is State.STARTING:
            command["startTransaction"] = True
            concern = dict(self.settings.read_concern)
            if after is not None:
                concern["afterClusterTime"] = after
            if concern:
                command["readConcern"] = concern

    def sent(self) -> None:
        """A command is on its way: the transaction is in progress from here on, even if it fails."""
        if self.state is State.STARTING:
            self.state = State.IN_PROGRESS
        elif self.state is not State.IN_PROGRESS:
            self._end_sent = True

    def end_interrupted(self) -> None:
        """Its commit or abort was broken off. If nothing was sent, it is in progress still."""
        if not self._end_sent:
            self.state = State.IN_PROGRESS

    def not_begun(self) -> None:
        """The server turned the first command away unread: the next try is the first again."""
        self.state = State.STARTING

    def observe(self, reply: Document) -> None:
        """Keep what helps another mongos to find out how the transaction ended."""
        token = reply.get("recoveryToken")
        if token is not None:
            self.recovery_token = token

    # Errors

    @staticmethod
    def failed(error: PyMongoError) -> None:
        """Label an error of an operation in it. If that is not tried again, the label also ends the transaction."""
        if isinstance(error, ConnectionFailure) and not isinstance(error, NotPrimaryError):
            error._add_error_label(TRANSIENT)

    def commit_failed(self, error: PyMongoError, overloaded: bool) -> None:
        """Label the error of a commit; a further try asks for the majority, unless the server did not read this one."""
        if is_result_unknown(error):
            error._add_error_label(UNKNOWN_RESULT)
        if error.has_error_label(UNKNOWN_RESULT) or error.has_error_label(TRANSIENT):
            self.unpin()
        if not overloaded:
            self._commit_is_retry = True


def is_result_unknown(error: PyMongoError) -> bool:
    """Whether a commit that failed may have succeeded all the same."""
    if isinstance(error, WriteConcernError):
        return error.code not in codes.BAD_WRITE_CONCERN
    if error.has_error_label(RETRYABLE_WRITE) or isinstance(error, ServerSelectionTimeoutError):
        return True
    if isinstance(error, ConnectionFailure):
        return not isinstance(error, NotPrimaryError)
    return isinstance(error, ExecutionTimeout) or (
        isinstance(error, OperationFailure) and error.code == codes.MAX_TIME_MS_EXPIRED
    )
