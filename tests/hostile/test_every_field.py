"""Tests of replies in which one field is missing or wrong.

Operations, and attributes of their results, raise only documented errors.
"""

from __future__ import annotations

import copy
import inspect
import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from bson import DBRef, Int64, ObjectId
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

import gmongo.results
from gmongo import DeleteOne, IndexModel, InsertOne, MongoClient, UpdateOne
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.errors import PyMongoError
from gmongo.gridfs import GridFS, GridFSBucket
from gmongo.operations import SearchIndexModel
from tests.hostile.callback_server import TIME_FIELDS, CallbackServer, good_reply, hello, message
from tests.hostile.malformed_documents import encode_document, value_paths
from tests.hostile.malformed_replies import hello_message, quick_checks

MISSING = "missing"
WRONG_VALUES: tuple[Any, ...] = (MISSING, None, True, -1, 1.5, 10**12, "x", b"x", [], [1], [{}], {}, {"a": 1})
FILE_ID = ObjectId(b"f" * 12)
FILE = {"_id": FILE_ID, "length": Int64(3), "chunkSize": 255, "uploadDate": None, "filename": "n", "metadata": {"a": 1}}
CHUNK = {"_id": FILE_ID, "files_id": FILE_ID, "n": 0, "data": b"abc"}
INDEX_DEFINITION: dict[str, Any] = {"mappings": {"dynamic": True}}
UPDATE = {"$set": {"a": 1}}


def _insert_in_transaction(client: Any) -> None:
    with client.start_session() as session, session.start_transaction():
        client.d.c.insert_one({}, session=session)


def _read_in_snapshot(client: Any) -> None:
    with client.start_session(snapshot=True) as session:
        client.d.c.find_one({}, session=session)
        client.d.c.distinct("a", session=session)


def _watch(target: Any) -> list[Any]:
    with target.watch() as stream:
        return [stream.try_next(), stream.try_next(), stream.resume_token]


def _bucket(client: Any) -> GridFSBucket:
    return GridFSBucket(client.d)


def _upload(client: Any) -> None:
    with _bucket(client).open_upload_stream("n") as stream:
        stream.write(b"abc")


# Public method -> function that calls the method. OMITTED_METHODS lists the remaining methods.
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "Collection.aggregate": lambda c: list(c.d.c.aggregate([])),
    "Collection.aggregate_raw_batches": lambda c: list(c.d.c.aggregate_raw_batches([])),
    "Collection.bulk_write": lambda c: c.d.c.bulk_write(
        [InsertOne({}), UpdateOne({}, UPDATE, upsert=True), DeleteOne({})]
    ),
    "Collection.count_documents": lambda c: c.d.c.count_documents({}),
    "Collection.create_index": lambda c: c.d.c.create_index("a"),
    "Collection.create_indexes": lambda c: c.d.c.create_indexes([IndexModel("a")]),
    "Collection.create_search_index": lambda c: c.d.c.create_search_index({"definition": INDEX_DEFINITION}),
    "Collection.create_search_indexes": lambda c: c.d.c.create_search_indexes([SearchIndexModel(INDEX_DEFINITION)] * 2),
    "Collection.delete_many": lambda c: c.d.c.delete_many({}),
    "Collection.delete_one": lambda c: c.d.c.delete_one({}),
    "Collection.distinct": lambda c: c.d.c.distinct("a"),
    "Collection.drop": lambda c: c.d.c.drop(),
    "Collection.drop_index": lambda c: c.d.c.drop_index("a_1"),
    "Collection.drop_indexes": lambda c: c.d.c.drop_indexes(),
    "Collection.drop_search_index": lambda c: c.d.c.drop_search_index("x"),
    "Collection.estimated_document_count": lambda c: c.d.c.estimated_document_count(),
    "Collection.find": lambda c: list(c.d.c.find()),
    "Collection.find with raw documents": lambda c: list(_collection_of_raw_documents(c).find()),
    "Collection.find with batch size 1": lambda c: list(c.d.c.find(batch_size=1)),
    "Collection.find with explain": lambda c: c.d.c.find().explain(),
    "Collection.find_one": lambda c: c.d.c.find_one(),
    "Collection.find_one_and_delete": lambda c: c.d.c.find_one_and_delete({}),
    "Collection.find_one_and_replace": lambda c: c.d.c.find_one_and_replace({}, {}),
    "Collection.find_one_and_update": lambda c: c.d.c.find_one_and_update({}, UPDATE),
    "Collection.find_raw_batches": lambda c: list(c.d.c.find_raw_batches()),
    "Collection.index_information": lambda c: c.d.c.index_information(),
    "Collection.insert_many": lambda c: c.d.c.insert_many([{}, {}]),
    "Collection.insert_one": lambda c: c.d.c.insert_one({}),
    "Collection.list_indexes": lambda c: list(c.d.c.list_indexes()),
    "Collection.list_search_indexes": lambda c: list(c.d.c.list_search_indexes()),
    "Collection.options": lambda c: c.d.c.options(),
    "Collection.rename": lambda c: c.d.c.rename("x"),
    "Collection.replace_one": lambda c: c.d.c.replace_one({}, {}, upsert=True),
    "Collection.update_many": lambda c: c.d.c.update_many({}, UPDATE),
    "Collection.update_one": lambda c: c.d.c.update_one({}, UPDATE, upsert=True),
    "Collection.update_search_index": lambda c: c.d.c.update_search_index("x", INDEX_DEFINITION),
    "Collection.watch": lambda c: _watch(c.d.c),
    "Database.aggregate": lambda c: list(c.d.aggregate([{"$documents": []}])),
    "Database.command": lambda c: c.d.command("ping"),
    "Database.create_collection": lambda c: c.d.create_collection("x"),
    "Database.cursor_command": lambda c: list(c.d.cursor_command("find", "c", filter={})),
    "Database.dereference": lambda c: c.d.dereference(DBRef("c", 1)),
    "Database.drop_collection": lambda c: c.d.drop_collection("c"),
    "Database.list_collection_names": lambda c: c.d.list_collection_names(),
    "Database.list_collections": lambda c: list(c.d.list_collections()),
    "Database.validate_collection": lambda c: c.d.validate_collection("c"),
    "Database.watch": lambda c: _watch(c.d),
    "MongoClient.bulk_write": lambda c: c.bulk_write(
        [InsertOne({}, namespace="d.c"), UpdateOne({}, UPDATE, namespace="d.c"), DeleteOne({}, namespace="d.c")],
        verbose_results=True,
    ),
    "MongoClient.drop_database": lambda c: c.drop_database("d"),
    "MongoClient.list_database_names": lambda c: c.list_database_names(),
    "MongoClient.list_databases": lambda c: list(c.list_databases()),
    "MongoClient.server_info": lambda c: c.server_info(),
    "MongoClient.start_session": _insert_in_transaction,
    "MongoClient.start_session with snapshot": _read_in_snapshot,
    "MongoClient.wait_until_ready": lambda c: c.wait_until_ready(),
    "MongoClient.watch": _watch,
    "GridFSBucket.delete": lambda c: _bucket(c).delete(FILE_ID),
    "GridFSBucket.delete_by_name": lambda c: _bucket(c).delete_by_name("n"),
    "GridFSBucket.download_to_stream": lambda c: _bucket(c).download_to_stream(FILE_ID, io.BytesIO()),
    "GridFSBucket.download_to_stream_by_name": lambda c: _bucket(c).download_to_stream_by_name("n", io.BytesIO()),
    "GridFSBucket.find": lambda c: [each.read() for each in _bucket(c).find({})],
    "GridFSBucket.open_download_stream": lambda c: _bucket(c).open_download_stream(FILE_ID).readline(),
    "GridFSBucket.open_download_stream_by_name": lambda c: list(_bucket(c).open_download_stream_by_name("n")),
    "GridFSBucket.open_upload_stream": _upload,
    "GridFSBucket.rename": lambda c: _bucket(c).rename(FILE_ID, "m"),
    "GridFSBucket.rename_by_name": lambda c: _bucket(c).rename_by_name("n", "m"),
    "GridFSBucket.upload_from_stream": lambda c: _bucket(c).upload_from_stream("n", b"abc"),
    "GridFS.delete": lambda c: GridFS(c.d).delete(FILE_ID),
    "GridFS.exists": lambda c: GridFS(c.d).exists(FILE_ID),
    "GridFS.find": lambda c: [each.read() for each in GridFS(c.d).find()],
    "GridFS.find_one": lambda c: GridFS(c.d).find_one(),
    "GridFS.get": lambda c: GridFS(c.d).get(FILE_ID).read(),
    "GridFS.get_last_version": lambda c: GridFS(c.d).get_last_version("n").read(),
    "GridFS.get_version": lambda c: GridFS(c.d).get_version("n", 0).seek(1),
    "GridFS.list": lambda c: GridFS(c.d).list(),
    "GridFS.put": lambda c: GridFS(c.d).put(b"abc"),
}
OMITTED_METHODS = {
    "Collection": {"next", "with_options"},
    "Database": {"get_collection", "next", "with_options"},
    "MongoClient": {
        "append_metadata",
        "close",
        "eq_props",
        "get_database",
        "get_default_database",
        "next",
        "pool_stats",
        "retry_stats",
    },
    "GridFSBucket": {"open_upload_stream_with_id", "upload_from_stream_with_id"},
    "GridFS": {"new_file"},
}
REPLY_CONTENT: dict[str, dict[str, Any]] = {
    "createIndexes": {"numIndexesBefore": 1, "numIndexesAfter": 2},
    "buildInfo": {"version": "8.0.0", "versionArray": [8, 0, 0, 0]},
    "explain": {"queryPlanner": {}},
}
_BACKGROUND_COMMANDS = {"endSessions", "killCursors"}
COMMON_FIELDS = {"ok", *TIME_FIELDS}


def _collection_of_raw_documents(client: Any) -> Any:
    options = client.codec_options.with_options(document_class=RawBSONDocument)
    return client.d.get_collection("c", codec_options=options)


def test_tables_of_operations_and_omitted_methods_contain_all_public_methods() -> None:
    for kind in (Collection, Database, MongoClient, GridFSBucket, GridFS):
        public_names = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
        tested = {key.partition(".")[2].partition(" ")[0] for key in OPERATIONS if key.startswith(kind.__name__ + ".")}
        assert public_names == tested | OMITTED_METHODS[kind.__name__]


class FaultyServer:
    """A server that changes one field of one reply. All other replies of the server are correct.

    :ivar change: a tuple: the index of the reply to change in `replies`, the path of the field, and
        the wrong value. If the tuple is empty, the server changes no reply.
    :ivar replies: pairs since :meth:`begin`: the command name and the correct reply. The list omits
        `hello` and the background commands.
    """

    def __init__(self) -> None:
        self.peer: Any = None
        self.begin()

    def begin(self, *change: Any) -> None:
        self.change = change
        self.replies: list[tuple[str, dict[str, Any]]] = []

    def answer(self, name: str, command: dict[str, Any], number: int, flags: int) -> bytes:
        if name == "hello":
            return hello_message(hello(self.peer.name), command, number)
        reply = copy.deepcopy({**good_reply(name, command), **REPLY_CONTENT.get(name, {})})
        if name == "find" and str(command["find"]).endswith((".files", ".chunks")):
            first_document = copy.deepcopy(FILE if "files" in command["find"] else CHUNK)
            reply["cursor"] |= {"id": Int64(0), "firstBatch": [first_document]}
        if name == "createSearchIndexes":
            reply["indexesCreated"] = [{"id": "1", "name": "default"} for _ in command["indexes"]]
        if name in _BACKGROUND_COMMANDS:
            return message(encode_document(reply), number)
        self.replies.append((name, copy.deepcopy(reply)))
        if self.change and self.change[0] == len(self.replies) - 1:
            _set_value(reply, *copy.deepcopy(self.change[1:]))
        return message(encode_document(reply), number)


def _set_value(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for name in path[:-1]:
        document = document[name]
    if value == MISSING:
        del document[path[-1]]
    else:
        document[path[-1]] = value


@pytest.fixture(scope="module")
def faulty_server() -> Iterator[FaultyServer]:
    faulty_server = FaultyServer()
    with quick_checks(), CallbackServer(faulty_server.answer) as faulty_server.peer:
        yield faulty_server


def _read_result(result: Any) -> None:
    """Read all public attributes of an operation's result, because a property may raise an error."""
    if type(result).__module__ == gmongo.results.__name__:
        for name in dir(result):
            if not name.startswith("_"):
                getattr(result, name)
        repr(result)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", OPERATIONS)
def test_wrong_reply_field_raises_only_documented_errors(faulty_server: FaultyServer, name: str) -> None:
    operation = OPERATIONS[name]
    options: Any = {"serverSelectionTimeoutMS": 3000, "serverMonitoringMode": "poll", "retryReads": False}
    with MongoClient(faulty_server.peer.name, replicaSet="rs", **options) as client:
        faulty_server.begin()
        _read_result(operation(client))
        for reply_index, (command, reply) in enumerate(faulty_server.replies):
            fields = [path for path in value_paths(reply) if name == "Database.command" or path[0] not in COMMON_FIELDS]
            for path, value in itertools.product(fields, WRONG_VALUES):
                faulty_server.begin(reply_index, path, value)
                try:
                    with gevent.Timeout(5):
                        _read_result(operation(client))
                except (PyMongoError, BSONError):
                    pass
                except (Exception, gevent.Timeout) as error:
                    pytest.fail(f"{type(error).__name__}: {error} for {command}: {path} = {value!r}")
