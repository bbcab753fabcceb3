"""The documents that all contenders send and receive, and the names of their collections."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import bson
from bson.objectid import ObjectId

DATABASE = "benchmark"
#: The collection whose ``find`` returns one document.
ONE = "one"
#: The collection whose ``find`` returns a hundred documents.
HUNDRED = "hundred"
#: The collection whose ``find`` on a canned server returns one batch of 15 MB.
LARGE = "large"
#: The collection whose ``find`` returns one batch of 1 MB.
MEGABYTE = "megabyte"
#: The collection whose ``find`` returns few large and many small documents, a hundred in total.
ZIPF = "zipf"
DOCUMENT_BYTES = 300
BATCH_SIZE = 100
LARGE_DOCUMENT_BYTES = 1000
LARGE_BATCH_SIZE = 15_000
MEGABYTE_BATCH_SIZE = 1_000
#: BSON sizes in bytes: document n has the size of the first document, divided by n.
ZIPF_BYTES = [max(DOCUMENT_BYTES, 30_000 // rank) for rank in range(1, BATCH_SIZE + 1)]
#: The number of documents that one ``insert_many`` inserts.
MANY_COUNT = 10_000

QUERY: dict[str, Any] = {"_id": ObjectId("65a000000000000000000001")}
CHANGE: dict[str, Any] = {"$set": {"visits": 42}}


#: The suffix of deployment names in the results: empty, except in a run with documents of one field.
DEPLOYMENT_SUFFIX = ", one-field documents" if os.environ.get("GMONGO_BENCHMARK_FIELDS") == "1" else ""


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


def _padded_document(size: int) -> dict[str, Any]:
    if DEPLOYMENT_SUFFIX:
        return {"visits": 41}
    document = _fields()
    unpadded_size = len(bson.encode({**QUERY, **document}))
    document["note"] = "x" * (size - unpadded_size)
    return document


#: The document of ``insert_one``, with a size of DOCUMENT_BYTES after the driver has added an ``_id``.
UNSAVED = _padded_document(DOCUMENT_BYTES)
#: The document that ``find_one`` returns.
SAVED: dict[str, Any] = {**QUERY, **UNSAVED}


def documents_without_id() -> list[dict[str, Any]]:
    """Return new documents for ``insert_many``, which adds an ``_id`` to each document."""
    return [dict(UNSAVED) for _ in range(MANY_COUNT)]


def stored_documents(count: int, size: int) -> list[dict[str, Any]]:
    """Return `count` documents for the reply to a ``find``, each with `size` bytes of BSON."""
    fields = _padded_document(size)
    return [{"_id": _id(number), **fields} for number in range(count)]


def stored_documents_of_sizes(sizes: list[int]) -> list[dict[str, Any]]:
    """Return documents with the BSON `sizes` in bytes, for the reply to a ``find``."""
    return [{"_id": _id(number), **_padded_document(size)} for number, size in enumerate(sizes)]


def _id(number: int) -> ObjectId:
    return ObjectId(f"65a00000000000000000{number:04x}")
