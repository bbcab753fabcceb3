"""The states of a connection. A connection processes one request at a time (CMAP-20 to CMAP-36)."""

from __future__ import annotations

from typing import Any

import bson
import gevent
import pytest
from gevent.event import Event

from gmongo.errors import (
    AutoReconnect,
    InvalidOperation,
    ProtocolError,
)
from gmongo.wire.message import EXHAUST_ALLOWED, encode_op_msg
from tests.cmap.harness import connection_counts, fill_pool, ping
from tests.support.pools import checked_out
from tests.support.server import hold_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-20", "CMAP-25", "CMAP-26", "CMAP-31")
def test_connection_has_id_address_and_generation(new_pool: Any, server: Any) -> None:
    pool = new_pool()
    connections = [pool.check_out() for _ in range(3)]
    assert [connection.id for connection in connections] == [1, 2, 3]
    assert {connection.address for connection in connections} == {server.address}
    assert {connection.generation for connection in connections} == {0}
    pool.clear()
    pool.ready()
    assert pool.check_out().generation == 1


@pytest.mark.parametrize("length", [90_000, 190_000])
def test_reply_longer_than_hello_limit_raises_protocol_error(new_pool: Any, server: Any, length: int) -> None:
    """Let a reply be shorter or longer than ``maxMessageSizeBytes`` plus 16 KiB.

    The additional 16 KiB are for the reply fields around the documents.
    """
    server.hello_extra = {"maxMessageSizeBytes": 100_000}
    server.replies["ping"] = {"ok": 1.0, "filling": "x" * length}
    with checked_out(new_pool()) as connection:
        if length < 100_000:
            ping(connection)
        else:
            with pytest.raises(ProtocolError, match=r"^127\.0\.0\.1:\d+: .*message length 190"):
                ping(connection)


@pytest.mark.requirement("CMAP-21", "CMAP-36", "CMAP-204")
def test_closed_connection_rejects_commands_and_second_check_in(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool()
    connection = pool.check_out()
    pool.clear()
    pool.check_in(connection)
    eventually(lambda: not server.peers)
    received_count = len(server.received)
    with pytest.raises(AutoReconnect):
        ping(connection)
    with pytest.raises(InvalidOperation, match="is not checked out of <Pool"):
        pool.check_in(connection)
    gevent.sleep(0.01)
    assert len(server.received) == received_count
    assert recorder.event_lines[-2:] == ["CheckedIn 1", "Closed 1 stale"]
    assert connection_counts(pool) == (0, 0, 0, 0)


@pytest.mark.requirement("CMAP-23", "CMAP-24")
def test_second_request_on_busy_connection_raises_invalid_operation(
    new_pool: Any, server: Any, start_greenlet: Any
) -> None:
    gate = Event()
    server.fail("ping", hold_reply(gate))
    connection = new_pool().check_out()
    first = start_greenlet(ping, connection)
    server.wait_for("ping")
    with pytest.raises(InvalidOperation, match=r"is in the middle of another request$"):
        ping(connection, name="pong")
    gate.set()
    assert first.get(timeout=5)["ok"] == 1
    gevent.sleep(0.01)
    assert not server.commands("pong")


@pytest.mark.requirement("CMAP-27", "CMAP-33", "CMAP-34", "CMAP-35", "CMAP-36", "CMAP-58", "CMAP-63", "CMAP-65")
def test_connection_counts_of_pool_follow_connection_states(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    pool = new_pool()
    checking_out = start_greenlet(pool.check_out)
    server.wait_for("handshake")
    assert connection_counts(pool) == (1, 1, 0, 0)
    assert recorder.event_lines[-1] == "Created 1"
    gate.set()
    connection = checking_out.get(timeout=5)
    assert recorder.event_lines[-2:] == ["Ready 1", "CheckedOut 1"]
    assert connection_counts(pool) == (1, 0, 0, 1)
    pool.check_in(connection)
    assert connection_counts(pool) == (1, 0, 1, 0)
    pool.close()
    assert connection_counts(pool) == (0, 0, 0, 0)


@pytest.mark.requirement("CMAP-09", "CMAP-29", "CMAP-192")
def test_check_out_closes_idle_connections(new_pool: Any, recorder: Any) -> None:
    pool = new_pool(max_idle_time=0.02)
    fill_pool(pool, 2)
    gevent.sleep(0.03)
    assert pool.check_out().id == 3
    assert sorted(recorder.lines_starting_with("Closed")) == ["Closed 1 idle", "Closed 2 idle"]


def test_connection_with_exhaust_reply_in_progress_rejects_other_requests(new_pool: Any, server: Any) -> None:
    """Check the errors of further requests before and after a network error of the connection."""
    pool = new_pool()
    connection = pool.check_out()
    exhaust_message = encode_op_msg(1, EXHAUST_ALLOWED, bson.encode({"ping": 1}))
    connection.mid_message = True
    with pytest.raises(InvalidOperation, match="in the middle"):
        ping(connection)
    connection.error = AutoReconnect("interrupted")
    with pytest.raises(AutoReconnect, match="interrupted"):
        connection.exchange(1, exhaust_message, None, bson.decode)
    assert server.commands("ping") == []
