"""The public API has the names and parameters of PyMongo's synchronous API, as far as it goes."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

import gmongo

# Classes, and each of their members: methods with their parameters, in their order, and attributes bare.
_CURSOR = [
    "allow_disk_use(allow_disk_use)",
    "batch_size(batch_size)",
    "clone()",
    "close()",
    "collation(collation)",
    "comment(comment)",
    "distinct(key)",
    "explain()",
    "hint(index)",
    "limit(limit)",
    "max(spec)",
    "max_await_time_ms(max_await_time_ms)",
    "max_scan(max_scan)",
    "max_time_ms(max_time_ms)",
    "min(spec)",
    "next()",
    "rewind()",
    "skip(skip)",
    "sort(key_or_list direction)",
    "to_list(length)",
    "where(code)",
    "address alive collection cursor_id retrieved session",
]
_COMMAND_CURSOR = [
    "__init__(collection cursor_info address batch_size max_await_time_ms session comment)",
    "batch_size(batch_size)",
    "close()",
    "next()",
    "to_list(length)",
    "try_next()",
    "address alive cursor_id session",
]

CLASSES = {
    "gmongo.mongo_client.MongoClient": [
        "__init__(host port document_class tz_aware connect type_registry)",
        "append_metadata(driver_info)",
        "bulk_write(models session ordered verbose_results bypass_document_validation comment let write_concern)",
        "close()",
        "drop_database(name_or_database session comment)",
        "eq_props()",
        "get_database(name codec_options read_preference write_concern read_concern)",
        "get_default_database(default codec_options read_preference write_concern read_concern)",
        "list_database_names(session comment)",
        "list_databases(session comment)",
        "next()",
        "server_info(session)",
        "start_session(causal_consistency default_transaction_options snapshot)",
        "watch(pipeline full_document resume_after max_await_time_ms batch_size collation "
        "start_at_operation_time session start_after comment full_document_before_change "
        "show_expanded_events)",
        "HOST PORT address arbiters codec_options is_mongos is_primary nodes options primary read_concern",
        "read_preference secondaries topology_description write_concern",
    ],
    "gmongo.database.Database": [
        "__init__(client name codec_options read_preference write_concern read_concern)",
        "aggregate(pipeline session)",
        "command(command value check allowable_errors read_preference codec_options session comment)",
        "create_collection(name codec_options read_preference write_concern read_concern session check_exists)",
        "cursor_command(command value read_preference codec_options session comment max_await_time_ms)",
        "dereference(dbref session comment)",
        "drop_collection(name_or_collection session comment encrypted_fields)",
        "get_collection(name codec_options read_preference write_concern read_concern)",
        "list_collection_names(session filter comment)",
        "list_collections(session filter comment)",
        "next()",
        "validate_collection(name_or_collection scandata full session background comment)",
        "watch(pipeline full_document resume_after max_await_time_ms batch_size collation "
        "start_at_operation_time session start_after comment full_document_before_change "
        "show_expanded_events)",
        "with_options(codec_options read_preference write_concern read_concern)",
        "client codec_options name read_concern read_preference write_concern",
    ],
    "gmongo.collection.Collection": [
        "__init__(database name create codec_options read_preference write_concern read_concern session)",
        "aggregate(pipeline session let comment)",
        "aggregate_raw_batches(pipeline session comment)",
        "bulk_write(requests ordered bypass_document_validation session comment let)",
        "count_documents(filter session comment)",
        "create_index(keys session comment)",
        "create_indexes(indexes session comment)",
        "create_search_index(model session comment)",
        "create_search_indexes(models session comment)",
        "delete_many(filter collation hint session let comment)",
        "delete_one(filter collation hint session let comment)",
        "distinct(key filter session comment hint)",
        "drop(session comment encrypted_fields)",
        "drop_index(index_or_name session comment)",
        "drop_indexes(session comment)",
        "drop_search_index(name session comment)",
        "estimated_document_count(comment)",
        "find()",
        "find_one(filter)",
        "find_one_and_delete(filter projection sort hint session let comment)",
        "find_one_and_replace(filter replacement projection sort upsert return_document hint session let comment)",
        "find_one_and_update(filter update projection sort upsert return_document array_filters hint session "
        "let comment)",
        "find_raw_batches()",
        "index_information(session comment)",
        "insert_many(documents ordered bypass_document_validation session comment)",
        "insert_one(document bypass_document_validation session comment)",
        "list_indexes(session comment)",
        "list_search_indexes(name session comment)",
        "next()",
        "options(session comment)",
        "rename(new_name session comment)",
        "replace_one(filter replacement upsert bypass_document_validation collation hint session let sort comment)",
        "update_many(filter update upsert array_filters bypass_document_validation collation hint session let comment)",
        "update_one(filter update upsert bypass_document_validation collation array_filters hint session let "
        "sort comment)",
        "update_search_index(name definition session comment)",
        "watch(pipeline full_document resume_after max_await_time_ms batch_size collation "
        "start_at_operation_time session start_after comment full_document_before_change "
        "show_expanded_events)",
        "with_options(codec_options read_preference write_concern read_concern)",
        "codec_options database full_name name read_concern read_preference write_concern",
    ],
    "gmongo.collection.ReturnDocument": [
        "AFTER BEFORE",
    ],
    "gmongo.cursor.Cursor": [
        "__init__(collection filter projection skip limit no_cursor_timeout cursor_type sort "
        "allow_partial_results oplog_replay batch_size collation hint max_scan max_time_ms max min return_key "
        "show_record_id snapshot comment session allow_disk_use let)",
        "add_option(mask)",
        "remove_option(mask)",
        *_CURSOR,
    ],
    "gmongo.cursor.CursorType": [
        "EXHAUST NON_TAILABLE TAILABLE TAILABLE_AWAIT",
    ],
    "gmongo.cursor.RawBatchCursor": [
        "__init__(collection)",
        "add_option(mask)",
        "remove_option(mask)",
        *_CURSOR,
    ],
    "gmongo.command_cursor.CommandCursor": [
        *_COMMAND_CURSOR,
    ],
    "gmongo.command_cursor.RawBatchCommandCursor": [
        *_COMMAND_CURSOR,
    ],
    "gmongo.client_session.ClientSession": [
        "__init__(client server_session options)",
        "advance_cluster_time(cluster_time)",
        "advance_operation_time(operation_time)",
        "end_session()",
        "client cluster_time has_ended in_transaction operation_time options session_id",
    ],
    "gmongo.client_session.SessionOptions": [
        "__init__(causal_consistency)",
        "causal_consistency",
    ],
    "gmongo.operations.DeleteMany": [
        "__init__(filter collation hint namespace)",
    ],
    "gmongo.operations.DeleteOne": [
        "__init__(filter collation hint namespace)",
    ],
    "gmongo.operations.IndexModel": [
        "__init__(keys)",
        "document",
    ],
    "gmongo.operations.InsertOne": [
        "__init__(document namespace)",
    ],
    "gmongo.operations.ReplaceOne": [
        "__init__(filter replacement upsert collation hint namespace sort)",
    ],
    "gmongo.operations.SearchIndexModel": [
        "__init__(definition name type)",
        "document",
    ],
    "gmongo.operations.UpdateMany": [
        "__init__(filter update upsert collation array_filters hint namespace)",
    ],
    "gmongo.operations.UpdateOne": [
        "__init__(filter update upsert collation array_filters hint namespace sort)",
    ],
    "gmongo.change_stream.ChangeStream": [
        "__init__(target pipeline full_document resume_after max_await_time_ms batch_size collation "
        "start_at_operation_time session start_after comment full_document_before_change "
        "show_expanded_events)",
        "close()",
        "next()",
        "try_next()",
        "alive resume_token",
    ],
    "gmongo.gridfs.GridFS": [
        "__init__(database collection)",
        "delete(file_id session)",
        "exists(document_or_id session)",
        "find()",
        "find_one(filter session)",
        "get(file_id session)",
        "get_last_version(filename session)",
        "get_version(filename version session)",
        "list(session)",
        "new_file()",
        "put(data)",
    ],
    "gmongo.gridfs.GridFSBucket": [
        "__init__(db bucket_name chunk_size_bytes write_concern read_preference)",
        "delete(file_id session)",
        "delete_by_name(filename session)",
        "download_to_stream(file_id destination session)",
        "download_to_stream_by_name(filename destination revision session)",
        "find()",
        "open_download_stream(file_id session)",
        "open_download_stream_by_name(filename revision session)",
        "open_upload_stream(filename chunk_size_bytes metadata session)",
        "open_upload_stream_with_id(file_id filename chunk_size_bytes metadata session)",
        "rename(file_id new_filename session)",
        "rename_by_name(filename new_filename session)",
        "upload_from_stream(filename source chunk_size_bytes metadata session)",
        "upload_from_stream_with_id(file_id filename source chunk_size_bytes metadata session)",
    ],
    "gmongo.gridfs.GridIn": [
        "__init__(root_collection session)",
        "abort()",
        "close()",
        "read(size)",
        "readable()",
        "seekable()",
        "set(name value)",
        "write(data)",
        "writeable()",
        "writelines(sequence)",
        "chunk_size closed content_type filename length md5 name upload_date",
    ],
    "gmongo.gridfs.GridOut": [
        "__init__(root_collection file_id file_document session)",
        "close()",
        "fileno()",
        "flush()",
        "isatty()",
        "open()",
        "read(size)",
        "readable()",
        "readchunk()",
        "readline(size)",
        "readlines(hint)",
        "seek(pos whence)",
        "seekable()",
        "tell()",
        "truncate(size)",
        "writable()",
        "write(value)",
        "writelines(lines)",
        "aliases chunk_size closed content_type filename length md5 metadata name upload_date",
    ],
    "gmongo.gridfs.GridOutCursor": [
        "__init__(collection filter skip limit no_cursor_timeout sort batch_size session)",
        "add_option()",
        "remove_option()",
        *_CURSOR,
    ],
    "gmongo.results.BulkWriteResult": [
        "__init__(bulk_api_result acknowledged)",
        "acknowledged bulk_api_result deleted_count inserted_count matched_count modified_count",
        "upserted_count upserted_ids",
    ],
    "gmongo.results.ClientBulkWriteResult": [
        "__init__(bulk_api_result acknowledged has_verbose_results)",
        "acknowledged bulk_api_result delete_results deleted_count has_verbose_results insert_results",
        "inserted_count matched_count modified_count update_results upserted_count",
    ],
    "gmongo.results.DeleteResult": [
        "__init__(raw_result acknowledged)",
        "acknowledged deleted_count raw_result",
    ],
    "gmongo.results.InsertManyResult": [
        "__init__(inserted_ids acknowledged)",
        "acknowledged inserted_ids",
    ],
    "gmongo.results.InsertOneResult": [
        "__init__(inserted_id acknowledged)",
        "acknowledged inserted_id",
    ],
    "gmongo.results.UpdateResult": [
        "__init__(raw_result acknowledged in_client_bulk)",
        "acknowledged did_upsert matched_count modified_count raw_result upserted_id",
    ],
}

# Names in modules, several to a line.
NAMES = {
    "gmongo.server_description": ["ServerDescription"],
    "gmongo.topology_description": ["TopologyDescription"],
    "gmongo.mongo_client": [
        "MongoClient",
    ],
    "gmongo.database": [
        "Database",
    ],
    "gmongo.collection": [
        "Collection ReturnDocument",
    ],
    "gmongo.cursor": [
        "Cursor CursorType RawBatchCursor",
    ],
    "gmongo.command_cursor": [
        "CommandCursor RawBatchCommandCursor",
    ],
    "gmongo.client_session": [
        "ClientSession SessionOptions",
    ],
    "gmongo.change_stream": [
        "ChangeStream ClusterChangeStream CollectionChangeStream DatabaseChangeStream",
    ],
    "gmongo.gridfs": [
        "DEFAULT_CHUNK_SIZE GridFS GridFSBucket GridIn GridOut GridOutCursor NoFile",
    ],
    "gmongo.gridfs.errors": [
        "CorruptGridFile FileExists GridFSError NoFile PyMongoError",
    ],
    "gmongo.operations": [
        "DeleteMany DeleteOne IndexModel InsertOne ReplaceOne SearchIndexModel UpdateMany UpdateOne",
    ],
    "gmongo.results": [
        "BulkWriteResult ClientBulkWriteResult DeleteResult InsertManyResult InsertOneResult UpdateResult",
    ],
    "gmongo.errors": [
        "AutoReconnect BulkWriteError ClientBulkWriteException CollectionInvalid ConfigurationError",
        "ConnectionFailure CursorNotFound DocumentTooLarge DuplicateKeyError EncryptedCollectionError",
        "EncryptionError ExecutionTimeout InvalidName InvalidOperation InvalidURI NetworkTimeout",
        "NotPrimaryError OperationFailure ProtocolError PyMongoError ServerSelectionTimeoutError",
        "WTimeoutError WaitQueueTimeoutError WriteConcernError WriteError",
    ],
    "gmongo.write_concern": [
        "DEFAULT_WRITE_CONCERN WriteConcern",
    ],
    "gmongo.read_concern": [
        "DEFAULT_READ_CONCERN ReadConcern",
    ],
    "gmongo.read_preferences": [
        "Nearest Primary PrimaryPreferred ReadPreference Secondary SecondaryPreferred make_read_preference",
        "read_pref_mode_from_name",
    ],
    "gmongo.collation": [
        "Collation CollationAlternate CollationCaseFirst CollationMaxVariable CollationStrength",
    ],
    "gmongo.uri_parser": [
        "parse_host parse_ipv6_literal_host parse_uri parse_userinfo split_hosts split_options",
    ],
    "gmongo.server_api": [
        "ServerApi ServerApiVersion",
    ],
    "gmongo.driver_info": [
        "DriverInfo",
    ],
    "gmongo.monitoring": [
        "CommandFailedEvent CommandListener CommandStartedEvent CommandSucceededEvent",
        "ConnectionCheckOutFailedEvent ConnectionCheckOutFailedReason ConnectionCheckOutStartedEvent",
        "ConnectionCheckedInEvent ConnectionCheckedOutEvent ConnectionClosedEvent ConnectionClosedReason",
        "ConnectionCreatedEvent ConnectionPoolListener ConnectionReadyEvent PoolClearedEvent PoolClosedEvent",
        "PoolCreatedEvent PoolReadyEvent ServerClosedEvent ServerDescriptionChangedEvent",
        "ServerHeartbeatFailedEvent ServerHeartbeatListener ServerHeartbeatStartedEvent",
        "ServerHeartbeatSucceededEvent ServerListener ServerOpeningEvent TopologyClosedEvent",
        "TopologyDescriptionChangedEvent TopologyEvent TopologyListener TopologyOpenedEvent register",
    ],
    "gmongo.event_loggers": [
        "CommandLogger ConnectionPoolLogger HeartbeatLogger ServerLogger TopologyLogger",
    ],
    "gmongo": [
        "ASCENDING CursorType DESCENDING DeleteMany DeleteOne GEO2D GEOSPHERE HASHED IndexModel InsertOne",
        "MAX_SUPPORTED_WIRE_VERSION MIN_SUPPORTED_WIRE_VERSION MongoClient ReadPreference ReplaceOne",
        "ReturnDocument TEXT UpdateMany UpdateOne WriteConcern get_version_string has_c version version_tuple",
    ],
}


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def positional(thing: Any) -> list[str]:
    """The parameters that can be given by position or by name, in their order; a ``*`` or ``**`` is itself."""
    shown: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = [shown.get(each.kind, each.name) for each in inspect.signature(thing).parameters.values()]
    return [name for name in found if name != "self"]


METHODS = [(path, member) for path, members in CLASSES.items() for member in members if "(" in member]
ATTRIBUTES = [
    (path, name) for path, members in CLASSES.items() for each in members if "(" not in each for name in each.split()
]


@pytest.mark.parametrize(("path", "member"), METHODS)
def test_methods_have_their_parameters_in_their_order(path: str, member: str) -> None:
    name, _, rest = member.partition("(")
    expected = rest.rstrip(")").split()
    thing = named(path) if name == "__init__" else getattr(named(path), name)
    found = positional(thing)
    if "*" in found:  # it hands everything on
        own = found.index("*")
        assert found[:own] == expected[:own]
    elif "**" in found:
        kept = [each for each in expected if each in found]
        assert found[: len(kept)] == kept
    else:
        assert found[: len(expected)] == expected


@pytest.mark.parametrize(("path", "name"), ATTRIBUTES)
def test_classes_have_their_attributes(path: str, name: str) -> None:
    assert hasattr(named(path), name)


@pytest.mark.parametrize(("module", "names"), NAMES.items())
def test_modules_have_their_names(module: str, names: list[str]) -> None:
    there = importlib.import_module(module)
    assert [name for name in " ".join(names).split() if not hasattr(there, name)] == []


@pytest.mark.parametrize("module", NAMES)
def test_modules_export_what_they_list(module: str) -> None:
    there = importlib.import_module(module)
    assert [name for name in there.__all__ if not hasattr(there, name)] == []


@pytest.mark.parametrize("path", CLASSES)
def test_public_members_are_documented(path: str) -> None:
    kind = named(path)
    public = [name for name in vars(kind) if not name.startswith("_")]
    undocumented = [
        name
        for name in public
        if (inspect.isfunction(vars(kind)[name]) or isinstance(vars(kind)[name], property))
        and name != "next"
        and not inspect.getdoc(getattr(kind, name))
    ]
    assert undocumented == []


def test_the_version_in_parts() -> None:
    assert ".".join(map(str, gmongo.version_tuple)) == gmongo.version == gmongo.__version__
    assert [type(part) for part in gmongo.version_tuple[:2]] == [int, int]
