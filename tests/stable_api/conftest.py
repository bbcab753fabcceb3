"""Fixtures that start deployments and servers, and send commands without an API version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gmongo.testing import Deployment
from tests.support.fixtures import virtual_time_limit_of
from tests.support.server import ScriptedReplicaSet, ScriptedServer

time_limit = virtual_time_limit_of(25)


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def version_requiring_deployment() -> Iterator[Deployment]:
    """Start a replica set that has a user, and whose members require an API version in each command."""
    with Deployment.replica_set(2, users={"ada": "lovelace"}, parameters={"requireApiVersion": True}) as deployment:
        yield deployment


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Start a scripted replica set of one member."""
    with ScriptedReplicaSet(1) as members:
        yield members.members[0]


@pytest.fixture
def run_raw_command(deployment: Deployment, connect: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that sends a command without an API version to `deployment`."""
    database = connect(deployment).admin

    def run(name: str, value: Any = 1, **fields: Any) -> Any:
        return database.command({name: value, **fields})

    return run
