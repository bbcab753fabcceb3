"""The deployments of `mongod` that the benchmarks use, with the documents of the operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.documents import BATCH, DATABASE, DOCUMENT_BYTES, HUNDRED, LARGE, MANY, ONE, SAVED, stored_documents
from benchmarks.processors import beside_server
from gmongo import MongoClient
from gmongo.testing import EmbeddedDatabase, EmbeddedReplicaSet

_USERS: dict[str, Any] = {"users": {"ada": "lovelace"}}
#: The settings of each standalone server, or None for a replica set of three members.
DEPLOYMENTS: dict[str, dict[str, Any] | None] = {
    "standalone": {},
    "replica set": None,
    "TLS": {"tls": True},
    "zstd": {"compressors": "zstd"},
    "users": _USERS,
}


@contextmanager
def deployment(name: str) -> Iterator[str]:
    """Start a deployment with the documents on the second processor, and yield its connection string."""
    settings = DEPLOYMENTS[name]
    servers = EmbeddedReplicaSet() if settings is None else EmbeddedDatabase(engine="mongod", **settings)
    with beside_server(), servers as it:
        uri = it.uri + ("&" if "?" in it.uri else "/?" if it.uri.count("/") == 2 else "?") + "maxPoolSize=100"
        with MongoClient(uri) as client:
            _fill(client)
        yield uri + ("&compressors=zstd" if name == "zstd" else "")


def _fill(client: MongoClient[dict[str, Any]]) -> None:
    database = client[DATABASE]
    database[ONE].insert_one(dict(SAVED))
    database[HUNDRED].insert_many(stored_documents(BATCH, DOCUMENT_BYTES))
    database[LARGE].insert_many(stored_documents(MANY, DOCUMENT_BYTES))
    for name in ("bulk", "transactions"):
        database.create_collection(name)
