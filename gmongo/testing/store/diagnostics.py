"""The commands ``validate``, ``collStats`` and ``dbStats``."""

from __future__ import annotations

from gmongo.testing.store.catalog import compute_size
from gmongo.testing.store.context import CommandContext, check_writable
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import invalid_options, namespace_not_found
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import is_number, is_true, to_long
from gmongo.testing.unsupported import not_supported


def validate(context: CommandContext) -> Document:
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
    key_counts = dict.fromkeys(collection.indexes, len(collection.records))
    list_names = ("warnings", "errors", "extraIndexEntries", "missingIndexEntries", "corruptRecords")
    return {
        "ns": collection.namespace, "uuid": collection.uuid, "nInvalidDocuments": 0, "nNonCompliantDocuments": 0,
        "nrecords": len(collection.records), "nIndexes": len(collection.indexes), "keysPerIndex": key_counts,
        "indexDetails": details, "valid": True, "repaired": False, **{name: [] for name in list_names}
    }  # fmt: skip


def compute_collection_stats(context: CommandContext) -> Document:
    """Execute ``collStats``."""
    scale = _parse_scale(context)
    collection = context.collection()
    if collection is None:
        return {"ns": context.namespace, "size": 0, "count": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0,
                "totalIndexSize": 0, "indexSizes": {}, "scaleFactor": scale}  # fmt: skip
    check_writable(collection)
    return {"ns": collection.namespace, **find_storage_stats(collection, scale, context.pace)}


def _parse_scale(context: CommandContext) -> int:
    scale = to_long(context.body["scale"]) if is_number(context.body.get("scale")) else 1
    return max(1, scale)


def find_storage_stats(collection: Collection, scale: int, pace: Pace) -> Document:
    """Return the fields of ``collStats``, with sizes in units of `scale` bytes."""
    size, count = compute_size(collection, pace), len(collection.records)
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


def compute_database_stats(context: CommandContext) -> Document:
    """Execute ``dbStats``."""
    scale = _parse_scale(context)
    all_collections = context.state.find_collections(context.database)
    collections = [collection for collection in all_collections if not collection.is_view]
    document_count = sum(len(collection.records) for collection in collections)
    size = sum(compute_size(collection, context.pace) for collection in collections)
    return {
        "db": context.database,
        "collections": len(collections),
        "views": len(all_collections) - len(collections),
        "objects": document_count,
        "avgObjSize": size / document_count if document_count else 0.0,
        "dataSize": float(size // scale),
        "storageSize": float(size // scale),
        "indexes": sum(len(collection.indexes) for collection in collections),
        "indexSize": 0.0,
        "totalSize": float(size // scale),
        "scaleFactor": float(scale),
    }
