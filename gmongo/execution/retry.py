"""Whether an operation is tried again, when, and which error the user sees in the end. Decisions, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

from gmongo import _clock
from gmongo._server_facts import codes, wire_versions
from gmongo._server_facts.labels import NO_WRITES_PERFORMED, OVERLOADED, RETRYABLE, RETRYABLE_WRITE, TRANSIENT
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.execution.operation import Operation
from gmongo.execution.overload import BASE_BACKOFF, MAX_RETRIES, Overload
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import OutOfStepError

if TYPE_CHECKING:
    from gmongo.cmap.hello import Hello
    from gmongo.execution.transaction import Transaction

_NO_RETRYABLE_WRITES = (
    "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
)


_NONE = PyMongoError()  # no try has failed yet
# A server may send bytes after a reply, when the connection is available again. The next exchange reads them.
_CONNECTION_LOST = (AutoReconnect, OutOfStepError)


def may_retry_read(error: PyMongoError) -> bool:
    """Whether a read that failed with `error` may be tried again."""
    if isinstance(error, ServerSelectionTimeoutError):
        return False
    if isinstance(error, OperationFailure):
        return error.code in codes.RETRYABLE_READ
    return isinstance(error, _CONNECTION_LOST)


def label_write_error(error: PyMongoError, max_wire_version: int, is_mongos: bool) -> None:
    """Label the error of a write that may be tried again, for servers that send no labels.

    After an error of the write concern, a mongos that sends none has tried again itself.
    """
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        unlabelled = max_wire_version < wire_versions.ERROR_LABELS
        left_to_driver = unlabelled and not (is_mongos and _is_of_write_concern(error))
        may_retry = left_to_driver and error.code in codes.RETRYABLE_WRITE
    else:
        may_retry = isinstance(error, _CONNECTION_LOST) and not isinstance(error, ServerSelectionTimeoutError)
    if may_retry:
        error._add_error_label(RETRYABLE_WRITE)


def _is_of_write_concern(error: OperationFailure | NotPrimaryError) -> bool:
    """Whether the error is a part of a reply to a command that succeeded."""
    return isinstance(error, WriteConcernError) or (isinstance(error.details, Mapping) and "ok" not in error.details)


def may_retry_write(error: PyMongoError) -> bool:
    """Whether a write that failed with `error` may be tried again."""
    return error.has_error_label(RETRYABLE_WRITE)


def with_retry_writes_hint(error: PyMongoError) -> PyMongoError:
    """The error of a retryable write; in other words if the server's storage engine knows no transaction numbers."""
    if not (
        isinstance(error, OperationFailure)
        and error.code == codes.ILLEGAL_OPERATION
        and str(error).startswith("Transaction numbers")
    ):
        return error
    details = {**(error.details or {}), "errmsg": _NO_RETRYABLE_WRITES}
    better = OperationFailure(_NO_RETRYABLE_WRITES, error.code, details)
    better.__cause__ = error
    return better


@dataclass(frozen=True)
class ExecutionSettings:
    """What is retried, and for how long.

    :param retry_reads: whether reads are tried again.
    :param retry_writes: whether writes are tried again.
    :param timeout: limit for one operation in all, in seconds; 0 is without limit, None leaves it to the other limits.
    :param max_adaptive_retries: tries of an operation after errors of an overloaded server.
    :param base_backoff: the longest wait before the first of them, in seconds.
    :param overload_retargeting: whether an overloaded server is passed over then, other than a mongos.
    """

    retry_reads: bool = True
    retry_writes: bool = True
    timeout: float | None = None
    max_adaptive_retries: int = MAX_RETRIES
    base_backoff: float = BASE_BACKOFF
    overload_retargeting: bool = False


class FailedAttempt(Protocol):
    """The properties of a failed attempt that decide about the next one."""

    operation: Operation
    address: Address | None
    hello: Hello | None
    is_retryable_write: bool
    transaction: Transaction | None
    starts_transaction: bool


class RetryPolicy:
    """Which tries the options of a client allow.

    :param options: of the client.
    :param topology: of the client.
    """

    __slots__ = ("_options", "_topology", "overload", "retry_writes")

    def __init__(self, options: ExecutionSettings, topology: Topology) -> None:
        self._options = options
        self._topology = topology
        self.retry_writes = options.retry_writes
        self.overload = Overload(
            options.max_adaptive_retries, options.base_backoff, retargeting=options.overload_retargeting
        )

    def allows_single_retry(self, attempt: FailedAttempt) -> bool:
        """Whether a try after an error of the network or an election is allowed."""
        operation = attempt.operation
        if attempt.transaction is not None:
            return operation.ends_transaction
        if operation.is_write:
            return attempt.is_retryable_write
        return operation.retryable and self._options.retry_reads

    def allows_overload_retry(self, operation: Operation) -> bool:
        """Whether a try after an error that the server labels as retryable is allowed (BP-A06)."""
        options = self._options
        if operation.ends_transaction:
            return True
        if not operation.retries_overload:
            return False
        if operation.needs_retry_writes:
            return options.retry_writes
        return options.retry_reads and (options.retry_writes or not operation.is_generic)

    def server_to_avoid(self, error: PyMongoError, attempt: FailedAttempt) -> Address | None:
        """The server on which the next try should not run, if there is another (BP-A13)."""
        overloaded = self.overload.retargeting and error.has_error_label(OVERLOADED)
        sharded = self._topology.description.topology_type == TOPOLOGY_TYPE.Sharded
        return attempt.address if sharded or overloaded else None


class Retry:
    """The tries of one operation after the first.

    Two policies meet here. An error of the network or of an election is answered by one more try of a retryable read or
    write, at once (and by any number of them until a deadline). An error that the server labels as retryable, because
    it was overloaded and did not look at the command, is answered for any operation, up to ``maxAdaptiveRetries``
    times, after a wait, for as long as the client has tokens. From the first such error on, both count towards that
    limit (BP-A10).

    :param policy: of the client.
    :param deadline: when the operation must have ended; None is without limit.
    """

    __slots__ = (
        "_deadline",
        "_limit",
        "_overload",
        "_policy",
        "_retries",
        "delay",
        "error",
        "failed_on",
        "latest",
        "maybe_executed",
    )

    def __init__(self, policy: RetryPolicy, deadline: float | None) -> None:
        self._policy = policy
        self._overload = policy.overload
        self._deadline = deadline
        self._retries = 0
        self._limit: float = 1 if deadline is None else inf
        self.latest = self.error = _NONE  # of all errors, the one that the user sees if no better comes
        self.delay: float | None = None  # before the next try, in seconds; None if there is none
        self.maybe_executed = False  # not if every server has refused the operation without looking at it
        self.failed_on: frozenset[Address] = frozenset()

    def failed(self, error: PyMongoError, attempt: FailedAttempt) -> None:
        """Decide whether there is another try: :attr:`delay` says so. If not, :attr:`error` is for the user.

        :param error: of `attempt`; it is given the labels that the server leaves to the driver.
        """
        self._overload.errors += 1
        self.latest = error
        if attempt.is_retryable_write:
            error = with_retry_writes_hint(error)
        _add_labels(error, attempt)
        self.delay = self._delay(error, attempt)
        if self.delay is None and attempt.transaction is not None and self.error.has_error_label(TRANSIENT):
            attempt.transaction.unpin()

    def _delay(self, error: PyMongoError, attempt: FailedAttempt) -> float | None:
        overloaded = error.has_error_label(OVERLOADED)
        labelled = error.has_error_label(RETRYABLE) and self._policy.allows_overload_retry(attempt.operation)
        if self._retries and not overloaded:
            self._overload.bucket.deposit(10)
        self.error = self._better_of(error)
        self.maybe_executed = self.maybe_executed or not error.has_error_label(RETRYABLE)
        if labelled:
            self._limit = self._overload.max_retries
        if self._retries >= self._limit or not (labelled or self._may_retry_once(error, attempt)):
            return None
        delay = self._overload.delay(self._retries) if overloaded else 0.0
        is_over = self._deadline is not None and _clock.monotonic() + delay >= self._deadline
        if is_over and (delay or self.error.timeout):
            return None  # another error is tried again: that ends at once, in a time-out with this one as its cause
        if (overloaded or labelled) and not self._pay():
            return None
        self._retries += 1
        if not (overloaded or labelled):
            self._overload.others += 1
        failed_on = self._policy.server_to_avoid(error, attempt)
        if failed_on is not None:
            self.failed_on = self.failed_on | {failed_on}
        return delay

    def forget_errors(self) -> None:
        """The operation has ended. Errors refer to the frames that they went through, and those frames to this: without
        this cycle, the application's locals are freed with the error, not by the garbage collector.
        """
        self.latest = self.error = _NONE

    def _may_retry_once(self, error: PyMongoError, attempt: FailedAttempt) -> bool:
        """Whether an error of the network or an election is followed by another try."""
        may_retry = may_retry_write if attempt.operation.is_write else may_retry_read
        return may_retry(error) and self._policy.allows_single_retry(attempt)

    def _pay(self) -> bool:
        """Take a token for the next try; False if there is none."""
        if not self._overload.bucket.consume():
            self._overload.exhausted += 1
            return False
        self._overload.retries += 1
        return True

    def _better_of(self, error: PyMongoError) -> PyMongoError:
        """The error that tells more: the newest, unless it only says that the retry could not be made."""
        if self.error is _NONE:
            return error
        if self._deadline is not None and error.timeout:
            error.__cause__ = self.error
            return error
        if isinstance(error, ServerSelectionTimeoutError) or error.has_error_label(NO_WRITES_PERFORMED):
            return self.error
        return error


def _add_labels(error: PyMongoError, attempt: FailedAttempt) -> None:
    """Add the labels that the server leaves to the driver, and have the transaction take note of the error."""
    operation, transaction, hello = attempt.operation, attempt.transaction, attempt.hello
    if attempt.is_retryable_write or operation.ends_transaction:
        label_write_error(error, hello.max_wire_version if hello else 0, hello is not None and hello.is_mongos)
    if transaction is not None:
        unread = error.has_error_label(RETRYABLE)
        if unread and attempt.starts_transaction:
            transaction.not_begun()
        operation.failed_in(transaction, error, unread and error.has_error_label(OVERLOADED))
