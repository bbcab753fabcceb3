"""A ``WaitQueueTimeoutError`` reports the checked-out connections, and the greenlets that have
checked out these connections.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.errors import WaitQueueTimeoutError
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, hold_reply
from tests.support.wait import eventually


def find_order(client: MongoClient[Any]) -> Any:
    return client.shop.orders.find_one({"secret": "hidden"})


@pytest.mark.parametrize("listeners", [[], [Recorder()]], ids=["unobserved", "observed"])
def test_wait_queue_timeout_error_names_greenlet_and_seconds(server: ScriptedServer, listeners: list[Recorder]) -> None:
    gate = Event()
    server.fail("find", hold_reply(gate))
    with MongoClient(*server.address, maxPoolSize=1, waitQueueTimeoutMS=50, event_listeners=listeners) as client:
        reporter = gevent.spawn(find_order, client)
        reporter.name = "reporter"
        eventually(lambda: server.commands("find"))
        with pytest.raises(WaitQueueTimeoutError) as raised:
            client.shop.orders.insert_one({})
        gate.set()
        reporter.get()
    (holder,) = raised.value.holders
    assert holder["greenlet"] == "reporter (find_order)"
    assert (holder["connection"], holder["operation"], holder["purpose"]) == (1, "find", "other operations")
    assert holder["seconds"] >= 0.05
    traceback_text = "".join(traceback.format_exception(raised.value))
    assert "hidden" not in traceback_text
    if sys.version_info >= (3, 11):
        assert "by reporter (find_order), for other operations; its last command: find" in traceback_text


def test_check_in_removes_reference_of_connection_to_greenlet(new_pool: Any) -> None:
    pool = new_pool()
    greenlet = gevent.spawn(lambda: pool.check_in(pool.check_out()))
    greenlet.get()
    (connection,) = pool.machine.available
    assert connection.checked_out_by is None


def test_wait_queue_timeout_error_names_at_most_five_connections(new_pool: Any) -> None:
    pool = new_pool(max_pool_size=7, wait_queue_timeout=0.05)
    connections = [pool.check_out() for _ in range(7)]
    with pytest.raises(WaitQueueTimeoutError) as raised:
        pool.check_out()
    assert len(raised.value.holders) == 5 < len(pool.stats()["held"]) == len(connections)
