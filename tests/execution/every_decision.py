"""Compare each retry decision of the driver with the decision of a second implementation of the
specifications.

The second implementation covers Retryable Reads, Retryable Writes, Client Backpressure and
Client-side Operations Timeout. The second implementation receives a `Setting` and the names of
errors, which are keys of `ERROR_KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import (
    AutoReconnect,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.execution.retry import ExecutionSettings, Retry, RetryPolicy

_HERE, _NOW = ("here", 1), 50.0
_SELECTION = ServerSelectionTimeoutError


class ErrorKind(NamedTuple):
    """A kind of error. `read` and `write` are True if the error permits a retry without labels."""

    make: Any
    labels: tuple[str, ...] = ()
    read: bool = False
    write: bool = False
    is_timeout: bool = False
    is_selection: bool = False


def _operation_failure(code: int) -> Any:
    return lambda details: OperationFailure("no", code, details)


_OVERLOADED = ("SystemOverloadedError", "RetryableError")
ERROR_KINDS = {
    "network": ErrorKind(lambda details: AutoReconnect("gone", details), read=True, write=True),
    "network timeout": ErrorKind(
        lambda details: NetworkTimeout("late", details), read=True, write=True, is_timeout=True
    ),
    "no server": ErrorKind(lambda details: _SELECTION("none", details), is_timeout=True, is_selection=True),
    "election": ErrorKind(lambda details: NotPrimaryError("no", {**details, "code": 10107}), read=True, write=True),
    "read concern": ErrorKind(_operation_failure(134), read=True),
    "duplicate key": ErrorKind(_operation_failure(11000)),
    "labelled write": ErrorKind(_operation_failure(112), ("RetryableWriteError",)),
    "labelled write without writes": ErrorKind(_operation_failure(112), ("RetryableWriteError", "NoWritesPerformed")),
    "write concern": ErrorKind(lambda details: WriteConcernError("no", 91, details), read=True, write=True),
    "overloaded": ErrorKind(_operation_failure(462), _OVERLOADED),
    "overloaded without writes": ErrorKind(_operation_failure(462), (*_OVERLOADED, "NoWritesPerformed")),
    "retryable": ErrorKind(_operation_failure(462), ("RetryableError",)),
    "overloaded but not retryable": ErrorKind(_operation_failure(462), ("SystemOverloadedError",)),
    "overloaded network": ErrorKind(lambda details: AutoReconnect("gone", details), _OVERLOADED, read=True, write=True),
}
# Flags: the operation is a write, is retryable, is a generic command, ends a transaction, runs in a
# transaction.
OPERATION_FLAGS = {
    "read": (False, True, False, False, False),
    "read that is not retryable": (False, False, False, False, False),
    "write": (True, True, False, False, False),
    "write that is not retryable": (True, False, False, False, False),
    "command": (False, False, True, False, False),
    "read in transaction": (False, True, False, False, True),
    "commit": (True, True, False, True, True),
}


@dataclass(frozen=True)
class Setting:
    """An operation, the retry options of the client, the time limit, the tokens, and the topology."""

    operation: str
    retry_reads: bool = True
    retry_writes: bool = True
    max_retries: int = 2
    seconds: float | None = None
    tokens: int = 1000
    sharded: bool = False
    retargeting: bool = False


def all_settings() -> Iterator[Setting]:
    """Yield, for each operation, settings with many combinations of retry options, deadlines and
    tokens.
    """
    for operation, reads, writes in product(OPERATION_FLAGS, (True, False), (True, False)):
        default = Setting(operation, reads, writes)
        for retries, seconds, tokens in product((0, 1, 2), (None, 100.0, 0.15, 0.0), (1000, 1, 0)):
            yield replace(default, max_retries=retries, seconds=seconds, tokens=tokens)
        yield replace(default, sharded=True)
        yield replace(default, retargeting=True)


class Outcome(NamedTuple):
    """The decision of either implementation after a sequence of failed attempts."""

    delay: float | None
    error_index: int
    tokens: float
    avoids_server: bool
    maybe_executed: bool


def driver_outcome(setting: Setting, errors: tuple[str, ...]) -> Outcome:
    """Let the driver handle a sequence of errors, and return the decision of the driver."""
    kind = TOPOLOGY_TYPE.Sharded if setting.sharded else TOPOLOGY_TYPE.ReplicaSetWithPrimary
    topology: Any = SimpleNamespace(description=SimpleNamespace(topology_type=kind))
    options = ExecutionSettings(
        retry_reads=setting.retry_reads,
        retry_writes=setting.retry_writes,
        max_adaptive_retries=setting.max_retries,
        overload_retargeting=setting.retargeting,
    )
    policy = RetryPolicy(options, topology)
    policy.overload.jitter = lambda: 1.0
    policy.overload.bucket.missing_tenths = (1000 - setting.tokens) * 10
    with patch.object(_clock, "monotonic", lambda: _NOW):
        retry = Retry(policy, None if setting.seconds is None else _NOW + setting.seconds)
        raised: list[PyMongoError] = []
        for name in errors:
            raised.append(ERROR_KINDS[name].make({"errorLabels": list(ERROR_KINDS[name].labels)}))
            retry.record_failure(raised[-1], _attempt(setting))
    index = next(number for number, each in enumerate(raised) if each is retry.error)
    tokens, deprioritizes = policy.overload.bucket.tokens, _HERE in retry.failed_addresses
    return Outcome(retry.delay, index, tokens, deprioritizes, retry.maybe_executed)


def _attempt(setting: Setting) -> Any:
    is_write, retryable, is_generic, ends, in_transaction = OPERATION_FLAGS[setting.operation]
    operation = SimpleNamespace(
        is_write=is_write,
        retryable=retryable,
        is_generic=is_generic,
        ends_transaction=ends,
        retries_overload=True,
        needs_retry_writes=is_write and not ends,
        notify_transaction=lambda *_arguments: None,
    )
    transaction = SimpleNamespace(unpin=lambda: None) if in_transaction else None
    has_number = is_write and retryable and setting.retry_writes and not in_transaction
    return SimpleNamespace(
        operation=operation,
        transaction=transaction,
        starts_transaction=False,
        is_retryable_write=has_number,
        hello=None,
        address=_HERE,
    )


def required_outcome(setting: Setting, errors: tuple[str, ...]) -> Outcome:
    """Return the decision that the specifications require after a sequence of errors."""
    tokens: float = setting.tokens
    limit, retries, index = inf if setting.seconds is not None else 1, 0, 0
    avoids_server = executed = False
    delay: float | None = None
    for number, name in enumerate(errors):
        kind = ERROR_KINDS[name]
        overloaded, labelled = "SystemOverloadedError" in kind.labels, "RetryableError" in kind.labels
        labelled_and_allowed = labelled and _options_allow_retry(setting)
        if retries and not overloaded:
            # A retry that fails without an overload error deposits a token.
            tokens = min(1000.0, tokens + 1)
        executed = executed or not labelled
        # The driver raises the newest error, but ignores errors which state that the retry did not
        # run.
        has_no_information = kind.is_selection or "NoWritesPerformed" in kind.labels
        if not has_no_information or (setting.seconds is not None and kind.is_timeout):
            index = number
        if labelled_and_allowed:
            limit = setting.max_retries
        delay = None
        if retries >= limit or not (labelled_and_allowed or _error_allows_retry(setting, kind)):
            break
        wait = 0.1 * 2**retries if overloaded else 0.0
        if setting.seconds is not None and wait >= setting.seconds and (wait or ERROR_KINDS[errors[index]].is_timeout):
            break
        if overloaded or labelled_and_allowed:
            if tokens < 1:
                break
            tokens -= 1
        retries, delay = retries + 1, wait
        avoids_server = avoids_server or setting.sharded or (overloaded and setting.retargeting)
    return Outcome(delay, index, tokens, avoids_server, executed)


def _options_allow_retry(setting: Setting) -> bool:
    """Return True if the client options allow a retry after an error with the label
    ``RetryableError``.
    """
    is_write, _retryable, is_generic, ends, _in_transaction = OPERATION_FLAGS[setting.operation]
    if is_generic:
        return setting.retry_reads and setting.retry_writes
    return ends or (setting.retry_writes if is_write else setting.retry_reads)


def _error_allows_retry(setting: Setting, error_kind: ErrorKind) -> bool:
    """Return True if the driver may retry after the error, regardless of the label ``RetryableError``."""
    is_write, retryable, _is_generic, ends, in_transaction = OPERATION_FLAGS[setting.operation]
    if ends:
        return error_kind.write or "RetryableWriteError" in error_kind.labels
    if in_transaction or not retryable:
        return False
    if is_write:
        return setting.retry_writes and (error_kind.write or "RetryableWriteError" in error_kind.labels)
    return setting.retry_reads and error_kind.read


class Comparison(NamedTuple):
    """The number of compared sequences of errors, and the first ten differences."""

    compared_count: int
    differences: list[str]


def compare_decisions(max_errors: int) -> Comparison:
    """Compare the decisions of the driver with the required decisions."""
    compared_count, differences = 0, []
    for setting in all_settings():
        sequences: list[tuple[str, ...]] = [()]
        while sequences:
            before = sequences.pop()
            for name in ERROR_KINDS:
                errors = (*before, name)
                compared_count += 1
                actual, required = driver_outcome(setting, errors), required_outcome(setting, errors)
                if actual != required:
                    differences.append(f"{setting}: after {errors}: {actual}, required is {required}")
                    if len(differences) >= 10:
                        return Comparison(compared_count, differences)
                elif actual.delay is not None and len(errors) < max_errors:
                    sequences.append(errors)
    return Comparison(compared_count, differences)
