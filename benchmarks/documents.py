"""The documents that every contender sends and receives, and the names they live under."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import bson
from bson.objectid import ObjectId

DATABASE = "benchmark"
#: A ``find`` on this collection is answered with one document.
ONE = "one"
#: A ``find`` on this collection is answered with a hundred documents.
HUNDRED = "hundred"
DOCUMENT_BYTES = 300
BATCH = 100

QUERY: dict[str, Any] = {"_id": ObjectId("65a000000000000000000001")}
CHANGE: dict[str, Any] = {"$set": {"visits": 42}}


def _fields() -> dict[str, Any]:
    return {
        "name": "Ada Lovelace",
        "email": "ada@example.org",
        "born": datetime(1815, 12, 10),
        "visits": 41,
        "score": 0.75,
        "active": True,
        "tags": ["analysis", "engine", "notes"],
        "address": {"street": "12 St James's Square", "city": "London"},
        "note": "",
    }


def _padded() -> dict[str, Any]:
    document = _fields()
    bare = len(bson.encode({**QUERY, **document}))
    document["note"] = "x" * (DOCUMENT_BYTES - bare)
    return document


#: What ``insert_one`` is given; with an ``_id`` it is DOCUMENT_BYTES of BSON.
UNSAVED = _padded()
#: What ``find_one`` returns.
SAVED: dict[str, Any] = {**QUERY, **UNSAVED}
