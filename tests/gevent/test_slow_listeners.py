"""An interruption is not held up by what listeners of other greenlets do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.monitoring import ConnectionPoolListener
from gmongo.testing import Deployment, VirtualTime
from tests.support.fail_points import block
from tests.support.wait import eventually


class Slow(ConnectionPoolListener):
    """Keeps the event of the one greenlet that it is told, until the gate is open."""

    def __init__(self) -> None:
        self.gate = Event()
        self.entered = Event()
        self.keeps: gevent.Greenlet | None = None

    def connection_checked_out(self, event: Any) -> None:
        if gevent.getcurrent() is self.keeps:
            self.entered.set()
            self.gate.wait()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith(("pool_", "connection_")) and name != "connection_checked_out":
            return lambda _event: None
        return super().__getattribute__(name)


class Foreign(Exception):
    """What an application may have a time-out raise."""


def plain(client: MongoClient) -> None:
    client.db.c.find_one({"_id": "held"})


def in_a_session(client: MongoClient) -> None:
    with client.start_session() as session:
        client.db.c.find_one({"_id": "held"}, session=session)


def in_a_transaction(client: MongoClient) -> None:
    with client.start_session() as session, session.start_transaction():
        client.db.c.find_one({"_id": "held"}, session=session)


def by_a_cursor(client: MongoClient) -> None:
    client.db.c.find({}, batch_size=2).to_list()


def by_a_change_stream(client: MongoClient) -> None:
    with client.db.c.watch() as stream:
        next(stream)


WAYS = {
    "plain": (plain, "find", {}),
    "observed": (plain, "find", {"slow_operation_ms": 60_000}),
    "session": (in_a_session, "find", {}),
    "transaction": (in_a_transaction, "find", {}),
    "cursor": (by_a_cursor, "getMore", {}),
    "change stream": (by_a_change_stream, "getMore", {}),
}


@pytest.fixture(params=["replica set", "load balanced"])
def deployment(request: pytest.FixtureRequest, virtual_time: VirtualTime) -> Iterator[Deployment]:
    """Its time is virtual: what it is told to hold for a while is held until all else is done."""
    make = Deployment.replica_set if request.param == "replica set" else Deployment.load_balanced
    with make() as deployment, MongoClient(deployment.uri) as client:
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        yield deployment


THROWN = {"kill": gevent.GreenletExit, "Timeout": gevent.Timeout(0), "Foreign": Foreign}
# What leaves the block of a transaction as an Exception may be of the application's own: its abort takes its time.
CASES = [(way, kind) for way in WAYS for kind in THROWN if (way, kind) != ("transaction", "Foreign")]


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_it_ends_at_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, way: str, kind: str, go: Callable[..., Any]
) -> None:
    monkeypatch.setattr("gmongo.events.delivery._PATIENCE", 60.0)  # it would be waited for
    monkeypatch.setattr("gmongo.engines.transaction._INTERRUPTED_ABORT_TIMEOUT", 0.1)
    use, command, options = WAYS[way]
    listener = Slow()
    with MongoClient(deployment.uri, event_listeners=[listener], **options) as client:
        client.admin.command("ping")
        block(deployment, command, 0.5)
        seen = len(deployment.commands.named(command))
        interrupted = go(use, client)
        eventually(lambda: len(deployment.commands.named(command)) > seen)
        listener.keeps = gevent.Greenlet(client.admin.command, "ping")
        listener.keeps.start()
        assert listener.entered.wait(5)
        interrupted.kill(THROWN[kind], timeout=5)
        assert interrupted.dead
        ended_by = interrupted.exception or interrupted.value
        assert ended_by is THROWN[kind] or type(ended_by) is THROWN[kind]
        assert not listener.gate.is_set()
        listener.gate.set()
        listener.keeps.join()
        eventually(lambda: sum(pool["in_use"] for pool in client.pool_stats()) == 0)
