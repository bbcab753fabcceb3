"""Whether an operation is tried again, when, and which error the user sees in the end. Decisions, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from time import monotonic

from gmongo.cmap.overload import OVERLOADED, RETRYABLE
from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.execution.operation import Operation
from gmongo.execution.overload import Overload
from gmongo.wire.address import Address

RETRYABLE_WRITE = "RetryableWriteError"
NO_WRITES_PERFORMED = "NoWritesPerformed"

# The retryable reads and retryable writes specifications list the same codes but for 134, which only reads have.
_RETRYABLE_CODES = frozenset({6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})
_NO_RETRYABLE_WRITES = (
    "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
)
_RETRYABLE_READ_CODES = _RETRYABLE_CODES | {134}
# MongoDB 4.4: from here on the server itself labels the errors after which a write may be retried.
_SERVER_LABELS_ERRORS = 9


def may_retry_read(error: PyMongoError) -> bool:
    """Whether a read that failed with `error` may be tried again."""
    if isinstance(error, ServerSelectionTimeoutError):
        return False
    if isinstance(error, OperationFailure):
        return error.code in _RETRYABLE_READ_CODES
    return isinstance(error, AutoReconnect)


def label_write_error(error: PyMongoError, max_wire_version: int, is_mongos: bool) -> None:
    """Add the label that says a write may be tried again, where the server does not do that.

    A mongos that leaves it to the driver has tried again itself after an error of the write concern.
    """
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        left_to_driver = max_wire_version < _SERVER_LABELS_ERRORS and not (is_mongos and _is_of_write_concern(error))
        may_retry = left_to_driver and error.code in _RETRYABLE_CODES
    else:
        may_retry = isinstance(error, AutoReconnect) and not isinstance(error, ServerSelectionTimeoutError)
    if may_retry:
        error._add_error_label(RETRYABLE_WRITE)


def _is_of_write_concern(error: OperationFailure | NotPrimaryError) -> bool:
    """Whether the error is a part of a reply to a command that succeeded."""
    return isinstance(error, WriteConcernError) or (isinstance(error.details, Mapping) and "ok" not in error.details)


def may_retry_write(error: PyMongoError) -> bool:
    """Whether a write that failed with `error` may be tried again."""
    return error.has_error_label(RETRYABLE_WRITE)


def explained(error: PyMongoError) -> PyMongoError:
    """The error of a numbered write; in other words if the server's storage engine knows no such numbers."""
    if not (isinstance(error, OperationFailure) and error.code == 20 and str(error).startswith("Transaction numbers")):
        return error
    details = {**(error.details or {}), "errmsg": _NO_RETRYABLE_WRITES}
    better = OperationFailure(_NO_RETRYABLE_WRITES, error.code, details)
    better.__cause__ = error
    return better


class Retry:
    """The tries of one operation after the first.

    Two policies meet here. An error of the network or of an election is answered by one more try of a retryable read or
    write, at once (and by any number of them until a deadline). An error that the server labels as retryable, because
    it was overloaded and did not look at the command, is answered for any operation, up to five times, after a wait,
    for as long as the client has tokens. From the first such error on, both count towards the five (BP-A10).

    :param operation: the operation.
    :param overload: the client's policy, and its tokens.
    :param deadline: when the operation must have ended; None is without limit.
    """

    __slots__ = ("_deadline", "_failed", "_limit", "_operation", "_overload", "_retries", "error", "failed_on", "tried")

    def __init__(self, operation: Operation, overload: Overload, deadline: float | None) -> None:
        self._operation = operation
        self._overload = overload
        self._deadline = deadline
        self._retries = 0
        self._limit: float = 1 if deadline is None else inf
        self.error = PyMongoError()  # the one that the user sees if no better comes
        self._failed = False
        self.tried = False  # whether a server may have executed the operation: not if it only turned it away
        self.failed_on: frozenset[Address] = frozenset()

    def after(self, error: PyMongoError, failed_on: Address | None, regular: bool, any_kind: bool) -> float | None:
        """Seconds to wait before the next try; None if there is none, and `error` is for the user.

        :param failed_on: the server to pass over, if there is another.
        :param regular: whether options, server and operation allow a try after an error of the network or an election.
        :param any_kind: whether options allow one after an error labelled as retryable.
        """
        overloaded = error.has_error_label(OVERLOADED)
        labelled = any_kind and error.has_error_label(RETRYABLE)
        if self._retries and not overloaded:
            self._overload.bucket.deposit(10)
        self.error = self._better_of(error)
        self._failed = True
        self.tried = self.tried or not error.has_error_label(RETRYABLE)
        if labelled:
            self._limit = self._overload.max_retries
        if self._retries >= self._limit or not (labelled or (regular and self._is_regular(error))):
            return None
        delay = self._overload.delay(self._retries) if overloaded else 0.0
        if self._deadline is not None and monotonic() + delay > self._deadline and (delay or self.error.timeout):
            return None  # another error is tried again: that ends at once, in a time-out with this one as its cause
        if (overloaded or labelled) and not self._pay():
            return None
        self._retries += 1
        if failed_on is not None and (not overloaded or self._overload.retargeting):
            self.failed_on = self.failed_on | {failed_on}
        return delay

    def forget_error(self) -> None:
        """The operation has ended: what its frames refer to must not refer to the error, which refers to them."""
        self.error = PyMongoError()

    def _is_regular(self, error: PyMongoError) -> bool:
        return may_retry_write(error) if self._operation.is_write else may_retry_read(error)

    def _pay(self) -> bool:
        """Take a token for the next try; False if there is none."""
        if not self._overload.bucket.consume():
            self._overload.exhausted += 1
            return False
        self._overload.retries += 1
        return True

    def _better_of(self, error: PyMongoError) -> PyMongoError:
        """The error that tells more: the newest, unless it only says that the retry could not be made."""
        if not self._failed:
            return error
        if self._deadline is not None and error.timeout:
            error.__cause__ = self.error
            return error
        if isinstance(error, ServerSelectionTimeoutError) or error.has_error_label(NO_WRITES_PERFORMED):
            return self.error
        return error
