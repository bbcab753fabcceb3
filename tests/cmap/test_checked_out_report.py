"""``pool_stats()`` and ``WaitQueueTimeoutError`` report the checked-out connections and the
greenlets of the connections.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.errors import WaitQueueTimeoutError
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, hold_reply
from tests.support.wait import eventually


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with gevent.Timeout(15), ScriptedServer() as server:
        yield server


def find_slowly(client: MongoClient[Any]) -> Any:
    return client.shop.orders.find_one({"secret": "hidden"})


@pytest.mark.parametrize("listeners", [[], [Recorder()]], ids=["unobserved", "observed"])
def test_wait_queue_timeout_error_names_greenlet_and_seconds(server: ScriptedServer, listeners: list[Recorder]) -> None:
    gate = Event()
    server.fail("find", hold_reply(gate))
    with MongoClient(*server.address, maxPoolSize=1, waitQueueTimeoutMS=50, event_listeners=listeners) as client:
        reporter = gevent.spawn(find_slowly, client)
        reporter.name = "reporter"
        eventually(lambda: server.commands("find"))
        with pytest.raises(WaitQueueTimeoutError) as raised:
            client.shop.orders.insert_one({})
        gate.set()
        reporter.get()
    (holder,) = raised.value.holders
    assert holder["greenlet"] == "reporter (find_slowly)"
    assert (holder["connection"], holder["operation"], holder["purpose"]) == (1, "find", "other operations")
    assert holder["seconds"] >= 0.05
    shown = "".join(traceback.format_exception(raised.value))
    assert "hidden" not in shown
    if sys.version_info >= (3, 11):
        assert "by reporter (find_slowly), for other operations; its last command: find" in shown


def test_reported_connections_are_sorted_by_descending_check_out_time(new_pool: Any, go: Any) -> None:
    pool = new_pool(max_pool_size=7, wait_queue_timeout=0.01)
    connections = []
    for _ in range(7):
        connections.append(pool.check_out())
        gevent.sleep(0.001)
    with pytest.raises(WaitQueueTimeoutError) as raised:
        pool.check_out()
    assert [holder["connection"] for holder in raised.value.holders] == [1, 2, 3, 4, 5]
    held = pool.stats()["held"]
    assert [holder["connection"] for holder in held] == [1, 2, 3, 4, 5, 6, 7]
    seconds = [holder["seconds"] for holder in held]
    assert seconds == sorted(seconds, reverse=True)
    for connection in connections:
        pool.check_in(connection)
    assert pool.stats()["held"] == []


def test_report_of_connections_states_that_greenlet_has_ended(new_pool: Any) -> None:
    pool = new_pool()
    culprit = gevent.spawn(pool.check_out)
    culprit.name = "culprit"
    culprit.get()
    assert [holder["greenlet"] for holder in pool.stats()["held"]] == ["culprit, which has ended"]


def test_report_of_connections_states_that_greenlet_is_gone(new_pool: Any) -> None:
    pool = new_pool()
    gevent.spawn(pool.check_out).get()
    gevent.sleep(0.01)  # lets the hub drop its reference to the ended greenlet
    gc.collect()
    assert [holder["greenlet"] for holder in pool.stats()["held"]] == ["a greenlet that is gone"]


def test_check_in_removes_reference_of_connection_to_greenlet(new_pool: Any) -> None:
    pool = new_pool()
    greenlet = gevent.spawn(lambda: pool.check_in(pool.check_out()))
    greenlet.get()
    (connection,) = pool.machine.available
    assert connection.checked_out_by is None
