"""The operations of the benchmark for PyMongo's AsyncMongoClient."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pymongo import AsyncMongoClient

from benchmarks.documents import CHANGE, DATABASE, HUNDRED, MEGABYTE, ONE, QUERY, UNSAVED
from benchmarks.real.driver_operations import asynchronous_operations


def operations(uri: str) -> list[Callable[[], Awaitable[Any]]]:
    """Return the operations in the order of :data:`benchmarks.programs.DOCUMENT_COUNTS`."""
    client: Any = AsyncMongoClient(uri)
    database = client[DATABASE]
    one = database[ONE]

    async def insert_one() -> int:
        return int((await one.insert_one(dict(UNSAVED))).acknowledged)

    async def update_one() -> int:
        return int((await one.update_one(QUERY, CHANGE)).matched_count)

    async def drain(collection: str) -> int:
        count = 0
        async for _document in database[collection].find():
            count += 1
        return count

    return [
        lambda: one.find_one(QUERY),
        insert_one,
        update_one,
        lambda: drain(HUNDRED),
        lambda: drain(MEGABYTE),
        *asynchronous_operations(uri, client).values(),
    ]
