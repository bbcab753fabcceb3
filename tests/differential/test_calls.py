"""Every public operation with its options, good and bad: what PyMongo does, gmongo does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .differences import check
from .scene import Call, Scene, calls

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in calls(path)]


# The subjects of which nx-27017 knows enough: it has no change streams, fail points and transactions, leaves what it
# could not drop, and answers writes that ask for no answer, so that drivers wait for ever.
_OF_NX = frozenset({"writes", "bulks", "reads", "administration", "bad_inputs"})


def _case(call: Call) -> Any:
    """What sends tens of megabytes takes seconds."""
    return pytest.param(call, id=call.name, marks=[pytest.mark.long] if "15 << 20" in call.source else [])


@pytest.mark.parametrize("call", [_case(call) for call in _CALLS])
def test_gmongo_answers_as_pymongo_does(scene: Scene, call: Call) -> None:
    if scene.name == "nx-27017" and call.name.partition(":")[0] not in _OF_NX:
        pytest.skip("nx-27017 knows too little of it")
    check(call.source, *scene.compare(call.source))
