"""A fixture that increases the reply timeout for slow processes."""

from __future__ import annotations

import pytest

from gmongo.status import workers
from tests.support.wait import WAIT_LIMIT


@pytest.fixture
def long_reply_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Increase the timeout for the reply of a process, because a test reads the states only once."""
    monkeypatch.setattr(workers, "_REPLY_TIMEOUT", WAIT_LIMIT)
