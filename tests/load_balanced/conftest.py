"""Services behind a load balancer, and their clients, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.load_balanced.harness import DOCUMENTS, SERVICE, Client, Recorder
from tests.support.server import ScriptedServer


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    with gevent.Timeout(20):
        yield


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Two services behind a load balancer, with ten documents in ``db.c``."""
    with Deployment.load_balanced(2) as deployment:
        client: Client = MongoClient(deployment.uri)
        client.db.c.insert_many([dict(document) for document in DOCUMENTS])
        client.close()
        deployment.commands.clear()
        yield deployment


@pytest.fixture
def service() -> Iterator[ScriptedServer]:
    """A scripted service; what stands before it lets everything through."""
    with ScriptedServer() as server:
        server.hello_extra = {"serviceId": SERVICE, "msg": "isdbgrid"}
        yield server


@pytest.fixture
def recorder() -> Recorder:
    """Hears everything of the clients of the test."""
    return Recorder()


@pytest.fixture
def connect(recorder: Recorder) -> Iterator[Callable[..., Client]]:
    """Makes clients of deployments or URIs."""
    clients: list[Client] = []

    def make(uri: Any, **options: Any) -> Client:
        settings = {"event_listeners": [recorder], "serverSelectionTimeoutMS": 3000, **options}
        clients.append(MongoClient(getattr(uri, "uri", uri), **settings))
        return clients[-1]

    yield make
    recorder.hooks.clear()
    for client in clients:
        client._topology.close()  # without the good-byes, which a failing server would not take


@pytest.fixture
def client(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    """A client of `deployment`."""
    return connect(deployment)


@pytest.fixture
def go() -> Iterator[Callable[..., gevent.Greenlet[..., Any]]]:
    """Starts greenlets, and lets them come as far as the server."""
    greenlets: list[gevent.Greenlet[..., Any]] = []

    def start(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> gevent.Greenlet[..., Any]:
        greenlets.append(gevent.spawn(function, *arguments, **keywords))
        gevent.sleep(0.03)
        return greenlets[-1]

    yield start
    gevent.killall(greenlets, timeout=5)
