"""The next batch is on its way while the application uses this one, and no further."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import gevent
import gevent.subprocess
import pytest
from bson import ObjectId
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.errors import InvalidBSON
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.errors import (
    AutoReconnect,
    CursorNotFound,
    InvalidOperation,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
)
from gmongo.gridfs import GridFS
from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.programs import TIMEOUT
from tests.support.server import ScriptedServer, cursor_reply, cut, held
from tests.support.wait import eventually


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server with a cursor that never ends: of two documents in a batch."""
    with ScriptedServer() as server:
        numbers = count()

        def batch(field: str) -> dict[str, Any]:
            return cursor_reply([{"_id": next(numbers)}, {"_id": next(numbers)}], 7, field)

        server.replies["find"] = lambda command: batch("firstBatch")
        server.replies["getMore"] = lambda command: batch("nextBatch")
        yield server


@pytest.fixture
def many(deployment: Deployment, client: Any) -> Any:
    """A collection of twenty documents."""
    client.db.c.insert_many([{"_id": number, "text": "x" * 100} for number in range(20)])
    return client.db.c


def at_rest(client: Any) -> bool:
    """Whether no connection and no session is in use."""
    busy = any(stats["in_use"] for stats in client.pool_stats())
    return not busy and client._executor.sessions.in_use == 0 and not client._cursor_killer.reading


def open_cursors(deployment: Deployment) -> int:
    return deployment._cluster.store._state.cursors.count()


# What comes, and when


@pytest.mark.parametrize("batches", [1, 2, 50])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 19, 20, 21])
def test_the_documents_are_those_of_any_cursor(many: Any, batch_size: int, batches: int) -> None:
    assert [each["_id"] for each in many.find(batch_size=batch_size).read_ahead(batches)] == list(range(20))
    assert [each["_id"] for each in many.aggregate([], batchSize=batch_size).read_ahead(batches)] == list(range(20))
    assert at_rest(many.database.client)


@pytest.mark.parametrize("size", [10, 30_000])
@pytest.mark.parametrize("limit", [1, 5, 6, 7, 19, 20, 25])
def test_a_limit_holds_and_is_told_to_the_server(
    deployment: Deployment, client: Any, recorder: Any, limit: int, size: int
) -> None:
    client.db.c.insert_many([{"_id": number, "text": "x" * size} for number in range(20)])

    def sizes(cursor: Any) -> list[Any]:
        recorder.forget()
        assert [each["_id"] for each in cursor] == list(range(min(limit, 20)))
        return [command.get("batchSize") for command in recorder.sent("getMore")]

    assert sizes(client.db.c.find(batch_size=5, limit=limit).read_ahead()) == sizes(
        client.db.c.find(batch_size=5, limit=limit)
    )
    assert open_cursors(deployment) == 0


def test_the_next_batch_is_asked_for_before_the_first_document_is_used(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    cursor = client.db.c.find().read_ahead()
    assert next(cursor) == {"_id": 0}
    server.wait_for("getMore")
    assert next(cursor) == {"_id": 1}
    gevent.sleep(0.02)
    assert len(server.commands("getMore")) == 1  # there is room for one only
    assert next(cursor) == {"_id": 2}
    server.wait_for("getMore", 2)
    cursor.close()


def test_a_read_ahead_is_sent_although_the_application_never_yields(server: ScriptedServer, connect: Any) -> None:
    """An application that computes would otherwise hold back the request until it asks for the batch."""
    client = connect(server)
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    pool = client._topology.pools()[0]
    assert [each.mid_message for each in pool.machine.in_use] == [True]  # without a switch since then
    cursor.close()


@pytest.mark.parametrize("batches", [1, 3])
def test_no_more_batches_than_allowed_wait(server: ScriptedServer, connect: Any, batches: int) -> None:
    cursor = connect(server).db.c.find().read_ahead(batches)
    next(cursor)
    server.wait_for("getMore", batches)
    gevent.sleep(0.05)
    assert len(server.commands("getMore")) == batches
    cursor.close()


def test_no_more_bytes_than_allowed_wait(server: ScriptedServer, connect: Any) -> None:
    """The second batch was of 30 KB, so the third is expected to be."""
    server.replies["getMore"] = lambda command: cursor_reply([{"text": "x" * 30_000}], 7, "nextBatch")
    cursor = connect(server).db.c.find().read_ahead(10, max_bytes=100_000)
    next(cursor)
    server.wait_for("getMore", 3)
    gevent.sleep(0.05)
    assert len(server.commands("getMore")) == 3
    next(cursor)
    next(cursor)
    server.wait_for("getMore", 4)
    cursor.close()


def test_files_are_read_ahead(client: Any, recorder: Any) -> None:
    fs = GridFS(client.db)
    data = bytes(range(256)) * 4096
    number = fs.put(data, chunkSize=4096)
    recorder.forget()
    with fs.get(number).read_ahead(2) as file:
        assert file.read(1) == data[:1]
        eventually(lambda: len(recorder.sent("getMore")) >= 1)  # though the first batch has chunks that are not read
        assert file.read() == data[1:]
        file.seek(5000)
        assert file.read(100) == data[5000:5100]
    eventually(lambda: at_rest(client))


class Numbers(TypeDecoder):  # type: ignore[misc]
    """Says when a document is decoded, by its number."""

    bson_type = float

    def __init__(self) -> None:
        self.decoded: list[int] = []

    def transform_bson(self, value: Any) -> Any:
        if value < 0:
            raise ValueError("negative")
        self.decoded.append(int(value))
        return value


@pytest.fixture
def numbers(deployment: Deployment) -> Iterator[tuple[Any, Numbers]]:
    """A collection of 200 documents of a kilobyte, of a client without listeners, and what it decodes."""
    codec = Numbers()
    options: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([codec]))
    client: MongoClient[Any]
    with MongoClient(deployment.uri) as client:
        client.db.c.insert_many([{"_id": number, "at": float(number), "text": "x" * 1000} for number in range(200)])
        yield client.db.c.with_options(codec_options=options), codec


def test_a_batch_that_waits_is_decoded_while_the_application_waits(numbers: tuple[Any, Numbers]) -> None:
    collection, codec = numbers
    cursor = collection.find(batch_size=100).read_ahead()
    assert next(cursor)["_id"] == 0
    eventually(lambda: codec.decoded[-1:] == [199])
    assert [each["_id"] for each in cursor] == list(range(1, 200))
    assert sorted(codec.decoded) == list(range(200))  # each once


def test_what_cannot_be_decoded_is_an_error_where_it_stands(numbers: tuple[Any, Numbers]) -> None:
    collection, codec = numbers
    collection.update_one({"_id": 150}, {"$set": {"at": -1.0}})
    for cursor in (collection.find(batch_size=100), collection.find(batch_size=100).read_ahead()):
        codec.decoded.clear()
        seen = []
        with pytest.raises(InvalidBSON, match="negative"):
            for each in cursor:
                seen.append(each["_id"])
                if each["_id"] == 0 and cursor._ahead:
                    eventually(lambda: max(codec.decoded) > 100)
        assert seen[-1] < 150
        assert seen[:101] == list(range(101))
        cursor.close()


def test_large_batches_wait_undecoded(numbers: tuple[Any, Numbers], monkeypatch: pytest.MonkeyPatch) -> None:
    collection, codec = numbers
    monkeypatch.setattr("gmongo.engines.read_ahead._DECODED", 100_000)
    cursor = collection.find(batch_size=100).read_ahead()
    next(cursor)
    eventually(lambda: not collection.database.client._cursor_killer.reading)
    gevent.sleep(0.02)
    assert max(codec.decoded) < 100
    assert len(list(cursor)) == 199


# Errors


def test_an_error_is_raised_where_its_batch_would_have_begun(many: Any, deployment: Deployment) -> None:
    cursor = many.find(batch_size=5).read_ahead(10)
    fail(deployment, "getMore", errorCode=11601)  # the first one comes before this
    seen = []
    with pytest.raises(OperationFailure) as caught:
        seen.extend(each["_id"] for each in cursor)
    assert caught.value.code == 11601
    assert seen == list(range(5))
    assert not cursor.alive
    with pytest.raises(StopIteration):
        next(cursor)
    eventually(lambda: at_rest(many.database.client) and open_cursors(deployment) == 0)


def test_what_has_come_before_an_error_is_delivered(server: ScriptedServer, connect: Any) -> None:
    server.fail("getMore", lambda peer, message: peer.send(message), cut(5))
    client = connect(server)
    cursor = client.db.c.find().read_ahead(5)
    seen = [next(cursor)["_id"]]
    server.wait_for("getMore", 2)
    eventually(lambda: not client._cursor_killer.reading)  # the error is there already
    with pytest.raises(AutoReconnect):
        seen.extend(each["_id"] for each in cursor)
    assert seen == [0, 1, 2, 3]
    assert not cursor.alive


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"ok": 0, "code": 43, "errmsg": "gone"}, CursorNotFound),
        ({"ok": 1, "cursor": {"id": "x", "ns": "db.c", "nextBatch": []}}, PyMongoError),
        ({"ok": 1, "cursor": {"id": 7, "ns": "db.c", "nextBatch": [1]}}, PyMongoError),
        ({"ok": 1}, PyMongoError),
    ],
)
def test_a_wrong_reply_gives_the_error_of_any_cursor(
    server: ScriptedServer, connect: Any, wrong: dict[str, Any], error: type[Exception]
) -> None:
    server.replies["getMore"] = wrong
    client = connect(server)
    raised = []
    for cursor in (client.db.c.find(), client.db.c.find().read_ahead()):
        with pytest.raises(error) as caught:
            list(cursor)
        raised.append((type(caught.value), str(caught.value)))
        cursor.close()
    assert raised[0] == raised[1]
    eventually(lambda: at_rest(client))


# Time


def test_a_limit_of_time_around_next_ends_the_wait(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    gate = Event()
    server.fail("getMore", held(gate))
    cursor = client.db.c.find().read_ahead()
    assert [next(cursor), next(cursor)] == [{"_id": 0}, {"_id": 1}]
    with pytest.raises(NetworkTimeout) as caught, gmongo.timeout(0.05):
        next(cursor)
    assert caught.value.timeout
    assert not cursor.alive
    cursor.close()
    assert len(server.commands("killCursors")) == 1
    eventually(lambda: at_rest(client))
    gate.set()


def test_the_time_of_the_whole_cursor_holds_for_what_is_read_ahead(server: ScriptedServer, connect: Any) -> None:
    client = connect(server, timeoutMS=80)
    server.fail("getMore", held(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    next(cursor)
    with pytest.raises(PyMongoError) as caught:
        next(cursor)
    assert caught.value.timeout
    cursor.close()
    eventually(lambda: at_rest(client))


# Its end


def waiting(client: Any) -> bool:
    return bool(client._cursor_killer.reading)


def test_closing_ends_the_cursor_at_once_and_keeps_the_connection(server: ScriptedServer, connect: Any) -> None:
    """The server interrupts what is on its way when it is told to end the cursor, on another connection."""
    client = connect(server)
    gate = Event()
    server.fail("getMore", held(gate))
    server.replies["killCursors"] = lambda command: (gate.set(), gevent.sleep(0.02), {"ok": 1})[-1]
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    cursor.close()
    eventually(lambda: at_rest(client))
    assert next(cursor) == {"_id": 1}  # which had come
    with pytest.raises(StopIteration):
        next(cursor)
    assert client.pool_stats()[0]["total"] == 2
    assert len(server.commands("getMore")) == 1


def test_closing_interrupts_what_goes_on_all_the_same(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    server.fail("getMore", held(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    cursor.close()
    eventually(lambda: at_rest(client))
    assert client.pool_stats()[0]["total"] == 1


def test_a_cursor_that_is_dropped_with_a_batch_on_its_way_is_ended(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    server.fail("getMore", held(Event()))
    gc.disable()
    try:
        cursor = client.db.c.find().read_ahead()
        next(cursor)
        server.wait_for("getMore")
        del cursor
        server.wait_for("killCursors")
        eventually(lambda: at_rest(client))
    finally:
        gc.enable()


def test_a_session_is_given_back_only_when_nothing_runs_in_it(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    gate = Event()
    server.fail("getMore", held(gate))
    server.replies["killCursors"] = lambda command: (gate.wait(), {"ok": 1})[-1]
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    del cursor
    server.wait_for("killCursors")
    client.db.c.find_one()
    (used,) = {bytes(each["lsid"]["id"]) for each in server.commands("getMore")}
    assert bytes(server.commands("find")[-1]["lsid"]["id"]) != used
    gate.set()
    eventually(lambda: at_rest(client))
    assert len(client._executor.sessions) == 2


def test_what_is_on_its_way_ends_with_the_interruption_and_not_when_the_server_answers(
    server: ScriptedServer, connect: Any, go: Any
) -> None:
    client = connect(server)
    server.fail("getMore", held(Event()))
    server.fail("killCursors", held(Event()))
    greenlet = go(lambda: list(client.db.c.find().read_ahead()))
    server.wait_for("getMore")
    gevent.sleep(0.01)
    greenlet.kill()
    eventually(lambda: not client._cursor_killer.reading)
    server.wait_for("killCursors")
    assert client.pool_stats()[0]["in_use"] == 1


def test_closing_the_client_ends_what_is_on_its_way(server: ScriptedServer, connect: Any, go: Any) -> None:
    client = connect(server)
    server.fail("getMore", held(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    next(cursor)
    server.wait_for("getMore")

    def wait() -> None:
        with pytest.raises(AutoReconnect, match="interrupted"):
            next(cursor)

    waiter = go(wait)
    client.close()
    waiter.get(timeout=1)
    assert not client._cursor_killer.reading


def test_after_the_client_is_closed_the_cursor_says_so(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    eventually(lambda: not waiting(client))
    client.close()
    assert [next(cursor)["_id"] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(InvalidOperation, match="after close"):
        next(cursor)


def test_a_kill_of_all_greenlets_ends_the_batch_and_not_more(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    server.fail("getMore", held(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    next(cursor)
    server.wait_for("getMore")
    (ahead,) = client._cursor_killer.reading
    ahead._greenlet.kill()
    with pytest.raises(AutoReconnect, match="interrupted"):
        next(cursor)
    cursor.close()
    eventually(lambda: at_rest(client))
    assert client.db.c.find_one()


def test_the_batch_on_its_way_does_not_hold_the_hub(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    gate = Event()
    server.fail("getMore", held(gate))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    (connection,) = client._topology.pools()[0].machine.in_use
    assert not connection._transport._readable.ref
    gate.set()
    eventually(lambda: not client._cursor_killer.reading)
    assert client._topology.pools()[0].machine.available[0] is connection
    assert connection._transport._readable.ref
    cursor.close()


@pytest.mark.real_time
def test_a_greenlet_that_waits_for_a_batch_holds_the_hub(server: ScriptedServer) -> None:
    """Else the loop has nothing to do, and gevent ends the wait of the main greenlet with LoopExit."""
    program = """
import sys
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
cursor = client.db.c.find().read_ahead()
print(next(cursor), next(cursor), next(cursor))
client.close()
"""
    gate = Event()
    server.fail("getMore", held(gate))
    gevent.spawn(lambda: (server.wait_for("getMore"), gevent.sleep(0.1), gate.set()))
    arguments = [sys.executable, "-c", program, server.name]
    child = gevent.subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT)
    assert (child.stdout, child.stderr) == ("{'_id': 0} {'_id': 1} {'_id': 2}\n", "")


# Where the order of commands is the application's


def test_no_reading_ahead_in_a_session_of_the_applications(many: Any) -> None:
    client = many.database.client
    with client.start_session() as session:
        with pytest.raises(InvalidOperation, match="session"):
            many.find(session=session).read_ahead()
        with pytest.raises(InvalidOperation, match="session"):
            many.aggregate([], session=session).read_ahead()
        file = GridFS(client.db).put(b"x")
        with pytest.raises(InvalidOperation, match="session"):
            GridFS(client.db).get(file, session=session).read_ahead()
        cursor = many.find().read_ahead()
        with session.bind(), pytest.raises(InvalidOperation, match="session"):
            next(cursor)
        assert len(list(cursor)) == 20


@pytest.mark.parametrize("cursor_type", [gmongo.CursorType.TAILABLE, gmongo.CursorType.TAILABLE_AWAIT, 64])
def test_no_reading_ahead_of_what_is_yet_to_be(client: Any, cursor_type: int) -> None:
    with pytest.raises(InvalidOperation, match="tailable"):
        client.db.c.find(cursor_type=cursor_type).read_ahead()
    cursor = client.db.c.find().read_ahead()
    with pytest.raises(InvalidOperation, match="tailable"):
        next(cursor.add_option(cursor_type))


def test_no_reading_ahead_of_changes(client: Any) -> None:
    with client.db.c.aggregate([{"$changeStream": {}}]) as cursor, pytest.raises(InvalidOperation, match="waits"):
        cursor.read_ahead()


@pytest.mark.parametrize("value", [None, "1", 1.0, True])
@pytest.mark.parametrize("name", ["batches", "max_bytes"])
def test_wrong_types(client: Any, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        client.db.c.find().read_ahead(**{name: value})


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", ["batches", "max_bytes"])
def test_wrong_numbers(client: Any, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 1, not {value}"):
        client.db.c.aggregate([]).read_ahead(**{name: value})


# Behind a load balancer


@pytest.fixture
def balanced(connect: Any) -> Iterator[Any]:
    """A collection of twenty documents behind a load balancer."""
    with Deployment.load_balanced(2) as deployment:
        collection = connect(deployment).db.c
        collection.insert_many([{"_id": number} for number in range(20)])
        yield collection


def test_a_pinned_cursor_reads_ahead_on_its_connection(balanced: Any, recorder: Any) -> None:
    recorder.forget()
    assert len(list(balanced.find(batch_size=3).read_ahead())) == 20
    ids = {event.connection_id for event in recorder.of("CommandStarted")}
    assert len({event.server_connection_id for event in recorder.of("CommandStarted")}) == 1, ids
    eventually(lambda: at_rest(balanced.database.client))


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_pinned_cursor_that_ends_in_the_middle_of_a_batch_loses_its_connection(
    server: ScriptedServer, connect: Any, end: str
) -> None:
    server.hello_extra = {"serviceId": ObjectId(), "msg": "isdbgrid"}
    client = connect(f"mongodb://{server.name}/?loadBalanced=true")
    server.fail("getMore", held(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    if end == "close":
        cursor.close()
    del cursor
    eventually(lambda: at_rest(client))
    assert client.pool_stats()[0]["total"] == 0
    assert server.commands("killCursors") == []
