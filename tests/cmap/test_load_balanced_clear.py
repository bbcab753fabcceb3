"""A clear of a pool behind a load balancer affects only one service (CMAP-138, CMAP-161 to
CMAP-168).
"""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from bson import ObjectId
from gevent.event import Event

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import InvalidOperation, PoolClearedError
from tests.cmap.harness import connection_counts, ping
from tests.support.pools import service_counts
from tests.support.server import ScriptedServer, hold_reply, send_no_reply

SERVICE, OTHER_SERVICE = ObjectId("0" * 23 + "1"), ObjectId("0" * 23 + "2")


@pytest.fixture
def pool(new_pool: Any) -> Pool:
    pool_of_services: Pool = new_pool(load_balanced=True, clears_on_failure=False)
    return pool_of_services


def check_out_connection_to(service: ObjectId, server: ScriptedServer, pool: Pool) -> Connection:
    """Check out a new connection, in whose handshake the server reports `service` as ``serviceId``."""
    server.hello_extra = {"serviceId": service}
    return pool.check_out()


@pytest.mark.requirement("CMAP-138")
def test_clear_without_service_id_behind_load_balancer_raises_invalid_operation(pool: Pool, recorder: Any) -> None:
    with pytest.raises(InvalidOperation, match="clear requires a service_id behind a load balancer"):
        pool.clear()
    assert (pool.generation, pool.stats()["state"]) == (0, "ready")
    assert not recorder.events_named("PoolCleared")


@pytest.mark.requirement("CMAP-59", "CMAP-166", "CMAP-167", "CMAP-168")
def test_pool_counts_connections_of_each_service(pool: Pool, server: Any) -> None:
    first, second, third = (
        check_out_connection_to(service, server, pool) for service in (SERVICE, SERVICE, OTHER_SERVICE)
    )
    assert service_counts(pool) == {SERVICE: (0, 2), OTHER_SERVICE: (0, 1)}
    pool.clear(service_id=SERVICE)
    assert service_counts(pool) == {SERVICE: (1, 2), OTHER_SERVICE: (0, 1)}
    assert pool.generation == 0
    for connection in (first, second, third):
        pool.check_in(connection)
    assert service_counts(pool) == {OTHER_SERVICE: (0, 1)}
    pool.close()
    assert service_counts(pool) == {}


def test_clear_of_service_keeps_draining_connection_of_other_service(new_pool: Any, server: Any) -> None:
    pool = new_pool(load_balanced=True, clears_on_failure=False, drains=True, drain_time=60.0, drain_bytes=1_000)
    one, other = check_out_connection_to(SERVICE, server, pool), check_out_connection_to(OTHER_SERVICE, server, pool)
    server.fail("ping", send_no_reply, send_no_reply)
    for connection in (one, other):
        pinging = gevent.spawn(ping, connection)
        server.wait_for("ping", connection.id)
        pinging.kill()
        connection.expect_late_reply(lambda body: None, False)
        pool.check_in(connection)
    assert pool.stats()["draining"] == 2
    pool.clear(service_id=SERVICE)
    assert pool.machine.draining == {other}


@pytest.mark.requirement("CMAP-28", "CMAP-161", "CMAP-162", "CMAP-163", "CMAP-164", "CMAP-184")
def test_clear_of_service_closes_only_connections_to_service(pool: Pool, server: Any, recorder: Any) -> None:
    one, other = check_out_connection_to(SERVICE, server, pool), check_out_connection_to(OTHER_SERVICE, server, pool)
    states_at_clear: list[Any] = []
    recorder.hooks["PoolCleared"] = lambda _event: states_at_clear.append(
        (pool.generations.generation_of(SERVICE), pool.stats()["state"])
    )
    recorder.clear()
    pool.clear(service_id=SERVICE)
    event = recorder.events[0]
    assert (event.service_id, event.interrupt_connections) == (SERVICE, False)
    assert states_at_clear == [(1, "ready")]
    pool.check_in(one)
    pool.check_in(other)
    assert recorder.event_lines[1:] == ["CheckedIn 1", "Closed 1 stale", "CheckedIn 2"]
    assert pool.check_out() is other


@pytest.mark.requirement("CMAP-165", "CMAP-164")
def test_clear_of_service_does_not_evict_waiters(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool = new_pool(load_balanced=True, max_pool_size=1)
    connection = check_out_connection_to(SERVICE, server, pool)
    waiting = start_greenlet(pool.check_out)
    pool.clear(service_id=SERVICE)
    assert pool.stats()["waiting"] == 1
    pool.check_in(connection)
    assert waiting.get(timeout=5).id == 2
    assert not recorder.events_named("Failed")


@pytest.mark.requirement("CMAP-168")
def test_connection_gets_generation_after_handshake(pool: Pool, server: Any, start_greenlet: Any) -> None:
    check_out_connection_to(SERVICE, server, pool)
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    checking_out = start_greenlet(pool.check_out)
    server.wait_for("handshake", 2)
    pool.clear(service_id=SERVICE)
    gate.set()
    connection = checking_out.get(timeout=5)
    assert connection.generation == 1
    pool.check_in(connection)
    assert connection_counts(pool) == (2, 0, 1, 1)  # the pool keeps the second connection, whose generation is current


@pytest.mark.requirement("CMAP-157", "CMAP-161")
def test_clear_with_interrupt_keeps_connections_of_other_services(pool: Pool, server: Any, start_greenlet: Any) -> None:
    one, other = check_out_connection_to(SERVICE, server, pool), check_out_connection_to(OTHER_SERVICE, server, pool)
    gate = Event()
    server.fail("ping", hold_reply(gate), hold_reply(gate))
    ping_greenlets = [start_greenlet(ping, connection) for connection in (one, other)]
    server.wait_for("ping", 2)
    pool.clear(service_id=SERVICE, interrupt=True)
    ping_greenlets[0].join(timeout=5)
    assert isinstance(ping_greenlets[0].exception, PoolClearedError)
    gate.set()
    assert ping_greenlets[1].get(timeout=5)["ok"] == 1
