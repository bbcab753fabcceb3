"""Deployments of `mongod` that contain the documents for the operations of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.documents import (
    BATCH_SIZE,
    DATABASE,
    DOCUMENT_BYTES,
    HUNDRED,
    LARGE,
    MANY_COUNT,
    ONE,
    SAVED,
    stored_documents,
)
from benchmarks.processors import pinned_to_server_processor
from benchmarks.worker import POOL_SIZE
from gmongo import MongoClient
from gmongo.testing import EmbeddedDatabase, EmbeddedReplicaSet

#: For each deployment: the settings of a standalone server, or None for a three-member replica set.
DEPLOYMENTS: dict[str, dict[str, Any] | None] = {
    "standalone": {},
    "replica set": None,
    "TLS": {"tls": True},
    "zstd": {"compressors": "zstd"},
    "users": {"users": {"ada": "lovelace"}},
}


@contextmanager
def deployment(name: str) -> Iterator[str]:
    """Start a deployment on the second processor, store the documents, and yield the connection string."""
    settings = DEPLOYMENTS[name]
    servers = EmbeddedReplicaSet() if settings is None else EmbeddedDatabase(engine="mongod", **settings)
    with pinned_to_server_processor(), servers as started:
        uri = f"{started.uri}{'&' if '?' in started.uri else '?'}maxPoolSize={POOL_SIZE}"
        with MongoClient(uri) as client:
            _insert_documents(client)
        yield uri + ("&compressors=zstd" if name == "zstd" else "")


def _insert_documents(client: MongoClient[dict[str, Any]]) -> None:
    database = client[DATABASE]
    database[ONE].insert_one(dict(SAVED))
    database[HUNDRED].insert_many(stored_documents(BATCH_SIZE, DOCUMENT_BYTES))
    database[LARGE].insert_many(stored_documents(MANY_COUNT, DOCUMENT_BYTES))
    for name in ("bulk", "transactions"):
        database.create_collection(name)
