"""Test of the counts that the overload benchmark publishes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gevent

from benchmarks.overload import RequestTally


def test_tally_counts_attempts_of_concurrent_requests() -> None:
    client: Any = SimpleNamespace(retry_stats=lambda: {"retries": 0})

    def send(_client: Any) -> int:
        gevent.sleep(0)
        return 1

    tally = RequestTally(client, send)
    gevent.joinall([gevent.spawn(tally.request) for _ in range(3)], raise_error=True)
    assert tally.attempt_count == len(tally.latencies) == 3
