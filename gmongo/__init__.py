"""gmongo: a gevent-native MongoDB driver with PyMongo's synchronous API."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gmongo._version import __version__

if TYPE_CHECKING:
    from gmongo import uri_parser as uri_parser
    from gmongo._server_facts.wire_versions import MAX_SUPPORTED as MAX_SUPPORTED_WIRE_VERSION
    from gmongo._server_facts.wire_versions import MIN_SUPPORTED as MIN_SUPPORTED_WIRE_VERSION
    from gmongo.collection import ReturnDocument
    from gmongo.cursor import CursorType
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

_NAME_IN_MODULE = {f"{name}_WIRE_VERSION": name for name in ("MAX_SUPPORTED", "MIN_SUPPORTED")}
_KEYS_MODULE, _MODELS_MODULE = "gmongo.operations.keys", "gmongo.operations.models"
# Public name -> module from which `__getattr__` imports the object.
_MODULE_OF_NAME = {
    "MongoClient": "gmongo.mongo_client",
    "CursorType": "gmongo.cursor",
    "ReadPreference": "gmongo.read_preferences",
    "ReturnDocument": "gmongo.collection",
    "WriteConcern": "gmongo.write_concern",
    "timeout": "gmongo.execution.deadline",
    **dict.fromkeys(("ASCENDING", "DESCENDING", "GEO2D", "GEOSPHERE", "HASHED", "TEXT"), _KEYS_MODULE),
    **dict.fromkeys(("DeleteMany", "DeleteOne", "IndexModel", "InsertOne", "ReplaceOne", "UpdateMany"), _MODELS_MODULE),
    "UpdateOne": _MODELS_MODULE,
    **dict.fromkeys(_NAME_IN_MODULE, "gmongo._server_facts.wire_versions"),
}

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
    """Import a public name or a public module at its first use, and set the name as an attribute of the package.

    The late import saves time, because pytest imports this package in each run for gmongo's plugin.
    """
    from importlib import import_module
    from importlib.util import find_spec

    if name in _MODULE_OF_NAME:
        value = getattr(import_module(_MODULE_OF_NAME[name]), _NAME_IN_MODULE.get(name, name))
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"gmongo.{name}") is not None:
        return import_module(f"gmongo.{name}")
    hint = ": gmongo is for greenlets, and has no asyncio API; use MongoClient" if name == "AsyncMongoClient" else ""
    raise AttributeError(f"module 'gmongo' has no attribute {name!r}{hint}", name=name, obj=sys.modules["gmongo"])


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF_NAME})
