"""Placeholders for PyMongo's asynchronous classes, which libraries use in annotations and ``isinstance``.

gmongo does not implement these classes, because gmongo supports greenlets instead of asyncio.
"""

from __future__ import annotations

from types import GenericAlias
from typing import ClassVar, NoReturn

from gmongo.errors import ConfigurationError
from gmongo.gridfs import DEFAULT_CHUNK_SIZE, NoFile

__all__ = ["DEFAULT_CHUNK_SIZE", "AsyncMongoClient", "NoFile"]

__path__: list[str] = []  # makes the module a package, so that pymongo.asynchronous.mongo_client can be imported


class Placeholder:
    """Base class of placeholder classes. The construction of an object raises an error with the reason `why`."""

    why: ClassVar[str]

    def __new__(cls, *arguments: object, **options: object) -> NoReturn:
        raise ConfigurationError(f"gmongo stands in for PyMongo and has no {cls.__name__}: {cls.why}")

    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)


def _create_placeholder(name: str, *bases: type[object]) -> type[object]:
    why = "it needs asyncio, and gmongo is for greenlets: use MongoClient"
    return type(name, bases or (Placeholder,), {"__module__": __name__, "why": why})


AsyncMongoClient = _create_placeholder("AsyncMongoClient")
_CLASS_NAMES = """
AsyncDatabase AsyncCollection AsyncClientSession AsyncClientEncryption AsyncHTTPProxyKMSConnect
AsyncCursor AsyncRawBatchCursor AsyncCommandCursor AsyncRawBatchCommandCursor
AsyncGridFS AsyncGridFSBucket AsyncGridIn AsyncGridOut AsyncGridOutCursor
"""
globals().update((name, _create_placeholder(name)) for name in _CLASS_NAMES.split())
AsyncChangeStream = _create_placeholder("AsyncChangeStream")
_STREAM_CLASS_NAMES = ("AsyncClusterChangeStream", "AsyncDatabaseChangeStream", "AsyncCollectionChangeStream")
globals().update((name, _create_placeholder(name, AsyncChangeStream)) for name in _STREAM_CLASS_NAMES)
