"""An exhaust cursor pins a connection. One getMore requests all batches after the first batch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import bson
import gevent
import pytest
from bson import Int64
from bson.errors import InvalidBSON

from gmongo import CursorType
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure, ProtocolError
from gmongo.testing import Deployment
from tests.execution.harness import count_open_cursors, no_connection_or_session_in_use
from tests.hostile.callback_server import EXHAUST_ALLOWED, MORE_TO_COME, CallbackServer, hello, message
from tests.support.cases import with_cases
from tests.support.fail_points import fail
from tests.support.wait import eventually

EXHAUST = CursorType.EXHAUST


@pytest.fixture
def many_documents(deployment: Deployment, client: Any) -> Any:
    """Return a collection of 2,000 documents, which exceed the buffers of a socket."""
    client.db.c.insert_many([{"_id": number, "text": "x" * 10_000} for number in range(2000)])
    deployment.commands.clear()
    return client.db.c


def ids_of(cursor: Any) -> list[Any]:
    return [each["_id"] for each in cursor]


@pytest.mark.parametrize("batch_size", [0, 1, 7, 1999, 2000, 2001])
def test_exhaust_cursor_reads_all_documents_with_one_get_more(
    deployment: Deployment, many_documents: Any, batch_size: int
) -> None:
    projection = {"_id": 1}
    assert ids_of(many_documents.find({}, projection, cursor_type=EXHAUST, batch_size=batch_size)) == list(range(2000))
    assert len(deployment.commands.named("getMore")) <= 1
    assert no_connection_or_session_in_use(many_documents.database.client)
    assert many_documents.database.client.pool_stats()[0]["total"] == 1
    assert count_open_cursors(deployment) == 0


TAILABLE_FLAG, EXHAUST_FLAG = 2, 64


@pytest.mark.parametrize("flags", [EXHAUST_FLAG, EXHAUST_FLAG | TAILABLE_FLAG], ids=["plain", "tailable"])
@pytest.mark.parametrize("in_transaction", [False, True], ids=["no transaction", "transaction"])
def test_exhaust_flag_is_ignored_for_tailable_cursor_or_in_transaction(
    many_documents: Any, deployment: Deployment, flags: int, in_transaction: bool
) -> None:
    client = many_documents.database.client
    cursor = many_documents.find({}, {"_id": 1}, batch_size=600)
    if flags & TAILABLE_FLAG:
        client.db.create_collection("capped", capped=True, size=100_000)
        client.db.capped.insert_many([{"_id": number} for number in range(2000)])
        cursor = client.db.capped.find({}, {"_id": 1}, batch_size=600)
    cursor.add_option(flags)
    if in_transaction:
        with client.start_session() as session, session.start_transaction():
            cursor = many_documents.find({}, {"_id": 1}, batch_size=600, session=session).add_option(EXHAUST_FLAG)
            next(cursor), list(cursor)
    else:
        assert [next(cursor)["_id"] for _ in range(2000)] == list(range(2000))
    streams = flags == EXHAUST_FLAG and not in_transaction
    assert len(deployment.commands.named("getMore")) == (1 if streams else 3)
    cursor.close()


def test_exhaust_cursor_keeps_connection_until_last_document(many_documents: Any, recorder: Any) -> None:
    client = many_documents.database.client
    cursor = many_documents.find(batch_size=100, cursor_type=EXHAUST)
    next(cursor)
    assert client.pool_stats()[0]["in_use_by"]["cursors"] == 1
    client.db.c.find_one()
    assert client.pool_stats()[0]["total"] == 2
    assert len(list(cursor)) == 1999
    assert len({event.server_connection_id for event in recorder.events_named("CommandStarted")}) == 2
    assert no_connection_or_session_in_use(client)


def test_each_batch_of_exhaust_cursor_publishes_events(many_documents: Any, recorder: Any) -> None:
    recorder.clear()
    list(many_documents.find(batch_size=500, cursor_type=EXHAUST))
    assert recorder.lines_starting_with("CommandStarted", "CommandSucceeded", "CommandFailed") == [
        "CommandStarted", "CommandSucceeded",
    ] * 5  # fmt: skip
    assert [each.get("batchSize") for each in recorder.sent_commands("getMore")] == [500] * 4


@pytest.mark.parametrize("how_cursor_ends", ["close", "drop", "with"])
def test_end_of_partly_read_exhaust_cursor_closes_connection(
    many_documents: Any, deployment: Deployment, recorder: Any, how_cursor_ends: str
) -> None:
    client = many_documents.database.client
    gc.disable()
    try:
        cursor = many_documents.find(batch_size=100, cursor_type=EXHAUST)
        ids_of(next(cursor) for _ in range(101))
        assert count_open_cursors(deployment) == 1
        if how_cursor_ends == "close":
            cursor.close()
        elif how_cursor_ends == "with":
            with cursor:
                pass
        del cursor
        eventually(lambda: no_connection_or_session_in_use(client) and client.pool_stats()[0]["total"] == 0)
        eventually(lambda: count_open_cursors(deployment) == 0)
    finally:
        gc.enable()
    assert recorder.sent_commands("killCursors") == []


@pytest.mark.parametrize("how_cursor_ends", ["close", "drop"])
def test_exhaust_cursor_without_get_more_is_killed_on_pinned_connection(
    many_documents: Any, deployment: Deployment, how_cursor_ends: str
) -> None:
    client = many_documents.database.client
    cursor = many_documents.find(batch_size=100, cursor_type=EXHAUST)
    next(cursor)
    if how_cursor_ends == "close":
        cursor.close()
    del cursor
    eventually(lambda: no_connection_or_session_in_use(client) and count_open_cursors(deployment) == 0)
    assert client.pool_stats()[0]["total"] == 1
    assert len(deployment.commands.named("killCursors")) == 1


@pytest.mark.parametrize("max_pool_size", [1, 3])
def test_dropped_exhaust_cursors_end_although_pool_is_full(connect: Any, max_pool_size: int) -> None:
    with Deployment.standalone() as deployment:
        client = connect(deployment.uri, maxPoolSize=max_pool_size)
        client.db.c.insert_many([{"_id": number} for number in range(100)])
        cursors = [client.db.c.find(batch_size=10) for _ in range(5)]
        for cursor in cursors:
            next(cursor)
        exhaust_cursors = [client.db.c.find(batch_size=10, cursor_type=EXHAUST) for _ in range(max_pool_size)]
        for cursor in exhaust_cursors:
            next(cursor)
        cursors.clear()
        del cursor  # The loop variable would keep the last exhaust cursor alive.
        # Let the client start to kill the plain cursors. `killCursors` waits for a connection.
        gevent.idle()
        exhaust_cursors.clear()
        eventually(lambda: no_connection_or_session_in_use(client) and count_open_cursors(deployment) == 0)


def test_server_error_ends_exhaust_cursor_and_keeps_connection(deployment: Deployment, many_documents: Any) -> None:
    client = many_documents.database.client
    cursor = many_documents.find(batch_size=100, cursor_type=EXHAUST)
    next(cursor)
    fail(deployment, "getMore", errorCode=11601)
    with pytest.raises(OperationFailure) as caught:
        list(cursor)
    assert caught.value.code == 11601
    assert not cursor.alive
    assert no_connection_or_session_in_use(client)
    assert client.pool_stats()[0]["total"] == 1
    assert deployment.commands.named("killCursors") == []


def test_cleared_pool_interrupts_exhaust_cursor(many_documents: Any) -> None:
    client = many_documents.database.client
    cursor = many_documents.find(batch_size=100, cursor_type=EXHAUST)
    for _ in range(101):
        next(cursor)
    pool = client._topology.pools()[0]
    pool.clear(AutoReconnect("cleared by the test"), interrupt=True)
    pool.ready()
    with pytest.raises(AutoReconnect, match="interrupted"):
        list(cursor)
    assert no_connection_or_session_in_use(client)


def test_limit_or_index_of_exhaust_cursor_raises_invalid_operation(client: Any) -> None:
    for call in (
        lambda: client.db.c.find(limit=1, cursor_type=EXHAUST),
        lambda: client.db.c.find(cursor_type=EXHAUST).limit(0),
        lambda: client.db.c.find(limit=1).add_option(64),
        lambda: client.db.c.find(cursor_type=EXHAUST)[1],
    ):
        with pytest.raises(InvalidOperation, match="limit"):
            call()


def test_exhaust_cursor_with_encryption_raises_invalid_operation(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_encrypter", object())
    with pytest.raises(InvalidOperation, match="exhaust cursors do not support auto encryption"):
        next(client.db.c.find(cursor_type=EXHAUST))


@with_cases
def test_exhaust_support_depends_on_server_version_and_topology(
    connect: Any, start_deployment: Any, version: str, expected: Any, get_more_count: int
) -> None:
    with start_deployment(version=version) as deployment:
        client = connect(deployment)
        client.db.c.insert_many([{"_id": number} for number in range(10)])
        try:
            outcome: Any = ids_of(client.db.c.find({}, batch_size=3, cursor_type=EXHAUST))
        except InvalidOperation as error:
            outcome = type(error).__name__
        assert (outcome, len(deployment.commands.named("getMore"))) == (expected, get_more_count)
        eventually(lambda: no_connection_or_session_in_use(client))


class FaultyServer:
    """Server that answers a getMore with all replies in ``stream``.

    Each reply is a tuple of the body, the flags, and ``responseTo`` (None for the correct ID).
    """

    def __init__(self) -> None:
        self.stream: list[tuple[bytes, int, int | None]] = []
        self.tail = b""
        # True if `responseTo` of each reply is the ID of the getMore, not of the previous reply.
        self.replies_to_request = False
        self.received_commands: list[tuple[str, int]] = []

    def reply(self, name: str, command: dict[str, Any], number: int, flags: int) -> bytes | None:
        self.received_commands.append((name, flags))
        if name == "hello":
            fields = {**hello(self.name), "topologyVersion": None}
            return message(bson.encode({key: value for key, value in fields.items() if value is not None}), number)
        if name == "find":
            return message(bson.encode(batch([{"_id": 0}], 7, "firstBatch")), number)
        if name != "getMore":
            return message(bson.encode({"ok": 1}), number)
        reply_bytes = b""
        for index, (body, reply_flags, response_to) in enumerate(self.stream):
            reply_bytes += message(body, number if response_to is None else response_to, reply_flags, 500 + index)
            number = number if self.replies_to_request else 500 + index
        return reply_bytes + self.tail


def batch(documents: list[Any], cursor_id: int, field: str = "nextBatch") -> dict[str, Any]:
    return {"ok": 1, "cursor": {"id": Int64(cursor_id), "ns": "db.c", field: documents}}


REPLIES = [
    (bson.encode(batch([{"_id": 1}, {"_id": 2}], 7)), MORE_TO_COME, None),
    (bson.encode(batch([{"_id": 3}], 7)), MORE_TO_COME, None),
    (bson.encode(batch([{"_id": 4}], 0)), 0, None),
]


@pytest.fixture
def faulty_server() -> Iterator[FaultyServer]:
    faulty_server = FaultyServer()
    with CallbackServer(faulty_server.reply) as peer:
        faulty_server.name = peer.name  # type: ignore[attr-defined]
        yield faulty_server


def connect_to_faulty_server(faulty_server: FaultyServer, connect: Any) -> Any:
    return connect(faulty_server.name, directConnection=True, serverMonitoringMode="poll")  # type: ignore[attr-defined]


def test_exhaust_cursor_accepts_replies_to_the_get_more(faulty_server: FaultyServer, connect: Any) -> None:
    """Check replies whose ``responseTo`` is the ID of the getMore.

    MongoDB sends the ID of the previous reply. Some other server products send the ID of the getMore.
    """
    faulty_server.stream = REPLIES
    faulty_server.replies_to_request = True
    assert ids_of(connect_to_faulty_server(faulty_server, connect).db.c.find(cursor_type=EXHAUST)) == [0, 1, 2, 3, 4]
    faulty_server.stream = [REPLIES[0], (REPLIES[1][0], MORE_TO_COME, 77)]
    with pytest.raises(ProtocolError, match="reply is to request 77"):
        ids_of(connect_to_faulty_server(faulty_server, connect).db.c.find(cursor_type=EXHAUST))


def test_reply_without_more_to_come_makes_exhaust_cursor_send_get_more(
    faulty_server: FaultyServer, connect: Any
) -> None:
    faulty_server.stream = [(REPLIES[0][0], 0, None)]
    cursor = connect_to_faulty_server(faulty_server, connect).db.c.find(cursor_type=EXHAUST)
    assert ids_of(next(cursor) for _ in range(3)) == [0, 1, 2]
    faulty_server.stream = REPLIES[1:]
    assert ids_of(cursor) == [3, 4]
    assert [flags for name, flags in faulty_server.received_commands if name == "getMore"] == [EXHAUST_ALLOWED] * 2


MALFORMED_REPLIES: dict[str, tuple[list[tuple[bytes, int, int | None]], bytes, list[int], type[Exception] | None]] = {
    "moreToCome with cursor ID 0": ([REPLIES[0], (REPLIES[2][0], MORE_TO_COME, None)], b"", [0, 1, 2, 4], None),
    "byte after the last reply": (REPLIES, b"\x01", [0, 1, 2, 3, 4], None),
    "responseTo of unknown request": ([REPLIES[0], (REPLIES[1][0], 0, 77)], b"", [0, 1, 2], ProtocolError),
    "unknown flag": ([REPLIES[0], (REPLIES[1][0], 4, None)], b"", [0, 1, 2], ProtocolError),
    "malformed document": ([REPLIES[0], (b"\x05\0\0\0\x09", MORE_TO_COME, None)], b"", [0, 1, 2], InvalidBSON),
    "malformed last document": ([REPLIES[0], (b"\x05\0\0\0\x09", 0, None)], b"", [0, 1, 2], InvalidBSON),
    "reply without cursor": ([REPLIES[0], (bson.encode({"ok": 1}), MORE_TO_COME, None)], b"", [0, 1, 2], ProtocolError),
    "batch of numbers": ([REPLIES[0], (bson.encode(batch([1], 7)), MORE_TO_COME, None)], b"", [0, 1, 2], ProtocolError),
    "error with moreToCome": (
        [REPLIES[0], (bson.encode({"ok": 0, "code": 8, "errmsg": "x"}), MORE_TO_COME, None)],
        b"",
        [0, 1, 2],
        OperationFailure,
    ),
}


@pytest.mark.parametrize("case", MALFORMED_REPLIES)
def test_malformed_reply_to_exhaust_cursor_closes_connection(
    faulty_server: FaultyServer, connect: Any, case: str
) -> None:
    faulty_server.stream, faulty_server.tail, expected_ids, error = MALFORMED_REPLIES[case]
    client = connect_to_faulty_server(faulty_server, connect)
    received_ids: list[Any] = []
    cursor = client.db.c.find(cursor_type=EXHAUST)
    if error is None:
        received_ids += ids_of(cursor)
    else:
        with pytest.raises(error):
            received_ids.extend(each["_id"] for each in cursor)
    cursor.close()
    assert received_ids == expected_ids
    eventually(lambda: no_connection_or_session_in_use(client))
    assert client.pool_stats()[0]["total"] == 0
    assert client.admin.command("ping")["ok"] == 1
