"""Client sessions, which tie operations together (Driver Sessions, Causal Consistency, Snapshots, Transactions)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from bson.timestamp import Timestamp

from gmongo._documents import Document, Value
from gmongo._short_text import short
from gmongo.engines.transaction import TransactionEnd, with_transaction
from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import checked_timeout
from gmongo.execution.server_session import ServerSession
from gmongo.execution.session_state import SessionState
from gmongo.execution.sessions import bind_session
from gmongo.execution.transaction import State, TransactionSettings
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.mongo_client import MongoClient

__all__ = ["ClientSession", "SessionOptions", "TransactionOptions"]

T = TypeVar("T")


class TransactionOptions:
    """The options of a transaction. What is None is taken from the session's defaults, and then from the client.

    Specification: Transactions, "TransactionOptions".

    :param read_concern: which isolation the transaction has: ``"local"``, ``"majority"`` or ``"snapshot"``.
    :param write_concern: which acknowledgement its commit and abort wait for; it must be an acknowledged one.
    :param read_preference: which server it runs on; servers take only primary.
    :param max_commit_time_ms: how long a commit may take on the server, in milliseconds; without limit if it is None
        everywhere.
    :raises TypeError: an option has the wrong type.
    :raises ConfigurationError: the write concern is not acknowledged.
    """

    __slots__ = ("_max_commit_time_ms", "_read_concern", "_read_preference", "_write_concern")

    def __init__(
        self,
        read_concern: ReadConcern | None = None,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
        max_commit_time_ms: int | None = None,
    ) -> None:
        _check("read_concern", read_concern, ReadConcern)
        _check("write_concern", write_concern, WriteConcern)
        _check("read_preference", read_preference, _ReadPreference)
        _check("max_commit_time_ms", max_commit_time_ms, int)
        if write_concern is not None:
            _check_acknowledged(write_concern)
        self._read_concern = read_concern
        self._write_concern = write_concern
        self._read_preference = read_preference
        self._max_commit_time_ms = max_commit_time_ms

    @property
    def read_concern(self) -> ReadConcern | None:
        """Of the first command."""
        return self._read_concern

    @property
    def write_concern(self) -> WriteConcern | None:
        """Of the commit and the abort."""
        return self._write_concern

    @property
    def read_preference(self) -> _ReadPreference | None:
        """Of the reads."""
        return self._read_preference

    @property
    def max_commit_time_ms(self) -> int | None:
        """How long a commit may take on the server, in milliseconds."""
        return self._max_commit_time_ms


class SessionOptions:
    """The options of a session.

    Specification: Driver Sessions, "SessionOptions".

    :param causal_consistency: whether reads see what the session has written and read before; None is True, but False
        with `snapshot`.
    :param default_transaction_options: for transactions that are started without options; None takes the client's.
    :param snapshot: True lets all reads see the data as of the first one (MongoDB 5.0); False by default.
    :param default_timeout_ms: the limit of ``with_transaction``, and of each commit, abort and end of the session, in
        milliseconds; 0 is without limit, None takes the client's ``timeoutMS``.
    :raises TypeError: `default_transaction_options` are no :class:`TransactionOptions`, or the limit is no number.
    :raises ValueError: the limit is negative.
    :raises ConfigurationError: both `causal_consistency` and `snapshot` are asked for.
    """

    __slots__ = ("_causal_consistency", "_default_timeout_ms", "_default_transaction_options", "_snapshot")

    def __init__(
        self,
        causal_consistency: bool | None = None,
        default_transaction_options: TransactionOptions | None = None,
        snapshot: bool | None = False,
        default_timeout_ms: float | None = None,
    ) -> None:
        if causal_consistency and snapshot:
            raise ConfigurationError("snapshot reads do not support causal_consistency=True")
        _check("default_transaction_options", default_transaction_options, TransactionOptions)
        self._causal_consistency = not snapshot if causal_consistency is None else causal_consistency
        self._default_transaction_options = default_transaction_options
        self._snapshot = bool(snapshot)
        checked_timeout("default_timeout_ms", default_timeout_ms)
        self._default_timeout_ms = default_timeout_ms

    @property
    def causal_consistency(self) -> bool:
        """Whether reads see what the session has written and read before."""
        return self._causal_consistency

    @property
    def default_transaction_options(self) -> TransactionOptions | None:
        """For transactions that are started without options."""
        return self._default_transaction_options

    @property
    def default_timeout_ms(self) -> float | None:
        """The limit of ``with_transaction``, and of each commit, abort and end of the session, in milliseconds."""
        return self._default_timeout_ms

    @property
    def snapshot(self) -> bool:
        """Whether all reads see the data as of the first one."""
        return self._snapshot


class ClientSession:
    """A session of the application's; made by :meth:`MongoClient.start_session
    <gmongo.mongo_client.MongoClient.start_session>`. One greenlet at a time uses it: another one gets
    :class:`~gmongo.errors.InvalidOperation`.

    Specification: Driver Sessions; Transactions.

    :param client: the client that it belongs to.
    :param server_session: what the server knows it by.
    :param options: the options of the session.
    :param implicit: must be False, the default: what operations without a session use is of another class.
    :raises ValueError: `implicit` is true.
    """

    def __init__(
        self, client: MongoClient[Value], server_session: ServerSession, options: SessionOptions, implicit: bool = False
    ) -> None:
        if implicit:
            raise ValueError("a ClientSession is explicit: implicit must be False")
        self._client = client
        self._executor = client._executor.limited(
            checked_timeout("default_timeout_ms", options.default_timeout_ms), "default_timeout_ms"
        )
        self._options = options
        self._state = SessionState(
            client._executor, server_session, bool(options.causal_consistency), bool(options.snapshot)
        )
        self._ending = TransactionEnd(self._executor, self._state)

    @property
    def client(self) -> MongoClient[Value]:
        """The client that made it."""
        return self._client

    @property
    def options(self) -> SessionOptions:
        """The options that it was started with."""
        return self._options

    @property
    def session_id(self) -> Document:
        """What the server knows it by, such as ``{"id": Binary(…)}``.

        :raises InvalidOperation: the session has ended.
        """
        return self._state.server_session.lsid

    @property
    def has_ended(self) -> bool:
        """Whether :meth:`end_session` was called."""
        return self._state.has_ended

    @property
    def cluster_time(self) -> Document | None:
        """The newest cluster time that the session has seen, for :meth:`advance_cluster_time` of another; None before
        its first operation.
        """
        return self._state.cluster_time

    @property
    def operation_time(self) -> Timestamp | None:
        """The time of the session's last operation, for :meth:`advance_operation_time` of another; None before its
        first operation.
        """
        return self._state.operation_time

    def advance_cluster_time(self, cluster_time: Document) -> None:
        """Take over the cluster time of another session, if it is newer. With :meth:`advance_operation_time`, this
        session's reads see what that one has done.

        Specification: Driver Sessions, "advanceClusterTime"; Causal Consistency.

        :param cluster_time: the :attr:`cluster_time` of that session.
        :raises TypeError: it is no mapping, or its ``clusterTime`` is no timestamp.
        """
        if not isinstance(cluster_time, Mapping):
            raise TypeError(f"cluster_time must be a mapping, not an instance of {type(cluster_time).__name__}")
        if not isinstance(cluster_time.get("clusterTime"), Timestamp):
            raise TypeError("cluster_time must have a clusterTime that is a Timestamp")
        self._state.advance_cluster_time(cluster_time)

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        """Take over the operation time of another session, if it is newer.

        Specification: Causal Consistency, "advanceOperationTime".

        :param operation_time: the :attr:`operation_time` of that session.
        :raises TypeError: it is no :class:`~bson.timestamp.Timestamp`.
        """
        if not isinstance(operation_time, Timestamp):
            raise TypeError(f"operation_time must be a Timestamp, not {short(operation_time)}")
        self._state.advance_operation_time(operation_time)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is in progress: started, and neither committed nor aborted."""
        return self._state.transaction.active

    def start_transaction(
        self,
        read_concern: ReadConcern | None = None,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
        max_commit_time_ms: int | None = None,
    ) -> _TransactionBlock:
        """Start a transaction (replica sets and sharded clusters). Nothing is sent before its first operation.

        In a ``with``, the end of the block commits it, or aborts it if an exception leaves the block. An error of a
        command may abort the transaction on the server; committing it after that fails with NoSuchTransaction.

        Specification: Transactions, "startTransaction".

        :param read_concern: which isolation it has: ``"local"``, ``"majority"`` or ``"snapshot"``; None takes the
            session's default, and then the client's, here and in the next two.
        :param write_concern: which acknowledgement its commit and abort wait for.
        :param read_preference: which server it runs on; servers take only primary.
        :param max_commit_time_ms: how long a commit may take on the server, in milliseconds; None takes the session's
            default, and then is without limit.
        :returns: something to use in a ``with``.
        :raises InvalidOperation: a transaction is in progress, the session has ended, or reads snapshots.
        :raises ConfigurationError: the write concern is not acknowledged.
        :raises TypeError: an option has the wrong type.
        """
        server_session = self._state.server_session
        self._state.check_free()
        if self._options.snapshot:
            raise InvalidOperation("Transactions are not supported in snapshot sessions")
        given = TransactionOptions(read_concern, write_concern, read_preference, max_commit_time_ms)
        self._state.transaction.start(self._settings(given))
        server_session.transaction_number += 1
        self._executor.transaction_started(self._state.transaction)
        return _TransactionBlock(self)

    def _settings(self, given: TransactionOptions) -> TransactionSettings:
        """What a transaction runs with, from its own options, the session's, and the client's."""
        defaults = self._options.default_transaction_options or TransactionOptions()
        client = self._client
        write_concern = given.write_concern or defaults.write_concern or client.write_concern
        _check_acknowledged(write_concern)
        limits = (given.max_commit_time_ms, defaults.max_commit_time_ms)
        return TransactionSettings(
            (given.read_concern or defaults.read_concern or client.read_concern).document,
            write_concern.document,
            given.read_preference or defaults.read_preference or client.read_preference,
            next((limit for limit in limits if limit is not None), None),
        )

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Commit the transaction. It may be called again after an error, to find out how that ended.

        Specification: Transactions, "commitTransaction".

        :param timeout_ms: the limit, in milliseconds; 0 is without limit, None takes the session's.
        :raises InvalidOperation: there is no transaction, it has been aborted, or another greenlet runs an operation in
            the session.
        :raises PyMongoError: the commit failed. With the label ``UnknownTransactionCommitResult`` it may have succeeded
            all the same, and may be tried again.
        """
        self._ending.commit(self._deadline(timeout_ms))

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Abort the transaction. The method ignores errors of the server, which aborts the transaction after a while.

        Specification: Transactions, "abortTransaction".

        :param timeout_ms: the limit, in milliseconds; 0 is without limit, None takes the session's.
        :raises InvalidOperation: there is no transaction in progress, or another greenlet runs an operation in the
            session.
        """
        self._ending.abort(self._deadline(timeout_ms))

    def _deadline(self, timeout_ms: float | None) -> float | None:
        """When what begins now must have ended; None is without limit."""
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
        """Run a function in a transaction, commit it, and return what the function returned::

            def transfer(session):
                accounts.update_one({"_id": "a"}, {"$inc": {"balance": -5}}, session=session)
                accounts.update_one({"_id": "b"}, {"$inc": {"balance": 5}}, session=session)

            with client.start_session() as session:
                session.with_transaction(transfer)

        The whole is tried again, for up to 120 seconds (or the limit of time in force: `timeout_ms`,
        :func:`gmongo.timeout`, ``default_timeout_ms`` of the session or ``timeoutMS`` of the client), when the
        transaction fails for a reason that passes. So `callback` may be called several times, and must do nothing
        outside of the transaction that it would not do twice. It must let errors of commands pass: they may have
        aborted the transaction on the server, and swallowing them makes the whole be tried again in vain. To handle
        errors in another way, use :meth:`start_transaction`.

        Specification: Convenient API for Transactions.

        :param callback: is given this session, which its operations must use. The time limit covers only those that do,
            and cannot be changed inside.
        :param read_concern: which isolation it has; None takes the session's default, and then the client's, here and
            in the next two.
        :param write_concern: which acknowledgement its commit and abort wait for.
        :param read_preference: which server it runs on; servers take only primary.
        :param max_commit_time_ms: how long a commit may take on the server, in milliseconds; None takes the session's
            default, and then is without limit.
        :param timeout_ms: the limit of the whole, in milliseconds, which its operations inherit; 0 is without limit,
            None takes the session's. If it has passed, an abort is given as much time again.
        :raises TypeError: `callback` cannot be called.
        :raises PyMongoError: what ended the last try; on a time-out with the last error as its cause.
        :raises InvalidOperation: a transaction is in progress, the session has ended, or reads snapshots.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {short(callback)}")
        options = read_concern, write_concern, read_preference, max_commit_time_ms
        limit = self._deadline(timeout_ms)
        self._state.limit = limit
        try:
            return with_transaction(
                self._ending, lambda: callback(self), lambda: self.start_transaction(*options), limit
            )
        finally:
            self._state.limit = None

    @contextmanager
    def bind(self, end_session: bool = True) -> Iterator[ClientSession]:
        """Have all operations of the client in the block use this session without being given it::

            with client.start_session().bind():
                orders.insert_one(order)
                orders.find_one(order["_id"])

        :param end_session: True (the default) ends the session with the block.
        """
        try:
            with bind_session(self._executor, self):
                yield self
        finally:
            if end_session:
                self.end_session()

    # Life

    def end_session(self) -> None:
        """End the session, and abort its transaction if one is in progress. It may be called again.

        :raises InvalidOperation: another greenlet runs an operation in it.
        """
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        state = self._state
        if error is not None and state.is_used_elsewhere:
            state.after_use = self._abandon
            return
        state.check_free()
        try:
            if not state.has_ended and state.transaction.state is State.IN_PROGRESS:
                self._ending.give_up(error, self._executor.fresh_deadline())
        finally:
            if state.transaction.state is State.IN_PROGRESS:  # an interruption came before its abort was sent
                self._ending.leave()
            state.release()  # first: to check a connection in delivers events, so it may be interrupted
            state.transaction.unpin(error)
            self._executor.transaction_ended(state.transaction, error)

    def _abandon(self) -> None:
        """End the session, and its transaction in the background. Does not switch."""
        self._ending.abandon()
        self._state.release()

    def __copy__(self) -> NoReturn:
        raise TypeError("a ClientSession cannot be copied: start another one")

    def __enter__(self) -> ClientSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def __del__(self) -> None:
        # No I/O and no switch here. A finaliser may find the session half made.
        ending = getattr(self, "_ending", None)
        if ending is not None and not self._state.has_ended:
            ending.leave()
            self._state.release()


class _TransactionBlock:
    """A ``with`` block that ends the transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    def __enter__(self) -> _TransactionBlock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session.in_transaction:
            if error is None:
                self._session.commit_transaction()
            else:
                self._session._ending.give_up(error, None)


def _check(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(value)}")


def _check_acknowledged(write_concern: WriteConcern) -> None:
    if not write_concern.acknowledged:
        raise ConfigurationError(f"transactions do not support unacknowledged write concerns: {short(write_concern)}")
