"""Scripted servers of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fixtures import limited
from tests.support.server import ScriptedReplicaSet, ScriptedServer

patience = limited(15)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor that pauses at all pauses for longer than the test may take."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 60)


@pytest.fixture
def polled() -> Iterator[ScriptedServer]:
    """A standalone server that cannot stream."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def streaming() -> Iterator[ScriptedServer]:
    """A standalone server that streams."""
    with ScriptedServer(streams=True) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streaming", "polled"])
def server(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """A standalone server of each kind."""
    with ScriptedServer(streams=request.param) as server:
        yield server


@pytest.fixture
def replica_set() -> Iterator[ScriptedReplicaSet]:
    """A replica set whose members stream."""
    with ScriptedReplicaSet() as replica_set:
        yield replica_set
