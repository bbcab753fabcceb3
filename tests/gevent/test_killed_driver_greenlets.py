"""Tests that the driver replaces driver greenlets which the application has killed."""

from __future__ import annotations

import gc

import gevent
import pytest

from gmongo import MongoClient
from tests.support.greenlets import living_greenlets
from tests.support.server import ScriptedServer, cut_reply
from tests.support.wait import eventually


@pytest.fixture(params=[True, False], ids=["streaming", "polled"])
def server(request):
    with gevent.Timeout(20), ScriptedServer(streams=request.param) as server:
        yield server


def driver_greenlets(client):
    """Return the greenlets of the monitors and of the pool upkeep of a client."""
    monitors = [each.monitor for each in client._topology.servers.values()]
    rtt_monitors = [each._rtt_monitor for each in monitors if each._rtt_monitor is not None]
    pools = [pool._background for pool in client._topology.pools()]
    return [*(each._background.greenlet for each in (*monitors, *rtt_monitors)), *(each.greenlet for each in pools)]


@pytest.fixture
def client(server):
    with MongoClient(*server.address, heartbeatFrequencyMS=500, minPoolSize=1, retryReads=False) as client:
        client.test.c.find_one()
        yield client


@pytest.fixture(
    params=[gevent.GreenletExit, RuntimeError, gevent.Timeout, SystemExit],
    ids=["kill", "RuntimeError", "Timeout", "SystemExit"],
)
def exception_class(request, monkeypatch):
    """Return the class of the exception with which the test kills the greenlets."""
    monkeypatch.setattr("gmongo._background._PAUSE_AFTER_EXCEPTION", 0.01)
    monkeypatch.setattr(gevent.get_hub(), "handle_error", lambda *_: None)
    return request.param


@pytest.mark.parametrize("times", [1, 5])
def test_killed_monitors_are_restarted(client, server, exception_class, times):
    for _ in range(times):
        killed_greenlets = driver_greenlets(client)
        gevent.killall(killed_greenlets, exception=exception_class)
        assert all(each.dead for each in killed_greenlets)
        eventually(lambda: not any(each.dead for each in driver_greenlets(client)))
    hello_count = len(server.commands("hello"))
    eventually(lambda: len(server.commands("hello")) > hello_count)
    assert client.test.c.find_one() is not None


def test_pool_is_populated_after_kill_of_upkeep(client, server, exception_class):
    gevent.killall(driver_greenlets(client), exception=exception_class)
    server.fail("find", cut_reply(5))
    with pytest.raises(Exception, match="closed"):
        client.test.c.find_one()
    eventually(lambda: client.pool_stats()[0]["state"] == "ready" and client.pool_stats()[0]["available"] == 1)


def test_killed_greenlets_of_closed_client_are_not_restarted(server):
    client = MongoClient(*server.address, minPoolSize=1)
    client.test.c.find_one()
    gevent.killall(driver_greenlets(client))
    client.close()

    def has_living_greenlets():
        gc.collect()
        return living_greenlets("gmongo")

    eventually(lambda: not has_living_greenlets())
