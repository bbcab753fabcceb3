"""What an interrupted operation leaves behind on the server, and for how long (``docs/time-limits.md``)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import gevent
import pytest

import gmongo
from gmongo.errors import ExecutionTimeout, NetworkTimeout
from gmongo.sdam.server_description import ServerDescription
from gmongo.testing import Deployment
from gmongo.wire import compression
from tests.execution.harness import slow
from tests.support.clients import Client
from tests.support.pools import checked_out
from tests.support.wait import eventually


def busy_with(client: Client) -> list[str]:
    """What the server does now for others."""
    found = client.admin.command("currentOp")["inprog"]
    names = (next(iter(each["command"])) for each in found)
    return [name for name in names if name not in ("hello", "isMaster", "currentOp")]


@pytest.fixture
def witness(deployment: Deployment, connect: Callable[..., Client]) -> Client:
    """Another client, which looks at the server."""
    return connect(deployment)


OPERATIONS: dict[str, Callable[[Client], Any]] = {
    "find": lambda client: client.db.c.find_one({}),
    "aggregate": lambda client: client.db.c.aggregate([]).to_list(),
    "update": lambda client: client.db.c.update_one({}, {"$set": {"a": 1}}),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("how", ["kill", "gevent.Timeout"])
def test_the_close_of_its_connection_ends_it(how, name, client, witness, deployment):
    slow(deployment, name)
    asking = gevent.spawn(OPERATIONS[name], client)
    eventually(lambda: busy_with(witness) == [name])
    asking.kill(gevent.GreenletExit if how == "kill" else gevent.Timeout)
    eventually(lambda: busy_with(witness) == [])


def test_a_connection_that_is_kept_lets_it_go_on_for_a_while(deployment, connect, witness):
    client = connect(deployment, drainLateReplies=True, drainLateRepliesMS=300)
    slow(deployment, "find")
    asking = gevent.spawn(client.db.c.find_one, {})
    eventually(lambda: busy_with(witness) == ["find"])
    asking.kill()
    gevent.sleep(0.1)
    assert busy_with(witness) == ["find"]
    eventually(lambda: busy_with(witness) == [])


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("drains", [False, True])
def test_a_limit_of_the_drivers_is_known_to_the_server_which_ends_it_by_itself(
    name, drains, virtual_time, deployment, connect, witness, monkeypatch
):
    """So neither the connection nor the server's time is lost: it is what to use around database work."""
    client = connect(deployment, drainLateReplies=drains)
    client.db.c.insert_one({})
    deployment.commands.clear()
    slow(deployment, name)
    # The reply has this time for its way.
    monkeypatch.setattr(ServerDescription, "min_round_trip_time", property(lambda _server: 0.03))
    with pytest.raises(ExecutionTimeout) as raised, gmongo.timeout(0.2):
        OPERATIONS[name](client)
    assert raised.value.timeout
    assert busy_with(witness) == []
    assert client.pool_stats()[0]["total"] == 1
    assert [each.body["maxTimeMS"] < 200 for each in deployment.commands.named(name)] == [True]


def test_a_cursor_that_cannot_be_closed_in_time_is_ended_in_the_background(deployment, connect):
    client = connect(deployment, maxPoolSize=1)
    client.db.c.insert_many([{} for _ in range(10)])
    with gmongo.timeout(0.1):
        cursor = client.db.c.find({}, batch_size=2)
        next(cursor)
    (pool,) = client._topology.pools()
    with checked_out(pool):  # so that it cannot be sent
        with gmongo.timeout(0.02):
            cursor.close()
        assert deployment.commands.named("killCursors") == []
    eventually(lambda: bool(deployment.commands.named("killCursors")))


def test_a_limit_that_ends_during_decompression_is_that_limit(monkeypatch):
    """It is not taken for a damaged reply."""
    data = bytes(2_000_000)
    limit = NetworkTimeout("of the test")
    payload = memoryview(compression._WRAPPER.pack(2013, len(data), 2) + zlib.compress(data))
    decompressing = gevent.Greenlet(compression.decompressed, payload, len(data))
    decompressing.start()
    gevent.sleep(0)
    decompressing.kill(limit)
    assert decompressing.exception is limit
