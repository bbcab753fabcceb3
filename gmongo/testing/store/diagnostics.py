"""The commands ``validate``, ``collStats`` and ``dbStats``."""

from __future__ import annotations

from gmongo.testing.store.catalog import size_of
from gmongo.testing.store.context import Context, check_writable
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import invalid_options, namespace_not_found
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import is_number, is_true, long_of
from gmongo.testing.unsupported import not_supported


def validate(context: Context) -> Document:
    """Execute ``validate``."""
    if is_true(context.body.get("repair")) and context.state.has_oplog:
        raise invalid_options("Running the validate command with { repair: true } can only be performed in standalone "
                              "mode.")  # fmt: skip
    if context.body.get("repair") or context.body.get("metadata"):
        raise not_supported("validate with repair or metadata")
    collection = context.collection()
    if collection is None:
        raise namespace_not_found(f"Collection '{context.namespace}' does not exist to validate.")
    check_writable(collection)
    details = {name: {"valid": True} for name in collection.indexes}
    keys = dict.fromkeys(collection.indexes, len(collection.records))
    lists = ("warnings", "errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords")
    return {
        "ns": collection.namespace, "uuid": collection.uuid, "nInvalidDocuments": 0, "nNonCompliantDocuments": 0,
        "nrecords": len(collection.records), "nIndexes": len(collection.indexes), "keysPerIndex": keys,
        "indexDetails": details, "valid": True, "repaired": False, **{name: [] for name in lists}
    }  # fmt: skip


def collection_stats(context: Context) -> Document:
    """Execute ``collStats``."""
    scale = _scale(context)
    collection = context.collection()
    if collection is None:
        return {"ns": context.namespace, "size": 0, "count": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0,
                "totalIndexSize": 0, "indexSizes": {}, "scaleFactor": scale}  # fmt: skip
    check_writable(collection)
    return {"ns": collection.namespace, **storage_stats(collection, scale, context.pace)}


def _scale(context: Context) -> int:
    scale = long_of(context.body["scale"]) if is_number(context.body.get("scale")) else 1
    return max(1, scale)


def storage_stats(collection: Collection, scale: int, pace: Pace) -> Document:
    """Return the sizes of a collection as ``collStats`` shows the sizes, in units of `scale` bytes."""
    size, count = size_of(collection, pace), len(collection.records)
    average = {"avgObjSize": size // count} if count else {}
    options = collection.options
    names = [name for name in collection.indexes if name != "_id_" or "clusteredIndex" not in options]
    capped = {"max": options.get("max", 0), "maxSize": options["size"] // scale} if collection.is_capped else {}
    return {
        "size": size // scale,
        "count": count,
        **average,
        "storageSize": size // scale,
        "totalSize": size // scale,
        "capped": collection.is_capped,
        **capped,
        "nindexes": len(names),
        "totalIndexSize": 0,
        "indexSizes": dict.fromkeys(names, 0),
        "scaleFactor": scale,
    }


def database_stats(context: Context) -> Document:
    """Execute ``dbStats``."""
    scale = _scale(context)
    found = context.state.collections_of(context.database)
    collections = [one for one in found if not one.is_view]
    objects = sum(len(one.records) for one in collections)
    size = sum(size_of(one, context.pace) for one in collections)
    return {
        "db": context.database,
        "collections": len(collections),
        "views": len(found) - len(collections),
        "objects": objects,
        "avgObjSize": size / objects if objects else 0.0,
        "dataSize": float(size // scale),
        "storageSize": float(size // scale),
        "indexes": sum(len(one.indexes) for one in collections),
        "indexSize": 0.0,
        "totalSize": float(size // scale),
        "scaleFactor": float(scale),
    }
