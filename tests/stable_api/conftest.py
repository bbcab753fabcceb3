"""Fixtures that start simulated deployments and scripted servers."""

from __future__ import annotations

from collections.abc import Iterator

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
    """Start a replica set that has a user, and whose members require an API version in each
    command.
    """
    with Deployment.replica_set(2, users={"ada": "lovelace"}, parameters={"requireApiVersion": True}) as deployment:
        yield deployment


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Start a scripted replica set of one member, and yield the member."""
    with ScriptedReplicaSet(1) as replica_set:
        yield replica_set.members[0]
