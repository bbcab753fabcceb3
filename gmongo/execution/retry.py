"""Decisions about retries, backoffs, and the error that the application receives, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from gmongo import _clock, _random
from gmongo._server_facts import codes, wire_versions
from gmongo._server_facts.labels import NO_WRITES_PERFORMED, OVERLOADED, RETRYABLE, RETRYABLE_WRITE, TRANSIENT
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.hello import Hello
from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.execution.operation import Operation
from gmongo.execution.transaction import State, Transaction
from gmongo.sdam.topology import Topology
from gmongo.wire.address import Address
from gmongo.wire.message import OutOfStepError

MAX_RETRIES = 5
BASE_BACKOFF = 0.1  # seconds
MAX_BACKOFF = 10.0  # seconds


def backoff(retry_count: int, base: float, jitter: float) -> float:
    """Return the backoff in seconds (BP-20 to BP-25). Each prior retry doubles the maximum `base`."""
    return jitter * min(MAX_BACKOFF, base * 2.0**retry_count)


class TokenBucket:
    """Token bucket that limits the retries of a client after overload errors (BP-55 to BP-60).

    Each of these retries takes one token. A successful operation returns 0.1 tokens, or 1.1 tokens
    after a retry. If most operations fail because of overload, the client soon stops these retries.
    The bucket counts tenths of tokens, because floating-point sums of 0.1 are inexact.
    """

    CAPACITY = 1000

    def __init__(self) -> None:
        self.missing_tenths = 0  # the number of tenths of tokens that the bucket lacks

    @property
    def tokens(self) -> float:
        return (self.CAPACITY * 10 - self.missing_tenths) / 10

    def consume(self) -> bool:
        """Take one token. Return False if less than one token is left."""
        if self.missing_tenths > (self.CAPACITY - 1) * 10:
            return False
        self.missing_tenths += 10
        return True

    def deposit(self, tenths: int) -> None:
        """Add tenths of a token to the bucket, up to the capacity."""
        self.missing_tenths = max(0, self.missing_tenths - tenths)


@dataclass(eq=False, repr=False)
class BackpressurePolicy:
    """Settings, token bucket and counters for the retries of one client."""

    max_retries: int
    base_backoff: float  # maximum backoff in seconds before the first retry
    retargeting: bool  # True if retries deprioritize an overloaded server
    jitter: Callable[[], float] = lambda: _random.random()
    bucket: TokenBucket = field(default_factory=TokenBucket)
    retry_count: int = 0  # retries after overload errors
    other_retry_count: int = 0  # retries after network errors and elections, without a token
    failed_attempt_count: int = 0
    slept_seconds: float = 0.0
    no_token_count: int = 0

    def stats(self) -> dict[str, float]:
        """Return the mapping that :meth:`MongoClient.retry_stats` returns."""
        counts = {"retries": self.retry_count, "slept": self.slept_seconds, "exhausted": self.no_token_count}
        return {"tokens": self.bucket.tokens, **counts}


_NO_RETRYABLE_WRITES_MESSAGE = (
    "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
)

_NO_ERROR = PyMongoError()  # placeholder until an attempt fails
# If a connection contains unexpected data, the exchange raises OutOfStepError.
_CONNECTION_LOST_ERRORS = (AutoReconnect, OutOfStepError)


def may_retry_read(error: PyMongoError) -> bool:
    """Return True if the driver may retry a read that failed with `error`."""
    if isinstance(error, ServerSelectionTimeoutError):
        return False
    if isinstance(error, OperationFailure):
        return error.code in codes.RETRYABLE_READ
    return isinstance(error, _CONNECTION_LOST_ERRORS)


def label_write_error(error: PyMongoError, max_wire_version: int, is_mongos: bool) -> None:
    """Add ``RetryableWriteError`` to a network error, and to a retryable error if the server sends no labels.

    If a mongos sends no error labels, its write concern errors get no label, because the mongos has retried the write.
    """
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        server_adds_no_labels = max_wire_version < wire_versions.ERROR_LABELS
        driver_adds_label = server_adds_no_labels and not (is_mongos and _is_write_concern_error(error))
        may_retry = driver_adds_label and error.code in codes.RETRYABLE_WRITE
    else:
        may_retry = isinstance(error, _CONNECTION_LOST_ERRORS) and not isinstance(error, ServerSelectionTimeoutError)
    if may_retry:
        error._add_error_label(RETRYABLE_WRITE)


def _is_write_concern_error(error: OperationFailure | NotPrimaryError) -> bool:
    """Return True for a write concern error in the reply to a successful command."""
    return isinstance(error, WriteConcernError) or (isinstance(error.details, Mapping) and "ok" not in error.details)


def with_retry_writes_hint(error: PyMongoError) -> PyMongoError:
    """Return `error`, or an error that recommends ``retryWrites=false`` for a server without retryable writes."""
    if not isinstance(error, OperationFailure) or error.code != codes.ILLEGAL_OPERATION:
        return error
    if not str(error).startswith("Transaction numbers"):
        return error
    details = {**(error.details or {}), "errmsg": _NO_RETRYABLE_WRITES_MESSAGE}
    hint_error = OperationFailure(_NO_RETRYABLE_WRITES_MESSAGE, error.code, details)
    hint_error.__cause__ = error
    return hint_error


@dataclass(frozen=True)
class ExecutionSettings:
    """Retry options and timeout of a client."""

    retry_reads: bool = True
    retry_writes: bool = True
    timeout: float | None = None  # seconds for an operation, 0 for no limit, None for no `timeoutMS`
    max_adaptive_retries: int = MAX_RETRIES  # maximum number of retries after overload errors
    base_backoff: float = BASE_BACKOFF  # maximum backoff in seconds before the first retry
    overload_retargeting: bool = False  # True if retries deprioritize an overloaded server


class AttemptState:
    """The attributes of an attempt on which the retry decision depends."""

    # Class attributes contain the default values, so that the constructor of an attempt is fast.
    operation: Operation
    address: Address | None = None  # server on which the attempt runs
    hello: Hello | None = None  # hello of the connection after an error, or None without a connection
    is_retryable_write = False  # True for a retryable write outside of a transaction
    transaction: Transaction | None = None
    starts_transaction: bool  # True if the command starts the transaction


class RetryPolicy:
    """Retry rules from the client options."""

    def __init__(self, options: ExecutionSettings, topology: Topology) -> None:
        self._options = options
        self._topology = topology
        self.retry_writes = options.retry_writes
        self.overload = BackpressurePolicy(
            options.max_adaptive_retries, options.base_backoff, options.overload_retargeting
        )

    def allows_network_retry(self, attempt: AttemptState) -> bool:
        """Return True if the options allow a retry after a network error or an election."""
        operation = attempt.operation
        if attempt.transaction is not None:
            return operation.ends_transaction
        if operation.is_write:
            return attempt.is_retryable_write
        return operation.retryable and self._options.retry_reads

    def allows_overload_retry(self, operation: Operation) -> bool:
        """Return True if the options allow a retry after an error labeled ``RetryableError`` (BP-A06)."""
        options = self._options
        if operation.ends_transaction:
            return True
        if not operation.retries_overload:
            return False
        if operation.needs_retry_writes:
            return options.retry_writes
        return options.retry_reads and (options.retry_writes or not operation.is_generic)

    def server_to_avoid(self, error: PyMongoError, attempt: AttemptState) -> Address | None:
        """Return the address of the server that the next attempt deprioritizes, or None (BP-A13)."""
        overloaded = self.overload.retargeting and error.has_error_label(OVERLOADED)
        sharded = self._topology.description.topology_type == TOPOLOGY_TYPE.Sharded
        return attempt.address if sharded or overloaded else None


class Retry:
    """Retry state of one operation.

    The driver retries an operation for two reasons:

    - After a network error or an election, the driver immediately retries a retryable read or write.
      Without a deadline, the driver retries once. With a deadline, the driver retries until the
      deadline.
    - After an error with the label ``RetryableError``, for example from an overloaded server, the
      driver retries the operation if the options allow the retry. The retry needs a token. After the
      first such error, ``maxAdaptiveRetries`` limits all retries of the operation (BP-A10).
    """

    def __init__(self, policy: RetryPolicy, deadline: float | None) -> None:
        self._policy = policy
        self._overload = policy.overload
        self._deadline = deadline
        self._retry_count = 0
        self._limit: float = 1 if deadline is None else inf
        self.latest = _NO_ERROR  # error of the last attempt
        self.error = _NO_ERROR  # error that the application receives
        self.delay: float | None = None  # seconds before the next attempt, or None for no retry
        self.maybe_executed = False  # True if a server may have executed the operation
        self.failed_addresses: frozenset[Address] = frozenset()

    def record_failure(self, error: PyMongoError, attempt: AttemptState) -> None:
        """Add the specifications' labels to `error`, and set :attr:`delay` and :attr:`error`."""
        self._overload.failed_attempt_count += 1
        self.latest = error
        if attempt.is_retryable_write:
            error = with_retry_writes_hint(error)
        _add_labels(error, attempt)
        self.delay = self._plan_retry(error, attempt)
        if self.delay is None and attempt.transaction is not None and self.error.has_error_label(TRANSIENT):
            attempt.transaction.unpin()

    def _plan_retry(self, error: PyMongoError, attempt: AttemptState) -> float | None:
        overloaded = error.has_error_label(OVERLOADED)
        allowed_by_label = error.has_error_label(RETRYABLE) and self._policy.allows_overload_retry(attempt.operation)
        if self._retry_count and not overloaded:
            self._overload.bucket.deposit(10)
        self.error = self._error_to_raise(error)
        self.maybe_executed = self.maybe_executed or not error.has_error_label(RETRYABLE)
        if allowed_by_label:
            self._limit = self._overload.max_retries
        if self._retry_count >= self._limit or not (allowed_by_label or self._may_retry_network_error(error, attempt)):
            return None
        delay = backoff(self._retry_count, self._overload.base_backoff, self._overload.jitter()) if overloaded else 0.0
        is_over = self._deadline is not None and _clock.monotonic() + delay >= self._deadline
        # Without a delay, let the retry raise a timeout error, whose cause is this error.
        if is_over and (delay or self.error.timeout):
            return None
        if not (overloaded or allowed_by_label):
            self._overload.other_retry_count += 1
        elif self._overload.bucket.consume():
            self._overload.retry_count += 1
        else:  # no token is left
            self._overload.no_token_count += 1
            return None
        self._retry_count += 1
        address = self._policy.server_to_avoid(error, attempt)
        if address is not None:
            self.failed_addresses = self.failed_addresses | {address}
        return delay

    def forget_errors(self) -> None:
        """Remove the references to the errors after the operation.

        The traceback of an error refers to frames, and a frame refers to this object. The removal breaks the cycle, so
        that Python frees the local variables of the application together with the error.
        """
        self.latest = self.error = _NO_ERROR

    def _may_retry_network_error(self, error: PyMongoError, attempt: AttemptState) -> bool:
        """Return True if the driver may retry the operation after a network error or an election."""
        is_write = attempt.operation.is_write
        may_retry = error.has_error_label(RETRYABLE_WRITE) if is_write else may_retry_read(error)
        return may_retry and self._policy.allows_network_retry(attempt)

    def _error_to_raise(self, error: PyMongoError) -> PyMongoError:
        """Return `error`, or the previous error if no server executed the retry."""
        if self.error is _NO_ERROR:
            return error
        if self._deadline is not None and error.timeout:
            error.__cause__ = self.error
            return error
        executed_nothing = isinstance(error, ServerSelectionTimeoutError) or error.has_error_label(NO_WRITES_PERFORMED)
        return self.error if executed_nothing else error


def _add_labels(error: PyMongoError, attempt: AttemptState) -> None:
    """Add the labels that the specifications require, and notify the transaction of the error."""
    operation, transaction, hello = attempt.operation, attempt.transaction, attempt.hello
    if attempt.is_retryable_write or operation.ends_transaction:
        label_write_error(error, hello.max_wire_version if hello else 0, hello is not None and hello.is_mongos)
    if transaction is not None:
        rejected = error.has_error_label(RETRYABLE)
        if rejected and attempt.starts_transaction:
            transaction.state = State.STARTING  # an overloaded server rejected the first command
        operation.notify_transaction(transaction, error, rejected and error.has_error_label(OVERLOADED))
