"""PyMongo's asynchronous classes, all in one module: libraries name them in annotations and ``isinstance``.

gmongo is for greenlets and has none of them, so that they can be imported, and nothing else.
"""

from __future__ import annotations

from gmongo._stand_in.refused import Refused
from gmongo.gridfs import DEFAULT_CHUNK_SIZE, NoFile

__all__ = ["DEFAULT_CHUNK_SIZE", "AsyncGridFS", "AsyncGridFSBucket", "AsyncMongoClient", "NoFile"]

__path__: list[str] = []  # of a package: pymongo.asynchronous.mongo_client is this module too


class _Asynchronous(Refused):
    why = "it is asyncio's, and gmongo is for greenlets: use MongoClient"


class AsyncMongoClient(_Asynchronous):
    """Refuses."""


class AsyncDatabase(_Asynchronous):
    """Refuses."""


class AsyncCollection(_Asynchronous):
    """Refuses."""


class AsyncCursor(_Asynchronous):
    """Refuses."""


class AsyncRawBatchCursor(_Asynchronous):
    """Refuses."""


class AsyncCommandCursor(_Asynchronous):
    """Refuses."""


class AsyncRawBatchCommandCursor(_Asynchronous):
    """Refuses."""


class AsyncClientSession(_Asynchronous):
    """Refuses."""


class AsyncChangeStream(_Asynchronous):
    """Refuses."""


class AsyncClusterChangeStream(AsyncChangeStream):
    """Refuses."""


class AsyncDatabaseChangeStream(AsyncChangeStream):
    """Refuses."""


class AsyncCollectionChangeStream(AsyncChangeStream):
    """Refuses."""


class AsyncClientEncryption(_Asynchronous):
    """Refuses."""


class AsyncHTTPProxyKMSConnect(_Asynchronous):
    """Refuses."""


class AsyncGridFS(_Asynchronous):
    """Refuses."""


class AsyncGridFSBucket(_Asynchronous):
    """Refuses."""


class AsyncGridIn(_Asynchronous):
    """Refuses."""


class AsyncGridOut(_Asynchronous):
    """Refuses."""


class AsyncGridOutCursor(_Asynchronous):
    """Refuses."""
