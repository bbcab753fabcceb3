from __future__ import annotations

from typing import Any

import pytest
from bson.code import Code

from gmongo import ASCENDING, DESCENDING, CursorType, MongoClient
from gmongo.collation import Collation
from tests.support.server import ScriptedServer, cursor_reply

from .recording import Recorded

_EXECUTOR_ADDS = ("lsid", "$db", "$clusterTime")


def fields_without_session(command: Any) -> dict[str, Any]:
    return {name: value for name, value in command.items() if name not in _EXECUTOR_ADDS}


def test_negative_limit_sends_single_batch(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_many([{"_id": n} for n in range(5)])
    assert len(list(collection.find(limit=-3))) == 3
    assert fields_without_session(recorder.command("find")) == {
        "find": collection.name,
        "filter": {},
        "limit": 3,
        "singleBatch": True,
    }


def test_open_cursor_after_single_batch_is_killed() -> None:
    with ScriptedServer({"find": cursor_reply([{"_id": 1}], 7)}) as server, MongoClient[Any](server.name) as client:
        assert list(client.db.c.find(limit=-3)) == [{"_id": 1}]
        server.wait_for("killCursors")
        assert server.commands("getMore") == []


def test_find_sends_every_parameter(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = collection.find(
        {"a": 1},
        ["a"],
        skip=1,
        limit=5,
        no_cursor_timeout=True,
        sort={"a": -1},
        allow_partial_results=True,
        oplog_replay=True,
        batch_size=2,
        collation=Collation("fr", strength=1),
        hint=[("_id", 1)],
        max_time_ms=900,
        max=[("_id", 9)],
        min=[("_id", 1)],
        return_key=False,
        show_record_id=False,
        comment={"why": "test"},
        allow_disk_use=True,
        let={"x": 1},
    )
    list(cursor)
    assert fields_without_session(recorder.command("find")) == {
        "find": collection.name,
        "filter": {"a": 1},
        "projection": {"a": 1},
        "skip": 1,
        "limit": 5,
        "noCursorTimeout": True,
        "sort": {"a": -1},
        "allowPartialResults": True,
        "oplogReplay": True,
        "batchSize": 2,
        "collation": {"locale": "fr", "strength": 1},
        "hint": {"_id": 1},
        "maxTimeMS": 900,
        "max": {"_id": 9},
        "min": {"_id": 1},
        "returnKey": False,
        "showRecordId": False,
        "comment": {"why": "test"},
        "allowDiskUse": True,
        "let": {"x": 1},
    }


def test_cursor_methods_set_fields_of_find(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = (
        collection.find({"a": 1})
        .sort([("a", DESCENDING), ("b", ASCENDING)])
        .skip(1)
        .limit(5)
        .batch_size(2)
        .hint("_id_")
        .comment("why")
        .max_time_ms(900)
        .min([("_id", 1)])
        .max([("_id", 9)])
        .collation({"locale": "fr"})
        .allow_disk_use(False)
        .where("this.b > 1")
        .add_option(16)
        .add_option(128)
        .remove_option(128)
    )
    list(cursor)
    assert fields_without_session(recorder.command("find")) == {
        "find": collection.name,
        "filter": {"a": 1, "$where": Code("this.b > 1")},
        "sort": {"a": -1, "b": 1},
        "skip": 1,
        "limit": 5,
        "batchSize": 2,
        "hint": "_id_",
        "comment": "why",
        "maxTimeMS": 900,
        "min": {"_id": 1},
        "max": {"_id": 9},
        "collation": {"locale": "fr"},
        "allowDiskUse": False,
        "noCursorTimeout": True,
    }


def test_none_removes_hint_and_max_time_ms_of_cursor(recorded: Recorded) -> None:
    collection, recorder = recorded
    list(collection.find(hint="_id_", max_time_ms=5).hint(None).max_time_ms(None))
    assert fields_without_session(recorder.command("find")) == {"find": collection.name, "filter": {}}


@pytest.mark.parametrize(
    ("cursor_type", "flag_fields"),
    [
        (CursorType.TAILABLE, {"tailable": True}),
        (CursorType.TAILABLE_AWAIT, {"tailable": True, "awaitData": True}),
        (CursorType.NON_TAILABLE, {}),
    ],
)
def test_cursor_type_is_sent_as_flag_fields(recorded: Recorded, cursor_type: int, flag_fields: dict[str, Any]) -> None:
    collection, recorder = recorded
    collection.database.create_collection(collection.name, capped=True, size=4096)
    with collection.find(cursor_type=cursor_type) as cursor:
        cursor.to_list(1)
    assert fields_without_session(recorder.command("find")) == {"find": collection.name, "filter": {}, **flag_fields}


def test_find_one_sends_limit_one_and_single_batch(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.find_one({"a": 1}, ["b"], comment="why", max_time_ms=900)
    assert fields_without_session(recorder.command("find")) == {
        "find": collection.name,
        "filter": {"a": 1},
        "projection": {"b": 1},
        "comment": "why",
        "maxTimeMS": 900,
        "limit": 1,
        "singleBatch": True,
    }


def test_count_documents_sends_aggregate(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.create_index("a")
    options: dict[str, Any] = {"hint": [("a", 1)], "collation": {"locale": "fr"}, "maxTimeMS": 900}
    collection.count_documents({"a": 1}, skip=1, limit=2, comment="why", **options)
    command = recorder.command("aggregate")
    assert command["pipeline"] == [
        {"$match": {"a": 1}},
        {"$skip": 1},
        {"$limit": 2},
        {"$group": {"_id": 1, "n": {"$sum": 1}}},
    ]
    assert command["hint"] == {"a": 1}
    assert (command["collation"], command["maxTimeMS"], command["comment"]) == ({"locale": "fr"}, 900, "why")


def test_aggregate_sends_options_of_call(recorded: Recorded) -> None:
    collection, recorder = recorded
    list(
        collection.aggregate(
            [{"$match": {}}],
            let={"x": 1},
            comment="why",
            batchSize=5,
            allowDiskUse=True,
            maxTimeMS=900,
            hint=[("_id", 1)],
            collation=Collation("fr"),
            bypassDocumentValidation=True,
        )
    )
    assert fields_without_session(recorder.command("aggregate")) == {
        "aggregate": collection.name,
        "pipeline": [{"$match": {}}],
        "cursor": {"batchSize": 5},
        "let": {"x": 1},
        "comment": "why",
        "allowDiskUse": True,
        "maxTimeMS": 900,
        "hint": {"_id": 1},
        "collation": {"locale": "fr"},
        "bypassDocumentValidation": True,
    }


def test_aggregate_with_out_stage_sends_no_batch_size(recorded: Recorded) -> None:
    collection, recorder = recorded
    try:
        collection.aggregate([{"$match": {}}, {"$out": f"{collection.name}_out"}], batchSize=5)
    except Exception as error:  # A server may reject `$out`. The test checks only the sent command.
        assert recorder.events_named("CommandFailed"), error
    assert recorder.command("aggregate")["cursor"] == {}
    collection.database.drop_collection(f"{collection.name}_out")
