"""Arguments of public methods reach the sent commands, and affect the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from gmongo._background import LongWork
from gmongo.change_stream import ChangeStream
from gmongo.client_session import ClientSession
from gmongo.collation import Collation
from gmongo.collection import Collection
from gmongo.errors import InvalidName
from gmongo.operations import DeleteOne, InsertOne
from gmongo.read_concern import ReadConcern
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with Deployment.replica_set(1) as deployment, recorded_collection(deployment.uri) as recorded:
        yield recorded


def test_all_commands_of_a_cursor_use_one_session(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_many([{"_id": number} for number in range(9)])
    cursors = (
        lambda: collection.find(batch_size=2),
        lambda: collection.aggregate([], batchSize=2),
        lambda: collection.database.cursor_command("find", collection.name, batchSize=2),
        lambda: collection.aggregate_raw_batches([], batchSize=2),
    )
    for open_cursor in cursors:
        recorder.clear()
        cursor: Any = open_cursor()
        for _ in range(3):
            next(cursor)
        cursor.close()
        sent = {event.command_name: event.command["lsid"] for event in recorder.events_named("CommandStarted")}
        assert len(sent) > 1 and len({lsid["id"] for lsid in sent.values()}) == 1, sent.keys()


def test_collection_constructor_creates_collection_with_options(recorded: Recorded) -> None:
    collection, recorder = recorded
    child_name = f"{collection.name}.x"
    Collection(collection.database, child_name)
    assert not recorder.events_named("CommandStarted")
    Collection(collection.database, child_name, capped=True, size=4096)
    (created,) = recorder.events_named("CommandStarted")
    assert created.command["create"] == child_name and created.command["capped"] is True
    Collection(collection.database, f"{child_name}.y", create=True)
    assert recorder.events_named("CommandStarted")[-1].command["create"] == f"{child_name}.y"
    for name in (child_name, f"{child_name}.y"):
        collection.database.drop_collection(name)


@pytest.mark.parametrize("method", ["next", "try_next"])
def test_decoding_of_batch_document_by_document_passes_checkpoints(
    recorded: Recorded, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints: list[Any] = []
    monkeypatch.setattr(LongWork, "checkpoint", lambda work: checkpoints.append(work))
    collection, _ = recorded
    collection.insert_many([{"_id": number, "x": "x" * 1000} for number in range(300)])
    with collection.aggregate([{"$sort": {"_id": 1}}], batchSize=300) as cursor:
        step = getattr(cursor, method)
        step()
        before = len(checkpoints)
        assert [step()["_id"] for _ in range(299)] == list(range(1, 300))
    assert len(checkpoints) - before > 5


@pytest.mark.parametrize(("name", "is_valid"), [("$external", True), ("$externalX", False), ("$other", False)])
def test_only_external_database_may_have_dollar_in_its_name(recorded: Recorded, name: str, is_valid: bool) -> None:
    client = recorded.collection.database.client
    if is_valid:
        assert client[name].name == name
    else:
        with pytest.raises(InvalidName):
            client[name]


WRITES: dict[str, Callable[[Collection[Any]], object]] = {
    "insert": lambda collection: collection.insert_one({"_id": 1}),
    "update": lambda collection: collection.update_one({"_id": 1}, {"$set": {"a": 1}}),
    "delete": lambda collection: collection.delete_one({"_id": 1}),
    "findAndModify": lambda collection: collection.find_one_and_delete({"_id": 1}),
    "createIndexes": lambda collection: collection.create_index("a"),
    "dropIndexes": lambda collection: collection.drop_index("a_1"),
    "create": lambda collection: collection.database.create_collection(f"{collection.name}.x", write_concern=CONCERN),
    "renameCollection": lambda collection: (
        collection.database[f"{collection.name}.x"].with_options(write_concern=CONCERN).rename("renamed")
    ),
    "drop": lambda collection: collection.drop(),
    "aggregate": lambda collection: collection.aggregate([{"$out": "renamed"}]),
    "bulkWrite": lambda collection: collection.database.client.bulk_write(
        [InsertOne({}, collection.full_name)], write_concern=CONCERN
    ),
}
READS: dict[str, Callable[[Collection[Any]], object]] = {
    "find": lambda collection: collection.find_one(),
    "aggregate": lambda collection: collection.aggregate([]),
    "count": lambda collection: collection.estimated_document_count(),
    "distinct": lambda collection: collection.distinct("a"),
}
CONCERN = WriteConcern(w=1, wtimeout=77)


def test_every_write_sends_write_concern_of_collection(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, write in WRITES.items():
        recorder.clear()
        write(collection.with_options(write_concern=CONCERN))
        (sent,) = [event.command for event in recorder.events_named("CommandStarted") if event.command_name == name]
        assert sent["writeConcern"] == {"w": 1, "wtimeout": 77}, name
    collection.database.drop_collection("renamed")


def test_every_read_sends_read_concern_of_collection(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, read in READS.items():
        recorder.clear()
        read(collection.with_options(read_concern=ReadConcern("majority"), write_concern=CONCERN))
        (sent,) = [event.command for event in recorder.events_named("CommandStarted") if event.command_name == name]
        assert sent["readConcern"] == {"level": "majority"} and "writeConcern" not in sent, name


def test_uninitialized_change_stream_is_deleted_without_error() -> None:
    stream: ChangeStream[Any] = ChangeStream.__new__(ChangeStream)
    assert not stream.alive
    stream.__del__()


FRENCH = Collation("fr")
COLLATED: dict[str, Callable[[Collection[Any]], object]] = {
    "find": lambda collection: collection.find_one({}, collation=FRENCH),
    "aggregate": lambda collection: collection.aggregate([], collation=FRENCH),
    "distinct": lambda collection: collection.distinct("a", collation=FRENCH),
    "update": lambda collection: collection.update_one({}, {"$set": {"a": 1}}, collation=FRENCH),
    "delete": lambda collection: collection.delete_one({}, collation=FRENCH),
    "findAndModify": lambda collection: collection.find_one_and_delete({}, collation=FRENCH),
    "create": lambda collection: collection.database.create_collection(f"{collection.name}.collated", collation=FRENCH),
    "createIndexes": lambda collection: collection.create_index("a", collation=FRENCH),
    "bulkWrite": lambda collection: collection.database.client.bulk_write(
        [DeleteOne({}, FRENCH, namespace=collection.full_name)]
    ),
}


def test_collation_object_is_sent_as_document(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, call in COLLATED.items():
        recorder.clear()
        call(collection)
        (sent,) = [event.command for event in recorder.events_named("CommandStarted") if event.command_name == name]
        fields = [sent, *(sent.get(field, [{}])[0] for field in ("updates", "deletes", "indexes", "ops"))]
        assert [each["collation"] for each in fields if "collation" in each] == [{"locale": "fr"}], name
    recorder.clear()
    assert collection.count_documents({}, collation=FRENCH) == 0
    assert recorder.events_named("CommandStarted")[0].command["collation"] == {"locale": "fr"}
    collection.database.drop_collection(f"{collection.name}.collated")


@pytest.mark.parametrize("has_ended", [None, False, True])
def test_dropped_session_is_released_only_if_started_and_not_ended(has_ended: bool | None) -> None:
    session: Any = ClientSession.__new__(ClientSession)
    state, ending = Mock(has_ended=has_ended), Mock()
    if has_ended is not None:
        session._state, session._ending = state, ending
    session.__del__()
    assert state.release.called is ending.end_in_background.called is (has_ended is False)
    state.has_ended = True
