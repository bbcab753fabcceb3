"""Operations of databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import CursorType
from gmongo.collection import Collection
from gmongo.database import Database
from tests.spec.unified.cursors import CursorEntity
from tests.spec.unified.operations.method import CURSOR_TIMEOUTS, Method, read_documents
from tests.spec.unified.operations.watching import WATCH
from tests.spec.unified.schema import FormatError

_CURSOR_OPTIONS = f"readPreference session batchSize maxTimeMS comment cursorType {CURSOR_TIMEOUTS}"
_CREATE_FIELDS = (
    "capped size max timeseries expireAfterSeconds clusteredIndex changeStreamPreAndPostImages viewOn pipeline"
    " validator validationLevel validationAction collation comment encryptedFields"
)

_CURSOR_TYPE_FIELDS: Mapping[int, Mapping[str, bool]] = {
    CursorType.NON_TAILABLE: {},
    CursorType.TAILABLE: {"tailable": True},
    CursorType.TAILABLE_AWAIT: {"tailable": True, "awaitData": True},
}


def _run_command(database: Database[Any], command: Mapping[str, Any], command_name: str, **arguments: Any) -> Any:
    _check_name(command, command_name)
    return database.command(command, **arguments)


def _cursor_command(
    database: Database[Any],
    command: Mapping[str, Any],
    command_name: str,
    batch_size: int = 0,
    max_time_ms: int | None = None,
    cursor_type: int = CursorType.NON_TAILABLE,
    **arguments: Any,
) -> Any:
    _check_name(command, command_name)
    # `cursor_command` has no argument for the cursor type, but reads the type in the command.
    typed_command = {**command, **_CURSOR_TYPE_FIELDS[cursor_type]}
    cursor = database.cursor_command(typed_command, max_await_time_ms=max_time_ms, **arguments)
    return cursor.batch_size(batch_size)


def _check_name(command: Mapping[str, Any], name: str) -> None:
    if next(iter(command)) != name:
        raise FormatError(f"the command must be {name}, was {command}")


def _list_collections(database: Database[Any], batch_size: int | None = None, **options: Any) -> Any:
    cursor = {} if batch_size is None else {"batchSize": batch_size}
    return database.list_collections(**options, cursor=cursor)


def _list_collection_objects(database: Database[Any], **arguments: Any) -> list[str]:
    return [database[name].full_name for name in database.list_collection_names(**arguments)]


def _modify_collection(database: Database[Any], collection: str, **fields: Any) -> Any:
    return database.command({"collMod": collection, **fields})


def _create_command_cursor(database: Database[Any], **arguments: Any) -> CursorEntity:
    entity = CursorEntity(_cursor_command(database, **arguments))
    if arguments.get("cursor_type", CursorType.NON_TAILABLE) != CursorType.NON_TAILABLE:
        entity.timeout_ms = arguments.get("timeout_ms")
    return entity


def _create_collection(database: Database[Any], name: str, **options: Any) -> Collection[Any]:
    return database.create_collection(name, check_exists=False, **options)


OPERATIONS: dict[str, Method] = {
    "aggregate": Method(
        "aggregate",
        "pipeline",
        f"session let comment {CURSOR_TIMEOUTS}",
        "allowDiskUse batchSize collation hint maxTimeMS maxAwaitTimeMS bypassDocumentValidation",
        convert_result=read_documents,
    ),
    "createChangeStream": WATCH,
    "createCollection": Method(
        _create_collection, "collection", "session", _CREATE_FIELDS, names={"collection": "name"}
    ),
    "createCommandCursor": Method(_create_command_cursor, "command commandName", _CURSOR_OPTIONS),
    "dropCollection": Method(
        "drop_collection",
        "collection",
        "session comment encryptedFields",
        names={"collection": "name_or_collection"},
    ),
    "listCollectionNames": Method("list_collection_names", "", f"session filter comment {CURSOR_TIMEOUTS}"),
    "listCollectionObjects": Method(_list_collection_objects, "", f"session filter comment {CURSOR_TIMEOUTS}"),
    "listCollections": Method(
        _list_collections,
        "",
        f"session filter comment batchSize {CURSOR_TIMEOUTS}",
        "nameOnly authorizedCollections",
        convert_result=read_documents,
    ),
    "modifyCollection": Method(
        _modify_collection,
        "collection",
        "",
        "index changeStreamPreAndPostImages validator validationLevel",
    ),
    "runCommand": Method(_run_command, "command commandName", "session readPreference"),
    "runCursorCommand": Method(_cursor_command, "command commandName", _CURSOR_OPTIONS, convert_result=read_documents),
}
