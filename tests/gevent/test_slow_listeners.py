"""Tests that an interrupted greenlet does not wait while a second greenlet runs a slow listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event

from gmongo import MongoClient
from gmongo.monitoring import ConnectionCheckedOutEvent
from gmongo.testing import Deployment, VirtualTime
from tests.support.fail_points import block
from tests.support.listeners import ForwardingPoolListener
from tests.support.wait import eventually


class SlowListener(ForwardingPoolListener):
    """Listener that blocks one greenlet until the test sets the event ``gate``."""

    def __init__(self) -> None:
        self.gate = Event()
        self.entered = Event()
        self.blocked_greenlet: gevent.Greenlet | None = None

    def handle(self, event: Any) -> None:
        if isinstance(event, ConnectionCheckedOutEvent) and gevent.getcurrent() is self.blocked_greenlet:
            self.entered.set()
            self.gate.wait()


class ApplicationTimeout(Exception):
    """Exception that the application throws as a timeout."""


def find(client: MongoClient) -> None:
    client.db.c.find_one({"_id": "held"})


def find_in_session(client: MongoClient) -> None:
    with client.start_session() as session:
        client.db.c.find_one({"_id": "held"}, session=session)


def find_in_transaction(client: MongoClient) -> None:
    with client.start_session() as session, session.start_transaction():
        client.db.c.find_one({"_id": "held"}, session=session)


def read_cursor(client: MongoClient) -> None:
    client.db.c.find({}, batch_size=2).to_list()


def read_change_stream(client: MongoClient) -> None:
    with client.db.c.watch() as stream:
        next(stream)


OPERATIONS = {
    "find": (find, "find", {}),
    "slow-operation log": (find, "find", {"slow_operation_ms": 60_000}),
    "session": (find_in_session, "find", {}),
    "transaction": (find_in_transaction, "find", {}),
    "cursor": (read_cursor, "getMore", {}),
    "change stream": (read_change_stream, "getMore", {}),
}


@pytest.fixture(params=["replica set", "load balanced"])
def deployment(request: pytest.FixtureRequest, virtual_time: VirtualTime) -> Iterator[Deployment]:
    """Start a deployment in virtual time, so that its delays take no real time."""
    create_deployment = Deployment.replica_set if request.param == "replica set" else Deployment.load_balanced
    with create_deployment() as deployment, MongoClient(deployment.uri) as client:
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        yield deployment


THROWN_ERRORS = {"kill": gevent.GreenletExit, "Timeout": gevent.Timeout(0), "ApplicationTimeout": ApplicationTimeout}
# A transaction block that an `Exception` ends waits for the abort, so the list omits this case.
CASES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in THROWN_ERRORS
    if (operation, kind) != ("transaction", "ApplicationTimeout")
]


@pytest.mark.parametrize(("operation", "kind"), CASES)
def test_interrupted_greenlet_ends_before_slow_listener_returns(
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    kind: str,
    start_greenlet: Callable[..., Any],
) -> None:
    # The driver's maximum wait for a listener is longer than the test.
    monkeypatch.setattr("gmongo.events.delivery._MAX_WAIT", 60.0)
    monkeypatch.setattr("gmongo.engines.transaction._INTERRUPTED_ABORT_TIMEOUT", 0.1)
    use, command, options = OPERATIONS[operation]
    listener = SlowListener()
    with MongoClient(deployment.uri, event_listeners=[listener], **options) as client:
        client.admin.command("ping")
        block(deployment, command, 0.5)
        command_count = len(deployment.commands.named(command))
        interrupted = start_greenlet(use, client)
        eventually(lambda: len(deployment.commands.named(command)) > command_count)
        listener.blocked_greenlet = gevent.Greenlet(client.admin.command, "ping")
        listener.blocked_greenlet.start()
        assert listener.entered.wait(5)
        interrupted.kill(THROWN_ERRORS[kind], timeout=5)
        assert interrupted.dead
        ended_by = interrupted.exception or interrupted.value
        assert ended_by is THROWN_ERRORS[kind] or type(ended_by) is THROWN_ERRORS[kind]
        assert not listener.gate.is_set()
        listener.gate.set()
        listener.blocked_greenlet.join()
        eventually(lambda: sum(pool["in_use"] for pool in client.pool_stats()) == 0)
