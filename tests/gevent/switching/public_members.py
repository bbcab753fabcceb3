"""Public classes, and their members without a scenario, keyed by the reason for the exemption."""

from __future__ import annotations

from gmongo import MongoClient
from gmongo.change_stream import ChangeStream
from gmongo.client_session import ClientSession
from gmongo.collection import Collection
from gmongo.command_cursor import CommandCursor, RawBatchCommandCursor
from gmongo.cursor import Cursor, RawBatchCursor
from gmongo.database import Database
from gmongo.gridfs import GridFS, GridFSBucket, GridIn, GridOut, GridOutCursor

PUBLIC_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        MongoClient,
        Database,
        Collection,
        ClientSession,
        Cursor,
        RawBatchCursor,
        CommandCursor,
        RawBatchCommandCursor,
        ChangeStream,
        GridFS,
        GridFSBucket,
        GridIn,
        GridOut,
        GridOutCursor,
    )
}

_SETTING_NAMES = "codec_options read_concern read_preference write_concern"
_QUERY_NAMES = (
    "add_option address alive allow_disk_use batch_size clone collation collection comment cursor_id hint limit max "
    "max_await_time_ms max_scan max_time_ms min remove_option retrieved rewind session skip sort where"
)
_NO_IO = "does no I/O"
EXEMPT_MEMBERS: dict[str, dict[str, str]] = {
    "MongoClient": {
        _NO_IO: f"HOST PORT __getitem__ __next__ next append_metadata arbiters eq_props get_database nodes options "
        f"primary get_default_database pool_stats retry_stats secondaries topology_description {_SETTING_NAMES}",
        "scenarios 'client close' and 'with block of a client'": "__exit__ close",
        "scenario 'client bulk write', because MongoDB has the command since 8.0": "bulk_write",
    },
    "Database": {_NO_IO: f"__getitem__ __next__ next client get_collection name with_options {_SETTING_NAMES}"},
    "Collection": {_NO_IO: f"__getitem__ __next__ next database full_name name with_options {_SETTING_NAMES}"},
    "ClientSession": {
        _NO_IO: "advance_cluster_time advance_operation_time bind client cluster_time has_ended in_transaction "
        "operation_time options session_id"
    },
    "Cursor": {_NO_IO: _QUERY_NAMES},
    "RawBatchCursor": {_NO_IO: f"__getitem__ {_QUERY_NAMES}"},
    "CommandCursor": {_NO_IO: "address alive batch_size cursor_id session"},
    "RawBatchCommandCursor": {_NO_IO: "__getitem__ address alive batch_size cursor_id session"},
    "ChangeStream": {_NO_IO: "alive resume_token"},
    "GridFS": {},
    "GridFSBucket": {"has the same code as upload_from_stream_with_id": "upload_from_stream"},
    "GridIn": {
        _NO_IO: "chunk_size closed content_type filename length md5 name read readable seekable upload_date writeable"
    },
    "GridOut": {
        _NO_IO: "closed fileno flush isatty readable seekable tell truncate writable write writelines",
        "reads the file document as length": "aliases chunk_size content_type filename md5 metadata name upload_date",
        "calls close": "__exit__",
    },
    "GridOutCursor": {_NO_IO: _QUERY_NAMES, "is an alias of next": "__next__"},
}
