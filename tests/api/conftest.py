"""A client and a collection of the real database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.collection import Collection


@pytest.fixture
def client(database: str) -> Iterator[MongoClient[dict[str, Any]]]:
    """A client of the test's own."""
    client: MongoClient[dict[str, Any]]
    with MongoClient(database) as client:
        yield client


@pytest.fixture
def collection(client: MongoClient[dict[str, Any]]) -> Iterator[Collection[dict[str, Any]]]:
    """A collection that does not exist yet, and is gone after the test."""
    collection = client.gmongo_tests[f"c{uuid.uuid4().hex[:12]}"]
    yield collection
    collection.drop()
