"""With ``read_ahead``, the client requests batches before the application needs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import gevent
import gevent.subprocess
import pytest
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from gevent.event import Event

import gmongo
from gmongo import MongoClient
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout
from gmongo.gridfs import GridFS
from gmongo.testing import Deployment
from tests.execution.harness import count_open_cursors, no_connection_or_session_in_use
from tests.support.programs import TIMEOUT
from tests.support.server import ScriptedServer, cursor_reply, cut_reply, hold_reply
from tests.support.wait import eventually


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Start a server whose cursors never end, and whose batches contain two documents."""
    with ScriptedServer() as server:
        numbers = count()

        def batch(field: str) -> dict[str, Any]:
            return cursor_reply([{"_id": next(numbers)}, {"_id": next(numbers)}], 7, field)

        server.replies["find"] = lambda command: batch("firstBatch")
        server.replies["getMore"] = lambda command: batch("nextBatch")
        yield server


@pytest.fixture
def many_documents(deployment: Deployment, client: Any) -> Any:
    """Return a collection of 20 documents."""
    client.db.c.insert_many([{"_id": number, "text": "x" * 100} for number in range(20)])
    return client.db.c


@pytest.mark.parametrize("batches", [1, 2, 50])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 19, 20, 21])
def test_read_ahead_returns_all_documents(many_documents: Any, batch_size: int, batches: int) -> None:
    assert [each["_id"] for each in many_documents.find(batch_size=batch_size).read_ahead(batches)] == list(range(20))
    assert [each["_id"] for each in many_documents.aggregate([], batchSize=batch_size).read_ahead(batches)] == list(
        range(20)
    )
    assert no_connection_or_session_in_use(many_documents.database.client)


@pytest.mark.parametrize("size", [10, 30_000])
@pytest.mark.parametrize("limit", [1, 5, 6, 7, 19, 20, 25])
def test_read_ahead_with_limit_sends_batch_sizes_of_plain_cursor(
    deployment: Deployment, client: Any, recorder: Any, limit: int, size: int
) -> None:
    client.db.c.insert_many([{"_id": number, "text": "x" * size} for number in range(20)])

    def batch_sizes(cursor: Any) -> list[Any]:
        recorder.clear()
        assert [each["_id"] for each in cursor] == list(range(min(limit, 20)))
        return [command.get("batchSize") for command in recorder.sent_commands("getMore")]

    assert batch_sizes(client.db.c.find(batch_size=5, limit=limit).read_ahead()) == batch_sizes(
        client.db.c.find(batch_size=5, limit=limit)
    )
    assert count_open_cursors(deployment) == 0


def test_read_ahead_requests_next_batch_at_first_document_of_current_batch(
    server: ScriptedServer, connect: Any
) -> None:
    client = connect(server)
    cursor = client.db.c.find().read_ahead()
    assert next(cursor) == {"_id": 0}
    server.wait_for("getMore")
    assert next(cursor) == {"_id": 1}
    gevent.sleep(0.02)
    assert len(server.commands("getMore")) == 1  # The client buffers at most one batch.
    assert next(cursor) == {"_id": 2}
    server.wait_for("getMore", 2)
    cursor.close()


def test_read_ahead_sends_get_more_before_next_greenlet_switch(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    pool = client._topology.pools()[0]
    # `next` has sent the getMore before the first greenlet switch.
    assert [each.mid_message for each in pool.machine.in_use] == [True]
    cursor.close()


@pytest.mark.parametrize("batches", [1, 3])
def test_read_ahead_requests_at_most_given_number_of_batches(
    server: ScriptedServer, connect: Any, batches: int
) -> None:
    cursor = connect(server).db.c.find().read_ahead(batches)
    next(cursor)
    server.wait_for("getMore", batches)
    gevent.sleep(0.05)
    assert len(server.commands("getMore")) == batches
    cursor.close()


def test_read_ahead_requests_at_most_max_bytes(server: ScriptedServer, connect: Any) -> None:
    """Check `max_bytes` with batches of 30 KB: a fourth batch would exceed the limit of 100 KB.

    The client assumes that the next batch is as large as the previous batch.
    """
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
    cursor = connect(server).db.c.find().read_ahead(max_bytes=1)
    assert all(next(cursor) for _ in range(5))  # a batch for which the application waits may exceed the limit
    cursor.close()


def test_changed_batch_size_applies_to_next_batch_that_is_read_ahead(server: ScriptedServer, connect: Any) -> None:
    server.replies["aggregate"] = server.replies["find"]
    cursor = connect(server).db.c.aggregate([], batchSize=2).read_ahead()
    next(cursor)
    assert server.wait_for("getMore")["batchSize"] == 2
    cursor.batch_size(5)
    next(cursor), next(cursor)
    assert server.wait_for("getMore", 2)["batchSize"] == 5
    cursor.close()


def test_gridfs_file_reads_chunks_ahead(client: Any, recorder: Any) -> None:
    fs = GridFS(client.db)
    data = bytes(range(256)) * 4096
    file_id = fs.put(data, chunkSize=4096)
    recorder.clear()
    with fs.get(file_id).read_ahead(2) as file:
        assert file.read(1) == data[:1]
        # The client sends a `getMore` although the first batch still has unread chunks.
        eventually(lambda: len(recorder.sent_commands("getMore")) >= 1)
        assert file.read() == data[1:]
        file.seek(5000)
        assert file.read(100) == data[5000:5100]
    eventually(lambda: no_connection_or_session_in_use(client))


class RecordingNumberDecoder(TypeDecoder):  # type: ignore[misc]
    """Type decoder that records each decoded float, which is the number of a document."""

    bson_type = float

    def __init__(self) -> None:
        self.decoded_numbers: list[int] = []

    def transform_bson(self, value: Any) -> Any:
        self.decoded_numbers.append(int(value))
        return value


@pytest.fixture
def collection_and_decoder(deployment: Deployment) -> Iterator[tuple[Any, RecordingNumberDecoder]]:
    """Return a collection of 200 documents of 1 KB, and the decoder of the collection.

    The client has no listeners, because listeners need a decoded reply.
    """
    decoder = RecordingNumberDecoder()
    options: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([decoder]))
    client: MongoClient[Any]
    with MongoClient(deployment.uri) as client:
        client.db.c.insert_many([{"_id": number, "at": float(number), "text": "x" * 1000} for number in range(200)])
        yield client.db.c.with_options(codec_options=options), decoder


def test_buffered_batch_is_decoded_while_the_application_waits(collection_and_decoder: Any) -> None:
    collection, decoder = collection_and_decoder
    cursor = collection.find(batch_size=100).read_ahead()
    assert next(cursor)["_id"] == 0
    eventually(lambda: decoder.decoded_numbers[-1:] == [199])
    assert [each["_id"] for each in cursor] == list(range(1, 200))
    assert sorted(decoder.decoded_numbers) == list(range(200))


@pytest.mark.parametrize("method", ["find", "find_raw_batches"])
def test_large_or_raw_batch_is_not_decoded_while_the_application_waits(
    collection_and_decoder: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, decoder = collection_and_decoder
    if method == "find":
        monkeypatch.setattr("gmongo.engines.read_ahead._MAX_DECODED_BYTES", 50_000)
    cursor = getattr(collection, method)(batch_size=100).read_ahead()
    next(cursor)
    eventually(lambda: not collection.database.client._cursor_killer.busy_read_aheads)
    assert all(number < 100 for number in decoder.decoded_numbers)


def test_buffered_batch_is_returned_before_network_error_is_raised(server: ScriptedServer, connect: Any) -> None:
    server.fail("getMore", lambda peer, message: peer.send(message), cut_reply(5))
    client = connect(server)
    cursor = client.db.c.find().read_ahead(5)
    received_ids = [next(cursor)["_id"]]
    server.wait_for("getMore", 2)
    # Wait until the greenlet that reads ahead has received the error.
    eventually(lambda: not client._cursor_killer.busy_read_aheads)
    with pytest.raises(AutoReconnect):
        received_ids.extend(each["_id"] for each in cursor)
    assert received_ids == [0, 1, 2, 3]
    assert not cursor.alive


def test_timeout_block_around_next_ends_wait_for_batch(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    gate = Event()
    server.fail("getMore", hold_reply(gate))
    cursor = client.db.c.find().read_ahead()
    assert [next(cursor), next(cursor)] == [{"_id": 0}, {"_id": 1}]
    with pytest.raises(NetworkTimeout) as caught, gmongo.timeout(0.05):
        next(cursor)
    assert caught.value.timeout
    assert not cursor.alive
    cursor.close()
    assert len(server.commands("killCursors")) == 1
    eventually(lambda: no_connection_or_session_in_use(client))
    gate.set()


def test_close_after_last_batch_of_read_ahead_kills_no_cursor(many_documents: Any, recorder: Any) -> None:
    cursor = many_documents.find(batch_size=10).read_ahead(5)
    next(cursor)
    eventually(lambda: len(recorder.sent_commands("getMore")) == 2)
    cursor.close()
    assert recorder.sent_commands("killCursors") == []


def test_close_during_read_ahead_kills_cursor_and_keeps_connection(server: ScriptedServer, connect: Any) -> None:
    """Close a cursor during a getMore.

    The server replies to the getMore only after a killCursors on another connection.
    """
    client = connect(server)
    gate = Event()
    server.fail("getMore", hold_reply(gate))
    server.replies["killCursors"] = lambda command: (gate.set(), gevent.sleep(0.02), {"ok": 1})[-1]
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    cursor.close()
    eventually(lambda: no_connection_or_session_in_use(client))
    assert next(cursor) == {"_id": 1}  # received before the call of `close`
    with pytest.raises(StopIteration):
        next(cursor)
    assert client.pool_stats()[0]["total"] == 2
    assert len(server.commands("getMore")) == 1


def test_client_close_interrupts_pending_get_more(server: ScriptedServer, connect: Any, start_greenlet: Any) -> None:
    client = connect(server)
    server.fail("getMore", hold_reply(Event()))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    next(cursor)
    server.wait_for("getMore")

    def read_until_interruption() -> None:
        with pytest.raises(AutoReconnect, match="interrupted"):
            next(cursor)

    reader = start_greenlet(read_until_interruption)
    client.close()
    reader.get(timeout=1)
    assert not client._cursor_killer.busy_read_aheads


def test_pending_get_more_of_read_ahead_does_not_keep_event_loop_alive(server: ScriptedServer, connect: Any) -> None:
    client = connect(server)
    gate = Event()
    server.fail("getMore", hold_reply(gate))
    cursor = client.db.c.find().read_ahead()
    next(cursor)
    server.wait_for("getMore")
    (connection,) = client._topology.pools()[0].machine.in_use
    assert not connection._transport._read_watcher.ref
    gate.set()
    eventually(lambda: not client._cursor_killer.busy_read_aheads)
    assert client._topology.pools()[0].machine.available[0] is connection
    assert connection._transport._read_watcher.ref
    cursor.close()


@pytest.mark.real_time
def test_greenlet_that_waits_for_a_batch_keeps_the_event_loop_alive(server: ScriptedServer) -> None:
    """Wait in the main greenlet, in which gevent raises `LoopExit` if the event loop ends."""
    program = """
import sys
from gmongo import MongoClient
client = MongoClient(sys.argv[1])
cursor = client.db.c.find().read_ahead()
print(next(cursor), next(cursor), next(cursor))
client.close()
"""
    gate = Event()
    server.fail("getMore", hold_reply(gate))
    gevent.spawn(lambda: (server.wait_for("getMore"), gevent.sleep(0.1), gate.set()))
    arguments = [sys.executable, "-c", program, server.name]
    child = gevent.subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT)
    assert (child.stdout, child.stderr) == ("{'_id': 0} {'_id': 1} {'_id': 2}\n", "")


def test_read_ahead_in_explicit_session_raises_invalid_operation(many_documents: Any) -> None:
    client = many_documents.database.client
    with client.start_session() as session:
        with pytest.raises(InvalidOperation, match="session"):
            many_documents.find(session=session).read_ahead()
        with pytest.raises(InvalidOperation, match="session"):
            many_documents.aggregate([], session=session).read_ahead()
        file_id = GridFS(client.db).put(b"x")
        with pytest.raises(InvalidOperation, match="session"):
            GridFS(client.db).get(file_id, session=session).read_ahead()
        cursor = many_documents.find().read_ahead()
        with session.bind(), pytest.raises(InvalidOperation, match="session"):
            next(cursor)
        assert len(list(cursor)) == 20


@pytest.mark.parametrize("cursor_type", [gmongo.CursorType.TAILABLE, gmongo.CursorType.TAILABLE_AWAIT, 64])
def test_read_ahead_of_tailable_or_exhaust_cursor_raises_invalid_operation(client: Any, cursor_type: int) -> None:
    with pytest.raises(InvalidOperation, match="tailable"):
        client.db.c.find(cursor_type=cursor_type).read_ahead()
    cursor = client.db.c.find().read_ahead()
    with pytest.raises(InvalidOperation, match="tailable"):
        next(cursor.add_option(cursor_type))


def test_read_ahead_of_change_stream_raises_invalid_operation(client: Any) -> None:
    with client.db.c.aggregate([{"$changeStream": {}}]) as cursor, pytest.raises(InvalidOperation, match="waits"):
        cursor.read_ahead()


@pytest.mark.parametrize("value", [None, "1", 1.0, True])
@pytest.mark.parametrize("name", ["batches", "max_bytes"])
def test_read_ahead_argument_of_wrong_type_raises_type_error(client: Any, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        client.db.c.find().read_ahead(**{name: value})


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", ["batches", "max_bytes"])
def test_read_ahead_argument_below_one_raises_value_error(client: Any, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 1, not {value}"):
        client.db.c.aggregate([]).read_ahead(**{name: value})
