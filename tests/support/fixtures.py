"""Functions that create pytest fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest


def virtual_time_limit_of(seconds: float) -> Any:
    """Return a fixture that limits the virtual time of each test in the folder of the ``conftest.py``.

    Tests with the marker ``real_time`` have no such limit, because their real time depends on the load of the machine.
    """

    @pytest.fixture(autouse=True)
    def virtual_time_limit(request: pytest.FixtureRequest) -> Iterator[None]:
        with gevent.Timeout(None if request.node.get_closest_marker("real_time") else seconds):
            yield

    return virtual_time_limit
