"""Explicit client sessions (specifications: Driver Sessions, Causal Consistency, Snapshot Reads, Transactions)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from bson.timestamp import Timestamp

from gmongo._documents import Document, Value
from gmongo._parameter_docs import describes_parameters, read_only
from gmongo._truncated_repr import short
from gmongo.engines.transaction import TransactionEnd, with_transaction
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import checked_timeout
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import SessionState, bind_session
from gmongo.execution.transaction import State, TransactionSettings
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.mongo_client import MongoClient

__all__ = ["ClientSession", "SessionOptions", "TransactionOptions"]

T = TypeVar("T")

_TRANSACTION_PARAMETERS = """
:param read_concern: the isolation level of the reads: ``"local"``, ``"majority"`` or ``"snapshot"``. None (the default)
    uses the session's default, or else the client's option.
:param write_concern: the acknowledgement that the commit and the abort wait for, which must not be ``w=0``. None (the
    default) uses the session's default, or else the client's option.
:param read_preference: the read preference. All reads of a transaction must use the primary. None (the default) uses
    the session's default, or else the client's option.
:param max_commit_time_ms: the server's time limit for the commit, in milliseconds. None (the default) uses the
    session's default, or else no limit.
:param timeout_ms: the time limit in milliseconds; 0 means no limit, None uses the session's limit.
"""


@describes_parameters(_TRANSACTION_PARAMETERS)
@dataclass(frozen=True, eq=False, repr=False)
class TransactionOptions:
    """Options of a transaction.

    Specification: Transactions, "TransactionOptions".

    :raises TypeError: an option has the wrong type.
    :raises ConfigurationError: the write concern is unacknowledged.
    """

    read_concern: ReadConcern | None = None
    write_concern: WriteConcern | None = None
    read_preference: _ReadPreference | None = None
    max_commit_time_ms: int | None = None

    def __post_init__(self) -> None:
        _check_type("read_concern", self.read_concern, ReadConcern)
        _check_type("write_concern", self.write_concern, WriteConcern)
        _check_type("read_preference", self.read_preference, _ReadPreference)
        _check_type("max_commit_time_ms", self.max_commit_time_ms, int)
        if self.write_concern is not None:
            _check_acknowledged(self.write_concern)


@dataclass(frozen=True, eq=False, repr=False)
class SessionOptions:
    """Options of a session.

    Specification: Driver Sessions, "SessionOptions".

    :param causal_consistency: True lets reads see the effects of earlier operations of the session.
        None (the default) means the opposite of `snapshot`.
    :param default_transaction_options: the defaults for transactions; None (the default) uses the client's options.
    :param snapshot: True lets all reads see the data as of the first read (MongoDB 5.0); False by default.
    :param default_timeout_ms: the time limit of ``with_transaction``, and of each commit, abort and end of the session,
        in milliseconds. 0 means no limit, None (the default) uses the client's ``timeoutMS``.
    :raises TypeError: an option has the wrong type.
    :raises ValueError: `default_timeout_ms` is negative.
    :raises ConfigurationError: both `causal_consistency` and `snapshot` are True.
    """

    causal_consistency: bool | None = None
    default_transaction_options: TransactionOptions | None = None
    snapshot: bool | None = False
    default_timeout_ms: float | None = None

    def __post_init__(self) -> None:
        if self.causal_consistency and self.snapshot:
            raise ConfigurationError("snapshot reads do not support causal_consistency=True")
        _check_type("default_transaction_options", self.default_transaction_options, TransactionOptions)
        if self.causal_consistency is None:
            object.__setattr__(self, "causal_consistency", not self.snapshot)
        object.__setattr__(self, "snapshot", bool(self.snapshot))
        checked_timeout("default_timeout_ms", self.default_timeout_ms)


@describes_parameters(_TRANSACTION_PARAMETERS)
class ClientSession:
    """Explicit session, created by :meth:`MongoClient.start_session <gmongo.mongo_client.MongoClient.start_session>`.

    Only one greenlet at a time may use a session. An operation of a second greenlet raises
    InvalidOperation. Specifications: Driver Sessions, Transactions.

    :param client: the client that creates the session.
    :param server_session: the server session that the commands of the session use.
    :param options: the options of the session.
    :param implicit: a parameter for compatibility with PyMongo, which must be False (the default).
    :raises ValueError: `implicit` is true.
    """

    def __init__(
        self, client: MongoClient[Value], server_session: ServerSession, options: SessionOptions, implicit: bool = False
    ) -> None:
        if implicit:
            raise ValueError("a ClientSession is explicit: implicit must be False")
        self._client = client
        limit = checked_timeout("default_timeout_ms", options.default_timeout_ms)
        self._executor = client._executor.with_timeout(limit, "default_timeout_ms")
        self._options = options
        self._state = SessionState(
            client._executor, server_session, bool(options.causal_consistency), bool(options.snapshot)
        )
        self._ending = TransactionEnd(self._executor, self._state)

    client: MongoClient[Value] = read_only("_client", "The client that has created the session.")
    options: SessionOptions = read_only("_options", "The options of the session.")

    @property
    def session_id(self) -> Document:
        """The identifier of the session on the server, such as ``{"id": Binary(…)}``.

        :raises InvalidOperation: the session has ended.
        """
        return self._state.server_session.lsid

    @property
    def has_ended(self) -> bool:
        """True after :meth:`end_session`, or after the ``with`` block of the session."""
        return self._state.has_ended

    @property
    def cluster_time(self) -> Document | None:
        """The session's newest cluster time, or None (see :meth:`advance_cluster_time`)."""
        return self._state.cluster_time

    @property
    def operation_time(self) -> Timestamp | None:
        """The newest operation time that the session knows, or None (see :meth:`advance_operation_time`)."""
        return self._state.operation_time

    def advance_cluster_time(self, cluster_time: Document) -> None:
        """Set the cluster time of this session to `cluster_time`, if `cluster_time` is newer.

        Pass the times of a source session to this method and to :meth:`advance_operation_time`. Reads
        of this session then see the effects of operations of the source session. Specifications:
        Driver Sessions (section "advanceClusterTime") and Causal Consistency.

        :param cluster_time: the :attr:`cluster_time` of the source session.
        :raises TypeError: `cluster_time` is not a mapping whose field ``clusterTime`` is a timestamp.
        """
        if not isinstance(cluster_time, Mapping):
            raise TypeError(f"cluster_time must be a mapping, not an instance of {type(cluster_time).__name__}")
        if not isinstance(cluster_time.get("clusterTime"), Timestamp):
            raise TypeError("cluster_time must have a clusterTime that is a Timestamp")
        self._state.advance_cluster_time(cluster_time)

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        """Set the operation time of this session to `operation_time`, if `operation_time` is newer.

        Specification: Causal Consistency, "advanceOperationTime".

        :param operation_time: the :attr:`operation_time` of the source session (see :meth:`advance_cluster_time`).
        :raises TypeError: `operation_time` is not a :class:`~bson.timestamp.Timestamp`.
        """
        if not isinstance(operation_time, Timestamp):
            raise TypeError(f"operation_time must be a Timestamp, not {short(operation_time)}")
        self._state.advance_operation_time(operation_time)

    @property
    def in_transaction(self) -> bool:
        """True if a transaction has started, and has been neither committed nor aborted."""
        return self._state.transaction.active

    def start_transaction(
        self,
        read_concern: ReadConcern | None = None,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
        max_commit_time_ms: int | None = None,
    ) -> AbstractContextManager[ClientSession]:
        """Start a transaction on a replica set or a sharded cluster. The method sends no command.

        In a ``with`` statement, the end of the block commits the transaction. An exception that leaves the block aborts
        the transaction. If the server has aborted the transaction because of an error, the commit fails with the
        server error NoSuchTransaction. Specification: Transactions, "startTransaction".

        :returns: a context manager that commits or aborts the transaction.
        :raises InvalidOperation: a transaction is in progress, the session has ended, or the session reads snapshots.
        :raises ConfigurationError: the write concern is unacknowledged.
        :raises TypeError: an option has the wrong type.
        """
        server_session = self._state.server_session
        self._state.check_free()
        if self._options.snapshot:
            raise InvalidOperation("Transactions are not supported in snapshot sessions")
        options = TransactionOptions(read_concern, write_concern, read_preference, max_commit_time_ms)
        self._state.transaction.start(self._merge_transaction_options(options))
        server_session.transaction_number += 1
        self._executor.transaction_started(self._state.transaction)
        return self._end_after_block()

    @contextmanager
    def _end_after_block(self) -> Iterator[ClientSession]:
        try:
            yield self
            if self.in_transaction:
                self.commit_transaction()
        except BaseException as error:
            self._ending.give_up(error, None)
            raise

    def _merge_transaction_options(self, options: TransactionOptions) -> TransactionSettings:
        """Return the settings. For a missing option, use the default of the session or else of the client, if any."""
        defaults = self._options.default_transaction_options or TransactionOptions()
        client = self._client
        write_concern = options.write_concern or defaults.write_concern or client.write_concern
        _check_acknowledged(write_concern)
        limits = (options.max_commit_time_ms, defaults.max_commit_time_ms)
        return TransactionSettings(
            (options.read_concern or defaults.read_concern or client.read_concern).document,
            write_concern.document,
            options.read_preference or defaults.read_preference or client.read_preference,
            next((limit for limit in limits if limit is not None), None),
        )

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Commit the transaction. After a failure, a second call checks whether the commit succeeded.

        Specification: Transactions, "commitTransaction".

        :raises InvalidOperation: no transaction was started, the transaction has been aborted, or
            another greenlet runs an operation in the session.
        :raises PyMongoError: the commit failed. If the error has the label ``UnknownTransactionCommitResult``, the
            server may have committed the transaction, and the application may retry the commit.
        """
        self._ending.commit(self._start_deadline(timeout_ms))

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Abort the transaction. Ignore errors of the command, because the server later aborts the transaction itself.

        Specification: Transactions, "abortTransaction".

        :raises InvalidOperation: no transaction is in progress, or another greenlet runs an operation in the session.
        """
        self._ending.abort(self._start_deadline(timeout_ms))

    def _start_deadline(self, timeout_ms: float | None) -> float | None:
        return self._executor.for_operation(timeout_ms, self).deadline()

    def with_transaction(
        self,
        callback: Callable[[ClientSession], T],
        read_concern: ReadConcern | None = None,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
        max_commit_time_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> T:
        """Run a function in a transaction, commit the transaction, and return the function's result.

        ::

            def transfer(session):
                accounts.update_one({"_id": "a"}, {"$inc": {"balance": -5}}, session=session)
                accounts.update_one({"_id": "b"}, {"$inc": {"balance": 5}}, session=session)

            with client.start_session() as session:
                session.with_transaction(transfer)

        After a transient error the method retries the transaction for up to 120 seconds. A time limit
        replaces the 120 seconds: `timeout_ms`, :func:`gmongo.timeout`, ``default_timeout_ms`` of the
        session or ``timeoutMS`` of the client.

        Because of the retries, `callback` may run several times. The effects of `callback` outside of
        the transaction must be idempotent. `callback` must not suppress errors of commands, because
        an error may abort the transaction on the server. To handle these errors, use
        :meth:`start_transaction`. Specification: Convenient API for Transactions.

        :param callback: a function that must pass the received session to its operations. The time
            limit of ``with_transaction`` applies to the operations, which cannot set a `timeout_ms`.
        :param timeout_ms: the time limit of all attempts together, in milliseconds. 0 means no limit, None uses the
            session's limit. An abort after the time limit has a new time limit of the same length.
        :raises TypeError: `callback` is not callable.
        :raises PyMongoError: the last attempt failed. After the time limit, the ``__cause__`` of the
            exception is the error of the last attempt.
        :raises InvalidOperation: a transaction is in progress, the session has ended, or the session reads snapshots.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {short(callback)}")
        options = read_concern, write_concern, read_preference, max_commit_time_ms
        deadline = self._start_deadline(timeout_ms)
        self._state.deadline = deadline
        try:
            start = partial(self.start_transaction, *options)
            return with_transaction(self._ending, partial(callback, self), start, deadline)
        finally:
            self._state.deadline = None

    @contextmanager
    def bind(self, end_session: bool = True) -> Iterator[ClientSession]:
        """Make this session the default session of all the client's operations in the ``with`` block.

        ::

            with client.start_session().bind():
                orders.insert_one(order)
                orders.find_one(order["_id"])

        :param end_session: True (the default) ends the session at the end of the block.
        """
        with self if end_session else nullcontext(), bind_session((self._executor, self)):
            yield self

    def end_session(self) -> None:
        """End the session, and abort a transaction in progress. Further calls do nothing.

        :raises InvalidOperation: another greenlet runs an operation in the session.
        """
        self._end_session(None)

    def _end_session(self, error: BaseException | None) -> None:
        state = self._state
        if error is not None and state.is_used_elsewhere:
            state.after_use = self._abandon
            return
        state.check_free()
        try:
            if not state.has_ended and state.transaction.state is State.IN_PROGRESS:
                self._ending.give_up(error, self._executor.fresh_deadline())
        finally:
            # Release the session before the unpin, because event listeners may raise an exception during the unpin.
            state.release()
            state.transaction.unpin(error)
            self._executor.transaction_ended(state.transaction, error)

    def _abort_at_close(self) -> None:
        """Let the session reaper abort a transaction in progress when the client closes. Do not switch greenlets."""
        if self._state.transaction.state is State.IN_PROGRESS and not self._state.is_used_elsewhere:
            self._ending.abort_on_server()

    def _abandon(self) -> None:
        """End the session, and abort its transaction in the background. The method does not switch greenlets."""
        self._ending.abandon()
        self._state.release()

    def __copy__(self) -> NoReturn:
        raise TypeError("a ClientSession cannot be copied: start another session")

    def __enter__(self) -> ClientSession:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end_session(error)

    def __del__(self) -> None:
        # Do no I/O, and do not switch greenlets. `_ending` is missing if the constructor failed.
        ending = getattr(self, "_ending", None)
        if ending is not None and not self._state.has_ended:
            ending.end_in_background()
            self._state.release()


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(value)}")


def _check_acknowledged(write_concern: WriteConcern) -> None:
    if not write_concern.acknowledged:
        raise ConfigurationError(f"transactions do not support unacknowledged write concerns: {short(write_concern)}")
