from __future__ import annotations

from typing import Any

import pytest

from gmongo import GEOSPHERE, HASHED, TEXT, MongoClient
from gmongo.collation import Collation
from gmongo.collection import Collection
from gmongo.errors import OperationFailure
from tests.support.server import ScriptedServer

from .recording import Recorded


def keys_of_indexes(collection: Collection[Any]) -> list[Any]:
    """Return the keys of all indexes of a collection."""
    return sorted(index["key"] for index in collection.index_information().values())


@pytest.mark.parametrize(
    ("keys_argument", "key", "name"),
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
def test_create_index_accepts_every_form_of_keys(recorded: Recorded, keys_argument: Any, key: Any, name: str) -> None:
    collection, recorder = recorded
    try:
        assert collection.create_index(keys_argument) == name
    except OperationFailure as error:
        if "not supported" not in str(error):
            raise
        pytest.skip(str(error).partition(", full error")[0])
    (index,) = recorder.command("createIndexes")["indexes"]
    assert index == {"key": key, "name": name}
    assert list(index["key"]) == list(key)


def test_create_index_sends_options_of_call(recorded: Recorded) -> None:
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
    assert recorder.sent_commands("createIndexes")[1]["indexes"] == [{"key": {"b": 1}, "name": "b_1", "sparse": True}]


@pytest.mark.parametrize(
    ("code", "text"), [(26, "ns not found"), (0, "ns not found"), (27, "index not found"), (13, "no")]
)
def test_drop_index_ignores_only_error_about_missing_collection(code: int, text: str) -> None:
    replies = {"dropIndexes": {"ok": 0, "code": code, "errmsg": text}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        for drop in (client.db.c.drop_indexes, lambda: client.db.c.drop_index("a_1")):
            if text == "ns not found":
                drop()
            else:
                with pytest.raises(OperationFailure, match=text):
                    drop()
        assert [each["index"] for each in server.commands("dropIndexes")] == ["*", "a_1"]
