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
def client(mongodb_uri: str) -> Iterator[MongoClient[dict[str, Any]]]:
    client: MongoClient[dict[str, Any]]
    with MongoClient(mongodb_uri) as client:
        yield client


@pytest.fixture
def collection(client: MongoClient[dict[str, Any]]) -> Iterator[Collection[dict[str, Any]]]:
    """Yield a new collection, and drop the collection after the test."""
    collection = client.gmongo_tests[f"c{uuid.uuid4().hex[:12]}"]
    yield collection
    collection.drop()


@pytest.fixture
def recording(mongodb_uri: str) -> Iterator[Recording]:
    with recorded_collection(mongodb_uri) as recording:
        yield recording
