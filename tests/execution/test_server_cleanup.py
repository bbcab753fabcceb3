"""Interrupted operations and cursors end on the server (``docs/time-limits.md``)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import pytest

import gmongo
from gmongo.errors import ExecutionTimeout, NetworkTimeout
from gmongo.sdam.server_description import ServerDescription
from gmongo.testing import Deployment
from gmongo.wire import compression
from tests.execution.harness import delay_replies
from tests.support.clients import Client, Connect
from tests.support.pools import checked_out
from tests.support.wait import eventually


def running_commands(client: Client) -> list[str]:
    """Return the names of the commands that the server executes, except hello and currentOp."""
    operations = client.admin.command("currentOp")["inprog"]
    names = (next(iter(each["command"])) for each in operations)
    return [name for name in names if name not in ("hello", "isMaster", "currentOp")]


@pytest.fixture
def second_client(deployment: Deployment, connect: Connect) -> Client:
    """Return a second client of the deployment, with which tests read the running commands."""
    return connect(deployment)


OPERATIONS: dict[str, Callable[[Client], Any]] = {
    "find": lambda client: client.db.c.find_one({}),
    "aggregate": lambda client: client.db.c.aggregate([]).to_list(),
    "update": lambda client: client.db.c.update_one({}, {"$set": {"a": 1}}),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("interruption", ["kill", "gevent.Timeout"])
def test_interrupted_operation_ends_on_the_server(interruption, name, client, second_client, deployment):
    delay_replies(deployment, name)
    running = gevent.spawn(OPERATIONS[name], client)
    eventually(lambda: running_commands(second_client) == [name])
    running.kill(gevent.GreenletExit if interruption == "kill" else gevent.Timeout)
    eventually(lambda: running_commands(second_client) == [])


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("drains", [False, True])
def test_operation_that_times_out_ends_on_server_and_keeps_connection(
    name, drains, virtual_time, deployment, connect, second_client, monkeypatch
):
    client = connect(deployment, drainLateReplies=drains)
    client.db.c.insert_one({})
    deployment.commands.clear()
    delay_replies(deployment, name)
    # With this round trip time, the driver sends a `maxTimeMS` that is 30 ms below the timeout.
    monkeypatch.setattr(ServerDescription, "min_round_trip_time", property(lambda _server: 0.03))
    with pytest.raises(ExecutionTimeout) as raised, gmongo.timeout(0.2):
        OPERATIONS[name](client)
    assert raised.value.timeout
    assert running_commands(second_client) == []
    assert client.pool_stats()[0]["total"] == 1
    assert [each.body["maxTimeMS"] < 200 for each in deployment.commands.named(name)] == [True]


@pytest.mark.parametrize("limit", [gmongo.timeout, gevent.Timeout])
def test_cursor_whose_close_times_out_is_killed_in_the_background(limit, deployment, connect):
    client = connect(deployment, maxPoolSize=1)
    client.db.c.insert_many([{} for _ in range(10)])
    with gmongo.timeout(0.1):
        cursor = client.db.c.find({}, batch_size=2)
        next(cursor)
    (pool,) = client._topology.pools()
    with checked_out(pool):  # `killCursors` finds no connection
        with suppress(gevent.Timeout), limit(0.02):
            cursor.close()
        assert deployment.commands.named("killCursors") == []
    eventually(lambda: bool(deployment.commands.named("killCursors")))


def test_timeout_during_decompression_is_raised_unchanged(monkeypatch):
    data = bytes(2_000_000)
    limit = NetworkTimeout("of the test")
    payload = memoryview(compression._WRAPPER.pack(2013, len(data), 2) + zlib.compress(data))
    decompressing = gevent.Greenlet(compression.decompress_message, payload, len(data))
    decompressing.start()
    gevent.sleep(0)
    decompressing.kill(limit)
    assert decompressing.exception is limit
