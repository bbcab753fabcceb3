"""Fixtures of scripted servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fixtures import limited
from tests.support.server import ScriptedReplicaSet, ScriptedServer

patience = limited(15)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the minimum pause of monitors to 60 s, longer than a test."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 60)


@pytest.fixture
def poll_server() -> Iterator[ScriptedServer]:
    """Start a standalone server without streaming."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def stream_server() -> Iterator[ScriptedServer]:
    """Start a standalone server with streaming."""
    with ScriptedServer(streams=True) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streaming", "polling"])
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """Start a standalone server, with and without streaming."""
    with ScriptedServer(streams=request.param) as server:
        yield server


@pytest.fixture
def replica_set() -> Iterator[ScriptedReplicaSet]:
    """Start a replica set with streaming."""
    with ScriptedReplicaSet() as replica_set:
        yield replica_set
