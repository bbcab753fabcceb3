"""Fixtures that connect a client to the tested database, and create a collection in the database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.collection import Collection

from .recording import Recorded, recorded_collection


@pytest.fixture
def client(database: str) -> Iterator[MongoClient[dict[str, Any]]]:
    client: MongoClient[dict[str, Any]]
    with MongoClient(database) as client:
        yield client


@pytest.fixture
def collection(client: MongoClient[dict[str, Any]]) -> Iterator[Collection[dict[str, Any]]]:
    """Return a new collection. The fixture drops the collection after the test."""
    collection = client.gmongo_tests[f"c{uuid.uuid4().hex[:12]}"]
    yield collection
    collection.drop()


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded
