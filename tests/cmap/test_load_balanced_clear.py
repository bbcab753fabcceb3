"""Clearing by service, behind a load balancer (CMAP-138, CMAP-161 to CMAP-168)."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from bson import ObjectId
from gevent.event import Event

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, InvalidOperation, PoolClearedError
from tests.cmap.harness import counts, ping
from tests.support.pools import services
from tests.support.server import ScriptedServer, cut, held, silent
from tests.support.wait import eventually

ONE, OTHER = ObjectId("0" * 23 + "1"), ObjectId("0" * 23 + "2")


@pytest.fixture
def pool(new_pool: Any) -> Pool:
    made: Pool = new_pool(load_balanced=True, clears=False)
    return made


def connect_to(service: ObjectId, server: ScriptedServer, pool: Pool) -> Connection:
    """A connection that the load balancer leads to `service`."""
    server.hello_extra = {"serviceId": service}
    return pool.check_out()


@pytest.mark.requirement("CMAP-138")
def test_the_plain_clear_is_not_for_load_balancers(pool: Pool, recorder: Any) -> None:
    with pytest.raises(InvalidOperation):
        pool.clear()
    assert (pool.generation, pool.stats()["state"]) == (0, "ready")
    assert not recorder.of("PoolCleared")


@pytest.mark.requirement("CMAP-59", "CMAP-166", "CMAP-167", "CMAP-168")
def test_the_map_of_services(pool: Pool, server: Any) -> None:
    first, second, third = (connect_to(service, server, pool) for service in (ONE, ONE, OTHER))
    assert services(pool) == {ONE: (0, 2), OTHER: (0, 1)}
    pool.clear(service_id=ONE)
    assert services(pool) == {ONE: (1, 2), OTHER: (0, 1)}
    assert pool.generation == 0, "which is the pool's own"
    for connection in (first, second, third):
        pool.check_in(connection)
    assert services(pool) == {OTHER: (0, 1)}
    pool.close()
    assert services(pool) == {}


def test_late_replies_of_other_services_are_waited_for(new_pool: Any, server: Any) -> None:
    pool = new_pool(load_balanced=True, clears=False, drains=True, drain_time=60.0, drain_bytes=1_000)
    one, other = connect_to(ONE, server, pool), connect_to(OTHER, server, pool)
    server.fail("ping", silent, silent)
    for connection in (one, other):
        asking = gevent.spawn(ping, connection)
        server.wait_for("ping", connection.id)
        asking.kill()
        connection.expect_late_reply(lambda body: None, False)
        pool.check_in(connection)
    assert pool.stats()["draining"] == 2
    pool.clear(service_id=ONE)
    assert pool.machine.draining == {other}


@pytest.mark.requirement("CMAP-28", "CMAP-161", "CMAP-162", "CMAP-163", "CMAP-164", "CMAP-184")
def test_only_that_service_is_cleared(pool: Pool, server: Any, recorder: Any) -> None:
    one, other = connect_to(ONE, server, pool), connect_to(OTHER, server, pool)
    seen: list[Any] = []
    recorder.hooks["PoolCleared"] = lambda _event: seen.append((pool.generations.of(ONE), pool.stats()["state"]))
    recorder.forget()
    pool.clear(service_id=ONE)
    event = recorder.events[0]
    assert (event.service_id, event.interrupt_connections) == (ONE, False)
    assert seen == [(1, "ready")]
    pool.check_in(one)
    pool.check_in(other)
    assert recorder.story[1:] == ["CheckedIn 1", "Closed 1 stale", "CheckedIn 2"]
    assert pool.check_out() is other


@pytest.mark.requirement("CMAP-165", "CMAP-164")
def test_waiters_stay(new_pool: Any, server: Any, recorder: Any, go: Any) -> None:
    pool = new_pool(load_balanced=True, max_pool_size=1)
    connection = connect_to(ONE, server, pool)
    waiting = go(pool.check_out)
    pool.clear(service_id=ONE)
    assert pool.stats()["waiting"] == 1
    pool.check_in(connection)
    assert waiting.get(timeout=5).id == 2
    assert not recorder.of("Failed")


@pytest.mark.requirement("CMAP-168")
def test_a_connection_belongs_to_the_generation_of_its_handshake(pool: Pool, server: Any, go: Any) -> None:
    connect_to(ONE, server, pool)
    gate = Event()
    server.fail("handshake", held(gate))
    asking = go(pool.check_out)
    server.wait_for("handshake", 2)
    pool.clear(service_id=ONE)
    gate.set()
    connection = asking.get(timeout=5)
    assert connection.generation == 1
    pool.check_in(connection)
    assert counts(pool) == (2, 0, 1, 1)  # so it is not stale


@pytest.mark.requirement("CMAP-161", "CMAP-138")
def test_a_client_clears_the_service_whose_connection_failed(new_client: Any, server: Any, recorder: Any) -> None:
    server.hello_extra = {"serviceId": ONE, "msg": "isdbgrid"}
    client = new_client(f"mongodb://{server.name}/?loadBalanced=true", retryReads=False)
    client.db.c.find_one()
    server.fail("find", cut(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    assert [event.service_id for event in recorder.of("PoolCleared")] == [ONE]
    assert client.pool_stats()[0]["state"] == "ready"
    assert recorder.story[-3:] == ["PoolCleared", "CheckedIn 1", "Closed 1 error"]
    eventually(lambda: not server.peers)


@pytest.mark.requirement("CMAP-157", "CMAP-161")
def test_an_interrupting_clear_of_a_service_spares_the_others(pool: Pool, server: Any, go: Any) -> None:
    one, other = connect_to(ONE, server, pool), connect_to(OTHER, server, pool)
    gate = Event()
    server.fail("ping", held(gate), held(gate))
    asking = [go(ping, connection) for connection in (one, other)]
    server.wait_for("ping", 2)
    pool.clear(service_id=ONE, interrupt=True)
    asking[0].join(timeout=5)
    assert isinstance(asking[0].exception, PoolClearedError)
    gate.set()
    assert asking[1].get(timeout=5)["ok"] == 1
