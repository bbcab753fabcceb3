"""Every public operation with its options, good and bad: what PyMongo does, gmongo does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pymongo_version import answered_since

from .differences import check
from .scene import Call, Scene, calls
from .servers import NAMED, on

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in calls(path)]


# The subjects of which nx-27017 knows enough: it has no change streams, fail points and transactions, leaves what it
# could not drop, and answers writes that ask for no answer, so that drivers wait for ever.
_OF_NX = frozenset({"writes", "bulks", "reads", "administration", "bad_inputs"})


def _asked(calls: list[Call]) -> Any:
    return pytest.mark.parametrize("call", [pytest.param(call, id=call.name, marks=_marks(call)) for call in calls])


def _marks(call: Call) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.long] if "15 << 20" in call.source else []  # tens of megabytes take seconds
    return [*marks, answered_since(call.since)] if call.since else marks


@_asked(_CALLS)
@on("simulation", *NAMED)
def test_gmongo_answers_as_pymongo_does(scene: Scene, call: Call) -> None:
    check(call.source, *scene.compare(call.source))


@pytest.mark.one_in(2)
@_asked([call for call in _CALLS if call.name.partition(":")[0] in _OF_NX])
@on("nx-27017")
def test_and_on_an_embedded_database(scene: Scene, call: Call) -> None:
    check(call.source, *scene.compare(call.source))
