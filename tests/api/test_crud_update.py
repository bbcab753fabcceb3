from __future__ import annotations

from typing import Any

from gmongo.collation import Collation

from .recording import Recorded, ignore_error_before


def test_update_one_sends_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    with ignore_error_before(collection, "8.0"):
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


def test_update_many_sends_multi_and_options_of_call(recorded: Recorded) -> None:
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


def test_replace_one_sends_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    with ignore_error_before(collection, "8.0"):
        collection.replace_one({"_id": 1}, {"a": 1}, hint="_id_", sort={"a": 1}, let={"y": 1}, comment=7)
    command = recorder.command("update")
    assert command["updates"] == [
        {"q": {"_id": 1}, "u": {"a": 1}, "multi": False, "upsert": False, "hint": "_id_", "sort": {"a": 1}}
    ]
    assert (command["let"], command["comment"]) == ({"y": 1}, 7)


def test_delete_one_and_delete_many_send_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    options: dict[str, Any] = {"collation": {"locale": "fr"}, "hint": {"_id": 1}, "let": {"y": 1}, "comment": "why"}
    collection.delete_one({"a": 1}, **options)
    collection.delete_many({"a": 1}, **options)
    for command, limit in zip(recorder.sent_commands("delete"), (1, 0), strict=True):
        statement = {"q": {"a": 1}, "limit": limit, "collation": {"locale": "fr"}, "hint": {"_id": 1}}
        assert command["deletes"] == [statement]
        assert (command["let"], command["comment"]) == ({"y": 1}, "why")


def test_find_one_and_update_sends_options_of_call(recorded: Recorded) -> None:
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
