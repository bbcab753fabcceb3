"""Fixtures of the status tests."""

from __future__ import annotations

import pytest

from gmongo.status import workers
from tests.support.wait import PATIENCE


@pytest.fixture
def long_reply_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Increase the reply timeout of processes, since a test reads the states only once."""
    monkeypatch.setattr(workers, "_PATIENCE", PATIENCE)
