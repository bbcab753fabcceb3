"""Fixtures for pytest: ``pytest_plugins = ["gmongo.testing.pytest_plugin"]`` in the outermost ``conftest.py``.

Each test gets an empty deployment of its own, in this process. It takes a millisecond to start.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gmongo.testing.deployment import Deployment


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
