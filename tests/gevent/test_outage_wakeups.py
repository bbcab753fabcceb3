"""Tests with 1,000 greenlets that wait for a primary.

Topology changes wake the greenlets in the order in which the greenlets began to wait. After the outage, the client has
at most ``maxConnecting`` concurrent handshakes.
"""

from __future__ import annotations

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.sdam.server_selector import ServerSelector
from gmongo.testing import Deployment
from tests.support.wait import becomes_true

pytestmark = pytest.mark.long


WAITER_COUNT = 1000


@pytest.fixture
def selection_counter(monkeypatch):
    """Return a list whose only element is the number of server selections of all clients."""
    counter = [0]
    find_suitable = ServerSelector._find_suitable

    def count_selections(self, *arguments):
        counter[0] += 1
        return find_suitable(self, *arguments)

    monkeypatch.setattr(ServerSelector, "_find_suitable", count_selections)
    return counter


def test_waiter_times_out_and_selects_server_once_per_check(virtual_time, selection_counter):
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient(deployment.uri, serverSelectionTimeoutMS=1200) as client,
        gevent.Timeout(60),
    ):
        client.test.c.find_one()
        deployment.members[0].kill()
        assert becomes_true(lambda: not client._topology.description.has_known_servers)
        selection_counter[0] = 0
        waiters = [gevent.spawn(client.test.c.find_one) for _ in range(WAITER_COUNT)]
        assert becomes_true(lambda: client._topology.selector.waiter_count == WAITER_COUNT)
        initial_count = selection_counter[0]
        gevent.joinall(waiters)
        errors = {type(each.exception) for each in waiters}
        assert errors == {ServerSelectionTimeoutError}
        # A greenlet selects a server at most twice at the start, and once after each check (every 0.5 s).
        assert initial_count <= 2 * WAITER_COUNT
        assert selection_counter[0] - initial_count <= 4 * WAITER_COUNT


@pytest.mark.parametrize("max_connecting", [2, 5])
def test_waiters_succeed_in_order_within_max_connecting_handshakes(max_connecting):
    with Deployment.replica_set(members=1) as deployment:
        options = {"maxConnecting": max_connecting, "maxPoolSize": 50, "serverSelectionTimeoutMS": 30000}
        with MongoClient(deployment.uri, **options) as client, gevent.Timeout(60):
            client.test.c.insert_one({"_id": 1})
            (member,) = deployment.members
            member.kill()
            assert becomes_true(lambda: not client._topology.description.has_known_servers)
            order: list[int] = []

            def find(number: int) -> None:
                assert client.test.c.find_one({"_id": 1}) == {"_id": 1}
                order.append(number)

            waiters = [gevent.spawn(find, number) for number in range(WAITER_COUNT)]
            assert becomes_true(lambda: client._topology.selector.waiter_count == WAITER_COUNT)
            max_handshake_count = 0
            member.restart()
            member.delay(0.002)
            while not all(each.ready() for each in waiters):
                open_handshakes = [each for each in member.connections.values() if not each.operations["find"]]
                # The count excludes the two connections of the monitor.
                max_handshake_count = max(max_handshake_count, len(open_handshakes) - 2)
                gevent.sleep(0.0005)
            assert [each.exception for each in waiters if each.exception] == []
            assert 0 < max_handshake_count <= max_connecting
            # The order of concurrent greenlets is undefined. A greenlet whose connection fails may
            # finish much later.
            displacements = sorted(abs(position - number) for position, number in enumerate(order))
            assert displacements[-WAITER_COUNT // 20] <= 2 * 50
