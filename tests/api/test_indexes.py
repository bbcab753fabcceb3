from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gmongo import ASCENDING, DESCENDING, GEOSPHERE, HASHED, TEXT, IndexModel, MongoClient
from gmongo.collation import Collation
from gmongo.collection import Collection
from gmongo.command_cursor import CommandCursor
from gmongo.errors import DuplicateKeyError, OperationFailure
from tests.support.server import ScriptedServer

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


def keys(collection: Collection[Any]) -> list[Any]:
    """The keys of all indexes; this server has its own mind about their names."""
    return sorted(index["key"] for index in collection.index_information().values())


def test_create_index_returns_the_name(collection: Collection[Any]) -> None:
    assert collection.create_index("a") == "a_1"
    assert collection.create_index([("a", ASCENDING), ("b", DESCENDING)]) == "a_1_b_-1"
    assert collection.create_index([("c", 1)], name="mine") == "mine"


@pytest.mark.parametrize(
    ("given", "key", "name"),
    [
        ("a", {"a": 1}, "a_1"),
        (["a", "b"], {"a": 1, "b": 1}, "a_1_b_1"),
        (["a", ("b", -1)], {"a": 1, "b": -1}, "a_1_b_-1"),
        ({"b": -1, "a": 1}, {"b": -1, "a": 1}, "b_-1_a_1"),
        ([("text", TEXT)], {"text": "text"}, "text_text"),
        ([("place", GEOSPHERE)], {"place": "2dsphere"}, "place_2dsphere"),
        ([("a", HASHED)], {"a": "hashed"}, "a_hashed"),
    ],
)
def test_the_forms_of_keys(recorded: Recorded, given: Any, key: Any, name: str) -> None:
    collection, recorder = recorded
    try:
        assert collection.create_index(given) == name
    except OperationFailure as error:
        if "not supported" not in str(error):
            raise
        pytest.skip(str(error).partition(", full error")[0])
    (index,) = recorder.command("createIndexes")["indexes"]
    assert index == {"key": key, "name": name}
    assert list(index["key"]) == list(key)


def test_create_index_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.create_index(
        "a",
        unique=True,
        expireAfterSeconds=60,
        partialFilterExpression={"a": {"$gt": 5}},
        hidden=True,
        collation=Collation("fr"),
        comment="why",
        maxTimeMS=900,
    )
    command = recorder.command("createIndexes")
    assert (command["createIndexes"], command["comment"], command["maxTimeMS"]) == (collection.name, "why", 900)
    assert command["indexes"] == [
        {
            "key": {"a": 1},
            "name": "a_1",
            "unique": True,
            "expireAfterSeconds": 60,
            "partialFilterExpression": {"a": {"$gt": 5}},
            "hidden": True,
            "collation": {"locale": "fr"},
        }
    ]
    collection.create_index("b", sparse=True)
    assert recorder.sent("createIndexes")[1]["indexes"] == [{"key": {"b": 1}, "name": "b_1", "sparse": True}]


def test_create_indexes_creates_all_at_once(recorded: Recorded) -> None:
    collection, recorder = recorded
    models = [IndexModel("a"), IndexModel([("b", -1)], name="mine", unique=True)]
    assert collection.create_indexes(models, comment="why") == ["a_1", "mine"]
    command = recorder.command("createIndexes")
    assert command["indexes"] == [
        {"key": {"a": 1}, "name": "a_1"},
        {"key": {"b": -1}, "name": "mine", "unique": True},
    ]
    assert command["comment"] == "why"


def test_a_unique_index_is_kept(collection: Collection[Any]) -> None:
    collection.create_index("name", unique=True)
    collection.insert_one({"name": "x"})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"name": "x"})
    assert collection.count_documents({}) == 1


def test_list_indexes_and_index_information(collection: Collection[Any]) -> None:
    collection.create_index("name", unique=True)
    cursor = collection.list_indexes()
    assert isinstance(cursor, CommandCursor)
    listed = list(cursor)
    assert [dict(index["key"]) for index in listed] == [{"_id": 1}, {"name": 1}]
    information = collection.index_information()
    assert set(information) == {index["name"] for index in listed}
    assert information["_id_"]["key"] == [("_id", 1)]
    (other,) = (index for name, index in information.items() if name != "_id_")
    assert other["key"] == [("name", 1)]
    assert other["unique"] is True
    assert "name" not in other


def test_drop_index_by_name_and_by_keys(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"a": 1, "b": 1})
    collection.create_index("a")
    collection.create_index("b")
    collection.drop_index("a_1", comment="why")
    assert keys(collection) == [[("_id", 1)], [("b", 1)]]
    collection.drop_index([("b", 1)], maxTimeMS=900)
    assert keys(collection) == [[("_id", 1)]]
    by_name, by_keys = recorder.sent("dropIndexes")
    assert (by_name["index"], by_name["comment"]) == ("a_1", "why")
    assert (by_keys["index"], by_keys["maxTimeMS"]) == ("b_1", 900)


def test_drop_indexes_leaves_the_one_on_the_id(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"a": 1})
    collection.create_indexes([IndexModel("a"), IndexModel("b")])
    collection.drop_indexes()
    assert keys(collection) == [[("_id", 1)]]
    assert recorder.command("dropIndexes")["index"] == "*"


def test_indexes_are_used_by_name_or_keys(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_many([{"a": n} for n in range(5)])
    name = collection.create_index("a")
    assert len(list(collection.find({"a": {"$gt": 2}}).hint(name))) == 2
    assert len(list(collection.find({"a": {"$gt": 2}}, hint=[("a", 1)]))) == 2
    assert [command["hint"] for command in recorder.sent("find")] == ["a_1", {"a": 1}]


@pytest.mark.parametrize(
    ("code", "text"), [(26, "ns not found"), (0, "ns not found"), (27, "index not found"), (13, "no")]
)
def test_only_a_missing_collection_has_no_index_to_drop(code: int, text: str) -> None:
    replies = {"dropIndexes": {"ok": 0, "code": code, "errmsg": text}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        for drop in (client.db.c.drop_indexes, lambda: client.db.c.drop_index("a_1")):
            if text == "ns not found":
                drop()
            else:
                with pytest.raises(OperationFailure, match=text):
                    drop()
        assert [each["index"] for each in server.commands("dropIndexes")] == ["*", "a_1"]
