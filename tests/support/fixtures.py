"""Fixtures that folders make for their tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest


def limited(seconds: float) -> Any:
    """A fixture that limits each test of the folder in whose ``conftest.py`` it is."""

    @pytest.fixture(autouse=True)
    def patience() -> Iterator[None]:
        with gevent.Timeout(seconds):
            yield

    return patience
