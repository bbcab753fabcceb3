"""A thousand greenlets wait for a primary: they are woken by changes, in order, and do not rush at the new one."""

from __future__ import annotations

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.sdam.server_selector import ServerSelector
from gmongo.testing import Deployment
from tests.support.wait import comes_true

pytestmark = pytest.mark.long


WAITERS = 1000


@pytest.fixture
def looks(monkeypatch):
    """How often an operation looked for a suitable server."""
    count = [0]
    suitable = ServerSelector._suitable

    def counted(self, *arguments):
        count[0] += 1
        return suitable(self, *arguments)

    monkeypatch.setattr(ServerSelector, "_suitable", counted)
    return count


def test_each_gets_its_own_time_out_only_and_none_looks_again_meanwhile(virtual_time, looks):
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient(deployment.uri, serverSelectionTimeoutMS=1200) as client,
        gevent.Timeout(60),
    ):
        client.test.c.find_one()
        deployment.members[0].kill()
        assert comes_true(lambda: not client._topology.description.has_known_servers)
        looks[0] = 0
        waiters = [gevent.spawn(client.test.c.find_one) for _ in range(WAITERS)]
        assert comes_true(lambda: client._topology.selector.waiting == WAITERS)
        begun = looks[0]
        gevent.joinall(waiters)
        errors = {type(each.exception) for each in waiters}
        assert errors == {ServerSelectionTimeoutError}
        # Twice each to begin with, then once for each check of the monitor, which rests for half a second between.
        assert begun <= 2 * WAITERS
        assert looks[0] - begun <= 4 * WAITERS


@pytest.mark.parametrize("max_connecting", [2, 5])
def test_recovery_is_in_order_and_no_rush(max_connecting):
    with Deployment.replica_set(members=1) as deployment:
        options = {"maxConnecting": max_connecting, "maxPoolSize": 50, "serverSelectionTimeoutMS": 30000}
        with MongoClient(deployment.uri, **options) as client, gevent.Timeout(60):
            client.test.c.insert_one({"_id": 1})
            (member,) = deployment.members
            member.kill()
            assert comes_true(lambda: not client._topology.description.has_known_servers)
            served: list[int] = []

            def ask(number: int) -> None:
                assert client.test.c.find_one({"_id": 1}) == {"_id": 1}
                served.append(number)

            waiters = [gevent.spawn(ask, number) for number in range(WAITERS)]
            assert comes_true(lambda: client._topology.selector.waiting == WAITERS)
            most = [0]
            member.restart()
            member.delay(0.002)
            while not all(each.ready() for each in waiters):
                shaking = [each for each in member.connections.values() if not each.operations["find"]]
                # Two connections are the monitor's.
                most[0] = max(most[0], len(shaking) - 2)
                gevent.sleep(0.0005)
            assert [each.exception for each in waiters if each.exception] == []
            assert 0 < most[0] <= max_connecting
            # First come, first served, but for those that run at the same time or wait for a handshake; and for those
            # few whose connection was lost once more, which had to queue up again.
            displaced = sorted(abs(position - number) for position, number in enumerate(served))
            assert displaced[-WAITERS // 20] <= 2 * 50
