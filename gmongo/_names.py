"""Public names of the package ``gmongo`` and the modules that define them."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

_KEYS, _MODELS = "gmongo.operations.keys", "gmongo.operations.models"
MODULES = {
    "MongoClient": "gmongo.mongo_client",
    "CursorType": "gmongo._cursor_type",
    "ReadPreference": "gmongo.read_preferences",
    "ReturnDocument": "gmongo.collection",
    "WriteConcern": "gmongo.write_concern",
    "timeout": "gmongo.execution.deadline",
    **dict.fromkeys(("ASCENDING", "DESCENDING", "GEO2D", "GEOSPHERE", "HASHED", "TEXT"), _KEYS),
    **dict.fromkeys(("DeleteMany", "DeleteOne", "IndexModel", "InsertOne", "ReplaceOne", "UpdateMany"), _MODELS),
    "UpdateOne": _MODELS,
    "MAX_SUPPORTED_WIRE_VERSION": "gmongo._server_facts.wire_versions",
    "MIN_SUPPORTED_WIRE_VERSION": "gmongo._server_facts.wire_versions",
}
_OTHER_NAMES = {"MAX_SUPPORTED_WIRE_VERSION": "MAX_SUPPORTED", "MIN_SUPPORTED_WIRE_VERSION": "MIN_SUPPORTED"}


def look_up(name: str) -> Any:
    """Import a public name or a public module, and set the name as an attribute of the package ``gmongo``."""
    package = sys.modules["gmongo"]
    if name in MODULES:
        value = getattr(importlib.import_module(MODULES[name]), _OTHER_NAMES.get(name, name))
        setattr(package, name, value)
        return value
    if not name.startswith("_") and find_spec(f"gmongo.{name}") is not None:
        return importlib.import_module(f"gmongo.{name}")
    hint = ": gmongo is for greenlets, and has no asyncio API; use MongoClient" if name == "AsyncMongoClient" else ""
    raise AttributeError(f"module 'gmongo' has no attribute {name!r}{hint}", name=name, obj=package)
