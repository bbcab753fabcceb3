"""Tests of change streams in a simulated store."""

from __future__ import annotations

import gevent
import pytest

from gmongo.testing.command import CommandError
from tests.support.cases import with_cases

from .shell import replica_set, standalone


def error_code_of(call, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    return caught.value.code


class ChangeStream:
    def __init__(self, shell, collection="c", *stages, database="db", **options):
        self.shell = shell
        pipeline = [{"$changeStream": options}, *stages]
        self.keep_cursor(shell("aggregate", collection, database, pipeline=pipeline, cursor={})["cursor"])
        self.first_batch = self.events

    def keep_cursor(self, cursor):
        self.cursor, self.token = cursor, cursor["postBatchResumeToken"]
        self.events = cursor.get("firstBatch", cursor.get("nextBatch"))

    def get_more(self, wait=1, **fields):
        database, _, collection = self.cursor["ns"].partition(".")
        reply = self.shell("getMore", self.cursor["id"], database, collection=collection, maxTimeMS=wait, **fields)
        self.keep_cursor(reply["cursor"])
        return self.events

    def next_event_types(self, **fields):
        return [event["operationType"] for event in self.get_more(**fields)]


@pytest.fixture
def shell():
    shell = replica_set()
    shell.insert({"_id": 1, "x": 1})
    return shell


def test_change_events_describe_changes_of_documents(shell):
    stream = ChangeStream(shell)
    shell.insert({"_id": 2, "x": 2})
    shell.update({"_id": 2}, {"$set": {"y": {"z": 1}}, "$unset": {"x": ""}})
    shell.update({"_id": 2}, {"w": 1})
    shell("delete", "c", deletes=[{"q": {"_id": 2}, "limit": 1}])
    insert, update, replace, delete = stream.get_more()
    assert list(insert) == ["_id", "operationType", "clusterTime", "wallTime", "fullDocument", "ns", "documentKey"]
    assert insert["fullDocument"] == {"_id": 2, "x": 2}
    assert insert["ns"] == {"db": "db", "coll": "c"}
    assert update["updateDescription"] == {
        "updatedFields": {"y": {"z": 1}}, "removedFields": ["x"], "truncatedArrays": []
    }  # fmt: skip
    assert "fullDocument" not in update
    assert replace["fullDocument"] == {"_id": 2, "w": 1}
    assert (delete["operationType"], delete["documentKey"]) == ("delete", {"_id": 2})
    assert insert["clusterTime"] < update["clusterTime"]


def test_update_description_lists_changed_fields_and_truncated_arrays(shell):
    shell.insert({"_id": 5, "a": [1, 2, 3], "b": {"c": 1, "d": 2}})
    stream = ChangeStream(shell)
    shell.update({"_id": 5}, {"$set": {"a.1": 9, "b.c": 5}})
    shell.update({"_id": 5}, [{"$set": {"a": {"$slice": ["$a", 2]}}}])
    first, second = (event["updateDescription"] for event in stream.get_more())
    assert first["updatedFields"] == {"a.1": 9, "b.c": 5}
    assert second["truncatedArrays"] == [{"field": "a", "newSize": 2}]


@with_cases
def test_update_description_has_whole_array_except_after_append(shell, change, path):
    # After most array operators, a server writes the whole array to the oplog
    # (``array_culling_node.cpp``, ``pop_node.cpp``, ``addtoset_node.cpp``). After an append, the
    # server writes only the new elements to the oplog (``push_node.cpp``).
    shell.insert({"_id": 5, "a": [1, 2, 3], "b": [{"c": [6, 7]}]})
    stream = ChangeStream(shell)
    shell.update({"_id": 5}, change)
    (event,) = stream.get_more()
    assert list(event["updateDescription"]["updatedFields"]) == [path]
    assert event["updateDescription"]["truncatedArrays"] == []


@pytest.mark.parametrize("change", [{"$set": {"a.$[]": 5}}, [{"$set": {"b.c": 5}}], [{"$set": {"a": [1, 9, 3]}}]])
def test_event_after_array_operator_or_pipeline_inside_field_is_refused(shell, change):
    shell.insert({"_id": 5, "a": [1, 2, 3], "b": {"c": 1}})
    stream = ChangeStream(shell)
    shell.update({"_id": 5}, change)
    assert error_code_of(stream.get_more) == 115


def test_get_more_waits_for_event(shell):
    stream = ChangeStream(shell)
    waiting = gevent.spawn(stream.next_event_types, wait=5000)
    gevent.sleep(0)
    shell.insert({"_id": 2}, collection="other")
    gevent.sleep(0)
    assert not waiting.ready()
    shell.insert({"_id": 2})
    assert waiting.get(timeout=2) == ["insert"]


def test_stream_has_only_events_of_its_collection_database_or_deployment(shell):
    collection, database = ChangeStream(shell), ChangeStream(shell, 1)
    cluster = ChangeStream(shell, 1, database="admin", allChangesForCluster=True)
    shell.insert({"_id": 2}, collection="d")
    shell("insert", "c", "other", documents=[{"_id": 2}])
    assert collection.get_more() == []
    assert [event["ns"] for event in database.get_more()] == [{"db": "db", "coll": "d"}]
    assert [event["ns"]["db"] for event in cluster.get_more()] == ["db", "other"]
    assert database.cursor["ns"] == "db.$cmd.aggregate"


def test_only_stream_with_expanded_events_has_creation_of_view(shell):
    plain, expanded = ChangeStream(shell, 1), ChangeStream(shell, 1, showExpandedEvents=True)
    shell("create", "v", viewOn="c")
    assert plain.get_more() == []
    assert [(event["operationType"], event["ns"]["coll"]) for event in expanded.get_more()] == [("create", "v")]


def test_only_stream_with_expanded_events_has_sharding_of_collection(shell):
    plain, expanded = ChangeStream(shell), ChangeStream(shell, showExpandedEvents=True)
    shell.store.record_sharding("db", "c", {"_id": 1})
    assert plain.get_more() == []
    assert [(event["operationType"], event["operationDescription"]) for event in expanded.get_more()] == [
        ("shardCollection", {"shardKey": {"_id": 1}})
    ]


def test_update_description_contains_path_inside_array_element(shell):
    shell.insert({"_id": 9, "a": [{"1": 1, "x": 0}, {"y": 1}]})
    stream = ChangeStream(shell, showExpandedEvents=True)
    shell("update", "c", updates=[{"q": {"_id": 9}, "u": {"$set": {"a.0.1": 2}, "$unset": {"a.0.x": 1}}}])
    description = stream.get_more()[0]["updateDescription"]
    assert description["updatedFields"] == {"a.0.1": 2}
    assert description["removedFields"] == ["a.0.x"]
    assert description["disambiguatedPaths"] == {"a.0.1": ["a", 0, "1"], "a.0.x": ["a", 0, "x"]}


@pytest.mark.parametrize("option", ["resumeAfter", "startAfter"])
def test_resumed_stream_has_only_events_after_resume_token(shell, option):
    stream = ChangeStream(shell)
    beginning = stream.token
    shell.insert({"_id": 2}, {"_id": 3}, {"_id": 4})
    first = stream.get_more(batchSize=1)[0]
    assert stream.token == first["_id"]
    rest = ChangeStream(shell, "c", **{option: first["_id"]})
    assert [event["documentKey"]["_id"] for event in rest.first_batch] == [3, 4]
    assert ChangeStream(shell, "c", **{option: rest.token}).first_batch == []
    assert len(ChangeStream(shell, "c", **{option: beginning}).first_batch) == 3
    assert error_code_of(ChangeStream, shell, "c", **{option: {"_data": "00"}}) == 260


def test_stream_has_events_since_start_at_operation_time(shell):
    shell.insert({"_id": 2})
    time = shell.store.now()
    shell.insert({"_id": 3})
    stream = ChangeStream(shell, "c", startAtOperationTime=time)
    assert [event["documentKey"]["_id"] for event in stream.first_batch] == [2, 3]


def test_drop_of_collection_invalidates_stream(shell):
    stream, database = ChangeStream(shell), ChangeStream(shell, 1)
    shell("drop", "c")
    assert stream.next_event_types() == ["drop", "invalidate"]
    assert stream.cursor["id"] == 0
    dropped, invalidated = stream.events
    assert error_code_of(ChangeStream, shell, "c", resumeAfter=invalidated["_id"]) == 260
    resumed = ChangeStream(shell, "c", startAfter=invalidated["_id"])
    assert [event["operationType"] for event in ChangeStream(shell, "c", resumeAfter=dropped["_id"]).first_batch] == [
        "invalidate"
    ]
    shell.insert({"_id": 9})
    assert resumed.next_event_types() == ["insert"]
    shell("dropDatabase", 1)
    assert database.next_event_types() == ["drop", "insert", "drop", "dropDatabase", "invalidate"]


def test_expanded_events_describe_changes_of_collections_and_indexes(shell):
    plain, stream = ChangeStream(shell, 1), ChangeStream(shell, 1, showExpandedEvents=True)
    shell("create", "new")
    shell("createIndexes", "new", indexes=[{"key": {"x": 1}, "name": "x"}])
    shell("collMod", "new", index={"name": "x", "hidden": True})
    shell("dropIndexes", "new", index="x")
    assert plain.get_more() == []
    assert stream.next_event_types() == ["create", "createIndexes", "modify", "dropIndexes"]
    assert stream.events[1]["operationDescription"] == {"indexes": [{"v": 2, "key": {"x": 1}, "name": "x"}]}
    assert stream.events[0]["collectionUUID"].subtype == 4


def test_events_of_transaction_appear_at_commit(shell):
    stream = ChangeStream(shell)
    session = shell.with_session()
    session.transaction(1, startTransaction=True).insert({"_id": 2})
    session.transaction(1).insert({"_id": 3})
    assert stream.get_more() == []
    session.transaction(1).end_transaction("commitTransaction")
    first, second = stream.get_more()
    assert first["clusterTime"] == second["clusterTime"]
    assert (first["lsid"], first["txnNumber"]) == (session.fields["lsid"], 1)
    assert [one["documentKey"]["_id"] for one in ChangeStream(shell, "c", resumeAfter=first["_id"]).first_batch] == [3]


@with_cases
def test_invalid_option_of_change_stream_is_refused(shell, options, code):
    assert error_code_of(ChangeStream, shell, "c", **options) == code


def test_standalone_refuses_change_streams():
    assert error_code_of(ChangeStream, standalone()) == 40573
