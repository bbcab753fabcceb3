from __future__ import annotations

from collections import OrderedDict
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from gmongo import WriteConcern
from gmongo.collection import Collection

from .recording import Recorded


@pytest.mark.parametrize("mapping_class", [dict, OrderedDict, bson.SON])
def test_insert_one_keeps_field_order_of_any_mapping(collection: Collection[Any], mapping_class: Any) -> None:
    collection.insert_one(mapping_class([("_id", 1), ("z", 1), ("a", {"y": 2, "b": 3})]))
    stored = collection.find_one()
    assert stored is not None
    assert list(stored) == ["_id", "z", "a"]
    assert list(stored["a"]) == ["y", "b"]


def test_raw_document_is_inserted_without_generated_id(collection: Collection[Any]) -> None:
    result = collection.insert_one(RawBSONDocument(bson.encode({"_id": 5, "a": [1, 2]})))
    assert result.inserted_id is None
    assert collection.find_one() == {"_id": 5, "a": [1, 2]}


def test_insert_one_sends_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"_id": 1}, bypass_document_validation=True, comment={"why": 1})
    command = recorder.command("insert")
    assert command["insert"] == collection.name
    assert command["documents"] == [{"_id": 1}]
    assert command["ordered"] is True
    assert command["bypassDocumentValidation"] is True
    assert command["comment"] == {"why": 1}
    assert "id" in command["lsid"]


def test_insert_many_sends_one_command_with_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    documents = [{"_id": number} for number in range(100)]
    collection.insert_many(documents, ordered=False, bypass_document_validation=True, comment="why")
    command = recorder.command("insert")
    assert command["documents"] == documents
    assert command["ordered"] is False
    assert command["bypassDocumentValidation"] is True
    assert command["comment"] == "why"


def test_insert_many_with_non_mapping_raises_before_any_command(recorded: Recorded) -> None:
    collection, recorder = recorded
    with pytest.raises(TypeError, match="document must be a mapping"):
        collection.insert_many([{"_id": 1}, 5])
    assert recorder.commands == []


def test_insert_many_with_unencodable_document_raises_before_any_command(recorded: Recorded) -> None:
    collection, recorder = recorded
    with pytest.raises(bson.InvalidDocument, match="cannot encode object"):
        collection.insert_many([{"_id": 1}, {"_id": 2, "bad": object()}])
    assert recorder.commands == []
    assert collection.find_one() is None


def test_insert_sends_write_concern_only_if_set(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({})
    collection.with_options(write_concern=WriteConcern(w=1, j=True, wtimeout=500)).insert_one({})
    first, second = recorder.sent_commands("insert")
    assert "writeConcern" not in first
    assert second["writeConcern"] == {"w": 1, "j": True, "wtimeout": 500}
