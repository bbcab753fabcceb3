"""Convert results of the driver to documents in the unified test format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.results import (
    BulkWriteResult,
    ClientBulkWriteResult,
    DeleteResult,
    InsertManyResult,
    InsertOneResult,
    UpdateResult,
)


class Documents(list[Any]):
    """List of the documents that a cursor has returned. The runner compares each document as a root
    document.
    """


def as_document(result: Any) -> Any:
    """Convert a result object, or the details of a bulk write error, to a document.

    Return all other values unchanged.
    """
    if isinstance(result, Mapping) and "nInserted" in result:
        return _convert_bulk(BulkWriteResult(result, True))
    convert = next((convert for kind, convert in _CONVERSIONS if type(result) is kind), None)
    if convert is None:
        return result
    return {"acknowledged": result.acknowledged, **(convert(result) if result.acknowledged else {})}


def _convert_by_index(results: Mapping[Any, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    return {str(index): convert(result) for index, result in results.items()}


def _convert_insert_many(result: InsertManyResult) -> dict[str, Any]:
    return {"insertedIds": {str(index): each for index, each in enumerate(result.inserted_ids)}}


def _convert_update(result: UpdateResult) -> dict[str, Any]:
    document = {
        "matchedCount": result.matched_count,
        "modifiedCount": result.modified_count,
        "upsertedCount": 1 if result.did_upsert else 0,
    }
    return {**document, "upsertedId": result.upserted_id} if result.did_upsert else document


def _convert_counts(result: Any) -> dict[str, Any]:
    names = ("inserted", "matched", "modified", "deleted", "upserted")
    return {f"{name}Count": getattr(result, f"{name}_count") for name in names}


def _convert_bulk(result: BulkWriteResult) -> dict[str, Any]:
    return {
        **_convert_counts(result),
        "upsertedIds": _convert_by_index(result.upserted_ids or {}, lambda each: each),
    }


def _convert_client_bulk(result: ClientBulkWriteResult) -> dict[str, Any]:
    if not result.has_verbose_results:
        return _convert_counts(result)
    return {
        **_convert_counts(result),
        "insertResults": _convert_by_index(result.insert_results, _convert_insert_one),
        "updateResults": _convert_by_index(result.update_results, _convert_update_in_bulk),
        "deleteResults": _convert_by_index(result.delete_results, _convert_delete),
    }


def _convert_update_in_bulk(result: UpdateResult) -> dict[str, Any]:
    document = _convert_update(result)
    del document["upsertedCount"]
    return document


def _convert_insert_one(result: InsertOneResult) -> dict[str, Any]:
    return {"insertedId": result.inserted_id}


def _convert_delete(result: DeleteResult) -> dict[str, Any]:
    return {"deletedCount": result.deleted_count}


_CONVERSIONS: tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...] = (
    (InsertOneResult, _convert_insert_one),
    (InsertManyResult, _convert_insert_many),
    (UpdateResult, _convert_update),
    (DeleteResult, _convert_delete),
    (BulkWriteResult, _convert_bulk),
    (ClientBulkWriteResult, _convert_client_bulk),
)
