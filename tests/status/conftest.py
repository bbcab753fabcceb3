"""Fixtures of the tests of what is shown of clients."""

from __future__ import annotations

import pytest

from gmongo.status import workers
from tests.support.wait import PATIENCE


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is asked for its state has more than a second to answer: one look is all that there is."""
    monkeypatch.setattr(workers, "_PATIENCE", PATIENCE)
