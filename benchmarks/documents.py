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
#: A ``find`` on this collection is answered with one batch of 15 MB.
LARGE = "large"
#: A ``find`` on this collection is answered with one batch of 1 MB.
MEGABYTE = "megabyte"
#: A ``find`` on this collection is answered with a hundred documents, a few large and many small ones.
ZIPF = "zipf"
DOCUMENT_BYTES = 300
BATCH = 100
LARGE_DOCUMENT_BYTES = 1000
LARGE_BATCH = 15_000
MEGABYTE_BATCH = 1_000
#: Bytes of BSON of each: the second largest has half of the largest, the third a third, and so on.
ZIPF_BYTES = [max(DOCUMENT_BYTES, 30_000 // rank) for rank in range(1, BATCH + 1)]
#: How many documents ``insert_many`` is given.
MANY = 10_000

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


def _padded(size: int) -> dict[str, Any]:
    document = _fields()
    bare = len(bson.encode({**QUERY, **document}))
    document["note"] = "x" * (size - bare)
    return document


#: What ``insert_one`` is given; with an ``_id`` it is DOCUMENT_BYTES of BSON.
UNSAVED = _padded(DOCUMENT_BYTES)
#: What ``find_one`` returns.
SAVED: dict[str, Any] = {**QUERY, **UNSAVED}


def unsaved_many() -> list[dict[str, Any]]:
    """What ``insert_many`` is given: fresh documents, as it adds an ``_id`` to each."""
    return [dict(UNSAVED) for _ in range(MANY)]


def saved(count: int, size: int) -> list[dict[str, Any]]:
    """What a ``find`` returns: so many documents, each of so many bytes of BSON."""
    fields = _padded(size)
    return [{"_id": _id(number), **fields} for number in range(count)]


def saved_of_sizes(sizes: list[int]) -> list[dict[str, Any]]:
    """What a ``find`` returns: documents of so many bytes of BSON each."""
    return [{"_id": _id(number), **_padded(size)} for number, size in enumerate(sizes)]


def _id(number: int) -> ObjectId:
    return ObjectId(f"65a00000000000000000{number:04x}")
