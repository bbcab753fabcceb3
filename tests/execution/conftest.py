"""Deployments and clients, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.execution.harness import Client, Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    with gevent.Timeout(15):
        yield


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second is the least between two checks of a server; here it is less, so that tests need not wait."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits of the retry loop, which are written down instead of waited."""
    recorded: list[float] = []
    monkeypatch.setattr("gmongo.execution.executor.sleep", recorded.append)
    return recorded


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A replica set of one member: with sessions and transactions, and only one place to go to."""
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def recorder() -> Recorder:
    """Hears everything of the clients of the test."""
    return Recorder()


@pytest.fixture
def connect(recorder: Recorder) -> Iterator[Callable[..., Client]]:
    """Makes clients whose backoff has the full jitter of 1; the arguments are those of ``MongoClient``."""
    clients: list[Client] = []

    def make(uri: Any, **options: Any) -> Client:
        settings = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 3000, **options}
        client: Client = MongoClient(getattr(uri, "uri", uri), **settings)
        client._executor.overload.jitter = lambda: 1.0
        clients.append(client)
        return client

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without the good-byes, which a failing server would not take


@pytest.fixture
def client(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    """A client of `deployment`."""
    return connect(deployment)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """The one member of a scripted replica set, for replies in a row."""
    with ScriptedReplicaSet(1) as members:
        yield members.members[0]


@pytest.fixture
def scripted(server: ScriptedServer, connect: Callable[..., Client]) -> Client:
    """A client of `server`."""
    return connect(f"mongodb://{server.name}")
