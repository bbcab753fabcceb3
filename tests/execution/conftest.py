"""Fixtures that start deployments and create clients.

After each test, the fixtures close the deployments and clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gmongo.testing import Deployment
from tests.support.clients import Client, Connect
from tests.support.critical_sections import fail_on_switches
from tests.support.fixtures import virtual_time_limit_of
from tests.support.server import ScriptedReplicaSet, ScriptedServer

time_limit = virtual_time_limit_of(15)


@pytest.fixture(autouse=True)
def no_switch_in_critical_sections() -> Iterator[None]:
    with fail_on_switches():
        yield


@pytest.fixture(autouse=True)
def frequent_server_checks(quick_checks: None) -> None:
    """Let monitors check servers at intervals of at least 0.01 s, not 0.5 s."""


@pytest.fixture
def backoffs(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the sleep before a retry, and return a list that records each backoff in seconds."""
    recorded: list[float] = []
    monkeypatch.setattr("gmongo.execution.executor.sleep", recorded.append)
    return recorded


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Start a replica set of one member."""
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def cluster() -> Iterator[Deployment]:
    """Start a sharded cluster that has two mongos."""
    with Deployment.sharded(2) as cluster:
        yield cluster


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """Return a function that creates clients whose backoff jitter is always 1."""

    def create_client(*hosts: Any, **options: Any) -> Client:
        client = connect(*hosts, **options)
        client._executor.overload.jitter = lambda: 1.0
        return client

    return create_client


@pytest.fixture
def client(deployment: Deployment, connect: Connect) -> Client:
    return connect(deployment)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Start a scripted replica set of one member."""
    with ScriptedReplicaSet(1) as replica_set:
        yield replica_set.members[0]


@pytest.fixture
def scripted_client(server: ScriptedServer, connect: Connect) -> Client:
    return connect(f"mongodb://{server.name}")
