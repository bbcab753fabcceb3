"""The differential table on each engine: what PyMongo does there, gmongo does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.differential import scene as scenes
from tests.differential.differences import check
from tests.differential.judge import Verdict, judge
from tests.differential.scene import Call, Scene, calls

from .engine import rows_to_play

_FOLDER = Path(scenes.__file__).parent / "calls"
_CALLS = [call for path in sorted(_FOLDER.glob("*.txt")) for call in calls(path)]
_ENOUGH = 300


@pytest.mark.parametrize("call", [pytest.param(call, id=call.name) for call in rows_to_play(_CALLS)])
def test_gmongo_answers_as_pymongo_does(
    scene: Scene, simulation: Callable[[], Scene], tally: Counter[str], call: Call
) -> None:
    found = judge(scene, call.source, simulation)
    tally[found.reason or found.verdict.value] += 1
    if found.verdict is Verdict.SKIPPED:
        pytest.skip(found.reason)
    check(call.source, found.theirs, found.ours)


def test_enough_rows_are_judged(tally: Counter[str]) -> None:
    if tally.total() < len(_CALLS):
        pytest.skip("a part of the table was played")
    assert tally[Verdict.SAME.value] >= _ENOUGH
