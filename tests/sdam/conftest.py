"""Fixtures that start scripted servers and replica sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fixtures import virtual_time_limit_of
from tests.support.server import ScriptedReplicaSet, ScriptedServer

time_limit = virtual_time_limit_of(15)


@pytest.fixture
def long_minimum_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the minimum pause between two checks to 60 seconds, which is longer than any test."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 60)


@pytest.fixture
def poll_server() -> Iterator[ScriptedServer]:
    """Start a standalone server that does not support the streaming protocol."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def stream_server() -> Iterator[ScriptedServer]:
    """Start a standalone server that supports the streaming protocol."""
    with ScriptedServer(streams=True) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streaming", "polling"])
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """Start a standalone server. Each test runs with and without the streaming protocol."""
    with ScriptedServer(streams=request.param) as server:
        yield server


@pytest.fixture
def replica_set() -> Iterator[ScriptedReplicaSet]:
    """Start a replica set whose members support the streaming protocol."""
    with ScriptedReplicaSet() as replica_set:
        yield replica_set
