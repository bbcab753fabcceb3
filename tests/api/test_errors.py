from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import bson
import pytest

from gmongo import DeleteOne, InsertOne, MongoClient, WriteConcern
from gmongo._server_facts.wire_versions import CLIENT_BULK_WRITE
from gmongo.collection import Collection
from gmongo.errors import (
    BulkWriteError,
    ConfigurationError,
    CursorNotFound,
    DocumentTooLarge,
    DuplicateKeyError,
    ExecutionTimeout,
    OperationFailure,
    ServerSelectionTimeoutError,
    WriteConcernError,
    WTimeoutError,
)
from tests.support.server import ScriptedServer


def test_pickled_bulk_write_error_keeps_details(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1})
    with pytest.raises(BulkWriteError) as bulk:
        collection.insert_many([{"_id": 1}])
    copied = pickle.loads(pickle.dumps(bulk.value))
    assert type(copied) is BulkWriteError
    assert copied.details == bulk.value.details


def test_failed_operation_checks_in_connection(collection: Collection[Any]) -> None:
    for _ in range(5):
        with pytest.raises(OperationFailure):
            collection.aggregate([{"$nonsense": 1}])
    (stats,) = collection.database.client.pool_stats()
    assert (stats["in_use"], stats["total"]) == (0, 1)


def test_unencodable_document_raises_and_keeps_the_connection(collection: Collection[Any]) -> None:
    for bad in ({"a": object()}, {1: 2}, {"a": 2**70}, {"a\x00": 1}):
        with pytest.raises((bson.InvalidDocument, OverflowError)):
            collection.insert_one(bad)
        with pytest.raises((bson.InvalidDocument, OverflowError)):
            collection.find_one(bad)
    assert collection.count_documents({}) == 0
    (stats,) = collection.database.client.pool_stats()
    assert (stats["in_use"], stats["total"]) == (0, 1)


class CustomError(BaseException):
    pass


class FailingMapping(MutableMapping[str, Any]):
    """Mapping whose lookups first succeed `left` times, and whose next lookup raises `CustomError`.

    All mappings share the counter `left`.
    """

    left = 0  # the number of lookups that still succeed

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        FailingMapping.left -= 1
        if FailingMapping.left == -1:
            raise CustomError
        return self._fields[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._fields[name] = value

    def __delitem__(self, name: str) -> None:
        del self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@pytest.mark.parametrize(
    "use_mapping",
    {
        "insert_one": lambda collection, document: collection.insert_one(document),
        "insert_many": lambda collection, document: collection.insert_many([document]),
        "bulk_write": lambda collection, document: collection.bulk_write([InsertOne(document)]),
        "client bulk_write": lambda collection, document: collection.database.client.bulk_write(
            [InsertOne(document, namespace=collection.full_name)]
        ),
        "replace_one": lambda collection, document: collection.replace_one({}, document, upsert=True),
        "update_one": lambda collection, document: collection.update_one(
            document, FailingMapping(**{"$set": FailingMapping(c=1)}), upsert=True
        ),
        "find": lambda collection, document: collection.find(document).to_list(),
        "find_one": lambda collection, document: collection.find_one(document),
        "delete_one": lambda collection, document: collection.delete_one(document),
        "aggregate": lambda collection, document: collection.aggregate(
            [FailingMapping(**{"$match": document})]
        ).to_list(),
        "command": lambda collection, document: collection.database.command(
            FailingMapping(count=collection.name, query=document)
        ),
    }.items(),
    ids=lambda item: item[0],
)
def test_error_in_custom_mapping_is_raised_and_nothing_is_stored(collection: Collection[Any], use_mapping: Any) -> None:
    wire_version = collection.database.client.admin.command("hello")["maxWireVersion"]
    if use_mapping[0] == "client bulk_write" and wire_version < CLIENT_BULK_WRITE:
        pytest.skip(f"version: the server has no bulkWrite command (wire version {wire_version})")
    failures = 0
    while True:
        FailingMapping.left = failures
        try:
            use_mapping[1](collection, FailingMapping(_id=5, a=FailingMapping(b=1)))
        except CustomError:
            failures += 1
            assert collection.find_one({}) is None
        else:
            break
    assert failures >= 3
    assert collection.find_one({}, {"_id": 1}) in (None, {"_id": 5})


def test_error_about_too_large_document_states_size(collection: Collection[Any]) -> None:
    with pytest.raises(DocumentTooLarge, match=r"17825\d+ bytes.*16777216"):
        collection.insert_one({"a": b"x" * (17 << 20)})
    assert issubclass(DocumentTooLarge, bson.InvalidDocument)
    assert collection.count_documents({}) == 0


def test_server_selection_error_names_unreachable_server_and_topology() -> None:
    client: MongoClient[Any]
    with MongoClient("127.0.0.1:1", serverSelectionTimeoutMS=50) as client:
        with pytest.raises(ServerSelectionTimeoutError, match=r"127\.0\.0\.1:1") as caught:
            client.shop.orders.find_one()
        assert caught.value.timeout
        assert "Topology Description" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "error_class"),
    [(43, CursorNotFound), (50, ExecutionTimeout), (11000, DuplicateKeyError), (2, OperationFailure)],
)
def test_error_code_selects_exception_class(code: int, error_class: type[OperationFailure]) -> None:
    reply = {"ok": 0, "code": code, "codeName": "Some", "errmsg": "no luck", "errorLabels": ["Label"]}
    with ScriptedServer({"find": reply}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(error_class, match="no luck") as caught:
            client.db.c.find_one()
        assert type(caught.value) is error_class
        assert (caught.value.code, caught.value.details) == (code, reply)
        assert caught.value.has_error_label("Label")
        assert caught.value.timeout is (code == 50)


@pytest.mark.parametrize(
    ("write_concern_error", "error_class"),
    [
        ({"code": 100, "errmsg": "too few members"}, WriteConcernError),
        ({"code": 64, "errmsg": "waiting timed out"}, WTimeoutError),
        ({"code": 1, "errmsg": "waiting timed out", "errInfo": {"wtimeout": True}}, WTimeoutError),
    ],
)
def test_every_write_raises_write_concern_error(
    write_concern_error: dict[str, Any], error_class: type[Exception]
) -> None:
    reply = {"ok": 1, "n": 1, "nModified": 1, "value": None, "writeConcernError": write_concern_error}
    names = ("insert", "update", "delete", "findAndModify", "createIndexes", "drop")
    with ScriptedServer(dict.fromkeys(names, reply)) as server, MongoClient[Any](server.name) as client:
        collection = client.db.c
        for write in (
            lambda: collection.insert_one({}),
            lambda: collection.update_one({}, {"$set": {"a": 1}}),
            lambda: collection.delete_many({}),
            lambda: collection.find_one_and_delete({}),
            lambda: collection.create_index("a"),
            lambda: collection.drop(),
        ):
            with pytest.raises(error_class, match=write_concern_error["errmsg"]) as caught:
                write()
            assert type(caught.value) is error_class
            assert caught.value.code == write_concern_error["code"]  # type: ignore[attr-defined]


def test_write_error_takes_precedence_over_write_concern_error() -> None:
    reply = {
        "ok": 1,
        "n": 0,
        "writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}],
        "writeConcernError": {"code": 64, "errmsg": "waiting timed out"},
    }
    with ScriptedServer({"insert": reply}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(DuplicateKeyError, match="duplicate") as caught:
            client.db.c.insert_one({})
        assert caught.value.details == {"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}


def test_cursor_not_found_raises_once_and_ends_the_cursor() -> None:
    replies = {
        "find": {"ok": 1, "cursor": {"id": 5, "ns": "db.c", "firstBatch": [{"_id": 1}]}},
        "getMore": {"ok": 0, "code": 43, "errmsg": "cursor id 5 not found"},
    }
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        cursor = client.db.c.find()
        assert next(cursor) == {"_id": 1}
        with pytest.raises(CursorNotFound, match="cursor id 5"):
            next(cursor)
        assert not cursor.alive
        assert list(cursor) == []
        assert server.commands("killCursors") == []


UNACKNOWLEDGED: dict[str, Callable[[Collection[Any]], Any]] = {
    "collation": lambda collection: collection.delete_one({}, collation={"locale": "fr"}),
    "array_filters": lambda collection: collection.update_one({}, {"$set": {"a.$[x]": 1}}, array_filters=[{"x": 1}]),
    "collation in bulk_write": lambda collection: collection.bulk_write([DeleteOne({}, collation={"locale": "fr"})]),
    "bypass_document_validation": lambda collection: collection.insert_many([{}], bypass_document_validation=True),
}


@pytest.mark.parametrize("write", UNACKNOWLEDGED.values(), ids=UNACKNOWLEDGED.keys())
def test_unacknowledged_write_with_option_that_server_lacks_raises(write: Any) -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=0))
        with pytest.raises((ConfigurationError, OperationFailure)):
            write(collection)
