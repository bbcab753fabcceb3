"""The canned server answers messages of any size, and the floor does the work that it is compared with."""

from __future__ import annotations

import socket
import struct

import bson
import pytest

from benchmarks.documents import LARGE, LARGE_BATCH, LARGE_DOCUMENT_BYTES, SAVED
from benchmarks.floor import Floor, operations
from benchmarks.processes import canned_server
from benchmarks.workloads import WORKLOADS, check


@pytest.fixture(scope="module")
def port():
    with canned_server() as port:
        yield port


@pytest.fixture
def connection(port):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def message(command: dict, request_id: int, flags: int = 0) -> bytes:
    body = struct.pack("<iB", flags, 0) + bson.encode({**command, "$db": "benchmark"})
    return struct.pack("<iiii", 16 + len(body), request_id, 0, 2013) + body


def reply(connection: socket.socket) -> tuple[int, dict]:
    """What it answers to, and its document."""
    length, _request_id, response_to, _opcode = struct.unpack("<iiii", exactly(connection, 16))
    return response_to, bson.decode(exactly(connection, length - 16)[5:])


def exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        assert piece, "the server closed the connection"
        received += piece
    return bytes(received)


def test_a_request_in_pieces_is_answered_once(connection):
    request = message({"find": "one", "filter": {}}, 7)
    for start in range(0, len(request), 20):
        connection.sendall(request[start : start + 20])
    response_to, document = reply(connection)
    assert response_to == 7
    assert document["cursor"]["firstBatch"] == [SAVED]


def test_requests_in_one_piece_are_all_answered_in_their_order(connection):
    connection.sendall(b"".join(message({"ping": 1}, number) for number in (1, 2, 3)))
    assert [reply(connection) for _ in range(3)] == [(number, {"ok": 1.0}) for number in (1, 2, 3)]


def test_a_large_request_is_answered(connection):
    connection.sendall(message({"insert": "one", "documents": [{"text": "x" * 10_000_000}]}, 1))
    assert reply(connection) == (1, {"n": 1, "ok": 1.0})


def test_a_request_that_wants_no_reply_gets_none(connection):
    connection.sendall(message({"insert": "one"}, 1, flags=2) + message({"ping": 1}, 2))
    assert reply(connection)[0] == 2


def test_a_large_batch_arrives_and_so_does_what_was_asked_meanwhile(connection):
    connection.sendall(message({"find": LARGE}, 1) + message({"ping": 1}, 2))
    response_to, document = reply(connection)
    batch = document["cursor"]["firstBatch"]
    assert (response_to, len(batch)) == (1, LARGE_BATCH)
    assert {len(bson.encode(each)) for each in batch[:: LARGE_BATCH // 10]} == {LARGE_DOCUMENT_BYTES}
    assert reply(connection) == (2, {"ok": 1.0})


@pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if not workload.circumstance])
def test_the_floor_does_each_operation(port, name):
    floor = Floor(port, 1)
    try:
        check(name, operations(floor)[name])
    finally:
        floor.close()


@pytest.mark.parametrize("name", ["find_one", "insert_one", "update_one", "find_100"])
def test_the_floor_does_it_over_tls_too(name):
    with canned_server("tls") as port:
        floor = Floor(port, 1, secure=True)
        try:
            for _again in range(2):
                check(name, operations(floor)[name])
        finally:
            floor.close()


def test_more_greenlets_than_connections_of_the_floor_wait_for_one(port):
    import gevent

    floor = Floor(port, 2)
    try:
        greenlets = [gevent.spawn(floor.find_one) for _ in range(20)]
        gevent.joinall(greenlets, timeout=20, raise_error=True)
        assert [greenlet.value for greenlet in greenlets] == [SAVED] * 20
    finally:
        floor.close()
