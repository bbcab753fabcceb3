"""Each argument of a tested public method changes the sent commands, the result or the error.

The tests read the parameters from the signatures. For each parameter, a test compares a call that
has only the required arguments with a call that has one more argument.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from bson import CodecOptions, DBRef, Timestamp
from bson.errors import InvalidDocument
from bson.son import SON

from gmongo import DeleteOne, IndexModel, InsertOne, MongoClient
from gmongo.change_stream import ChangeStream
from gmongo.client_session import ClientSession, TransactionOptions
from gmongo.collection import Collection
from gmongo.command_cursor import CommandCursor
from gmongo.cursor import Cursor, CursorType
from gmongo.database import Database
from gmongo.driver_info import DriverInfo
from gmongo.errors import CollectionInvalid, InvalidOperation, OperationFailure
from gmongo.gridfs import GridFS, GridFSBucket, GridIn, GridOut
from gmongo.gridfs.errors import FileExists, NoFile
from gmongo.operations import SearchIndexModel
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import ReadPreference
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern
from tests.support.recorder import Recorder

# Placeholders in tables of arguments. `prepare_call` replaces each placeholder by an object.
SESSION, A_DATABASE, A_CLIENT = object(), object(), object()
SINK = SimpleNamespace(write=lambda data: None)
VARYING_FIELDS = {"$clusterTime", "clusterTime", "wallTime", "_data", "txnNumber", "startAtOperationTime"}
UPDATE = {"$set": {"a": 1}}
WRITE_CONCERN = WriteConcern(w=1, wtimeout=77)
OPERATION_TIME = Timestamp(1, 1)
RESUME_TOKEN = {"_data": "00"}


def _write_and_read(session: ClientSession) -> Any:
    session.client.db.c.insert_one({"_id": 60}, session=session)
    return session.client.db.c.find_one(session=session)


# For each parameter name, the argument that a test adds to the call.
ADDED_ARGUMENTS: dict[str, Any] = {
    "allow_disk_use": True,
    "allow_partial_results": True,
    "allowable_errors": [26],
    "array_filters": [{"x.a": 1}],
    "background": True,
    "bucket_name": "other",
    "batch_size": 7,
    "bypass_document_validation": True,
    "causal_consistency": False,
    "check": False,
    "check_exists": False,
    "chunk_size_bytes": 1,
    "collection": "other",
    "codec_options": CodecOptions(document_class=SON),
    "collation": {"locale": "fr"},
    "comment": "why",
    "cursor_type": CursorType.TAILABLE,
    "default_timeout_ms": 5000,
    "default_transaction_options": TransactionOptions(max_commit_time_ms=5),
    "direction": -1,
    "encrypted_fields": {"fields": [], "escCollection": "e", "ecocCollection": "f"},
    "filter": {"_id": 1},
    "full": True,
    "full_document": "updateLookup",
    "full_document_before_change": "whenAvailable",
    "hint": "_id_",
    "length": 1,
    "let": {"x": 1},
    "limit": 2,
    "max": [("_id", 9)],
    "max_await_time_ms": 50,
    "max_commit_time_ms": 7,
    "max_scan": 9,
    "max_time_ms": 900,
    "metadata": {"a": 1},
    "name": "x",
    "min": [("_id", 0)],
    "no_cursor_timeout": True,
    "oplog_replay": True,
    "ordered": False,
    "pipeline": [{"$match": {"a": 1}}],
    "projection": {"a": 1},
    "read_concern": ReadConcern("majority"),
    "read_preference": ReadPreference.NEAREST,
    "resume_after": RESUME_TOKEN,
    "return_document": True,
    "return_key": True,
    "revision": 0,
    "scandata": True,
    "session": SESSION,
    "show_expanded_events": True,
    "show_record_id": True,
    "skip": 1,
    "snapshot": True,
    "sort": [("a", -1)],
    "start_after": RESUME_TOKEN,
    "start_at_operation_time": OPERATION_TIME,
    "timeout_mode": "iteration",
    "timeout_ms": 5000,
    "upsert": True,
    "value": 2,
    "verbose_results": True,
    "version": 0,
    "write_concern": WRITE_CONCERN,
}

# For each method, the arguments of both compared calls. Neither call has a parameter whose value is
# `NOT_TESTED`, for example because the parameter alone changes no command.
NOT_TESTED = object()
COLLECTION_METHODS: dict[str, dict[str, Any]] = {
    "aggregate": {"pipeline": []},
    "aggregate_raw_batches": {"pipeline": []},
    "bulk_write": {"requests": [DeleteOne({"_id": 1}), InsertOne({"_id": 51})]},
    "count_documents": {"filter": {}},
    "create_index": {"keys": "a"},
    "create_indexes": {"indexes": [IndexModel("a")]},
    "create_search_index": {"model": {"definition": {}}},
    "create_search_indexes": {"models": [SearchIndexModel({})]},
    "delete_many": {"filter": {"a": 1}},
    "delete_one": {"filter": {"a": 1}},
    "distinct": {"key": "a"},
    "drop": {},
    "drop_index": {"index_or_name": "a_1"},
    "drop_indexes": {},
    "drop_search_index": {"name": "x"},
    "estimated_document_count": {},
    "find": {},
    "find_one": {"limit": NOT_TESTED},  # `find_one` always sends the limit 1.
    "find_one_and_delete": {"filter": {"a": 1}},
    "find_one_and_replace": {"filter": {"a": 1}, "replacement": {"a": 2}},
    "find_one_and_update": {"filter": {"a": 1}, "update": UPDATE},
    "find_raw_batches": {},
    "index_information": {},
    "insert_many": {"documents": [{"_id": 50}, {"_id": 51}]},
    "insert_one": {"document": {"_id": 50}},
    "list_indexes": {},
    "list_search_indexes": {},
    "options": {},
    "rename": {"new_name": "other"},
    "replace_one": {"filter": {"a": 1}, "replacement": {"a": 2}},
    "update_many": {"filter": {"a": 1}, "update": UPDATE},
    "update_one": {"filter": {"a": 1}, "update": UPDATE},
    "update_search_index": {"name": "x", "definition": {}},
    "watch": {},
    "with_options": {},
}
DATABASE_METHODS: dict[str, dict[str, Any]] = {
    "aggregate": {"pipeline": [{"$listLocalSessions": {}}]},
    "command": {"command": "collMod", "value": "missing"},
    "create_collection": {"name": "other"},
    "cursor_command": {"command": "find", "value": "c", "batchSize": 2},
    "dereference": {"dbref": DBRef("c", 1)},
    "drop_collection": {"name_or_collection": "other"},
    "get_collection": {"name": "c"},
    "list_collection_names": {},
    "list_collections": {},
    "validate_collection": {"name_or_collection": "c"},
    "watch": {},
    "with_options": {},
}
CLIENT_METHODS: dict[str, dict[str, Any]] = {
    "append_metadata": {"driver_info": DriverInfo("x")},
    "bulk_write": {"models": [InsertOne({"_id": 50}, namespace="db.c")]},
    "drop_database": {"name_or_database": "other"},
    "get_database": {"name": "db"},
    "get_default_database": {"default": "db"},
    "list_database_names": {},
    "list_databases": {},
    "server_info": {},
    "start_session": {},
    "wait_until_ready": {"timeout": NOT_TESTED},  # The timeout changes no command.
    "watch": {},
}
SESSION_METHODS: dict[str, dict[str, Any]] = {
    "abort_transaction": {},
    "advance_cluster_time": {"cluster_time": {"clusterTime": Timestamp(2**31, 1)}},
    "advance_operation_time": {"operation_time": Timestamp(2**31, 1)},
    "bind": {"end_session": False},
    "commit_transaction": {},
    "start_transaction": {},
    "with_transaction": {"callback": _write_and_read},
}
CURSOR_METHODS: dict[str, dict[str, Any]] = {
    "add_option": {"mask": 16},
    "allow_disk_use": {},
    "batch_size": {},
    "collation": {},
    "comment": {},
    "distinct": {"key": "a"},
    "hint": {"index": "_id_"},
    "limit": {},
    "max": {"spec": [("_id", 1)]},
    "max_await_time_ms": {"max_await_time_ms": NOT_TESTED},  # This method needs a tailable cursor.
    "max_scan": {},
    "max_time_ms": {},
    "min": {"spec": [("_id", 1)]},
    "read_ahead": {"batches": NOT_TESTED, "max_bytes": NOT_TESTED},  # these parameters change no command
    "remove_option": {"mask": NOT_TESTED},
    "skip": {},
    "sort": {"key_or_list": "a"},
    "to_list": {},
    "where": {"code": "true"},
}
BUCKET_METHODS: dict[str, dict[str, Any]] = {
    "delete": {"file_id": 1},
    "delete_by_name": {"filename": "f"},
    "download_to_stream": {"file_id": 1, "destination": SINK},
    "download_to_stream_by_name": {"filename": "f", "destination": SINK},
    "find": {},
    "open_download_stream": {"file_id": 1},
    "open_download_stream_by_name": {"filename": "f"},
    "open_upload_stream": {"filename": "g"},
    "open_upload_stream_with_id": {"file_id": 5, "filename": "g"},
    "rename": {"file_id": 1, "new_filename": "g"},
    "rename_by_name": {"filename": "f", "new_filename": "g"},
    "upload_from_stream": {"filename": "g", "source": b"abc"},
    "upload_from_stream_with_id": {"file_id": 5, "filename": "g", "source": b"abc"},
}
FILES_METHODS: dict[str, dict[str, Any]] = {
    "delete": {"file_id": 1},
    "exists": {"document_or_id": 1},
    "find": {},
    "find_one": {"filter": {}, "limit": NOT_TESTED},
    "get": {"file_id": 1},
    "get_last_version": {"filename": "f"},
    "get_version": {"filename": "f"},
    "list": {},
}
# Classes whose constructors the tests call like methods.
CONSTRUCTORS: dict[str, dict[str, Any]] = {
    "Collection": {"database": A_DATABASE, "name": "c", "create": NOT_TESTED, "session": NOT_TESTED},
    "Database": {"client": A_CLIENT, "name": "db"},
    "GridFS": {"database": A_DATABASE},
    "GridFSBucket": {"db": A_DATABASE},
}


class ClassesAsAttributes:
    """Namespace with the classes of :data:`CONSTRUCTORS`, so that tests can call a class like a
    method.
    """

    Collection, Database, GridFS, GridFSBucket = Collection, Database, GridFS, GridFSBucket


SUBJECTS: dict[str, tuple[type, dict[str, dict[str, Any]]]] = {
    "collection": (Collection, COLLECTION_METHODS),
    "database": (Database, DATABASE_METHODS),
    "client": (MongoClient, CLIENT_METHODS),
    "session": (ClientSession, SESSION_METHODS),
    "cursor": (Cursor, CURSOR_METHODS),
    "bucket": (GridFSBucket, BUCKET_METHODS),
    "files": (GridFS, FILES_METHODS),
    "class": (ClassesAsAttributes, CONSTRUCTORS),
}
# Methods that the tables omit: methods without arguments, and methods that other tests cover.
OMITTED_METHODS = {
    "client": {"close", "eq_props", "next", "pool_stats", "retry_stats"},
    "collection": {"next"},
    "cursor": {"clone", "close", "explain", "next", "rewind"},
    "database": {"next"},
    "session": {"end_session"},
    "files": {"new_file", "put"},
}
CASES = [(subject, method) for subject, (_, methods) in SUBJECTS.items() for method in methods]


def parameter_names(cls: type, method: str) -> Iterator[str]:
    """Yield the names of all parameters except ``self``, ``*args`` and ``**kwargs``."""
    for name, parameter in inspect.signature(getattr(cls, method)).parameters.items():
        if name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield name


class ObjectsUnderTest:
    """A client, the recorder of its events, and an explicit session."""

    def __init__(self, deployment: Deployment) -> None:
        self.recorder = Recorder()
        self.client: MongoClient[Any] = MongoClient(deployment.uri, event_listeners=[self.recorder])
        self.session = self.client.start_session()

    def call_and_record(self, subject: str, method: str, arguments_with_placeholders: Mapping[str, Any]) -> list[Any]:
        """Call a method. Return two texts: the sent commands, and the result or the error."""
        with self.prepare_call(subject, method, arguments_with_placeholders) as (target, arguments):
            own_session = target if subject == "session" else None
            self.recorder.clear()
            outcome: Any
            try:
                outcome = self._read_result(getattr(target, method)(**arguments), target)
            except Exception as error:
                outcome = type(error), str(error)
            commands = [(event.database_name, event.command) for event in self.recorder.events_named("CommandStarted")]
            if own_session is not None:
                outcome = [outcome, own_session.cluster_time, own_session.operation_time, own_session.has_ended]
        return [self.normalize(commands), self.normalize(outcome)]

    @contextmanager
    def prepare_call(
        self, subject: str, method: str, arguments_with_placeholders: Mapping[str, Any]
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Reset the database. Yield the object that has the method, and the arguments with objects
        instead of placeholders.
        """
        database = self.client.get_database("db")
        for collection in (database.c, database.other):
            collection.drop()
        database.c.insert_many([{"_id": number, "a": number % 2} for number in range(4)])
        bucket = GridFSBucket(database)
        for collection in (database.fs.files, database.fs.chunks):
            collection.delete_many({})
        for each in (1, 2):
            bucket.upload_from_stream_with_id(each, "f", b"xyz")
            database.fs.files.update_one({"_id": each}, {"$set": {"uploadDate": datetime(2026, 1, each)}})
        placeholders = [(SESSION, self.session), (A_DATABASE, database), (A_CLIENT, self.client)]
        arguments = {
            name: next((object_ for placeholder, object_ in placeholders if placeholder is value), value)
            for name, value in arguments_with_placeholders.items()
        }
        own_session = self.client.start_session() if subject == "session" else None
        if own_session is not None and method in ("abort_transaction", "commit_transaction"):
            own_session.start_transaction()
            database.c.insert_one({}, session=own_session)
        target = {
            "collection": database.c,
            "database": database,
            "client": self.client,
            "session": own_session,
            "cursor": database.c.find(),
            "bucket": bucket,
            "files": GridFS(database),
            "class": ClassesAsAttributes,
        }[subject]
        try:
            yield target, arguments
        finally:
            if own_session is not None:
                own_session.end_session()

    def _read_result(self, result: Any, target: Any) -> Any:
        """Use the result of a call, so that the client sends all commands that depend on an argument.

        Return the documents or data that the client reads, or else `result`.
        """
        if isinstance(result, Cursor | CommandCursor):
            return [*([result] if isinstance(result, Cursor) else []), *result]
        if isinstance(result, ChangeStream):
            with result:
                self.client.db.c.insert_one({"_id": 70})
                return result.try_next()
        if isinstance(result, Collection):
            return [result, result.find_one()]
        if isinstance(result, Database):
            return [result, result.c.find_one()]
        if isinstance(result, ClientSession):
            with result:
                self.client.db.c.find_one(session=result)
                with result.start_transaction():
                    self.client.db.c.insert_one({"_id": 70}, session=result)
        if isinstance(target, ClientSession) and target.in_transaction:
            self.client.db.c.find_one(session=target)
            target.commit_transaction()
        if isinstance(result, GridFS):
            result = result.get(result.put(b"abc", _id=9))
        if isinstance(result, GridFSBucket):
            result.upload_from_stream_with_id(9, "g", b"abc")
            result = result.open_download_stream(9)
        if isinstance(result, GridOut):
            return result.read()
        if isinstance(result, GridIn):
            result.write(b"abc")
            result.close()
        if hasattr(result, "__enter__") and hasattr(result, "gen"):
            # The result is a context manager, such as the result of `bind`.
            with result:
                self.client.db.c.find_one()
        return result

    def normalize(self, value: Any) -> str:
        """Return the text of a value, without parts that differ in each call, such as IDs and
        times.
        """
        text = repr(self._with_comparable_values(value))
        text = re.sub(r"ObjectId\('\w+'\)|0x\w+|(?<='getMore': )\d+|(?<='cursors': \[)\d+", "an id", text)
        text = re.sub(r"Timestamp\(\d{9,}, \d+\)", "a time", text)
        return re.sub(r"('maxTimeMS': )\d+", r"\1some", text)

    def _with_comparable_values(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return type(value).__name__, {
                name: self._with_comparable_values(item) for name, item in value.items() if name not in VARYING_FIELDS
            }
        if isinstance(value, bytes):
            return "explicit" if value == self.session.session_id["id"] else "bytes" if len(value) == 16 else value
        if isinstance(value, datetime):
            return "a date"
        if isinstance(value, list | tuple | set):
            return [self._with_comparable_values(item) for item in value]
        if isinstance(value, Collection | Database):
            concerns = (value.codec_options, value.read_preference, value.write_concern, value.read_concern)
            return [value.name, *map(repr, concerns), value._executor._timeout]
        if type(value).__module__ == "gmongo.results":
            return repr(value)
        return value


@pytest.fixture(scope="module")
def tested_objects() -> Iterator[ObjectsUnderTest]:
    with Deployment.replica_set(1) as deployment:
        tested_objects = ObjectsUnderTest(deployment)
        with tested_objects.client, tested_objects.session:
            yield tested_objects


def test_argument_tables_contain_every_public_method() -> None:
    for subject, (kind, methods) in SUBJECTS.items():
        public = {name for name in dir(kind) if not name.startswith("_") and inspect.isfunction(getattr(kind, name))}
        assert public - methods.keys() == OMITTED_METHODS.get(subject, set()), subject


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("subject", "method"), CASES)
def test_every_argument_changes_commands_or_result_or_error(
    subject: str, method: str, tested_objects: ObjectsUnderTest
) -> None:
    kind, methods = SUBJECTS[subject]
    required = {name: value for name, value in methods[method].items() if value is not NOT_TESTED}
    usual_outcome = tested_objects.call_and_record(subject, method, required)
    assert usual_outcome == tested_objects.call_and_record(subject, method, required), (
        "two equal calls must have equal outcomes"
    )
    others = [name for name in parameter_names(kind, method) if name not in methods[method]]
    assert [
        name
        for name in others
        if tested_objects.call_and_record(subject, method, {**required, name: ADDED_ARGUMENTS[name]}) == usual_outcome
    ] == []


@pytest.mark.parametrize(
    ("subject", "method", "arguments"),
    [
        *(("bucket", method, arguments) for method, arguments in BUCKET_METHODS.items()),
        *(("files", method, arguments) for method, arguments in FILES_METHODS.items()),
        ("files", "put", {"data": b"abc"}),
        ("files", "new_file", {}),
    ],
)
def test_every_gridfs_command_uses_explicit_session(
    subject: str, method: str, arguments: dict[str, Any], tested_objects: ObjectsUnderTest
) -> None:
    required = {name: value for name, value in arguments.items() if value is not NOT_TESTED}
    tested_objects.call_and_record(subject, method, {**required, "session": SESSION})
    commands = [event.command for event in tested_objects.recorder.events_named("CommandStarted")]
    assert commands
    assert [command["lsid"] for command in commands] == [tested_objects.session.session_id] * len(commands)
    with tested_objects.session.start_transaction():
        sent, outcome = tested_objects.call_and_record(subject, method, {**required, "session": SESSION})
    assert sent == "[]" and "GridFS does not support multi-document transactions" in outcome


ODD_VALUES = (None, True, 0, -1, 1.5, "x", "", b"x", [], [1], [5, 6], {}, {"x": 1}, {"x": ()}, object())
# Errors that are not about an argument, but about an object's state, data on the server, or BSON.
UNRELATED_ERRORS = (InvalidOperation, OperationFailure, InvalidDocument, NoFile, FileExists, CollectionInvalid)
# For each parameter whose name is not part of the error message, the words that the message contains
# instead.
WORDS_BY_PARAMETER = {
    "bucket_name": "the name of a collection",
    "client": "is not a MongoClient",
    "database": "is not a Database",
    "default": "the name of a database",
    "documents": "document must be",
    "index": "hint",
    "key_or_list": "sort",
    "model": "SearchIndexModel",
    "name_or_database": "the name of a database",
    "new_name": "the name of a collection",
    "requests": "is not a valid request",
    "source": "file",
    "spec": "must be a mapping or a list of",
}


def mentions_parameter(text: str, parameter: str) -> bool:
    words = WORDS_BY_PARAMETER.get(parameter)
    return bool(re.search(rf"\b{parameter}\b", text)) or (words is not None and words in text)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("subject", "method"), CASES)
def test_error_about_argument_names_parameter(subject: str, method: str, tested_objects: ObjectsUnderTest) -> None:
    kind, methods = SUBJECTS[subject]
    required = {name: value for name, value in methods[method].items() if value is not NOT_TESTED}
    errors_without_name = []
    for parameter in parameter_names(kind, method):
        with tested_objects.prepare_call(subject, method, required) as (target, arguments):
            for value in ODD_VALUES:
                receiver = target.clone() if subject == "cursor" else target
                if subject == "session" and receiver.in_transaction:
                    receiver.abort_transaction()
                try:
                    result = getattr(receiver, method)(**{**arguments, parameter: value})
                    if isinstance(result, Cursor | CommandCursor):
                        result.to_list()
                except UNRELATED_ERRORS:
                    pass
                except Exception as error:
                    if not mentions_parameter(str(error), parameter):
                        errors_without_name.append(f"{parameter}={value!r}: {error!r}")
    assert not errors_without_name
