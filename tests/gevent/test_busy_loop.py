"""Tests of time limits in a busy process: greenlets compute, and the server does not reply."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

LIMIT = 0.2  # seconds
MILLISECONDS = 1000 * LIMIT
SLICES = (0.005, 0.02)  # seconds that a greenlet computes before each switch to the hub


MEMBER = {"setName": "rs", "minWireVersion": 0, "maxWireVersion": 21, "logicalSessionTimeoutMinutes": 30}


def compute(seconds: float) -> None:
    while True:
        time.sleep(seconds)
        gevent.sleep(0)


def duration_and_longest_loop_iteration(call: Callable[[], object]) -> tuple[float, float]:
    """Return the duration of a call that raises a timeout error, and the longest iteration of the event loop."""
    begin = time.monotonic()
    moments = [begin]
    with gevent.get_hub().loop.check(ref=False) as watcher:
        watcher.start(lambda: moments.append(time.monotonic()))
        workers = [gevent.spawn(compute, seconds) for seconds in SLICES]
        try:
            with gevent.Timeout(60), pytest.raises(PyMongoError) as caught:
                call()
            moments.append(time.monotonic())
        finally:
            gevent.killall(workers)
    assert caught.value.timeout
    return moments[-1] - begin, max(later - earlier for earlier, later in pairwise(moments))


def find(client: MongoClient[Any]) -> None:
    client.db.c.find_one()


def find_in_block(client: MongoClient[Any]) -> None:
    with gmongo.timeout(LIMIT):
        client.db.c.find_one()


def run_transaction(client: MongoClient[Any]) -> None:
    with client.start_session() as session:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))


@pytest.mark.parametrize(
    ("connections", "options", "operation"),
    [
        pytest.param(None, {"serverSelectionTimeoutMS": MILLISECONDS}, find, id="server selection"),
        pytest.param(None, {"timeoutMS": MILLISECONDS}, find, id="server selection under timeoutMS"),
        pytest.param(0, {"connectTimeoutMS": MILLISECONDS}, find, id="connect"),
        pytest.param(0, {"timeoutMS": MILLISECONDS}, find, id="connect under timeoutMS"),
        pytest.param(1, {"waitQueueTimeoutMS": MILLISECONDS}, find, id="wait queue"),
        pytest.param(1, {}, find_in_block, id="wait queue under gmongo.timeout"),
        pytest.param(2, {"socketTimeoutMS": MILLISECONDS}, find, id="exchange"),
        pytest.param(2, {}, find_in_block, id="exchange under gmongo.timeout"),
        pytest.param(2, {"timeoutMS": MILLISECONDS}, run_transaction, id="with_transaction"),
    ],
)
def test_operation_ends_within_its_limit_and_two_loop_iterations(
    connections: int | None, options: dict[str, Any], operation: Callable[[MongoClient[Any]], object]
) -> None:
    """
    :param connections: None if no server runs. 0 if the pool is empty, 1 if another greenlet uses the only connection,
        2 if the only connection is available.
    """
    more = {"maxPoolSize": 1, "retryReads": False, "retryWrites": False, "serverMonitoringMode": "poll"}
    with ScriptedServer(member=lambda server: {**MEMBER, "hosts": [server.name], "me": server.name}) as server:
        if connections is None:
            server.stop()
        with MongoClient(server.name, replicaSet="rs", **more, **options) as client:
            if connections is not None:
                eventually(lambda: client.topology_description.has_writable_server())
            if connections:
                with gmongo.timeout(20):
                    client.db.c.find_one()
            server.answering.clear()
            user_of_connection = gevent.spawn(client.db.c.find_one) if connections == 1 else None
            gevent.sleep(0)
            duration, longest = duration_and_longest_loop_iteration(lambda: operation(client))
            server.answering.set()
            if user_of_connection is not None:
                user_of_connection.get(timeout=20)
    assert LIMIT <= duration <= LIMIT + 2 * longest
