"""PyMongo's asynchronous classes in one module: libraries use them in annotations and ``isinstance``.

gmongo is for greenlets and does not implement these classes, so they are placeholders.
"""

from __future__ import annotations

from gmongo._stand_in.placeholders import Placeholder
from gmongo.gridfs import DEFAULT_CHUNK_SIZE, NoFile

__all__ = ["DEFAULT_CHUNK_SIZE", "AsyncGridFS", "AsyncGridFSBucket", "AsyncMongoClient", "NoFile"]

__path__: list[str] = []  # the module is also the package of pymongo.asynchronous.mongo_client


class _Asynchronous(Placeholder):
    why = "it needs asyncio, and gmongo is for greenlets: use MongoClient"


class AsyncMongoClient(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncDatabase(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncCollection(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncCursor(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncRawBatchCursor(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncCommandCursor(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncRawBatchCommandCursor(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncClientSession(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncChangeStream(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncClusterChangeStream(AsyncChangeStream):
    """Raises ConfigurationError."""


class AsyncDatabaseChangeStream(AsyncChangeStream):
    """Raises ConfigurationError."""


class AsyncCollectionChangeStream(AsyncChangeStream):
    """Raises ConfigurationError."""


class AsyncClientEncryption(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncHTTPProxyKMSConnect(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncGridFS(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncGridFSBucket(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncGridIn(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncGridOut(_Asynchronous):
    """Raises ConfigurationError."""


class AsyncGridOutCursor(_Asynchronous):
    """Raises ConfigurationError."""
