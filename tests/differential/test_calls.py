"""Every public operation with its options, good and bad: what PyMongo does, gmongo does."""

from __future__ import annotations

from pathlib import Path

import pytest

from .differences import check
from .scene import Call, Scene, calls

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in calls(path)]


@pytest.mark.parametrize("call", [pytest.param(call, id=call.name) for call in _CALLS])
def test_gmongo_answers_as_pymongo_does(scene: Scene, call: Call) -> None:
    check(call.source, *scene.compare(call.source))
