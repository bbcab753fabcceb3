from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bson
import pytest

from gmongo import ReturnDocument
from gmongo.collation import Collation
from gmongo.collection import Collection
from gmongo.errors import DuplicateKeyError, WriteError
from gmongo.results import DeleteResult, UpdateResult

from .recording import Recorded, recorded_collection, refused_before


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    with recorded_collection(database) as recorded:
        yield recorded


@pytest.fixture
def pens(collection: Collection[Any]) -> Collection[Any]:
    """Six documents, of which 1, 3 and 5 are blue."""
    collection.insert_many([{"_id": n, "ink": "blue" if n % 2 else "red", "stock": n} for n in range(6)])
    return collection


def counts(result: UpdateResult) -> tuple[Any, ...]:
    return result.matched_count, result.modified_count, result.upserted_id, result.did_upsert


# Updating


def test_update_one_changes_one_document(pens: Collection[Any]) -> None:
    result = pens.update_one({"_id": 1}, {"$set": {"ink": "green"}, "$inc": {"stock": 10}})
    assert isinstance(result, UpdateResult)
    assert counts(result) == (1, 1, None, False)
    assert result.raw_result is not None
    assert result.raw_result["updatedExisting"] is True
    assert pens.find_one(1) == {"_id": 1, "ink": "green", "stock": 11}
    assert pens.count_documents({"ink": "green"}) == 1


def test_update_one_without_a_match_changes_nothing(pens: Collection[Any]) -> None:
    assert counts(pens.update_one({"_id": 77}, {"$set": {"a": 1}})) == (0, 0, None, False)
    assert pens.count_documents({}) == 6


def test_update_one_inserts_if_told_to(pens: Collection[Any]) -> None:
    result = pens.update_one({"_id": 77}, {"$set": {"a": 1}}, upsert=True)
    assert counts(result) == (0, 0, 77, True)
    assert pens.find_one(77) == {"_id": 77, "a": 1}


def test_an_upsert_of_what_is_there_updates(pens: Collection[Any]) -> None:
    assert counts(pens.update_one({"_id": 1}, {"$set": {"a": 1}}, upsert=True)) == (1, 1, None, False)


def test_update_many_changes_all_that_match(pens: Collection[Any]) -> None:
    assert counts(pens.update_many({"ink": "blue"}, {"$set": {"new": True}})) == (3, 3, None, False)
    assert [each["_id"] for each in pens.find({"new": True})] == [1, 3, 5]


def test_update_one_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    with refused_before(collection, "8.0"):
        collection.update_one(
            {"_id": 1},
            {"$set": {"a.$[x]": 1}},
            upsert=True,
            bypass_document_validation=True,
            collation=Collation("fr", strength=2),
            array_filters=[{"x": 1}],
            hint=[("_id", 1)],
            let={"y": 1},
            sort=[("a", -1)],  # type: ignore[arg-type]
            comment="why",
        )
    command = recorder.command("update")
    (statement,) = command["updates"]
    assert statement == {
        "q": {"_id": 1},
        "u": {"$set": {"a.$[x]": 1}},
        "multi": False,
        "upsert": True,
        "collation": {"locale": "fr", "strength": 2},
        "arrayFilters": [{"x": 1}],
        "hint": {"_id": 1},
        "sort": {"a": -1},
    }
    assert command["bypassDocumentValidation"] is True
    assert (command["let"], command["comment"]) == ({"y": 1}, "why")


def test_update_many_says_so_and_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.update_many({"a": 1}, {"$set": {"b": 1}}, hint="_id_", collation={"locale": "de"}, let={"y": 1})
    command = recorder.command("update")
    assert command["updates"] == [
        {
            "q": {"a": 1},
            "u": {"$set": {"b": 1}},
            "multi": True,
            "upsert": False,
            "collation": {"locale": "de"},
            "hint": "_id_",
        }
    ]
    assert command["let"] == {"y": 1}


def test_a_pipeline_is_sent_as_a_list(recorded: Recorded) -> None:
    collection, recorder = recorded
    try:
        collection.update_one({"_id": 1}, [{"$set": {"total": {"$add": ["$a", "$b"]}}}])
    except WriteError:
        pass  # this server may not know pipelines
    assert recorder.command("update")["updates"][0]["u"] == [{"$set": {"total": {"$add": ["$a", "$b"]}}}]


def test_an_update_that_the_server_refuses_raises(pens: Collection[Any]) -> None:
    with pytest.raises(WriteError, match="nonsense") as caught:
        pens.update_one({}, {"$nonsense": {"a": 1}})
    assert caught.value.details is not None
    assert caught.value.details["index"] == 0


def test_an_update_that_breaks_a_unique_index_raises(pens: Collection[Any]) -> None:
    pens.create_index("stock", unique=True)
    with pytest.raises(DuplicateKeyError):
        pens.update_one({"_id": 1}, {"$set": {"stock": 2}})


# Replacing


def test_replace_one_leaves_nothing_but_the_id(pens: Collection[Any]) -> None:
    assert counts(pens.replace_one({"_id": 1}, {"name": "x"})) == (1, 1, None, False)
    assert pens.find_one(1) == {"_id": 1, "name": "x"}


def test_replace_one_inserts_if_told_to(pens: Collection[Any]) -> None:
    result = pens.replace_one({"ink": "gold"}, {"name": "y"}, upsert=True)
    assert result.did_upsert
    assert isinstance(result.upserted_id, bson.ObjectId)
    assert pens.find_one(result.upserted_id) == {"_id": result.upserted_id, "name": "y"}


def test_replace_one_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    with refused_before(collection, "8.0"):
        collection.replace_one({"_id": 1}, {"a": 1}, hint="_id_", sort={"a": 1}, let={"y": 1}, comment=7)
    command = recorder.command("update")
    assert command["updates"] == [
        {"q": {"_id": 1}, "u": {"a": 1}, "multi": False, "upsert": False, "hint": "_id_", "sort": {"a": 1}}
    ]
    assert (command["let"], command["comment"]) == ({"y": 1}, 7)


# Deleting


def test_delete_one_deletes_one(pens: Collection[Any]) -> None:
    result = pens.delete_one({"ink": "blue"})
    assert isinstance(result, DeleteResult)
    assert (result.deleted_count, result.raw_result["n"]) == (1, 1)
    assert pens.count_documents({"ink": "blue"}) == 2


def test_delete_many_deletes_all_that_match(pens: Collection[Any]) -> None:
    assert pens.delete_many({"ink": "blue"}).deleted_count == 3
    assert pens.delete_many({"ink": "blue"}).deleted_count == 0
    assert pens.distinct("ink") == ["red"]


def test_deletes_send_their_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    options: dict[str, Any] = {"collation": {"locale": "fr"}, "hint": {"_id": 1}, "let": {"y": 1}, "comment": "why"}
    collection.delete_one({"a": 1}, **options)
    collection.delete_many({"a": 1}, **options)
    for command, limit in zip(recorder.sent("delete"), (1, 0), strict=True):
        statement = {"q": {"a": 1}, "limit": limit, "collation": {"locale": "fr"}, "hint": {"_id": 1}}
        assert command["deletes"] == [statement]
        assert (command["let"], command["comment"]) == ({"y": 1}, "why")


# Changing and returning at once


def test_find_one_and_update_returns_the_document_before_or_after(pens: Collection[Any]) -> None:
    before = pens.find_one_and_update({"_id": 1}, {"$inc": {"stock": 1}})
    assert before == {"_id": 1, "ink": "blue", "stock": 1}
    after = pens.find_one_and_update({"_id": 1}, {"$inc": {"stock": 1}}, return_document=ReturnDocument.AFTER)
    assert after == {"_id": 1, "ink": "blue", "stock": 3}


def test_find_one_and_update_returns_none_for_nothing(pens: Collection[Any]) -> None:
    assert pens.find_one_and_update({"_id": 77}, {"$set": {"a": 1}}) is None
    assert pens.find_one_and_update({"_id": 77}, {"$set": {"a": 1}}, upsert=True) is None
    assert pens.find_one(77) == {"_id": 77, "a": 1}


def test_find_one_and_replace_returns_the_document_before_or_after(pens: Collection[Any]) -> None:
    assert pens.find_one_and_replace({"_id": 1}, {"n": 1}, projection={"ink": 1, "_id": 0}) == {"ink": "blue"}
    after = pens.find_one_and_replace({"_id": 1}, {"n": 2}, projection=["n"], return_document=True)
    assert after is not None
    assert after["n"] == 2


def test_find_one_and_delete_takes_the_first_in_order(pens: Collection[Any]) -> None:
    assert pens.find_one_and_delete({"ink": "blue"}, sort=[("stock", -1)]) == {"_id": 5, "ink": "blue", "stock": 5}
    assert pens.find_one(5) is None
    assert pens.find_one_and_delete({"ink": "gold"}) is None


def test_find_one_and_update_sends_its_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_one({"_id": 1, "a": [1, 2]})
    collection.find_one_and_update(
        {"_id": 1},
        {"$set": {"a.$[x]": 1}},
        projection=["a"],
        sort=[("a", -1)],
        upsert=True,
        return_document=True,
        array_filters=[{"x": 1}],
        hint="_id_",
        let={"y": 1},
        comment="why",
        maxTimeMS=500,
        collation=Collation("fr"),
    )
    command = recorder.command("findAndModify")
    expected = {
        "findAndModify": collection.name,
        "query": {"_id": 1},
        "update": {"$set": {"a.$[x]": 1}},
        "fields": {"a": 1},
        "sort": {"a": -1},
        "upsert": True,
        "new": True,
        "arrayFilters": [{"x": 1}],
        "hint": "_id_",
        "let": {"y": 1},
        "comment": "why",
        "maxTimeMS": 500,
        "collation": {"locale": "fr"},
    }
    assert {name: command.get(name) for name in expected} == expected
