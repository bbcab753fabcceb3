"""Clients of the tests' own, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from tests.sdam.harness import Client, Recorder, make_client
from tests.support.server import ScriptedReplicaSet, ScriptedServer


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    with gevent.Timeout(15):
        yield


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second is the least between two checks of a server; here it is less, so that tests need not wait."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


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


@pytest.fixture
def recorder() -> Recorder:
    """Hears everything of the clients of the test."""
    return Recorder()


@pytest.fixture
def connect(recorder: Recorder) -> Iterator[Callable[..., Client]]:
    """Makes clients; the arguments are those of ``make_client``, with servers in the place of their names."""
    clients: list[Client] = []

    def make(*servers: ScriptedServer, **options: Any) -> Client:
        clients.append(make_client([server.name for server in servers], recorder, **options))
        return clients[-1]

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without the good-byes, which a bad server would not answer
