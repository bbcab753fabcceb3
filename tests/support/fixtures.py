"""Factories of fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest


def limited(seconds: float) -> Any:
    """Return a fixture that limits the virtual time of each test in a folder.

    Tests with the marker ``real_time`` have no such limit, because a busy machine may need more time.
    """

    @pytest.fixture(autouse=True)
    def patience(request: pytest.FixtureRequest) -> Iterator[None]:
        with gevent.Timeout(None if request.node.get_closest_marker("real_time") else seconds):
            yield

    return patience
