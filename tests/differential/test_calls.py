"""Every public operation with its options, good and bad: what PyMongo does, gmongo does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .differences import check
from .scene import Call, Scene, calls
from .servers import SERVERS

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in calls(path)]


# The subjects of which nx-27017 knows enough: it has no change streams, fail points and transactions, leaves what it
# could not drop, and answers writes that ask for no answer, so that drivers wait for ever.
_OF_NX = frozenset({"writes", "bulks", "reads", "administration", "bad_inputs"})


def _cases() -> Iterator[Any]:
    """Each call, on each server that can play it; what sends tens of megabytes takes seconds."""
    for server in SERVERS:
        for call in _CALLS:
            if server != "nx-27017" or call.name.partition(":")[0] in _OF_NX:
                marks = [pytest.mark.long] if "15 << 20" in call.source else []
                yield pytest.param(server, call, id=f"{server}-{call.name}", marks=marks)


@pytest.mark.parametrize(("scene", "call"), list(_cases()), indirect=["scene"])
def test_gmongo_answers_as_pymongo_does(scene: Scene, call: Call) -> None:
    check(call.source, *scene.compare(call.source))
