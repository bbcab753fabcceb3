"""The application ``examples/load_balanced_app.py`` reaches two services through HAProxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest
from bson import ObjectId
from gevent.pool import Pool

from examples.load_balanced_app import ServiceWatch, Shop
from gmongo.testing import Deployment
from tests.load_balanced.haproxy import HAPROXY_PATH, run_haproxy
from tests.load_balanced.harness import connection_uses
from tests.support.wait import eventually

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(HAPROXY_PATH is None, reason="haproxy is not installed (Debian package haproxy)"),
]


@pytest.fixture
def services() -> Iterator[Deployment]:
    """Start a load-balanced deployment of two services.

    The tests use HAProxy instead of the load balancer of the deployment.
    """
    with Deployment.load_balanced(2) as deployment:
        yield deployment


@pytest.fixture
def uri(services: Deployment, tmp_path: Path) -> Iterator[str]:
    """Start HAProxy in front of the services, and yield a URI that connects to HAProxy."""
    with run_haproxy([member.address for member in services.members], tmp_path) as address:
        yield f"mongodb://{address}/?loadBalanced=true"


@pytest.fixture
def service_watch() -> ServiceWatch:
    return ServiceWatch()


@pytest.fixture
def shop(uri: str, connect: Any, recorder: Any, service_watch: ServiceWatch) -> Shop:
    """Return the shop of the example application. The client of the shop connects through HAProxy."""
    shop = Shop(connect(uri, event_listeners=[recorder, service_watch], maxPoolSize=0))
    shop.open(1000)
    return shop


def members_by_service_id(services: Deployment) -> dict[ObjectId, Any]:
    return {member.service_id: member for member in services.members}


@pytest.mark.requirement("LB-43", "LB-47", "LB-56", "LB-90")
def test_cursor_or_transaction_stays_on_one_service(
    services: Deployment, shop: Shop, service_watch: ServiceWatch
) -> None:
    Pool(10).map(shop.serve_customer, range(40))
    assert sorted(shop.order_numbers()) == list(range(40))
    assert shop.stock.find_one() == {"_id": "piece", "left": 960}
    assert set(service_watch.command_counts) == set(members_by_service_id(services))
    assert service_watch.count >= 80
    assert service_watch.on_several_services == []
    assert {command.member for command in services.commands.named("getMore")} == {
        member.address for member in services.members
    }
    assert connection_uses(shop.client) == {}


@pytest.mark.requirement("LB-66", "LB-68", "LB-72", "LB-14", "LB-61")
def test_kill_of_service_clears_only_connections_to_service(
    services: Deployment, shop: Shop, service_watch: ServiceWatch, recorder: Any
) -> None:
    workers = Pool(10)
    customers = [workers.spawn(shop.serve_customer, number) for number in range(30)]
    customers += [gevent.spawn_later(0.2 + number / 50, shop.serve_customer, 100 + number) for number in range(30)]
    eventually(lambda: len(service_watch.command_counts) == 2 and sum(customer.ready() for customer in customers) >= 5)
    lost_member, kept_member = services.members
    kept_connection_ids = _connection_ids_of(shop, kept_member)
    assert kept_connection_ids and _connection_ids_of(shop, lost_member)
    lost_member.kill()
    gevent.joinall(customers, raise_error=True)
    assert len(shop.order_numbers()) == 60  # each order is stored exactly once
    assert shop.stock.find_one() == {"_id": "piece", "left": 940}
    assert {event.service_id for event in recorder.events_named("PoolCleared")} == {lost_member.service_id}
    assert kept_connection_ids <= _connection_ids_of(shop, kept_member)
    assert _connection_ids_of(shop, lost_member) == set()
    assert service_watch.on_several_services == []
    assert connection_uses(shop.client) == {}
    assert shop.client.topology_description.topology_type_name == "LoadBalanced"
    assert not recorder.events_named("HeartbeatStarted")


def _connection_ids_of(shop: Shop, member: Any) -> set[int]:
    """Return the IDs of the connections that the shop's client has to a service."""
    (pool,) = shop.client._topology.pools()
    machine = pool.machine
    return {each.id for each in (*machine.in_use, *machine.available) if each.service_id == member.service_id}
