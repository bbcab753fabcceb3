"""The operations that need a real server, for each driver with the API of PyMongo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from greenlet import getcurrent

from benchmarks.documents import DATABASE, HUNDRED, LARGE, ONE, QUERY, UNSAVED

BULK_SIZE = 1000  # number of write models in a bulk write
PIPELINE = [{"$match": {"active": True}}, {"$sort": {"_id": 1}}, {"$limit": 20}, {"$project": {"name": 1, "score": 1}}]


def blocking_operations(package: str, uri: str, client: Any) -> dict[str, Callable[[], int]]:
    """Return the operations of a blocking client. Each operation returns the number of its documents.

    :param package: the name of the driver's package.
    :param uri: the connection string of the client.
    """
    driver = import_module(package)
    database = client[DATABASE]
    writes = database["transactions"]
    insert = driver.InsertOne
    streams: dict[Any, Any] = {}  # the current greenlet of the caller -> the change stream of the caller

    def transaction() -> int:
        with client.start_session() as session, session.start_transaction():
            writes.insert_one(dict(UNSAVED), session=session)
            document = database[ONE].find_one(QUERY, session=session)
            writes.insert_one(dict(UNSAVED), session=session)
        return 3 if document else 0

    def change_stream() -> int:
        caller = getcurrent()
        if caller not in streams:
            streams[caller] = database["bulk"].watch([{"$match": {"fullDocument.caller": id(caller)}}])
        database["bulk"].insert_one({"caller": id(caller)})
        return int(next(streams[caller]) is not None)

    def first_operation() -> int:
        with driver.MongoClient(uri) as new_client:
            return int(new_client[DATABASE][ONE].find_one(QUERY) is not None)

    return {
        "find_10000": lambda: sum(1 for _ in database[LARGE].find()),
        "aggregate": lambda: sum(1 for _ in database[HUNDRED].aggregate(PIPELINE)),
        "bulk_write": lambda: int(
            database["bulk"].bulk_write([insert(dict(UNSAVED)) for _ in range(BULK_SIZE)]).inserted_count
        ),
        "transaction": transaction,
        "change_stream": change_stream,
        "first_operation": first_operation,
    }


def asynchronous_operations(uri: str, client: Any) -> dict[str, Callable[[], Awaitable[int]]]:
    """Return the operations of :func:`blocking_operations` for an `AsyncMongoClient`."""
    from asyncio import current_task

    from pymongo import AsyncMongoClient, InsertOne

    database = client[DATABASE]
    writes = database["transactions"]
    streams: dict[Any, Any] = {}

    async def count(cursor: Any) -> int:
        document_count = 0
        async for _document in cursor:
            document_count += 1
        return document_count

    async def find_10000() -> int:
        return await count(database[LARGE].find())

    async def aggregate() -> int:
        return await count(await database[HUNDRED].aggregate(PIPELINE))

    async def bulk_write() -> int:
        result = await database["bulk"].bulk_write([InsertOne(dict(UNSAVED)) for _ in range(BULK_SIZE)])
        return int(result.inserted_count)

    async def transaction() -> int:
        async with client.start_session() as session, await session.start_transaction():
            await writes.insert_one(dict(UNSAVED), session=session)
            document = await database[ONE].find_one(QUERY, session=session)
            await writes.insert_one(dict(UNSAVED), session=session)
        return 3 if document else 0

    async def change_stream() -> int:
        caller = current_task()
        if caller not in streams:
            streams[caller] = await database["bulk"].watch([{"$match": {"fullDocument.caller": id(caller)}}])
        await database["bulk"].insert_one({"caller": id(caller)})
        return int(await streams[caller].next() is not None)

    async def first_operation() -> int:
        async with AsyncMongoClient(uri) as new_client:
            return int(await new_client[DATABASE][ONE].find_one(QUERY) is not None)

    return {
        "find_10000": find_10000,
        "aggregate": aggregate,
        "bulk_write": bulk_write,
        "transaction": transaction,
        "change_stream": change_stream,
        "first_operation": first_operation,
    }
