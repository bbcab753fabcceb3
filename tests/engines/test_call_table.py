"""Tests that run each row of the table of calls on each engine, with gmongo and with PyMongo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pymongo.errors
import pytest

from tests.differential import call_runner
from tests.differential.call_runner import Call, CallRunner, read_calls
from tests.differential.call_timeouts import NO_REPLY_REASON
from tests.differential.differences import check_outcomes
from tests.differential.fault_attribution import Attribution, Verdict, attribute_difference

from .engine import Server, rows_to_run

_FOLDER = Path(call_runner.__file__).parent / "calls"
_CALLS = [call for path in sorted(_FOLDER.glob("*.txt")) for call in read_calls(path)]
_MIN_EQUAL_ROWS = 300
_HANG_REASON = "the engine hung, and replied to PyMongo only after a restart"


@pytest.mark.parametrize("call", [pytest.param(call, id=call.name) for call in rows_to_run(_CALLS)])
def test_row_has_equal_results_in_gmongo_and_pymongo(
    server: Server, runner: CallRunner, simulation: Callable[[], CallRunner], outcome_counts: Counter[str], call: Call
) -> None:
    attribution = _attribute_difference(server, runner, call, simulation)
    if attribution is None:
        outcome_counts[_HANG_REASON] += 1
        pytest.skip(_HANG_REASON)
    outcome_counts[attribution.reason or attribution.verdict.value] += 1
    if attribution.verdict is Verdict.SKIPPED:
        pytest.skip(attribution.reason)
    check_outcomes(call.source, attribution.theirs, attribution.ours)


def _attribute_difference(
    server: Server, runner: CallRunner, call: Call, simulation: Callable[[], CallRunner]
) -> Attribution | None:
    """Run a row, and return its `Attribution`, or None if the server hung and was restarted."""
    try:
        attribution = attribute_difference(runner, call.source, simulation)
    except pymongo.errors.ConnectionFailure:
        if server.restart_if_hung():
            return None
        raise
    is_suspect = attribution.verdict is Verdict.DIFFERENT or attribution.reason == NO_REPLY_REASON
    return None if is_suspect and server.restart_if_hung() else attribution


def test_at_least_300_rows_have_equal_results(outcome_counts: Counter[str]) -> None:
    if outcome_counts.total() < len(_CALLS):
        pytest.skip("the run covers only a part of the table")
    assert outcome_counts[Verdict.SAME.value] >= _MIN_EQUAL_ROWS
