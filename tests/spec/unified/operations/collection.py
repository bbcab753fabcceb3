"""Operations of collections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import CursorType
from gmongo.collection import Collection
from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.operations.method import CURSOR_TIMEOUTS, Method, read_documents
from tests.spec.unified.operations.models import search_index_model, write_models
from tests.spec.unified.operations.watching import WATCH

_FIND_OPTIONS = (
    "session sort projection skip limit batchSize collation hint comment let allowDiskUse maxTimeMS max min returnKey"
    " showRecordId cursorType noCursorTimeout allowPartialResults maxAwaitTimeMS"
)
_MODIFY_OPTIONS = "session sort projection hint let comment"
_MODIFY_FIELDS = "collation maxTimeMS bypassDocumentValidation"
_UPDATE_OPTIONS = "session upsert collation hint let comment bypassDocumentValidation"


def _find(collection: Collection[Any], max_await_time_ms: int | None = None, **arguments: Any) -> Any:
    cursor = collection.find(**arguments)
    return cursor if max_await_time_ms is None else cursor.max_await_time_ms(max_await_time_ms)


def _create_find_cursor(collection: Collection[Any], **arguments: Any) -> CursorEntity:
    entity = CursorEntity.with_first_document(_find(collection, **arguments))
    if arguments.get("cursor_type", CursorType.NON_TAILABLE) != CursorType.NON_TAILABLE:
        entity.timeout_ms = arguments.get("timeout_ms")
    return entity


def _bulk_write(collection: Collection[Any], requests: list[Any], **arguments: Any) -> Any:
    return collection.bulk_write(write_models(requests), **arguments)


def _create_index(collection: Collection[Any], keys: Mapping[str, Any], **arguments: Any) -> str:
    return collection.create_index(list(keys.items()), **arguments)


def _create_search_index(collection: Collection[Any], model: Mapping[str, Any]) -> str:
    return collection.create_search_index(search_index_model(model))


def _create_search_indexes(collection: Collection[Any], models: list[Mapping[str, Any]]) -> list[str]:
    return collection.create_search_indexes([search_index_model(model) for model in models])


def _list_search_indexes(
    collection: Collection[Any],
    name: str | None = None,
    aggregation_options: Mapping[str, Any] | None = None,
) -> Any:
    return collection.list_search_indexes(name, **(aggregation_options or {}))


OPERATIONS: dict[str, Method] = {
    "aggregate": Method(
        "aggregate",
        "pipeline",
        f"session let comment {CURSOR_TIMEOUTS}",
        "allowDiskUse batchSize collation hint maxTimeMS maxAwaitTimeMS bypassDocumentValidation",
        convert_result=read_documents,
    ),
    "bulkWrite": Method(_bulk_write, "requests", "session ordered let comment bypassDocumentValidation"),
    "countDocuments": Method("count_documents", "filter", "session comment", "skip limit hint collation maxTimeMS"),
    "createChangeStream": WATCH,
    "createFindCursor": Method(_create_find_cursor, "filter", f"{_FIND_OPTIONS} {CURSOR_TIMEOUTS}"),
    "createIndex": Method(_create_index, "keys", "session comment name unique", "maxTimeMS"),
    "createSearchIndex": Method(_create_search_index, "model"),
    "createSearchIndexes": Method(_create_search_indexes, "models"),
    "deleteMany": Method("delete_many", "filter", "session collation hint let comment"),
    "deleteOne": Method("delete_one", "filter", "session collation hint let comment"),
    "distinct": Method(
        "distinct",
        "fieldName filter",
        "session comment hint",
        "collation maxTimeMS",
        names={"fieldName": "key"},
    ),
    "dropIndex": Method("drop_index", "name", "session comment", "maxTimeMS", names={"name": "index_or_name"}),
    "dropIndexes": Method("drop_indexes", "", "session comment", "maxTimeMS"),
    "dropSearchIndex": Method("drop_search_index", "name"),
    "estimatedDocumentCount": Method("estimated_document_count", "", "comment", "maxTimeMS"),
    "find": Method(_find, "filter", f"{_FIND_OPTIONS} {CURSOR_TIMEOUTS}", convert_result=read_documents),
    "findOne": Method("find_one", "filter", _FIND_OPTIONS),
    "findOneAndDelete": Method("find_one_and_delete", "filter", _MODIFY_OPTIONS, _MODIFY_FIELDS),
    "findOneAndReplace": Method(
        "find_one_and_replace",
        "filter replacement",
        f"{_MODIFY_OPTIONS} upsert returnDocument",
        _MODIFY_FIELDS,
    ),
    "findOneAndUpdate": Method(
        "find_one_and_update",
        "filter update",
        f"{_MODIFY_OPTIONS} upsert returnDocument arrayFilters",
        _MODIFY_FIELDS,
    ),
    "insertMany": Method("insert_many", "documents", "session ordered comment bypassDocumentValidation"),
    "insertOne": Method("insert_one", "document", "session comment bypassDocumentValidation"),
    "listIndexNames": Method("index_information", "", "session comment", convert_result=list),
    "listIndexes": Method("list_indexes", "", f"session comment {CURSOR_TIMEOUTS}", convert_result=read_documents),
    "listSearchIndexes": Method(_list_search_indexes, "", "name aggregationOptions", convert_result=read_documents),
    "rename": Method("rename", "to", "session comment", "dropTarget", names={"to": "new_name"}),
    "replaceOne": Method("replace_one", "filter replacement", f"{_UPDATE_OPTIONS} sort"),
    "updateMany": Method("update_many", "filter update", f"{_UPDATE_OPTIONS} arrayFilters"),
    "updateOne": Method("update_one", "filter update", f"{_UPDATE_OPTIONS} arrayFilters sort"),
    "updateSearchIndex": Method("update_search_index", "name definition"),
}
