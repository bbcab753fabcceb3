from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo import MongoClient
from gmongo.cursor import CursorType
from gmongo.errors import AutoReconnect, ConfigurationError, ProtocolError
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

from .recording import Recorded, recorded_collection


@pytest.fixture
def recorded(database: str) -> Iterator[Recorded]:
    """A collection of ten documents, numbered from 0."""
    with recorded_collection(database) as recorded:
        recorded.collection.insert_many([{"_id": n, "name": f"n{n}"} for n in range(10)])
        recorded.recorder.forget()
        yield recorded


@pytest.fixture
def large(database: str) -> Iterator[Recorded]:
    """A collection of 6 MB, more than is decoded at once."""
    with recorded_collection(database) as recorded:
        recorded.collection.insert_many([{"_id": n, "text": f"{n:06}" * 1000} for n in range(1000)])
        recorded.recorder.forget()
        yield recorded


def ids(documents: Any) -> list[Any]:
    return [document["_id"] for document in documents]


# Batches


def test_batches_are_fetched_as_they_are_needed(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = collection.find(batch_size=4, comment="why")
    assert ids(next(cursor) for _ in range(4)) == [0, 1, 2, 3]
    assert recorder.commands == ["find"]
    assert cursor.cursor_id
    assert cursor.address == collection.database.client.address
    assert cursor.retrieved == 4
    assert ids(cursor) == [4, 5, 6, 7, 8, 9]
    assert recorder.commands == ["find", "getMore", "getMore"]
    assert (cursor.alive, cursor.retrieved, cursor.cursor_id) == (False, 10, 0)
    get_more = recorder.sent("getMore")[0]
    assert isinstance(get_more["getMore"], bson.Int64)
    assert (get_more["collection"], get_more["batchSize"], get_more["comment"]) == (collection.name, 4, "why")


def test_next_after_the_end_stops_again_and_asks_no_server(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = collection.find({"_id": 1})
    assert next(cursor) == {"_id": 1, "name": "n1"}
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(cursor)
    assert recorder.commands == ["find"]


# Closing


def test_close_kills_the_cursor_once(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = collection.find(batch_size=2)
    next(cursor)
    cursor_id = cursor.cursor_id
    cursor.close()
    cursor.close()
    assert recorder.command("killCursors")["cursors"] == [cursor_id]
    assert recorder.of("CommandSucceeded")[-1].reply["cursorsKilled"] == [cursor_id]
    assert (cursor.alive, cursor.cursor_id) == (True, 0)  # for what was buffered
    assert [each["_id"] for each in cursor] == [1]
    assert not cursor.alive
    assert list(cursor) == []


def test_a_with_closes_whatever_happens(recorded: Recorded) -> None:
    collection, recorder = recorded
    with pytest.raises(RuntimeError), collection.find(batch_size=2) as cursor:
        next(cursor)
        raise RuntimeError
    with collection.aggregate([{"$match": {}}], batchSize=2):
        pass
    assert recorder.commands == ["find", "killCursors", "aggregate", "killCursors"]


@pytest.mark.parametrize(
    "opened",
    [
        lambda collection: collection.find(batch_size=2),
        lambda collection: collection.aggregate([{"$match": {}}], batchSize=2),
        lambda collection: collection.find_raw_batches(batch_size=2),
    ],
    ids=["find", "aggregate", "raw"],
)
def test_a_dropped_cursor_is_killed_in_the_background(recorded: Recorded, opened: Any) -> None:
    collection, recorder = recorded
    cursor = opened(collection)
    next(cursor)
    cursor_id = cursor.cursor_id
    del cursor
    gc.collect()
    eventually(lambda: recorder.sent("killCursors"))
    assert recorder.command("killCursors")["cursors"] == [cursor_id]


def test_the_session_of_a_dropped_cursor_is_used_again(recorded: Recorded) -> None:
    collection, recorder = recorded
    cursor = collection.find(batch_size=2)
    next(cursor)
    session_id = recorder.command("find")["lsid"]
    del cursor
    gc.collect()
    eventually(lambda: recorder.sent("killCursors"))
    eventually(lambda: not collection.database.client._executor.sessions.in_use)
    recorder.forget()
    collection.find_one()
    assert recorder.command("find")["lsid"] == session_id


def test_closing_the_client_kills_dropped_cursors_first(recorded: Recorded, database: str) -> None:
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(database, event_listeners=[recorder]) as client:
        cursor = client.gmongo_tests[recorded.collection.name].find(batch_size=2)
        next(cursor)
        del cursor
        gc.collect()
    assert recorder.commands == ["find", "killCursors", "endSessions"]


# Copies, indexes, slices


def test_deep_copy_of_a_filter_that_refers_to_itself(recorded: Recorded) -> None:
    query: dict[str, Any] = {"a": []}
    query["a"].append(query)
    copied: Any = copy.deepcopy(recorded.collection.find(query))._filter
    assert copied is not query
    assert copied["a"][0] is copied


def test_hint_of_a_cursor_is_not_sent_with_distinct(recorded: Recorded) -> None:
    assert len(recorded.collection.find({}, hint="_id_").distinct("name")) == 10
    assert "hint" not in recorded.recorder.command("distinct")


def test_index_into_a_tailable_cursor_is_an_ordinary_query(recorded: Recorded) -> None:
    cursor = recorded.collection.find(cursor_type=CursorType.TAILABLE_AWAIT)
    assert cursor[2]["_id"] == 2
    assert not {"tailable", "awaitData"} & recorded.recorder.command("find").keys()


CURSORS = {
    "find": lambda notes: notes.find(batch_size=4),
    "aggregate": lambda notes: notes.aggregate([], batchSize=4),
}


@pytest.fixture(params=CURSORS)
def cursor(recorded: Recorded, request: pytest.FixtureRequest) -> Any:
    """A cursor over ten documents, in batches of four."""
    return CURSORS[request.param](recorded.collection)


def test_iterating_and_next_take_turns(cursor: Any) -> None:
    """Whatever takes a document, no other gets it: the iterators hold nothing back."""
    first, second = iter(cursor), iter(cursor)
    found = [take()["_id"] for _ in range(3) for take in (cursor.next, first.__next__, second.__next__)]
    assert found == list(range(9))
    assert (list(islice(cursor, 5)), cursor.alive, list(second)) == ([{"_id": 9, "name": "n9"}], False, [])


def test_cursor_is_not_alive_after_its_with_block_without_a_query(collection: Any) -> None:
    with collection.find() as cursor:
        assert cursor.alive
    assert not cursor.alive


def test_what_has_come_can_be_taken_after_a_close(cursor: Any) -> None:
    found = []
    for document in cursor:
        found.append(document["_id"])
        if document["_id"] == 5:
            cursor.close()
    assert found == list(range(8))
    assert not cursor.alive


def test_a_rewind_holds_for_an_iteration_that_goes_on(recorded: Recorded) -> None:
    cursor = recorded.collection.find(batch_size=4)
    iterator = iter(cursor)
    assert [next(iterator)["_id"] for _ in range(6)] == list(range(6))
    cursor.rewind()
    assert [document["_id"] for document in iterator] == list(range(10))


def test_iteration_raises_after_an_interrupted_get_more(cursor: Any, recorded: Recorded) -> None:
    class Interruption(BaseException):
        pass

    def interrupt(_event: object) -> None:
        recorded.recorder.hooks.clear()
        raise Interruption

    found = [next(cursor)["_id"]]
    recorded.recorder.hooks["CommandStarted"] = interrupt
    with pytest.raises(Interruption):
        found.extend(document["_id"] for document in cursor)
    assert found == list(range(4))
    assert not cursor.alive
    for _ in range(2):  # the documents of the interrupted batch are lost, and no greenlet may take this for the end
        with pytest.raises(AutoReconnect, match="a getMore was interrupted, which has ended the cursor early"):
            list(cursor)
    cursor.close()
    assert list(cursor) == []


# Raw and large batches


def test_a_batch_of_several_megabytes_comes_out_whole(large: Recorded) -> None:
    collection, recorder = large
    documents = list(collection.find(batch_size=1000))
    assert documents == [{"_id": n, "text": f"{n:06}" * 1000} for n in range(1000)]
    assert "find" in recorder.commands


def test_a_large_batch_is_decoded_in_small_parts(large: Recorded) -> None:
    cursor = large.collection.find(batch_size=1000)
    next(cursor)
    assert cursor._cursor is not None
    assert 0 < length_hint(cursor._cursor.documents) < 100


def test_a_large_batch_counts_against_the_limit(large: Recorded) -> None:
    cursor = large.collection.find(limit=700, batch_size=300)
    assert ids(cursor) == list(range(700))
    assert cursor.retrieved == 700


@pytest.mark.parametrize(
    "codec_options", [CodecOptions(), CodecOptions(document_class=RawBSONDocument)], ids=["dict", "raw"]
)
def test_retrieved_counts_the_documents_of_large_batches(large: Recorded, codec_options: Any) -> None:
    cursor = large.collection.with_options(codec_options=codec_options).find()
    documents = list(cursor)
    assert len(documents) == cursor.retrieved == 1000


@pytest.mark.parametrize("wanted", ["large", "typed"])
def test_events_show_the_documents_of_a_reply(large: Recorded, wanted: str) -> None:
    collection, recorder = large
    if wanted == "typed":
        collection = collection.with_options(codec_options=CodecOptions(document_class=RawBSONDocument))
    found = collection.find({}, {"_id": 1} if wanted == "typed" else None, limit=200).to_list()
    shown = list(recorder.of("CommandSucceeded")[0].reply["cursor"]["firstBatch"])
    assert shown
    assert shown == found[: len(shown)]


FLAGS = {2: "tailable", 8: "oplogReplay", 16: "noCursorTimeout", 32: "awaitData", 128: "allowPartialResults"}


@pytest.mark.parametrize("flags", [*FLAGS, 0, 2 | 32, 16 | 128, sum(FLAGS)])
def test_each_flag_is_a_field_of_the_command(flags: int) -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        cursor = client.db.c.find()
        cursor.add_option(sum(FLAGS))
        cursor.remove_option(sum(FLAGS) & ~flags)
        next(cursor, None)
        cursor.close()
        (command,) = server.commands("find")
    assert {name: command.get(name) for name in FLAGS.values()} == {
        name: True if flags & flag else None for flag, name in FLAGS.items()
    }


def test_a_server_without_snapshots_is_not_asked_for_one() -> None:
    with ScriptedServer() as server:
        server.hello_extra["maxWireVersion"] = 12
        with MongoClient[Any](server.name) as client, client.start_session(snapshot=True) as session:
            with pytest.raises(ConfigurationError, match=r"Snapshot reads require MongoDB 5\.0"):
                client.db.c.find_one(session=session)
            assert server.commands("find") == []


CURSOR = {"id": bson.Int64(0), "ns": "db.c", "firstBatch": []}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({}, "a reply lacks the field cursor"),
        ({"cursor": 5}, "cursor of a reply must be a document, not 5"),
        *(({"cursor": {each: CURSOR[each] for each in CURSOR if each != name}}, f"a cursor lacks the field {name}")
          for name in CURSOR),
        *(({"cursor": {**CURSOR, name: 1.5}}, f"{name} of a cursor must be ") for name in CURSOR),
        ({"cursor": {**CURSOR, "postBatchResumeToken": 5}}, "postBatchResumeToken of a cursor must be a document"),
    ],
)  # fmt: skip
def test_a_reply_that_opens_no_cursor_says_what_it_lacks(reply: dict[str, Any], message: str) -> None:
    with (
        ScriptedServer({"find": {"ok": 1, **reply}}) as server,
        MongoClient[Any](server.name) as client,
        pytest.raises(ProtocolError, match=f"^{message}"),
    ):
        next(client.db.c.find())
