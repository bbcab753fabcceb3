"""The prose test of the Client Backpressure specification."""

from __future__ import annotations

import pytest

from gmongo import _clock
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.support.clients import Client


@pytest.mark.requirement("BP-03", "BP-25")
def test_1_operation_retry_uses_exponential_backoff(deployment: Deployment, client: Client) -> None:
    fail(deployment, "insert", code=2)
    seconds = []
    for jitter in (0.0, 1.0):
        client._executor.overload.jitter = lambda jitter=jitter: jitter  # type: ignore[misc]
        begin = _clock.monotonic()
        with pytest.raises(OperationFailure):
            client.db.c.insert_one({"a": 1})
        seconds.append(_clock.monotonic() - begin)
    assert seconds[1] - seconds[0] >= 2.1
