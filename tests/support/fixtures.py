"""Fixtures that folders make for their tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest


def limited(seconds: float) -> Any:
    """A fixture that limits each test of the folder in whose ``conftest.py`` it is, where time is virtual: what waits
    for ever ends at once. Of the machine's time a busy one may take more, and the limit of every test ends what hangs.
    """

    @pytest.fixture(autouse=True)
    def patience(request: pytest.FixtureRequest) -> Iterator[None]:
        with gevent.Timeout(None if request.node.get_closest_marker("real_time") else seconds):
            yield

    return patience
