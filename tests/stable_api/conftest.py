"""Deployments and clients, which are gone after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo.testing import Deployment
from tests.support.fixtures import limited
from tests.support.server import ScriptedReplicaSet, ScriptedServer

patience = limited(25)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """A replica set of one member."""
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def demanding() -> Iterator[Deployment]:
    """A replica set that wants a version with every command, and has a user."""
    with Deployment.replica_set(2, users={"ada": "lovelace"}, parameters={"requireApiVersion": True}) as deployment:
        yield deployment


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """The one member of a scripted replica set."""
    with ScriptedReplicaSet(1) as members:
        yield members.members[0]


@pytest.fixture
def raw(deployment: Deployment, connect: Callable[..., Any]) -> Callable[..., Any]:
    """Runs commands on `deployment` as they are, without a version from the client."""
    database = connect(deployment).admin

    def run(name: str, value: Any = 1, **fields: Any) -> Any:
        return database.command({name: value, **fields})

    return run
