"""Fast path of check-outs, initial values of a new connection, and waiters that keep the event loop alive."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.cmap.connection import Connection, Purpose
from gmongo.cmap.pool import Pool
from gmongo.cmap.server_connection import ServerConnection
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from tests.cmap.harness import make_pool
from tests.support.pools import checked_out
from tests.support.recorder import PoolRecorder
from tests.support.server import ScriptedServer


@pytest.mark.parametrize("has_listener", [False, True])
def test_check_out_of_available_connection_takes_fast_path(
    server: ScriptedServer, recorder: PoolRecorder, monkeypatch: pytest.MonkeyPatch, has_listener: bool
) -> None:
    pool = make_pool(server.address, recorder if has_listener else None)
    with checked_out(pool) as connection:
        pass
    monkeypatch.setattr(Pool, "_obtain", lambda *_: pytest.fail("slow path"))
    with checked_out(pool) as again:
        assert again is connection
    pool.close()
    assert len(recorder.events) == (12 if has_listener else 0)


def test_wait_queue_with_waiters_keeps_event_loop_alive() -> None:
    loop = gevent.get_hub().loop
    before, queue = loop.activecnt, WaitQueue[str]()

    def active_watchers() -> int:
        return loop.activecnt - before

    first, second = queue.join(), queue.join("find")
    assert active_watchers() == 1 and [waiter.purpose for waiter in queue.waiters] == [None, "find"]
    queue.leave(first)
    assert active_watchers() == 1
    queue.leave(second)
    queue.leave(second)
    assert active_watchers() == 0
    queue.join()
    assert active_watchers() == 1
    queue.hand_over("item")
    assert active_watchers() == 0
    queue.join()
    queue.detach()
    assert active_watchers() == 0 and queue.oldest_wait() is None


def test_new_connection_has_initial_values() -> None:
    connection = Connection(("h", 1))
    slots = {*ServerConnection.__slots__, *Connection.__slots__} - {"__weakref__"}
    unset = {name for name in slots if not hasattr(connection, name)}
    assert unset == {"hello"}
    assert (connection.id, connection.generation, connection.idle_since) == (0, 0, 0.0)
    assert (connection.checked_out_at, connection.established_in) == (0.0, 0.0)
    assert connection.usable and not connection.has_socket and not connection.handshake_done
    assert connection.purpose is Purpose.OTHER
    for name in ("service_id", "checked_out_by", "last_command", "error", "unanswered", "late_reply", "authentication"):
        assert getattr(connection, name) is None
    assert not connection.inherited and not connection.mid_message and not connection.is_monitor
    assert repr(connection) == "<Connection 0 to h:1 generation=0>"


def test_repr_of_pool_shows_pool_stats(new_pool: Any) -> None:
    pool: Pool = new_pool()
    shown = repr(pool)
    host, port = pool.address
    assert shown.startswith(
        f"<Pool {host}:{port} state=ready, generation=0, total=0, available=0, pending=0, in_use=0, "
    )
    assert "address" not in shown and shown.endswith("waiting=0, oldest_wait=None>")
    with checked_out(pool):
        assert "total=1, available=0, pending=0, in_use=1, " in repr(pool)
    assert Waiter("find").purpose == "find"
