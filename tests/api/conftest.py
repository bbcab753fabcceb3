"""Fixtures that connect a client to the tested database, create a collection, and start a simulated
replica set.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.collection import Collection
from gmongo.testing import Deployment

from .recording import Recording, recorded_collection


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(log=False) as deployment:
        yield deployment


@pytest.fixture
def client(database: str) -> Iterator[MongoClient[dict[str, Any]]]:
    client: MongoClient[dict[str, Any]]
    with MongoClient(database) as client:
        yield client


@pytest.fixture
def collection(client: MongoClient[dict[str, Any]]) -> Iterator[Collection[dict[str, Any]]]:
    """Yield a new collection, and drop the collection after the test."""
    collection = client.gmongo_tests[f"c{uuid.uuid4().hex[:12]}"]
    yield collection
    collection.drop()


@pytest.fixture
def recording(database: str) -> Iterator[Recording]:
    with recorded_collection(database) as recording:
        yield recording
