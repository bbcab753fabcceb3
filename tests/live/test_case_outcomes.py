"""Tests that a failed case is repeated, skipped, or reported as failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from gmongo.testing import DeploymentProcess
from tests.live import answers, official
from tests.live.probes import Probes
from tests.live.report import Report, Skip
from tests.live.target import Target
from tests.simulation.answers.case import Case
from tests.support.cases import with_cases


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with DeploymentProcess("--replica-set", "1") as deployment:
        target = Target(deployment.uri)
        yield target
        target.close()


class FailingCaseRunner:
    """Replacement of the case runner, whose first `failures` runs raise an error."""

    def __init__(self, failures: int, error: Exception) -> None:
        self._failures, self._error = failures, error

    def __call__(self, *_: Any) -> FailingCaseRunner:
        return self

    def run(self) -> None:
        self._failures -= 1
        if self._failures >= 0:
            raise self._error


@with_cases
def test_failed_case_is_repeated_only_if_it_depends_on_speed_or_an_election(
    case: dict[str, Any], elections: str, failures: int, remarks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official, "Run", FailingCaseRunner(failures, AssertionError("late")))
    live: Any = Mock(election=Mock(side_effect=elections))
    recorded: list[str] = []

    def run_case() -> None:
        official._run_case(live, lambda: {"tests": [case]}, 0, {}, recorded)

    if remarks is None:
        with pytest.raises(AssertionError, match="late"):
            run_case()
    else:
        run_case()
        assert recorded == ["repeated after AssertionError: late"] * remarks


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("a case with $where", Skip, "the server lacks JavaScript: .*does not support \\$where"),
        ("a case with snapshot", ValueError, "wrong"),
        ("a case", ValueError, "wrong"),
    ],
)
def test_failed_case_is_skipped_if_server_lacks_feature(
    target: Target, text: str, kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason), Probes(target).skip_if_feature_is_missing(text):
        raise ValueError("wrong")


@pytest.mark.long
@with_cases
def test_server_reply_is_compared_with_recorded_reply(
    target: Target, command: Any, outcome: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"name": "a case", "documents": [{"_id": 1}], "run": [command], "answers": [{"n": 1}], "server": "6.0.5"}
    monkeypatch.setattr(answers, "cases", lambda: [Case("some", fields)])
    report = Report({})
    answers.compare_recorded_replies(target, report, "")
    (entry,) = report.entries
    assert entry.outcome.value == outcome
    assert entry.reason.startswith(reason)
