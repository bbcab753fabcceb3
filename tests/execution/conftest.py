"""Deployments and clients, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from gmongo.testing import Deployment
from tests.support.clients import Client
from tests.support.critical_sections import check
from tests.support.fixtures import limited
from tests.support.server import ScriptedReplicaSet, ScriptedServer

patience = limited(15)


@pytest.fixture(autouse=True)
def critical_sections() -> Iterator[None]:
    """All tests here fail if a greenlet switches in a critical section of a pool."""
    with check():
        yield


@pytest.fixture(autouse=True)
def quick_checks(quick: None) -> None:
    """Here all tests check servers as often as they like."""


@pytest.fixture
def in_time() -> Iterator[None]:
    """A greenlet that does not keep its limit is ended by this, with an error that no test expects."""
    with gevent.Timeout(5, AssertionError("the limit was not kept")):
        yield


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
def connect(connect: Callable[..., Client]) -> Callable[..., Client]:
    """Makes clients whose backoff has the full jitter of 1."""

    def make(*hosts: Any, **options: Any) -> Client:
        client = connect(*hosts, **options)
        client._executor.overload.jitter = lambda: 1.0
        return client

    return make


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
