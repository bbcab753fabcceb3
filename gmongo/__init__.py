"""gmongo: a gevent-native MongoDB driver with PyMongo's synchronous API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo._version import __version__

if TYPE_CHECKING:
    from gmongo import uri_parser as uri_parser
    from gmongo._cursor_type import CursorType
    from gmongo._server_facts.wire_versions import MAX_SUPPORTED as MAX_SUPPORTED_WIRE_VERSION
    from gmongo._server_facts.wire_versions import MIN_SUPPORTED as MIN_SUPPORTED_WIRE_VERSION
    from gmongo.collection import ReturnDocument
    from gmongo.execution.deadline import timeout
    from gmongo.mongo_client import MongoClient
    from gmongo.operations.keys import ASCENDING, DESCENDING, GEO2D, GEOSPHERE, HASHED, TEXT
    from gmongo.operations.models import DeleteMany, DeleteOne, IndexModel, InsertOne, ReplaceOne, UpdateMany, UpdateOne
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
"""The version of gmongo as a tuple, such as ``(0, 2, 0)``."""


def get_version_string() -> str:
    """Return the version of gmongo, such as ``"0.2.0"``."""
    return __version__


def has_c() -> bool:
    """Return True if the C extension of bson encodes and decodes documents."""
    import bson

    return bool(bson.has_c())


def __getattr__(name: str) -> Any:
    # Only the first use of a public name imports the driver. pytest imports this package in every run to load its
    # plugin, even if no test uses the driver.
    from gmongo._names import look_up

    return look_up(name)


def __dir__() -> list[str]:
    from gmongo._names import MODULES

    return sorted({*globals(), *MODULES})
