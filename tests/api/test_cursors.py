from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.cursor import CursorType
from gmongo.errors import AutoReconnect
from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cursor_reply

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


CURSOR_FACTORIES = {
    "find": lambda collection: collection.find(batch_size=4),
    "aggregate": lambda collection: collection.aggregate([], batchSize=4),
}


@pytest.fixture(params=CURSOR_FACTORIES)
def cursor(recording: Recording, request: pytest.FixtureRequest) -> Any:
    """Return a cursor that reads 10 documents in batches of 4 documents."""
    return CURSOR_FACTORIES[request.param](recording.collection)


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
