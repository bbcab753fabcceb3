"""Decide whether a server other than MongoDB causes a difference between gmongo and PyMongo."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from .call_runner import GMONGO, PYMONGO, CallRunner, Outcome
from .comparable_values import RaisedError, are_equal
from .differences import FAULT_NAMES, explaining_differences

_REPEAT_COUNT = 3


class Verdict(Enum):
    """Result of a comparison: no unintended difference, skipped, or an unintended difference."""

    SAME = "same"
    SKIPPED = "skipped"
    DIFFERENT = "different"


class Attribution(NamedTuple):
    """Result for a row of the table of calls: a verdict, and the outcomes of PyMongo (`theirs`) and gmongo (`ours`).

    :param reason: Reason why the row is skipped, or an empty text.
    """

    verdict: Verdict
    theirs: Outcome
    ours: Outcome
    reason: str = ""


def attribute_difference(runner: CallRunner, source: str, simulation: Callable[[], CallRunner]) -> Attribution:
    """Run a row with gmongo and PyMongo.

    If the server lacks a feature or causes the difference of the outcomes, the verdict is SKIPPED.

    :param runner: The `CallRunner` of the tested server.
    :param simulation: Function that returns a call runner on a simulated deployment. The deployment
        behaves like MongoDB.
    """
    runner.clear_unsupported_features()
    ours = theirs = runner.run_call(PYMONGO, source)
    if not runner.unsupported_features:
        ours = runner.run_call(GMONGO, source)
    if runner.unsupported_features:
        return Attribution(Verdict.SKIPPED, theirs, ours, sorted(runner.unsupported_features)[0])
    if explaining_differences(source, theirs, ours) is not None:
        return Attribution(Verdict.SAME, theirs, ours)
    reason = _reason_if_random(runner, source, theirs) or _reason_if_server_differs(simulation(), source, theirs, ours)
    return Attribution(Verdict.SKIPPED if reason else Verdict.DIFFERENT, theirs, ours, reason)


def _reason_if_random(runner: CallRunner, source: str, theirs: Outcome) -> str:
    outcomes = (runner.run_call(PYMONGO, source) for _ in range(_REPEAT_COUNT))
    return "" if all(are_equal(theirs, each) for each in outcomes) else "equal calls of PyMongo have different results"


def _reason_if_server_differs(simulation: CallRunner, source: str, theirs: Outcome, ours: Outcome) -> str:
    """Return the reason why the server causes the difference, or an empty text."""
    simulated_theirs, simulated_ours = simulation.compare(source)
    if are_equal(simulated_theirs, theirs):
        return ""
    if isinstance(theirs.error, RaisedError) and theirs.error.classes[0] in FAULT_NAMES:
        return f"PyMongo raises an accidental error for the reply ({theirs.error.classes[0]})"
    if explaining_differences(source, simulated_theirs, simulated_ours) is None:
        return ""
    matches_mongodb = are_equal(simulated_ours.error, ours.error) and are_equal(simulated_ours.returned, ours.returned)
    if isinstance(theirs.error, RaisedError):
        if theirs.error.classes[0] == "ConfigurationError" and matches_mongodb:
            return f"the server lacks a feature that PyMongo needs: {theirs.text[:80]}"
        if "ConnectionFailure" in theirs.error.classes and matches_mongodb:
            return "the server closes the connection of PyMongo, and replies to gmongo like MongoDB"
    is_rejected = "OperationFailure" in repr((simulated_theirs.error, simulated_theirs.returned))
    return "the server accepts a command of PyMongo that MongoDB rejects" if matches_mongodb and is_rejected else ""
