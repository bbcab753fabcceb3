"""Every decision of a retry is what the specifications say, and a wrong one of each kind would be found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gmongo.execution import retry
from gmongo.execution.backpressure import TokenBucket
from gmongo.execution.retry import Retry, RetryPolicy
from tests.execution.every_decision import compare


@pytest.mark.requirement("BP-12", "BP-13", "BP-14", "BP-15", "BP-16", "BP-19", "BP-31", "BP-33", "BP-34", "BP-35")
@pytest.mark.requirement("BP-41", "BP-42", "BP-43", "BP-50")
@pytest.mark.parametrize("longest", [2, pytest.param(4, marks=pytest.mark.long)])
def test_each_is_what_the_specifications_say(longest: int, record_property: Callable[..., None]) -> None:
    compared, different = compare(longest)
    record_property("compared", compared)
    assert not different, "\n".join(different)
    assert compared > 50_000


def tries_every_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retry, "may_retry_read", lambda error: True)


def tries_writes_again_without_the_option(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "allows_overload_retry", lambda self, operation: True)


def pays_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenBucket, "consume", lambda self: True)


def gets_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenBucket, "deposit", lambda self, tenths: None)


def shows_the_last_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Retry, "_better_of", lambda self, error: error)


def goes_back_to_the_server_that_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "server_to_avoid", lambda self, error, attempt: None)


def tries_again_in_a_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RetryPolicy, "allows_single_retry", lambda self, attempt: attempt.operation.retryable)


@pytest.mark.parametrize(
    "fault",
    [
        tries_every_read_again,
        tries_writes_again_without_the_option,
        pays_nothing,
        gets_nothing_back,
        shows_the_last_error,
        goes_back_to_the_server_that_failed,
        tries_again_in_a_transaction,
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    fault(monkeypatch)
    assert compare(2).different
