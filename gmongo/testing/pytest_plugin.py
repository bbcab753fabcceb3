"""Fixtures for pytest: ``pytest_plugins = ["gmongo.testing.pytest_plugin"]`` in the outermost ``conftest.py``.

Each test gets an empty deployment of its own: in the hub of the test, which takes a millisecond; or, for programs that
do not run on gevent, in a native thread, which takes some, or in a process, which takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gmongo.testing.deployment import Deployment
from gmongo.testing.deployment_process import DeploymentProcess
from gmongo.testing.deployment_thread import DeploymentThread
from gmongo.testing.virtual_time import VirtualTime


@pytest.fixture
def mongodb_standalone() -> Iterator[Deployment]:
    """A server without replication."""
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def mongodb_replica_set() -> Iterator[Deployment]:
    """A replica set of three members."""
    with Deployment.replica_set() as deployment:
        yield deployment


@pytest.fixture
def mongodb_sharded_cluster() -> Iterator[Deployment]:
    """A sharded cluster of two mongos."""
    with Deployment.sharded() as deployment:
        yield deployment


@pytest.fixture
def mongodb_standalone_thread() -> Iterator[DeploymentThread]:
    """A server without replication, in a native thread."""
    with DeploymentThread.standalone() as deployment:
        yield deployment


@pytest.fixture
def mongodb_replica_set_thread() -> Iterator[DeploymentThread]:
    """A replica set of three members, in a native thread."""
    with DeploymentThread.replica_set() as deployment:
        yield deployment


@pytest.fixture
def mongodb_sharded_cluster_thread() -> Iterator[DeploymentThread]:
    """A sharded cluster of two mongos, in a native thread."""
    with DeploymentThread.sharded() as deployment:
        yield deployment


@pytest.fixture
def mongodb_standalone_process() -> Iterator[DeploymentProcess]:
    """A server without replication, in a process of its own."""
    with DeploymentProcess.standalone() as deployment:
        yield deployment


@pytest.fixture
def mongodb_replica_set_process() -> Iterator[DeploymentProcess]:
    """A replica set of three members, in a process of its own."""
    with DeploymentProcess.replica_set() as deployment:
        yield deployment


@pytest.fixture
def mongodb_sharded_cluster_process() -> Iterator[DeploymentProcess]:
    """A sharded cluster of two mongos, in a process of its own."""
    with DeploymentProcess.sharded() as deployment:
        yield deployment


@pytest.fixture
def virtual_time() -> Iterator[VirtualTime]:
    """Time that passes only when nothing else can happen. Name it before the deployments, whose clock it is to be."""
    with VirtualTime() as time:
        yield time
