"""The WaitQueue (CMAP-37 to CMAP-42, CMAP-105, CMAP-106, CMAP-110 to CMAP-113)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo.cmap.pool import Pool
from gmongo.errors import WaitQueueTimeoutError
from gmongo.testing import VirtualTime
from tests.cmap.harness import counts
from tests.support.pools import checked_out
from tests.support.server import held


class Crowd:
    """Greenlets that ask a pool for a connection, use it for an instant, and note when they got it."""

    def __init__(self, pool: Pool, go: Any) -> None:
        self.served: list[Any] = []
        self._pool = pool
        self._go = go

    def add(self, name: Any) -> gevent.Greenlet[..., Any]:
        return self._go(self._ask, name)

    def _ask(self, name: Any) -> None:
        with checked_out(self._pool):
            self.served.append(name)
            gevent.sleep(0)


@pytest.mark.requirement("CMAP-37", "CMAP-39", "CMAP-40", "CMAP-105", "CMAP-112")
def test_first_come_first_served(new_pool: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    crowd = Crowd(pool, go)
    tasks = [crowd.add(number) for number in range(50)]
    assert pool.stats()["waiting"] == 50
    pool.check_in(connection)
    gevent.joinall(tasks, timeout=10)
    assert crowd.served == list(range(50))


@pytest.mark.requirement("CMAP-37", "CMAP-38", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-63")
def test_a_crowd_is_served_to_the_last(new_pool: Any, server: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=5, max_connecting=2)
    excesses: list[Any] = []

    def look(_event: Any) -> None:
        total, pending, available, in_use = counts(pool)
        if total > 5 or pending > 2 or total != pending + available + in_use or len(server.peers) > 5:
            excesses.append(counts(pool))

    recorder.hooks = dict.fromkeys(["Created", "Ready", "CheckedOut", "CheckedIn", "Closed"], look)
    crowd = Crowd(pool, go)
    tasks = [crowd.add(number) for number in range(500)]
    gevent.joinall(tasks, timeout=20)
    assert sorted(crowd.served) == list(range(500))
    assert not excesses
    assert len(recorder.of("Started")) == len(recorder.of("CheckedOut")) == len(recorder.of("CheckedIn")) == 500
    assert counts(pool)[3] == pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-12", "CMAP-41", "CMAP-42", "CMAP-123", "CMAP-127", "CMAP-198", "CMAP-236")
def test_a_wait_ends_after_its_time(virtual_time: VirtualTime, new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=0.05)
    pool.check_out()
    started = virtual_time.monotonic()
    with pytest.raises(WaitQueueTimeoutError) as raised:
        pool.check_out()
    assert virtual_time.monotonic() - started == pytest.approx(0.05)
    assert raised.value.message == "Timed out while checking out a Connection from connection pool"
    assert raised.value.address == server.address
    assert recorder.story[-1] == "Failed timeout"
    assert recorder.events[-1].duration == pytest.approx(0.05)
    assert pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-13", "CMAP-110", "CMAP-113")
def test_the_wait_for_a_place_to_connect_is_limited(new_pool: Any, server: Any, recorder: Any, go: Any) -> None:
    gate = Event()
    server.fail("handshake", held(gate))
    pool = new_pool(max_connecting=1, wait_queue_timeout=0.03)
    establishing = go(pool.check_out)
    server.wait_for("handshake")
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out()
    gevent.sleep(0.03)
    assert recorder.only("Failed") == ["Failed timeout"]
    gate.set()
    assert establishing.get(timeout=5).id == 1  # establishing is not waiting


@pytest.mark.requirement("CMAP-106")
@pytest.mark.parametrize(("own", "operation"), [(0.03, 60), (60, 0.03), (None, 0.03), (0.03, None)])
def test_the_smaller_limit_counts(
    virtual_time: VirtualTime, new_pool: Any, own: float | None, operation: float | None
) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=own)
    pool.check_out()
    started = virtual_time.monotonic()
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out(None if operation is None else started + operation)
    assert virtual_time.monotonic() - started == pytest.approx(0.03)


@pytest.mark.requirement("CMAP-37", "CMAP-38", "CMAP-180")
@pytest.mark.parametrize("also_handed", [False, True])
def test_a_killed_waiter_leaves_nothing_behind(new_pool: Any, recorder: Any, go: Any, also_handed: bool) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    victim, next_one = go(pool.check_out), go(pool.check_out)
    victim.kill(block=False)
    if also_handed:
        pool.check_in(connection)  # handed to the victim, whose death is already on its way
    victim.join(timeout=5)
    assert recorder.only("Failed") == ["Failed connectionError"]
    if not also_handed:
        pool.check_in(connection)
    assert next_one.get(timeout=5) is connection
    assert pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-111", "CMAP-118")
def test_waiting_and_establishing_hold_no_other_up(new_pool: Any, server: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=3, max_connecting=1)
    connection = pool.check_out()
    gate = Event()
    server.fail("handshake", held(gate))
    establishing, waiting = go(pool.check_out), go(pool.check_out)
    server.wait_for("handshake", 2)
    pool.check_in(connection)
    assert waiting.get(timeout=5) is connection
    assert not establishing.ready()
    pool.check_in(connection)
    assert pool.check_out() is connection
    gate.set()
    assert establishing.get(timeout=5).id == 2


@pytest.mark.requirement("CMAP-124")
def test_a_greenlet_that_establishes_is_no_longer_in_the_queue(new_pool: Any, server: Any, go: Any) -> None:
    gate = Event()
    server.fail("handshake", held(gate))
    pool = new_pool()
    go(pool.check_out)
    server.wait_for("handshake")
    assert (pool.stats()["waiting"], pool.stats()["pending"]) == (0, 1)
    gate.set()
