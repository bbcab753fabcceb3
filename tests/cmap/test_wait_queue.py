"""The wait queue (CMAP-37 to CMAP-42, CMAP-105, CMAP-106, CMAP-110 to CMAP-113)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo.cmap.pool import Pool
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.errors import WaitQueueTimeoutError
from gmongo.testing import VirtualTime
from tests.cmap.harness import connection_counts, run_other_greenlets
from tests.support.pools import checked_out
from tests.support.server import hold_reply


class Waiters:
    """Greenlets that check out connections. ``served_names`` has their names in check-out order."""

    def __init__(self, pool: Pool, start_greenlet: Any) -> None:
        self.served_names: list[Any] = []
        self._pool = pool
        self._start_greenlet = start_greenlet

    def add(self, name: Any) -> gevent.Greenlet[..., Any]:
        return self._start_greenlet(self._use, name)

    def _use(self, name: Any) -> None:
        with checked_out(self._pool):
            self.served_names.append(name)
            gevent.sleep(0)


@pytest.mark.requirement("CMAP-37", "CMAP-39", "CMAP-40", "CMAP-105", "CMAP-112")
def test_waiters_receive_connections_in_order_of_arrival(new_pool: Any, start_greenlet: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    waiters = Waiters(pool, start_greenlet)
    tasks = [waiters.add(number) for number in range(50)]
    assert pool.stats()["waiting"] == 50
    pool.check_in(connection)
    gevent.joinall(tasks, timeout=10)
    assert waiters.served_names == list(range(50))


@pytest.mark.requirement("CMAP-37", "CMAP-38", "CMAP-44", "CMAP-57", "CMAP-58", "CMAP-63")
def test_all_of_500_waiters_are_served_within_pool_limits(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool = new_pool(max_pool_size=5, max_connecting=2)
    wrong_counts: list[Any] = []

    def check_counts(_event: Any) -> None:
        total, pending, available, in_use = connection_counts(pool)
        if total > 5 or pending > 2 or total != pending + available + in_use or len(server.peers) > 5:
            wrong_counts.append(connection_counts(pool))

    recorder.hooks = dict.fromkeys(["Created", "Ready", "CheckedOut", "CheckedIn", "Closed"], check_counts)
    waiters = Waiters(pool, start_greenlet)
    tasks = [waiters.add(number) for number in range(500)]
    gevent.joinall(tasks, timeout=20)
    assert sorted(waiters.served_names) == list(range(500))
    assert not wrong_counts
    assert (
        len(recorder.events_named("Started"))
        == len(recorder.events_named("CheckedOut"))
        == len(recorder.events_named("CheckedIn"))
        == 500
    )
    assert connection_counts(pool)[3] == pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-12", "CMAP-41", "CMAP-42", "CMAP-123", "CMAP-127", "CMAP-198", "CMAP-236")
def test_check_out_times_out_after_wait_queue_timeout(
    virtual_time: VirtualTime, new_pool: Any, server: Any, recorder: Any
) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=0.05)
    pool.check_out()
    start_time = virtual_time.monotonic()
    with pytest.raises(WaitQueueTimeoutError) as raised:
        pool.check_out()
    assert virtual_time.monotonic() - start_time == pytest.approx(0.05)
    assert raised.value.message == "Timed out while checking out a Connection from connection pool"
    assert raised.value.address == server.address
    assert recorder.event_lines[-1] == "Failed timeout"
    assert recorder.events[-1].duration == pytest.approx(0.05)
    assert pool.stats()["waiting"] == 0


@pytest.mark.requirement("CMAP-13", "CMAP-110", "CMAP-113")
def test_waiter_for_max_connecting_times_out_after_wait_queue_timeout(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    pool = new_pool(max_connecting=1, wait_queue_timeout=0.03)
    establishing = start_greenlet(pool.check_out)
    server.wait_for("handshake")
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out()
    gevent.sleep(0.03)
    assert recorder.lines_starting_with("Failed") == ["Failed timeout"]
    gate.set()
    assert establishing.get(timeout=5).id == 1  # `waitQueueTimeoutMS` does not limit a handshake


@pytest.mark.requirement("CMAP-106")
@pytest.mark.parametrize(("pool_limit", "operation_limit"), [(0.03, 60), (60, 0.03), (None, 0.03), (0.03, None)])
def test_check_out_times_out_after_shorter_of_pool_and_operation_limit(
    virtual_time: VirtualTime, new_pool: Any, pool_limit: float | None, operation_limit: float | None
) -> None:
    pool = new_pool(max_pool_size=1, wait_queue_timeout=pool_limit)
    pool.check_out()
    start_time = virtual_time.monotonic()
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out(None if operation_limit is None else start_time + operation_limit)
    assert virtual_time.monotonic() - start_time == pytest.approx(0.03)


@pytest.mark.requirement("CMAP-111", "CMAP-118")
def test_handshake_in_progress_does_not_delay_other_check_outs(new_pool: Any, server: Any, start_greenlet: Any) -> None:
    pool = new_pool(max_pool_size=3, max_connecting=1)
    connection = pool.check_out()
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    establishing, waiting = start_greenlet(pool.check_out), start_greenlet(pool.check_out)
    server.wait_for("handshake", 2)
    pool.check_in(connection)
    assert waiting.get(timeout=5) is connection
    assert not establishing.ready()
    pool.check_in(connection)
    assert pool.check_out() is connection
    gate.set()
    assert establishing.get(timeout=5).id == 2


@pytest.mark.requirement("CMAP-124")
def test_greenlet_in_handshake_is_not_in_wait_queue(new_pool: Any, server: Any, start_greenlet: Any) -> None:
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    pool = new_pool()
    start_greenlet(pool.check_out)
    server.wait_for("handshake")
    assert (pool.stats()["waiting"], pool.stats()["pending"]) == (0, 1)
    gate.set()


def test_hand_over_does_not_resume_waiter_that_is_awake(start_greenlet: Any) -> None:
    queue, event = WaitQueue[str](), Event()
    waiting = start_greenlet(lambda: (queue.join().sleep(None, AssertionError), event.wait()))
    for item in ("first", "second"):
        queue.hand_over_to_all(item)
        run_other_greenlets()
        assert not waiting.ready()
    event.set()
    assert waiting.get(timeout=5) == ("first", True)


def test_killed_waiter_publishes_failed_event(new_pool: Any, recorder: Any, start_greenlet: Any) -> None:
    pool = new_pool(max_pool_size=1)
    pool.check_out()
    start_greenlet(pool.check_out).kill()
    assert recorder.event_lines[-2:] == ["Started", "Failed connectionError"]
