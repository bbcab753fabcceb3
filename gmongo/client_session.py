"""Client sessions, which tie operations together (Driver Sessions, Causal Consistency, Snapshots, Transactions)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from reprlib import repr as short
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from bson.timestamp import Timestamp
from gevent import getcurrent

from gmongo import _clock
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError, InvalidOperation, PyMongoError
from gmongo.execution.deadline import current_deadline
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation
from gmongo.execution.sessions import ServerSession, bind_session
from gmongo.execution.transaction import State, Transaction, TransactionSettings
from gmongo.operations.transaction import AbortTransaction, CommitTransaction
from gmongo.operations.with_transaction import with_transaction
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.mongo_client import MongoClient

__all__ = ["ClientSession", "SessionOptions", "TransactionOptions"]

T = TypeVar("T")

_NONE: Mapping[str, Any] = {}
# How long a greenlet that is to end is kept by the abort of its transaction, in seconds.
_INTERRUPTED_ABORT_TIMEOUT = 1.0


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
    :raises TypeError: `default_transaction_options` are no :class:`TransactionOptions`.
    :raises ConfigurationError: both `causal_consistency` and `snapshot` are asked for.
    """

    __slots__ = ("_causal_consistency", "_default_transaction_options", "_snapshot")

    def __init__(
        self,
        causal_consistency: bool | None = None,
        default_transaction_options: TransactionOptions | None = None,
        snapshot: bool | None = False,
    ) -> None:
        if causal_consistency and snapshot:
            raise ConfigurationError("snapshot reads do not support causal_consistency=True")
        _check("default_transaction_options", default_transaction_options, TransactionOptions)
        self._causal_consistency = not snapshot if causal_consistency is None else causal_consistency
        self._default_transaction_options = default_transaction_options
        self._snapshot = bool(snapshot)

    @property
    def causal_consistency(self) -> bool:
        """Whether reads see what the session has written and read before."""
        return self._causal_consistency

    @property
    def default_transaction_options(self) -> TransactionOptions | None:
        """For transactions that are started without options."""
        return self._default_transaction_options

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
        self,
        client: MongoClient[Any],
        server_session: ServerSession,
        options: SessionOptions,
        implicit: bool = False,
    ) -> None:
        if implicit:
            raise ValueError("a ClientSession is explicit: implicit must be False")
        self._client = client
        self._executor = client._executor
        self._server_session: ServerSession | None = server_session
        self._epoch = client._executor.epoch
        self._options = options
        self._transaction = Transaction()
        self._limit: float | None = None  # the deadline of with_transaction
        self._user: object = None  # the greenlet that runs an operation in it now
        self._cluster_time: Mapping[str, Any] | None = None
        self._operation_time: Timestamp | None = None
        self._snapshot_time: Timestamp | None = None

    @property
    def client(self) -> MongoClient[Any]:
        """The client that made it."""
        return self._client

    @property
    def options(self) -> SessionOptions:
        """The options that it was started with."""
        return self._options

    @property
    def session_id(self) -> Mapping[str, Any]:
        """What the server knows it by, such as ``{"id": Binary(…)}``.

        :raises InvalidOperation: the session has ended.
        """
        return self.server_session.lsid

    @property
    def has_ended(self) -> bool:
        """Whether :meth:`end_session` was called."""
        return self._server_session is None

    @property
    def cluster_time(self) -> Mapping[str, Any] | None:
        """The newest cluster time that the session has seen, for :meth:`advance_cluster_time` of another; None before
        its first operation.
        """
        return self._cluster_time

    @property
    def operation_time(self) -> Timestamp | None:
        """The time of the session's last operation, for :meth:`advance_operation_time` of another; None before its
        first operation.
        """
        return self._operation_time

    def advance_cluster_time(self, cluster_time: Mapping[str, Any]) -> None:
        """Take over the cluster time of another session, if it is newer. With :meth:`advance_operation_time`, this
        session's reads see what that one has done.

        Specification: Driver Sessions, "advanceClusterTime"; Causal Consistency.

        :param cluster_time: the :attr:`cluster_time` of that session.
        :raises TypeError: it is no mapping.
        :raises ValueError: it has no ``clusterTime`` that is a timestamp.
        """
        if not isinstance(cluster_time, Mapping):
            raise TypeError(f"cluster_time must be a mapping, not an instance of {type(cluster_time).__name__}")
        if not isinstance(cluster_time.get("clusterTime"), Timestamp):
            raise ValueError("cluster_time must have a clusterTime that is a Timestamp")
        known = self._cluster_time
        if known is None or cluster_time["clusterTime"] > known["clusterTime"]:
            self._cluster_time = cluster_time

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        """Take over the operation time of another session, if it is newer.

        Specification: Causal Consistency, "advanceOperationTime".

        :param operation_time: the :attr:`operation_time` of that session.
        :raises TypeError: it is no :class:`~bson.timestamp.Timestamp`.
        """
        if not isinstance(operation_time, Timestamp):
            raise TypeError(f"operation_time must be a Timestamp, not {short(operation_time)}")
        if self._operation_time is None or operation_time > self._operation_time:
            self._operation_time = operation_time

    # Transactions

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is in progress: started, and neither committed nor aborted."""
        return self._transaction.active

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
        _ = self.server_session
        self._check_free()
        if self._options.snapshot:
            raise InvalidOperation("Transactions are not supported in snapshot sessions")
        given = TransactionOptions(read_concern, write_concern, read_preference, max_commit_time_ms)
        self._transaction.start(self._settings(given))
        self.server_session.transaction_number += 1
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

    def commit_transaction(self) -> None:
        """Commit the transaction. It may be called again after an error, to find out how that ended.

        Specification: Transactions, "commitTransaction".

        :raises InvalidOperation: there is no transaction, or it has been aborted.
        :raises PyMongoError: the commit failed. With the label ``UnknownTransactionCommitResult`` it may have succeeded
            all the same, and may be tried again.
        """
        _ = self.server_session
        if self._transaction.begin_commit():
            self._end_transaction(CommitTransaction(self._transaction), None)

    def abort_transaction(self) -> None:
        """Abort the transaction. Errors of the server are ignored, since it aborts by itself after a while.

        Specification: Transactions, "abortTransaction".

        :raises InvalidOperation: there is no transaction in progress.
        """
        self._abort(None)

    def _give_up(self, error: BaseException | None, deadline: float | None) -> None:
        """Abort because of `error`. A kill or somebody's time-out is not held up for longer than a moment."""
        hurried = error is not None and not isinstance(error, Exception)
        self._abort(_clock.monotonic() + _INTERRUPTED_ABORT_TIMEOUT if hurried else deadline)

    def _abort(self, deadline: float | None) -> None:
        """Abort by `deadline`; None is the usual one."""
        _ = self.server_session
        to_send = self._transaction.begin_abort()
        try:
            if to_send:
                self._end_transaction(AbortTransaction(self._transaction), deadline)
        except PyMongoError:
            pass
        finally:
            self._transaction.unpin()

    def _end_transaction(self, operation: Operation, deadline: float | None) -> None:
        try:
            self._executor.run(operation, self, deadline)
        except PyMongoError:
            raise
        except BaseException:
            self._transaction.end_interrupted()
            raise

    def with_transaction(
        self,
        callback: Callable[[ClientSession], T],
        read_concern: ReadConcern | None = None,
        write_concern: WriteConcern | None = None,
        read_preference: _ReadPreference | None = None,
        max_commit_time_ms: int | None = None,
    ) -> T:
        """Run a function in a transaction, commit it, and return what the function returned::

            def transfer(session):
                accounts.update_one({"_id": "a"}, {"$inc": {"balance": -5}}, session=session)
                accounts.update_one({"_id": "b"}, {"$inc": {"balance": 5}}, session=session)

            with client.start_session() as session:
                session.with_transaction(transfer)

        The whole is tried again, for up to 120 seconds (or the limit of ``timeoutMS`` and :func:`gmongo.timeout`), when
        the transaction fails for a reason that passes. So `callback` may be called several times, and must do nothing
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
        :raises PyMongoError: what ended the last try; on a time-out with the last error as its cause.
        :raises InvalidOperation: a transaction is in progress, the session has ended, or reads snapshots.
        """
        options = read_concern, write_concern, read_preference, max_commit_time_ms
        self._limit = self._executor.deadline()
        try:
            return with_transaction(self, callback, lambda: self.start_transaction(*options), self._limit)
        finally:
            self._limit = None

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
        self._check_free()
        try:
            if self._server_session is not None and self._transaction.state is State.IN_PROGRESS:
                self._give_up(error, self._executor.fresh_deadline())
        finally:
            self._transaction.unpin()
            session, self._server_session = self._server_session, None
            if session is not None:
                self._executor.sessions.release(session)

    def __copy__(self) -> NoReturn:
        raise TypeError("a ClientSession cannot be copied: start another one")

    def __enter__(self) -> ClientSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def __del__(self) -> None:
        # No I/O and no switch here. A transaction in progress is left to the server, with the session.
        session = getattr(self, "_server_session", None)
        if session is None:
            return
        if self._transaction.pin is not None:
            self._transaction.pin.release_soon()
        if not self._transaction.active:
            self._executor.sessions.release(session)

    # What the executor needs

    @property
    def explicit(self) -> ClientSession:
        """This session, which is not one that the driver takes for one operation."""
        return self

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server.

        :raises InvalidOperation: the session has ended.
        """
        if self._server_session is None:
            raise InvalidOperation("Cannot use ended session")
        return self._server_session

    @property
    def transaction(self) -> Transaction:
        """Its transaction, in progress or not."""
        return self._transaction

    @property
    def operation_time_to_follow(self) -> Timestamp | None:
        """The time that reads must not be older than; None without causal consistency."""
        return self._operation_time if self._options.causal_consistency else None

    def begin(self, executor: Executor, operation: Operation) -> None:
        """Refuse an operation that must not run in the session; else it is in use until :meth:`end_use`. For the driver
        itself.

        :param executor: of the client that runs the operation.
        :param operation: that is to run.
        :raises InvalidOperation: the session is of another client, has ended, or is in use by another greenlet.
        :raises ConfigurationError: the operation is an unacknowledged write.
        """
        if self._executor is not executor:
            raise InvalidOperation("Can only use session with the MongoClient that started it")
        if self._epoch != executor.epoch:
            raise InvalidOperation("the session was started before a fork, and belongs to the parent process")
        if self.has_ended:
            raise InvalidOperation("Cannot use ended session")
        self._check_free()
        if self._limit is not None and current_deadline() != self._limit:
            raise InvalidOperation("gmongo.timeout cannot change the limit inside the callback of with_transaction")
        concern = operation.context.write_concern if operation.takes_write_concern else None
        unacknowledged = not self._transaction.active and (concern or _NONE).get("w") == 0
        if not operation.acknowledged or unacknowledged:
            raise ConfigurationError("Explicit sessions are incompatible with unacknowledged write concern: w=0")
        if not self._transaction.active and not operation.ends_transaction:
            self._transaction.leave()
        self._user = getcurrent()

    def _check_free(self) -> None:
        if self._user is not None and self._user is not getcurrent():
            raise InvalidOperation(
                "the session is in use by another greenlet; start one for each, since it runs one operation at a time"
            )

    def end_use(self) -> None:
        """The operation has ended."""
        self._user = None

    def decorate(self, command: dict[str, Any], is_causally_consistent: bool, hello: Hello) -> None:
        """Make an operation causally consistent, or have it read the snapshot. For the driver itself.

        :param command: to add the read concern to.
        :param is_causally_consistent: whether the operation may be causally consistent.
        :param hello: of the server that it is sent to.
        :raises ConfigurationError: the server has no snapshot reads.
        """
        if self._options.snapshot:
            if hello.max_wire_version < wire_versions.SNAPSHOT_READS:
                raise ConfigurationError("Snapshot reads require MongoDB 5.0 or later")
            command["readConcern"] = {"level": "snapshot"}
            if self._snapshot_time is not None:
                command["readConcern"]["atClusterTime"] = self._snapshot_time
        elif is_causally_consistent and self.operation_time_to_follow is not None:
            command["readConcern"] = {
                **command.get("readConcern", {}),
                "afterClusterTime": self.operation_time_to_follow,
            }

    def end_implicit(self) -> None:
        """The application ends it."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """Learn the times of a reply. For the driver itself.

        :param reply: of the server.
        """
        if "$clusterTime" in reply:
            self.advance_cluster_time(reply["$clusterTime"])
        if "operationTime" in reply:
            self.advance_operation_time(reply["operationTime"])
        if self._options.snapshot and self._snapshot_time is None:
            self._snapshot_time = reply.get("cursor", reply).get("atClusterTime")


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
                self._session._give_up(error, None)


def _check(name: str, value: Any, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be an instance of {kind.__name__}, not {short(value)}")


def _check_acknowledged(write_concern: WriteConcern) -> None:
    if not write_concern.acknowledged:
        raise ConfigurationError(f"transactions do not support unacknowledged write concerns: {short(write_concern)}")
