"""The differential table on each engine: what PyMongo does there, gmongo does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pymongo.errors
import pytest

from tests.differential import scene as scenes
from tests.differential.differences import check
from tests.differential.judge import Judgement, Verdict, judge
from tests.differential.patience import SILENT
from tests.differential.scene import Call, Scene, calls

from .engine import Server, rows_to_play

_FOLDER = Path(scenes.__file__).parent / "calls"
_CALLS = [call for path in sorted(_FOLDER.glob("*.txt")) for call in calls(path)]
_ENOUGH = 300
_HANGS = "it hangs, and answers PyMongo nothing but pings until it is started anew"


@pytest.mark.parametrize("call", [pytest.param(call, id=call.name) for call in rows_to_play(_CALLS)])
def test_gmongo_answers_as_pymongo_does(
    server: Server, scene: Scene, simulation: Callable[[], Scene], tally: Counter[str], call: Call
) -> None:
    found = _judged(server, scene, call, simulation)
    if found is None:
        tally[_HANGS] += 1
        pytest.skip(_HANGS)
    tally[found.reason or found.verdict.value] += 1
    if found.verdict is Verdict.SKIPPED:
        pytest.skip(found.reason)
    check(call.source, found.theirs, found.ours)


def _judged(server: Server, scene: Scene, call: Call, simulation: Callable[[], Scene]) -> Judgement | None:
    """What comes of a row; None if the server hangs, and is started anew."""
    try:
        found = judge(scene, call.source, simulation)
    except pymongo.errors.ConnectionFailure:
        if server.revive():
            return None
        raise
    is_suspect = found.verdict is Verdict.DIFFERENT or found.reason == SILENT
    return None if is_suspect and server.revive() else found


def test_enough_rows_are_judged(tally: Counter[str]) -> None:
    if tally.total() < len(_CALLS):
        pytest.skip("a part of the table was played")
    assert tally[Verdict.SAME.value] >= _ENOUGH
