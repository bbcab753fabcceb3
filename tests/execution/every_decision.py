"""All decisions of a retry: every kind of operation, every sequence of errors, under every setting that matters.

The driver's decisions are compared with those of a second reading of the specifications (Retryable Reads, Retryable
Writes, Client Backpressure, Client-side Operations Timeout), which goes by the name of an error alone.
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


class Kind(NamedTuple):
    """An error, and what the specifications say of it.

    :param labels: that the server has put on it.
    :param read: whether a retryable read is tried again after it.
    :param write: whether a retryable write is, if the server leaves the labels to the driver.
    """

    make: Any
    labels: tuple[str, ...] = ()
    read: bool = False
    write: bool = False
    is_timeout: bool = False
    is_selection: bool = False


def _failure(code: int) -> Any:
    return lambda details: OperationFailure("no", code, details)


_BUSY = ("SystemOverloadedError", "RetryableError")
KINDS = {
    "network": Kind(lambda details: AutoReconnect("gone", details), read=True, write=True),
    "network timeout": Kind(lambda details: NetworkTimeout("late", details), read=True, write=True, is_timeout=True),
    "no server": Kind(lambda details: _SELECTION("none", details), is_timeout=True, is_selection=True),
    "election": Kind(lambda details: NotPrimaryError("no", {**details, "code": 10107}), read=True, write=True),
    "read concern": Kind(_failure(134), read=True),
    "duplicate key": Kind(_failure(11000)),
    "labelled write": Kind(_failure(112), ("RetryableWriteError",)),
    "nothing written": Kind(_failure(112), ("RetryableWriteError", "NoWritesPerformed")),
    "write concern": Kind(lambda details: WriteConcernError("no", 91, details), read=True, write=True),
    "busy": Kind(_failure(462), _BUSY),
    "busy, nothing written": Kind(_failure(462), (*_BUSY, "NoWritesPerformed")),
    "may be tried again": Kind(_failure(462), ("RetryableError",)),
    "only busy": Kind(_failure(462), ("SystemOverloadedError",)),
    "busy network": Kind(lambda details: AutoReconnect("gone", details), _BUSY, read=True, write=True),
}
# Name -> is a write, may be tried again, is of the application's own, ends a transaction, is in one.
OPERATIONS = {
    "read": (False, True, False, False, False),
    "other read": (False, False, False, False, False),
    "write": (True, True, False, False, False),
    "other write": (True, False, False, False, False),
    "command": (False, False, True, False, False),
    "read in a transaction": (False, True, False, False, True),
    "commit": (True, True, False, True, True),
}


@dataclass(frozen=True)
class Setting:
    """Under what an operation is tried.

    :param seconds: until its deadline; None is without one.
    :param tokens: in the bucket.
    """

    operation: str
    retry_reads: bool = True
    retry_writes: bool = True
    max_retries: int = 2
    seconds: float | None = None
    tokens: int = 1000
    sharded: bool = False
    retargeting: bool = False


def settings() -> Iterator[Setting]:
    """All that differ in one or two ways from what is usual."""
    for operation, reads, writes in product(OPERATIONS, (True, False), (True, False)):
        usual = Setting(operation, reads, writes)
        for retries, seconds, tokens in product((0, 1, 2), (None, 100.0, 0.15, 0.0), (1000, 1, 0)):
            yield replace(usual, max_retries=retries, seconds=seconds, tokens=tokens)
        yield replace(usual, sharded=True)
        yield replace(usual, retargeting=True)


class Outcome(NamedTuple):
    """What came of the tries that failed.

    :param delay: before the next one; None if there is none.
    :param shown: the number of the error that is for the user then.
    """

    delay: float | None
    shown: int
    tokens: float
    avoided: bool
    maybe_executed: bool


def decided(setting: Setting, errors: tuple[str, ...]) -> Outcome:
    """What the driver decides after these errors."""
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
    policy.overload.bucket.missing = (1000 - setting.tokens) * 10
    with patch.object(_clock, "monotonic", lambda: _NOW):
        retry = Retry(policy, None if setting.seconds is None else _NOW + setting.seconds)
        given: list[PyMongoError] = []
        for name in errors:
            given.append(KINDS[name].make({"errorLabels": list(KINDS[name].labels)}))
            retry.failed(given[-1], _attempt(setting))
    shown = next(number for number, each in enumerate(given) if each is retry.error)
    return Outcome(retry.delay, shown, policy.overload.bucket.tokens, _HERE in retry.failed_on, retry.maybe_executed)


def _attempt(setting: Setting) -> Any:
    is_write, retryable, is_generic, ends, in_transaction = OPERATIONS[setting.operation]
    operation = SimpleNamespace(
        is_write=is_write,
        retryable=retryable,
        is_generic=is_generic,
        ends_transaction=ends,
        retries_overload=True,
        needs_retry_writes=is_write and not ends,
        failed_in=lambda *given: None,
    )
    transaction = SimpleNamespace(unpin=lambda: None, not_begun=lambda: None) if in_transaction else None
    numbered = is_write and retryable and setting.retry_writes and not in_transaction
    return SimpleNamespace(
        operation=operation,
        transaction=transaction,
        starts_transaction=False,
        is_retryable_write=numbered,
        hello=None,
        address=_HERE,
    )


def expected(setting: Setting, errors: tuple[str, ...]) -> Outcome:
    """What the specifications say to do after these errors."""
    tokens: float = setting.tokens
    limit, retries, shown = inf if setting.seconds is not None else 1, 0, 0
    avoided = executed = False
    delay: float | None = None
    for number, name in enumerate(errors):
        kind = KINDS[name]
        busy, labelled = "SystemOverloadedError" in kind.labels, "RetryableError" in kind.labels
        labelled_and_allowed = labelled and _allows_labelled(setting)
        if retries and not busy:
            tokens = min(1000.0, tokens + 1)  # rule 3 of the bucket
        executed = executed or not labelled
        # The newest error is the user's, but for one that only says that the retry was not made.
        says_nothing = kind.is_selection or "NoWritesPerformed" in kind.labels
        if not says_nothing or (setting.seconds is not None and kind.is_timeout):
            shown = number
        if labelled_and_allowed:
            limit = setting.max_retries
        delay = None
        if retries >= limit or not (labelled_and_allowed or _allows_regular(setting, kind)):
            break
        wait = 0.1 * 2**retries if busy else 0.0
        if setting.seconds is not None and wait >= setting.seconds and (wait or KINDS[errors[shown]].is_timeout):
            break
        if busy or labelled_and_allowed:
            if tokens < 1:
                break
            tokens -= 1
        retries, delay = retries + 1, wait
        avoided = avoided or setting.sharded or (busy and setting.retargeting)
    return Outcome(delay, shown, tokens, avoided, executed)


def _allows_labelled(setting: Setting) -> bool:
    """Whether the client's options allow another try of what the server has not looked at."""
    is_write, _retryable, is_generic, ends, _in_transaction = OPERATIONS[setting.operation]
    if is_generic:
        return setting.retry_reads and setting.retry_writes
    return ends or (setting.retry_writes if is_write else setting.retry_reads)


def _allows_regular(setting: Setting, kind: Kind) -> bool:
    """Whether the operation may be tried again after an error of the network or an election."""
    is_write, retryable, _is_generic, ends, in_transaction = OPERATIONS[setting.operation]
    if ends:
        return kind.write or "RetryableWriteError" in kind.labels
    if in_transaction or not retryable:
        return False
    if is_write:
        return setting.retry_writes and (kind.write or "RetryableWriteError" in kind.labels)
    return setting.retry_reads and kind.read


class Comparison(NamedTuple):
    """How many sequences were compared, and the first few that differ."""

    compared: int
    different: list[str]


def compare(longest: int) -> Comparison:
    """Every sequence of errors up to a length; after one that is the end, nothing follows."""
    compared, different = 0, []
    for setting in settings():
        sequences: list[tuple[str, ...]] = [()]
        while sequences:
            before = sequences.pop()
            for name in KINDS:
                errors = (*before, name)
                compared += 1
                found, right = decided(setting, errors), expected(setting, errors)
                if found != right:
                    different.append(f"{setting}: after {errors}: {found}, and should be {right}")
                    if len(different) >= 10:
                        return Comparison(compared, different)
                elif found.delay is not None and len(errors) < longest:
                    sequences.append(errors)
    return Comparison(compared, different)
