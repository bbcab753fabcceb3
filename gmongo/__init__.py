"""gmongo: a MongoDB driver that is native to gevent, with PyMongo's synchronous API."""

from __future__ import annotations

from gmongo import uri_parser as uri_parser  # which applications reach without importing it
from gmongo._cursor_type import CursorType
from gmongo._server_facts.wire_versions import MAX_SUPPORTED as MAX_SUPPORTED_WIRE_VERSION
from gmongo._server_facts.wire_versions import MIN_SUPPORTED as MIN_SUPPORTED_WIRE_VERSION
from gmongo._version import __version__
from gmongo.collection import ReturnDocument
from gmongo.execution.deadline import timeout
from gmongo.mongo_client import MongoClient
from gmongo.operations.keys import ASCENDING, DESCENDING, GEO2D, GEOSPHERE, HASHED, TEXT
from gmongo.operations.models import (
    DeleteMany,
    DeleteOne,
    IndexModel,
    InsertOne,
    ReplaceOne,
    UpdateMany,
    UpdateOne,
)
from gmongo.read_preferences import ReadPreference
from gmongo.write_concern import WriteConcern

__all__ = [
    "ASCENDING",
    "DESCENDING",
    "GEO2D",
    "GEOSPHERE",
    "HASHED",
    "MAX_SUPPORTED_WIRE_VERSION",
    "MIN_SUPPORTED_WIRE_VERSION",
    "TEXT",
    "CursorType",
    "DeleteMany",
    "DeleteOne",
    "IndexModel",
    "InsertOne",
    "MongoClient",
    "ReadPreference",
    "ReplaceOne",
    "ReturnDocument",
    "UpdateMany",
    "UpdateOne",
    "WriteConcern",
    "get_version_string",
    "has_c",
    "timeout",
    "version",
    "version_tuple",
]

version = __version__
"""The version of gmongo."""

version_tuple = tuple(int(part) if part.isdigit() else part for part in __version__.split("."))
"""The same as a tuple."""


def get_version_string() -> str:
    """The version of gmongo, such as ``"0.2.0"``."""
    return __version__


def has_c() -> bool:
    """Whether documents are encoded and decoded by bson's C extension."""
    import bson

    return bool(bson.has_c())
