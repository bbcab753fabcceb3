"""The WaitQueue (CMAP-37 to CMAP-42, CMAP-105, CMAP-106, CMAP-110 to CMAP-113)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import _clock
from gmongo.cmap.pool import Pool
from gmongo.errors import WaitQueueTimeoutError
from gmongo.testing import VirtualTime
from tests.cmap.harness import counts, settle
from tests.support.pools import checked_out
from tests.support.server import cut, held
from tests.support.wait import eventually


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


@pytest.mark.requirement("CMAP-40", "CMAP-112")
def test_a_newcomer_does_not_take_what_was_given_back_for_another(new_pool: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    crowd = Crowd(pool, go)
    waiting = crowd.add("waiting")
    pool.check_in(connection)
    with checked_out(pool):  # asks before the waiter has had a turn of the loop
        crowd.served.append("newcomer")
    waiting.join(timeout=5)
    assert crowd.served == ["waiting", "newcomer"]


@pytest.mark.requirement("CMAP-40", "CMAP-112")
def test_a_newcomer_does_not_take_the_place_of_a_waiter_that_is_to_connect(new_pool: Any, server: Any, go: Any) -> None:
    gate = Event()
    server.fail("handshake", held(gate))
    pool = new_pool(max_connecting=1)
    asking = [go(pool.check_out) for _ in range(4)]
    server.wait_for("handshake")
    assert (pool.stats()["pending"], pool.stats()["waiting"]) == (1, 3)
    gate.set()
    asking[0].join(timeout=5)
    newcomer = pool.check_out()
    assert [each.get(timeout=5).id for each in asking] == [1, 2, 3, 4]
    assert newcomer.id == 5


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


@pytest.mark.requirement("CMAP-13")
def test_without_a_limit_a_wait_has_no_end(new_pool: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    asking = go(pool.check_out)
    gevent.sleep(0.05)
    assert not asking.ready()
    pool.check_in(connection)
    assert asking.get(timeout=5) is connection


@pytest.mark.requirement("CMAP-42", "CMAP-112")
def test_the_next_in_the_queue_is_served_when_the_first_has_left(new_pool: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    impatient = go(pool.check_out, _clock.monotonic() + 0.02)
    patient = go(pool.check_out)
    assert pool.stats()["waiting"] == 2
    with pytest.raises(WaitQueueTimeoutError):
        impatient.get(timeout=5)
    assert pool.stats()["waiting"] == 1
    pool.check_in(connection)
    assert patient.get(timeout=5) is connection


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


@pytest.mark.requirement("CMAP-106")
def test_a_deadline_that_has_passed(new_pool: Any) -> None:
    pool = new_pool(max_pool_size=1)
    pool.check_out()
    with pytest.raises(WaitQueueTimeoutError):
        pool.check_out(_clock.monotonic() - 1)
    assert pool.stats()["waiting"] == 0


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


@pytest.mark.requirement("CMAP-37", "CMAP-110")
def test_a_waiter_goes_on_when_a_connection_fails_to_be_established(new_pool: Any, server: Any, go: Any) -> None:
    gate = Event()
    server.fail("handshake", lambda peer, message: (gate.wait(), cut(0)(peer, message)))
    pool = new_pool(max_connecting=1, clears=False)
    first, second = go(pool.check_out), go(pool.check_out)
    server.wait_for("handshake")
    gate.set()
    assert second.get(timeout=5).id == 2
    assert not first.successful()


@pytest.mark.requirement("CMAP-110")
def test_a_waiter_makes_a_connection_when_a_place_becomes_free(new_pool: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=1)
    connection = pool.check_out()
    asking = go(pool.check_out)
    connection.error = ConnectionError("lost")
    pool.check_in(connection)
    assert asking.get(timeout=5).id == 2
    assert recorder.only("Closed") == ["Closed 1 error"]


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


@pytest.mark.requirement("CMAP-37", "CMAP-110")
@pytest.mark.parametrize("meanwhile", ["a check-in", "a clear", "a close"])
def test_nothing_is_missed_while_perished_connections_are_closed(
    new_pool: Any, server: Any, recorder: Any, go: Any, meanwhile: str
) -> None:
    """A listener that yields, such as one that writes to a socket, lets the world go on in mid-check-out."""
    pool = new_pool(max_connecting=1, max_idle_time=60)
    spare = [pool.check_out(), pool.check_out()]
    gate = Event()
    server.fail("handshake", held(gate))
    establishing = go(pool.check_out)
    server.wait_for("handshake", 3)
    for connection in spare:
        pool.check_in(connection)
        connection.idle_since -= 1000
    recorder.hooks["Closed"] = lambda _event: _let_happen(pool, meanwhile, gate, establishing)
    asking = go(pool.check_out)
    eventually(asking.ready, 0.2)


def _let_happen(pool: Pool, what: str, gate: Event, establishing: gevent.Greenlet[..., Any]) -> None:
    if what == "a clear":
        pool.clear()
    elif what == "a close":
        pool.close()
    elif not gate.is_set():
        gate.set()
        gevent.spawn(lambda: pool.check_in(establishing.get(timeout=1)))
        gevent.sleep(0.05)
    settle()


@pytest.mark.requirement("CMAP-41", "CMAP-42")
def test_a_wait_is_no_longer_than_its_limit(new_pool: Any, go: Any) -> None:
    """Timers of one loop go off in their order, however late."""
    pool = new_pool(max_pool_size=1, wait_queue_timeout=0.1)
    pool.check_out()
    waiting = go(pool.check_out)
    ended: list[bool] = []
    gevent.spawn_later(0.09, lambda: ended.append(waiting.ready()))
    gevent.spawn_later(0.15, lambda: ended.append(waiting.ready()))
    eventually(lambda: len(ended) == 2)
    assert ended == [False, True]
    assert isinstance(waiting.exception, WaitQueueTimeoutError)
