"""The retry decisions of the driver equal the decisions of a second implementation
(`every_decision.py`).

A comparison of decisions detects each fault that a test injects into the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.execution import retry
from gmongo.execution.retry import Retry, RetryPolicy, TokenBucket
from tests.execution.every_decision import compare_decisions


@pytest.mark.requirement("BP-12", "BP-13", "BP-14", "BP-15", "BP-16", "BP-19", "BP-31", "BP-33", "BP-34", "BP-35")
@pytest.mark.requirement("BP-41", "BP-42", "BP-43", "BP-50")
@pytest.mark.parametrize("max_errors", [2, pytest.param(4, marks=pytest.mark.long)])
def test_every_retry_decision_is_correct(max_errors: int, record_property: Callable[..., None]) -> None:
    compared_count, differences = compare_decisions(max_errors)
    record_property("compared", compared_count)
    assert not differences, "\n".join(differences)
    assert compared_count > 50_000


# For each fault: the object and the name of the attribute that the test replaces, and the new value.
FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "reads are retried after every error": (retry, "may_retry_read", lambda error: True),
    "writes are retried without option": (RetryPolicy, "allows_overload_retry", lambda self, operation: True),
    "retry costs no token": (TokenBucket, "consume", lambda self: True),
    "retry deposits no token": (TokenBucket, "deposit", lambda self, tenths: None),
    "last error is raised": (Retry, "_error_to_raise", lambda self, error: error),
    "retry uses the same server": (RetryPolicy, "server_to_avoid", lambda self, error, attempt: None),
    "operation in transaction is retried": (
        RetryPolicy,
        "allows_network_retry",
        lambda self, attempt: attempt.operation.retryable,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_comparison_of_decisions_detects_injected_fault(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    assert compare_decisions(2).differences
