"""What an application gives a call is in the command, or in what the call does with the reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from bson import CodecOptions
from bson.son import SON

from gmongo._background import LongWork
from gmongo.change_stream import ChangeStream
from gmongo.client_session import ClientSession
from gmongo.collation import Collation
from gmongo.collection import Collection
from gmongo.errors import ConfigurationError, InvalidName, OperationFailure
from gmongo.operations import DeleteOne, InsertOne, SearchIndexModel
from gmongo.read_concern import ReadConcern
from gmongo.testing import Deployment
from gmongo.write_concern import WriteConcern

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with Deployment.replica_set(1) as deployment, recorded_collection(deployment.uri) as recorded:
        yield recorded


def test_all_commands_of_a_cursor_have_its_session(recorded: Recorded) -> None:
    collection, recorder = recorded
    collection.insert_many([{"_id": number} for number in range(9)])
    cursors = (
        lambda: collection.find(batch_size=2),
        lambda: collection.aggregate([], batchSize=2),
        lambda: collection.database.cursor_command("find", collection.name, batchSize=2),
        lambda: collection.aggregate_raw_batches([], batchSize=2),
    )
    for make in cursors:
        recorder.forget()
        cursor: Any = make()
        for _ in range(3):
            next(cursor)
        cursor.close()
        sent = {event.command_name: event.command["lsid"] for event in recorder.of("CommandStarted")}
        assert len(sent) > 1 and len({lsid["id"] for lsid in sent.values()}) == 1, sent.keys()


def test_the_documents_of_a_cursor_command_are_of_the_type_that_is_asked_for(recorded: Recorded) -> None:
    collection, _ = recorded
    collection.insert_one({"_id": 1, "a": {"b": 2}})
    options: CodecOptions[Any] = CodecOptions(document_class=SON)
    (found,) = collection.database.cursor_command("find", collection.name, codec_options=options)
    assert type(found) is SON and type(found["a"]) is SON
    (found,) = collection.database.cursor_command("find", collection.name)
    assert type(found) is dict


@pytest.mark.parametrize(("given", "sent"), [("_id_", "_id_"), ([("a", 1)], {"a": 1}), ("a_1", "a_1")])
def test_the_hint_of_a_count(recorded: Recorded, given: Any, sent: Any) -> None:
    collection, recorder = recorded
    collection.create_index("a")
    assert collection.count_documents({}, hint=given) == 0
    assert recorder.of("CommandStarted")[-1].command["hint"] == sent


def test_a_collection_is_created_with_what_is_given(recorded: Recorded) -> None:
    collection, recorder = recorded
    named = f"{collection.name}.x"
    Collection(collection.database, named)
    assert not recorder.of("CommandStarted")
    Collection(collection.database, named, capped=True, size=4096)
    (created,) = recorder.of("CommandStarted")
    assert created.command["create"] == named and created.command["capped"] is True
    Collection(collection.database, f"{named}.y", create=True)
    assert recorder.of("CommandStarted")[-1].command["create"] == f"{named}.y"
    for name in (named, f"{named}.y"):
        collection.database.drop_collection(name)


def test_search_indexes_are_made_in_the_session_that_is_given(recorded: Recorded) -> None:
    collection, recorder = recorded
    client = collection.database.client
    model = SearchIndexModel({"mappings": {"dynamic": True}}, "x")
    with client.start_session() as session:
        for call in (
            lambda: collection.create_search_index(model, session),
            lambda: collection.update_search_index("x", {}, session),
            lambda: collection.drop_search_index("x", session),
        ):
            recorder.forget()
            with pytest.raises(OperationFailure):
                call()
            assert [event.command["lsid"] for event in recorder.of("CommandStarted")] == [session.session_id]


@pytest.mark.parametrize("method", ["next", "try_next"])
def test_a_batch_that_is_decoded_piece_by_piece_passes_checkpoints(
    recorded: Recorded, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[Any] = []
    monkeypatch.setattr(LongWork, "checkpoint", lambda work: passed.append(work))
    collection, _ = recorded
    collection.insert_many([{"_id": number, "x": "x" * 1000} for number in range(300)])
    with collection.aggregate([{"$sort": {"_id": 1}}], batchSize=300) as cursor:
        step = getattr(cursor, method)
        step()
        before = len(passed)
        assert [step()["_id"] for _ in range(299)] == list(range(1, 300))
    assert len(passed) - before > 5


@pytest.mark.parametrize(("name", "is_one"), [("$external", True), ("$externalX", False), ("$other", False)])
def test_the_one_database_with_a_dollar(recorded: Recorded, name: str, is_one: bool) -> None:
    client = recorded.collection.database.client
    if is_one:
        assert client[name].name == name
    else:
        with pytest.raises(InvalidName):
            client[name]


WRITES: dict[str, Callable[[Collection[Any]], object]] = {
    "insert": lambda it: it.insert_one({"_id": 1}),
    "update": lambda it: it.update_one({"_id": 1}, {"$set": {"a": 1}}),
    "delete": lambda it: it.delete_one({"_id": 1}),
    "findAndModify": lambda it: it.find_one_and_delete({"_id": 1}),
    "createIndexes": lambda it: it.create_index("a"),
    "dropIndexes": lambda it: it.drop_index("a_1"),
    "create": lambda it: it.database.create_collection(f"{it.name}.x", write_concern=CONCERN),
    "renameCollection": lambda it: it.database[f"{it.name}.x"].with_options(write_concern=CONCERN).rename("renamed"),
    "drop": lambda it: it.drop(),
    "aggregate": lambda it: it.aggregate([{"$out": "renamed"}]),
    "bulkWrite": lambda it: it.database.client.bulk_write([InsertOne({}, it.full_name)], write_concern=CONCERN),
}
READS: dict[str, Callable[[Collection[Any]], object]] = {
    "find": lambda it: it.find_one(),
    "aggregate": lambda it: it.aggregate([]),
    "count": lambda it: it.estimated_document_count(),
    "distinct": lambda it: it.distinct("a"),
}
CONCERN = WriteConcern(w=1, wtimeout=77)


def test_what_writes_carries_the_write_concern(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, write in WRITES.items():
        recorder.forget()
        write(collection.with_options(write_concern=CONCERN))
        (sent,) = [event.command for event in recorder.of("CommandStarted") if event.command_name == name]
        assert sent["writeConcern"] == {"w": 1, "wtimeout": 77}, name
    collection.database.drop_collection("renamed")


def test_what_reads_carries_the_read_concern(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, read in READS.items():
        recorder.forget()
        read(collection.with_options(read_concern=ReadConcern("majority"), write_concern=CONCERN))
        (sent,) = [event.command for event in recorder.of("CommandStarted") if event.command_name == name]
        assert sent["readConcern"] == {"level": "majority"} and "writeConcern" not in sent, name


def test_a_change_stream_that_was_not_made_leaves_nothing() -> None:
    stream: ChangeStream[Any] = ChangeStream.__new__(ChangeStream)
    assert not stream.alive
    stream.__del__()


FRENCH = Collation("fr")
COLLATED: dict[str, Callable[[Collection[Any]], object]] = {
    "find": lambda it: it.find_one({}, collation=FRENCH),
    "aggregate": lambda it: it.aggregate([], collation=FRENCH),
    "distinct": lambda it: it.distinct("a", collation=FRENCH),
    "update": lambda it: it.update_one({}, {"$set": {"a": 1}}, collation=FRENCH),
    "delete": lambda it: it.delete_one({}, collation=FRENCH),
    "findAndModify": lambda it: it.find_one_and_delete({}, collation=FRENCH),
    "create": lambda it: it.database.create_collection(f"{it.name}.collated", collation=FRENCH),
    "createIndexes": lambda it: it.create_index("a", collation=FRENCH),
    "bulkWrite": lambda it: it.database.client.bulk_write([DeleteOne({}, FRENCH, namespace=it.full_name)]),
}


def test_a_collation_may_be_an_object(recorded: Recorded) -> None:
    collection, recorder = recorded
    for name, call in COLLATED.items():
        recorder.forget()
        call(collection)
        (sent,) = [event.command for event in recorder.of("CommandStarted") if event.command_name == name]
        found = [sent, *(sent.get(field, [{}])[0] for field in ("updates", "deletes", "indexes", "ops"))]
        assert [each["collation"] for each in found if "collation" in each] == [{"locale": "fr"}], name
    recorder.forget()
    assert collection.count_documents({}, collation=FRENCH) == 0
    assert recorder.of("CommandStarted")[0].command["collation"] == {"locale": "fr"}
    collection.database.drop_collection(f"{collection.name}.collated")


@pytest.mark.parametrize("ended", [None, False, True])
def test_dropped_session_is_released_unless_it_has_ended_or_is_half_made(ended: bool | None) -> None:
    session: Any = ClientSession.__new__(ClientSession)
    state, ending = Mock(has_ended=ended), Mock()
    if ended is not None:
        session._state, session._ending = state, ending
    session.__del__()
    assert state.release.called is ending.leave.called is (ended is False)
    state.has_ended = True


@pytest.mark.parametrize("name", ["ordered", "verbose_results"])
def test_a_flag_of_a_bulk_names_itself(recorded: Recorded, name: str) -> None:
    client = recorded.collection.database.client
    model = InsertOne({}, recorded.collection.full_name)
    with pytest.raises(TypeError, match=rf"^{name} must be "):
        client.bulk_write([model], **{name: 5})


@pytest.mark.parametrize("name", ["aggregate", "explain", "pipeline"])
def test_what_is_no_option_of_an_aggregation(recorded: Recorded, name: str) -> None:
    given: dict[str, Any] = {name: "other"}
    with pytest.raises((ConfigurationError, TypeError), match=name):
        recorded.collection.aggregate([], **given)
    assert not recorded.recorder.of("CommandStarted")
