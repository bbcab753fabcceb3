"""Function that creates a pytest fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest


def virtual_time_limit_of(seconds: float) -> Any:
    """Return a fixture for a ``conftest.py``. Each test in the folder of the ``conftest.py`` may last
    `seconds` of virtual time.

    Tests with the marker ``real_time`` have no limit, because their duration depends on the load of
    the machine.
    """

    @pytest.fixture(autouse=True)
    def virtual_time_limit(request: pytest.FixtureRequest) -> Iterator[None]:
        with gevent.Timeout(None if request.node.get_closest_marker("real_time") else seconds):
            yield

    return virtual_time_limit
