"""The retry decisions of the driver equal the decisions of a second implementation (`every_decision.py`).

The comparison detects faults that a test injects into the driver.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gmongo.execution import retry
from gmongo.execution.backpressure import TokenBucket
from gmongo.execution.retry import Retry, RetryPolicy
from tests.execution.every_decision import compare_decisions


@pytest.mark.requirement("BP-12", "BP-13", "BP-14", "BP-15", "BP-16", "BP-19", "BP-31", "BP-33", "BP-34", "BP-35")
@pytest.mark.requirement("BP-41", "BP-42", "BP-43", "BP-50")
@pytest.mark.parametrize("longest", [2, pytest.param(4, marks=pytest.mark.long)])
def test_every_retry_decision_equals_the_specifications(longest: int, record_property: Callable[..., None]) -> None:
    compared, different = compare_decisions(longest)
    record_property("compared", compared)
    assert not different, "\n".join(different)
    assert compared > 50_000


def retry_reads_after_every_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retry, "may_retry_read", lambda error: True)


def retry_overloaded_writes_without_option(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "allows_overload_retry", lambda self, operation: True)


def retry_without_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenBucket, "consume", lambda self: True)


def deposit_no_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenBucket, "deposit", lambda self, tenths: None)


def raise_last_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Retry, "_error_to_raise", lambda self, error: error)


def retry_on_the_same_server(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "server_to_avoid", lambda self, error, attempt: None)


def retry_in_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "allows_single_retry", lambda self, attempt: attempt.operation.retryable)


@pytest.mark.parametrize(
    "inject_fault",
    [
        retry_reads_after_every_error,
        retry_overloaded_writes_without_option,
        retry_without_token,
        deposit_no_token,
        raise_last_error,
        retry_on_the_same_server,
        retry_in_transaction,
    ],
)
def test_comparison_of_decisions_detects_injected_fault(
    monkeypatch: pytest.MonkeyPatch, inject_fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    inject_fault(monkeypatch)
    assert compare_decisions(2).different
