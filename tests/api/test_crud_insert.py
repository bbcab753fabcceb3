from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from gmongo import WriteConcern
from gmongo.collection import Collection

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


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


def test_insert_many_sends_one_command_with_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    documents = [{"_id": number} for number in range(100)]
    collection.insert_many(documents, ordered=False, bypass_document_validation=True, comment="why")
    command = recorder.command("insert")
    assert command["documents"] == documents
    assert command["ordered"] is False
    assert command["bypassDocumentValidation"] is True
    assert command["comment"] == "why"


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


def test_the_write_concern_is_sent_and_its_absence_is_not(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    collection.with_options(write_concern=WriteConcern(w=1, j=True, wtimeout=500)).insert_one({})
    first, second = recorder.sent("insert")
    assert "writeConcern" not in first
    assert second["writeConcern"] == {"w": 1, "j": True, "wtimeout": 500}
