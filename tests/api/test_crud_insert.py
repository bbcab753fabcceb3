from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient, WriteConcern
from gmongo.collection import Collection
from gmongo.errors import BulkWriteError, DuplicateKeyError, InvalidOperation
from gmongo.results import InsertManyResult, InsertOneResult

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


def test_insert_one_generates_an_id_and_puts_it_into_the_document(collection: Collection[Any]) -> None:
    document: dict[str, Any] = {"name": "pen"}
    result = collection.insert_one(document)
    assert isinstance(result, InsertOneResult)
    assert result.acknowledged
    assert isinstance(result.inserted_id, bson.ObjectId)
    assert document["_id"] == result.inserted_id
    assert collection.find_one(result.inserted_id) == document


def test_insert_one_keeps_a_given_id(collection: Collection[Any]) -> None:
    assert collection.insert_one({"_id": "pen", "price": 3}).inserted_id == "pen"
    assert collection.find_one({"_id": "pen"}) == {"_id": "pen", "price": 3}


@pytest.mark.parametrize("kind", [dict, OrderedDict, bson.SON])
def test_insert_one_takes_any_mapping_and_keeps_the_order_of_its_fields(collection: Collection[Any], kind: Any) -> None:
    collection.insert_one(kind([("_id", 1), ("z", 1), ("a", {"y": 2, "b": 3})]))
    found = collection.find_one()
    assert found is not None
    assert list(found) == ["_id", "z", "a"]
    assert list(found["a"]) == ["y", "b"]


def test_a_raw_document_is_sent_as_it_is(collection: Collection[Any]) -> None:
    result = collection.insert_one(RawBSONDocument(bson.encode({"_id": 5, "a": [1, 2]})))
    assert result.inserted_id is None
    assert collection.find_one() == {"_id": 5, "a": [1, 2]}


def test_insert_one_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"_id": 1}, bypass_document_validation=True, comment={"why": 1})
    command = recorder.command("insert")
    assert command["insert"] == collection.name
    assert command["documents"] == [{"_id": 1}]
    assert command["ordered"] is True
    assert command["bypassDocumentValidation"] is True
    assert command["comment"] == {"why": 1}
    assert "id" in command["lsid"]


def test_a_second_document_with_the_same_id_is_refused(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1, "n": 1})
    with pytest.raises(DuplicateKeyError) as caught:
        collection.insert_one({"_id": 1, "n": 2})
    assert caught.value.code == 11000
    assert caught.value.details is not None
    assert caught.value.details["index"] == 0
    assert collection.find_one(1) == {"_id": 1, "n": 1}


def test_insert_many_returns_the_ids_in_order(collection: Collection[Any]) -> None:
    documents: list[dict[str, Any]] = [{"_id": "b"}, {"n": 1}, {"_id": "a"}]
    result = collection.insert_many(documents)
    assert isinstance(result, InsertManyResult)
    assert result.acknowledged
    assert result.inserted_ids == ["b", documents[1]["_id"], "a"]
    assert collection.count_documents({}) == 3


def test_insert_many_takes_an_iterator(collection: Collection[Any]) -> None:
    assert collection.insert_many({"_id": number} for number in range(5)).inserted_ids == [0, 1, 2, 3, 4]


def test_insert_many_sends_one_command_with_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    documents = [{"_id": number} for number in range(100)]
    collection.insert_many(documents, ordered=False, bypass_document_validation=True, comment="why")
    command = recorder.command("insert")
    assert command["documents"] == documents
    assert command["ordered"] is False
    assert command["bypassDocumentValidation"] is True
    assert command["comment"] == "why"


def test_ordered_insert_many_stops_at_the_first_error(collection: Collection[Any]) -> None:
    collection.insert_one({"_id": 1})
    with pytest.raises(BulkWriteError) as caught:
        collection.insert_many([{"_id": 0}, {"_id": 1}, {"_id": 2}])
    assert caught.value.details["nInserted"] == 1
    assert [(error["index"], error["code"], error["op"]) for error in caught.value.details["writeErrors"]] == [
        (1, 11000, {"_id": 1})
    ]
    assert sorted(each["_id"] for each in collection.find()) == [0, 1]


def test_unordered_insert_many_goes_on_after_errors(collection: Collection[Any]) -> None:
    collection.insert_many([{"_id": 1}, {"_id": 3}])
    with pytest.raises(BulkWriteError) as caught:
        collection.insert_many([{"_id": number} for number in range(5)], ordered=False)
    assert caught.value.details["nInserted"] == 3
    assert [error["index"] for error in caught.value.details["writeErrors"]] == [1, 3]
    assert sorted(each["_id"] for each in collection.find()) == [0, 1, 2, 3, 4]


def test_nothing_is_sent_if_one_of_the_documents_is_none(recorded: Recorded) -> None:
    collection, recorder = recorded
    with pytest.raises(TypeError, match="document must be a mapping"):
        collection.insert_many([{"_id": 1}, 5])
    assert recorder.commands == []


def test_nothing_is_sent_if_one_of_the_documents_cannot_be_encoded(recorded: Recorded) -> None:
    collection, recorder = recorded
    with pytest.raises(bson.InvalidDocument, match="cannot encode object"):
        collection.insert_many([{"_id": 1}, {"_id": 2, "bad": object()}])
    assert recorder.commands == []
    assert collection.find_one() is None


def test_an_unacknowledged_insert_says_so(database: str) -> None:
    client: MongoClient[Any]
    with MongoClient(database) as client:  # its own, because this server replies all the same
        collection = client.gmongo_tests.get_collection("unacknowledged", write_concern=WriteConcern(w=0))
        result = collection.insert_one({"_id": bson.ObjectId()})
        assert not result.acknowledged
        assert isinstance(result.inserted_id, bson.ObjectId)


def test_the_write_concern_is_sent_and_its_absence_is_not(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    collection.with_options(write_concern=WriteConcern(w=1, j=True, wtimeout=500)).insert_one({})
    first, second = recorder.sent("insert")
    assert "writeConcern" not in first
    assert second["writeConcern"] == {"w": 1, "j": True, "wtimeout": 500}


def test_counts_of_an_unacknowledged_write_are_not_known(database: str) -> None:
    client: MongoClient[Any]
    with MongoClient(database) as client:
        collection = client.gmongo_tests.get_collection("unacknowledged", write_concern=WriteConcern(w=0))
        result = collection.delete_many({})
        assert not result.acknowledged
        with pytest.raises(InvalidOperation, match="not acknowledged"):
            _ = result.deleted_count
