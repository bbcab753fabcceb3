from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.cursor import CursorType
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure
from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cursor_reply, hold_reply

from .recording import Recording, recorded_collection


@pytest.fixture
def recording(mongodb_uri: str) -> Iterator[Recording]:
    """Yield a collection with the `_id` values 0 to 9, and the recorder of its client."""
    with recorded_collection(mongodb_uri) as recording:
        recording.collection.insert_many([{"_id": n, "name": f"n{n}"} for n in range(10)])
        recording.recorder.clear()
        yield recording


def test_client_close_kills_dropped_cursors_before_end_sessions(recording: Recording, mongodb_uri: str) -> None:
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(mongodb_uri, event_listeners=[recorder]) as client:
        cursor = client.gmongo_tests[recording.collection.name].find(batch_size=2)
        next(cursor)
        del cursor
        gc.collect()
    assert recorder.commands == ["find", "killCursors", "endSessions"]


def test_open_cursor_after_single_batch_is_killed() -> None:
    with ScriptedServer({"find": cursor_reply([{"_id": 1}], 7)}) as server, MongoClient[Any](server.name) as client:
        assert list(client.db.c.find(limit=-3)) == [{"_id": 1}]
        server.wait_for("killCursors")
        assert server.commands("getMore") == []


def test_distinct_of_cursor_omits_hint(recording: Recording) -> None:
    assert len(recording.collection.find({}, hint="_id_").distinct("name")) == 10
    assert "hint" not in recording.recorder.command("distinct")


def test_index_into_tailable_cursor_sends_plain_find(recording: Recording) -> None:
    cursor = recording.collection.find(cursor_type=CursorType.TAILABLE_AWAIT)
    assert cursor[2]["_id"] == 2
    assert not {"tailable", "awaitData"} & recording.recorder.command("find").keys()


def numbered(*numbers: int) -> list[dict[str, int]]:
    return [{"_id": number} for number in numbers]


CALLS_THAT_CHANGE_QUERY: dict[str, tuple[Any, ...]] = {
    "sort": ("a",), "skip": (1,), "limit": (1,), "batch_size": (1,), "read_ahead": (), "hint": ("a",),
    "comment": ("x",), "max_time_ms": (1,), "max_await_time_ms": (1,), "max_scan": (1,), "max": ({"a": 1},),
    "min": ({"a": 1},), "collation": ({"locale": "fr"},), "allow_disk_use": (True,), "where": ("x",),
    "add_option": (2,), "remove_option": (2,), "__getitem__": (0,),
}  # fmt: skip


def test_query_of_running_cursor_cannot_change() -> None:
    replies = {"find": cursor_reply(numbered(1), 7), "getMore": cursor_reply(numbered(2), 0, "nextBatch")}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        cursor = client.db.c.find().max_await_time_ms(5)
        assert next(cursor) == {"_id": 1}
        assert (cursor.alive, cursor.cursor_id, cursor.address, cursor.retrieved) == (True, 7, server.address, 1)
        for method, arguments in CALLS_THAT_CHANGE_QUERY.items():
            with pytest.raises(InvalidOperation, match=r"^cannot set options after executing query$"):
                getattr(cursor, method)(*arguments)
        assert cursor.to_list() == numbered(2) and "maxTimeMS" not in server.commands("getMore")[0]
        assert len(list(client.db.c.find_raw_batches(limit=4))) == 2
        assert (cursor.alive, cursor.cursor_id, cursor.address, cursor.retrieved) == (False, 0, server.address, 2)


@pytest.mark.parametrize("mask", [16, 128])
def test_only_tailable_cursor_ends_iteration_after_empty_batch(mask: int) -> None:
    batches = [cursor_reply([], 7, "nextBatch"), cursor_reply(numbered(1), 0, "nextBatch")] * 2
    replies = {"find": cursor_reply([], 7), "getMore": lambda _command: batches.pop(0)}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        assert next(client.db.c.find().add_option(mask)) == {"_id": 1}
        tailable_cursor = client.db.c.find().add_option(mask | 2)
        assert next(tailable_cursor, None) is None and tailable_cursor.alive
        assert next(tailable_cursor) == {"_id": 1} and not tailable_cursor.alive


def test_error_of_query_reaches_greenlet_that_waits_for_query() -> None:
    gate = Event()
    with ScriptedServer({"find": {"ok": 0, "code": 8}}) as server, MongoClient[Any](server.name) as client:
        server.fail("find", hold_reply(gate))
        cursor = client.db.c.find()
        readers = [gevent.spawn(next, cursor) for _ in range(2)]
        server.wait_for("find")
        gate.set()
        gevent.joinall(readers, timeout=5)
        assert ({type(each.exception) for each in readers}, len(server.commands("find"))) == ({OperationFailure}, 1)


def test_index_and_slice_send_skip_and_limit() -> None:
    with ScriptedServer({"find": cursor_reply(numbered(1))}) as server, MongoClient[Any](server.name) as client:
        cursor = client.db.c.find(skip=3, limit=9)
        assert cursor[2] == {"_id": 1}
        assert list(cursor[2:2]) == [] and list(cursor.limit(4)) == numbered(1)
        server.replies["find"] = cursor_reply([])
        with pytest.raises(IndexError, match=r"^no such item for Cursor instance$"):
            client.db.c.find()[0]
        with pytest.raises(InvalidOperation, match=r"^Cannot call __getitem__ on RawBatchCursor$"):
            client.db.c.find_raw_batches()[0]
        sent = [tuple(map(each.get, ("skip", "limit", "singleBatch"))) for each in server.commands("find")]
        assert sent == [(5, 1, True), (2, 4, None), (None, 1, True)]


CURSOR_FACTORIES = {
    "find": lambda collection: collection.find(batch_size=4),
    "aggregate": lambda collection: collection.aggregate([], batchSize=4),
}


@pytest.fixture(params=CURSOR_FACTORIES)
def cursor(recording: Recording, request: pytest.FixtureRequest) -> Any:
    """Return a cursor that reads 10 documents in batches of 4 documents."""
    return CURSOR_FACTORIES[request.param](recording.collection)


def test_command_cursor_has_address_and_only_explicit_session(recording: Recording) -> None:
    client = recording.collection.database.client
    with client.start_session() as session:
        cursors = [recording.collection.aggregate([], session=each, batchSize=4) for each in (session, None)]
        assert [each.session for each in cursors] == [session, None]
        assert {each.address for each in cursors} == {client.address} and all(each.cursor_id for each in cursors)


@pytest.mark.parametrize(("batch_size", "sent_size"), [(0, None), (1, 2), (2, 2), (7, 7)])
def test_get_more_of_command_cursor_has_changed_batch_size(
    recording: Recording, batch_size: int, sent_size: int | None
) -> None:
    cursor = recording.collection.aggregate([], batchSize=4)
    assert cursor.batch_size(batch_size) is cursor
    assert [each["_id"] for each in cursor] == list(range(10))
    assert recording.recorder.sent_commands("getMore")[0].get("batchSize") == sent_size
    with pytest.raises(ValueError, match=r"^batch_size must be >= 0, not -1$"):
        cursor.batch_size(-1)
    for value in (True, 1.5):
        with pytest.raises(TypeError, match=rf"^batch_size must be an integer, not {value}$"):
            cursor.batch_size(value)  # type: ignore[arg-type]


def test_next_and_iterators_of_one_cursor_return_each_document_once(cursor: Any) -> None:
    first, second = iter(cursor), iter(cursor)
    numbers = [read()["_id"] for _ in range(3) for read in (cursor.next, first.__next__, second.__next__)]
    assert numbers == list(range(9))
    assert (list(islice(cursor, 5)), cursor.alive, list(second)) == ([{"_id": 9, "name": "n9"}], False, [])


def test_closed_cursor_returns_documents_in_its_buffer(cursor: Any) -> None:
    numbers = []
    for document in cursor:
        numbers.append(document["_id"])
        if document["_id"] == 5:
            cursor.close()
    assert numbers == list(range(8))
    assert not cursor.alive


def test_rewind_restarts_a_running_iteration(recording: Recording) -> None:
    cursor = recording.collection.find(batch_size=4)
    iterator = iter(cursor)
    assert [next(iterator)["_id"] for _ in range(6)] == list(range(6))
    cursor.rewind()
    assert recording.recorder.commands[-1] == "killCursors"
    assert [document["_id"] for document in iterator] == list(range(10))


def test_iteration_raises_after_an_interrupted_get_more(cursor: Any, recording: Recording) -> None:
    class Interruption(BaseException):
        pass

    def interrupt(_event: object) -> None:
        recording.recorder.hooks.clear()
        raise Interruption

    numbers = [next(cursor)["_id"]]
    recording.recorder.hooks["CommandStarted"] = interrupt
    with pytest.raises(Interruption):
        numbers.extend(document["_id"] for document in cursor)
    assert numbers == list(range(4))
    assert not cursor.alive
    # The documents of the interrupted `getMore` are lost, so a further iteration must not end
    # silently.
    for _ in range(2):
        with pytest.raises(AutoReconnect, match="a getMore was interrupted, which has ended the cursor early"):
            list(cursor)
    cursor.close()
    assert list(cursor) == []


HELLO_COMMANDS = ("hello", "isMaster", "ismaster")


def test_get_more_after_failed_heartbeat_waits_for_server_selection() -> None:
    recorder = Recorder()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](
            deployment.uri, heartbeatFrequencyMS=500, appName="checked", event_listeners=[recorder]
        ) as client,
    ):
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        cursor = client.db.c.find({}, batch_size=1)
        next(cursor)
        fail(deployment, *HELLO_COMMANDS, times=4, closeConnection=True, appName="checked")
        recorder.wait_for("HeartbeatFailed")
        assert [each["_id"] for each in cursor.to_list()] == [1, 2, 3, 4]
