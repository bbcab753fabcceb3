"""Tests of time limits in a busy process: other greenlets compute, and the server does not reply.

With the option ``--mongodb-members 1``, the tests of public operations suspend a real server
(SIGSTOP). By default, the tests freeze a simulated server in another process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

import gmongo
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import DeploymentProcess
from tests.gevent.switching.operations import OPERATIONS, Operation
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

LIMIT_SECONDS = 0.2  # seconds
LIMIT_MS = 1000 * LIMIT_SECONDS
COMPUTE_SECONDS = (0.005, 0.02)  # seconds that each of two greenlets computes before a switch


HELLO_FIELDS = {"setName": "rs", "minWireVersion": 0, "maxWireVersion": 21, "logicalSessionTimeoutMinutes": 30}


def compute(seconds: float) -> None:
    while True:
        time.sleep(seconds)
        gevent.sleep(0)


def measure_in_busy_loop(call: Callable[[], object]) -> tuple[float, float, PyMongoError | None]:
    """Run `call` while other greenlets compute.

    Return the durations of `call` and of the longest loop iteration, and the error of `call` or None.
    """
    error = None
    begin = time.monotonic()
    moments = [begin]
    with gevent.get_hub().loop.check(ref=False) as watcher:
        watcher.start(lambda: moments.append(time.monotonic()))
        workers = [gevent.spawn(compute, seconds) for seconds in COMPUTE_SECONDS]
        try:
            with gevent.Timeout(60):
                call()
        except PyMongoError as raised:
            error = raised
        finally:
            moments.append(time.monotonic())
            gevent.killall(workers)
    return moments[-1] - begin, max(later - earlier for earlier, later in pairwise(moments)), error


def find(client: MongoClient[Any]) -> None:
    client.db.c.find_one()


def find_in_block(client: MongoClient[Any]) -> None:
    with gmongo.timeout(LIMIT_SECONDS):
        client.db.c.find_one()


def run_transaction(client: MongoClient[Any]) -> None:
    with client.start_session() as session:
        session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))


@pytest.mark.parametrize(
    ("state", "options", "operation"),
    [
        pytest.param("no server", {"serverSelectionTimeoutMS": LIMIT_MS}, find, id="server selection"),
        pytest.param("no server", {"timeoutMS": LIMIT_MS}, find, id="server selection under timeoutMS"),
        pytest.param("no connection", {"connectTimeoutMS": LIMIT_MS}, find, id="connect"),
        pytest.param("no connection", {"timeoutMS": LIMIT_MS}, find, id="connect under timeoutMS"),
        pytest.param("connection in use", {"waitQueueTimeoutMS": LIMIT_MS}, find, id="wait queue"),
        pytest.param("connection in use", {}, find_in_block, id="wait queue under gmongo.timeout"),
        pytest.param("idle connection", {"socketTimeoutMS": LIMIT_MS}, find, id="exchange"),
        pytest.param("idle connection", {}, find_in_block, id="exchange under gmongo.timeout"),
        pytest.param("idle connection", {"timeoutMS": LIMIT_MS}, run_transaction, id="with_transaction"),
    ],
)
def test_operation_ends_within_its_limit_and_two_loop_iterations(
    state: str, options: dict[str, Any], operation: Callable[[MongoClient[Any]], object]
) -> None:
    """Run an operation that waits for a server, a connection or a reply."""
    common_options = {"maxPoolSize": 1, "retryReads": False, "retryWrites": False, "serverMonitoringMode": "poll"}
    with ScriptedServer(member=lambda server: {**HELLO_FIELDS, "hosts": [server.name], "me": server.name}) as server:
        if state == "no server":
            server.stop()
        with MongoClient(server.name, replicaSet="rs", **common_options, **options) as client:
            if state != "no server":
                eventually(lambda: client.topology_description.has_writable_server())
            if state in ("connection in use", "idle connection"):
                with gmongo.timeout(20):
                    client.db.c.find_one()
            server.answering.clear()
            user_of_connection = gevent.spawn(client.db.c.find_one) if state == "connection in use" else None
            gevent.sleep(0)
            duration, longest_iteration, error = measure_in_busy_loop(lambda: operation(client))
            server.answering.set()
            if user_of_connection is not None:
                user_of_connection.get(timeout=20)
    assert error is not None and error.timeout
    assert LIMIT_SECONDS <= duration <= LIMIT_SECONDS + 2 * longest_iteration


@pytest.fixture(scope="module")
def suspendable_server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield a server in another process, with its URI and functions that suspend and resume the
    server.
    """
    if not request.config.getoption("--mongodb-members"):
        with DeploymentProcess("--replica-set", "1") as process:
            yield SimpleNamespace(
                uri=process.uri, suspend=lambda: process.fault(0, "freeze"), resume=lambda: process.fault(0, "thaw")
            )
        return
    uri = request.getfixturevalue("mongodb_server").uri
    with MongoClient(uri) as client:
        pid = client.admin.command("serverStatus")["pid"]
    yield SimpleNamespace(
        uri=uri, suspend=lambda: os.kill(pid, signal.SIGSTOP), resume=lambda: os.kill(pid, signal.SIGCONT)
    )


@pytest.mark.one_in(16)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_public_operation_ends_within_timeout_and_two_loop_iterations(
    operation: Operation, suspendable_server: Any
) -> None:
    def run_with_timeout() -> None:
        with gmongo.timeout(LIMIT_SECONDS):
            operation.run_operation(run_state)

    with MongoClient(suspendable_server.uri) as client:
        run_state: Any = SimpleNamespace(client=client, kept={})
        operation.prepare(run_state)
        suspendable_server.suspend()
        try:
            duration, longest_iteration, error = measure_in_busy_loop(run_with_timeout)
        finally:
            suspendable_server.resume()
    assert error is None or error.timeout, repr(error)
    assert duration <= LIMIT_SECONDS + 2 * longest_iteration
