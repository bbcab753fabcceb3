"""The benchmark of being observed runs, and compares what it says."""

from __future__ import annotations

import pytest

from benchmarks import telemetry


def test_all_ways_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "OPERATIONS", 5)
    measured = telemetry.measure(rounds=1)
    assert list(measured) == list(telemetry.WAYS)
    assert min(measured.values()) > 0
    assert "| traced |" in telemetry.table(measured)


def test_a_client_that_is_not_observed_has_a_plain_executor() -> None:
    from gmongo import MongoClient
    from gmongo.events.command import CommandEvents
    from gmongo.execution.executor import Executor

    client = MongoClient(connect=False)
    assert type(client._executor) is Executor
    assert type(client._executor.commands._events) is CommandEvents
