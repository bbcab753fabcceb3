"""Whether an operation is tried again, and which error the user sees in the end. Pure decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.execution.operation import Operation

RETRYABLE_WRITE = "RetryableWriteError"
NO_WRITES_PERFORMED = "NoWritesPerformed"

# The retryable reads and retryable writes specifications list the same codes but for 134, which only reads have.
_RETRYABLE_CODES = frozenset({6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})
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


def label_write_error(error: PyMongoError, max_wire_version: int) -> None:
    """Add the label that says a write may be tried again, where the server does not do that."""
    if isinstance(error, (OperationFailure, NotPrimaryError)):
        may_retry = max_wire_version < _SERVER_LABELS_ERRORS and error.code in _RETRYABLE_CODES
    else:
        may_retry = isinstance(error, AutoReconnect) and not isinstance(error, ServerSelectionTimeoutError)
    if may_retry:
        error._add_error_label(RETRYABLE_WRITE)


def may_retry_write(error: PyMongoError) -> bool:
    """Whether a write that failed with `error` may be tried again."""
    return error.has_error_label(RETRYABLE_WRITE)


class Retry:
    """The tries of one operation after the first.

    :param operation: the operation.
    """

    __slots__ = ("_failed", "_operation", "_tries_left", "error", "failed_on")

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._tries_left = 1
        self.error = PyMongoError()  # the one that the user sees if no better comes
        self._failed = False
        self.failed_on: frozenset[Address] = frozenset()

    def after(self, error: PyMongoError, failed_on: Address | None, can_retry: bool) -> None:
        """Return if the operation should be tried again.

        :param failed_on: the server, if one had been selected.
        :param can_retry: whether options, server and operation allow it.
        :raises PyMongoError: the error for the user, if not.
        """
        self.error = self._better_of(error)
        self._failed = True
        judge = may_retry_write if self._operation.is_write else may_retry_read
        if not can_retry or self._tries_left == 0 or not judge(error):
            raise self.error
        self._tries_left -= 1
        if failed_on is not None:
            self.failed_on = self.failed_on | {failed_on}

    def _better_of(self, error: PyMongoError) -> PyMongoError:
        """The error that tells more: the newest, unless it only says that the retry could not be made."""
        if not self._failed:
            return error
        if isinstance(error, ServerSelectionTimeoutError) or error.has_error_label(NO_WRITES_PERFORMED):
            return self.error
        return error
