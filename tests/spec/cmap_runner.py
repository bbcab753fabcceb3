"""Runner of the official tests in the cmap format.

The runner uses a real pool whose connections have sockets. A test with unknown fields fails.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gevent
from gevent.event import Event

from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import PyMongoError
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from tests.cmap.harness import PoolOwner
from tests.spec.unified.threads import Thread
from tests.support.listeners import ForwardingPoolListener
from tests.support.server import ScriptedServer

KNOWN_FIELDS = {"version", "style", "description", "runOn", "failPoint", "poolOptions", "operations"}
KNOWN_FIELDS |= {"error", "events", "ignore"}
ANY_VALUE_MARKERS = (42, "42")

# Class name of an event -> name of the event in the specification, if the names differ.
EVENT_NAMES = {
    "PoolCreatedEvent": "ConnectionPoolCreated",
    "PoolReadyEvent": "ConnectionPoolReady",
    "PoolClearedEvent": "ConnectionPoolCleared",
    "PoolClosedEvent": "ConnectionPoolClosed",
}
FIELD_NAMES = {"connection_id": "connectionId", "interrupt_connections": "interruptInUseConnections"}


class EventRecorder(ForwardingPoolListener):
    """Listener that records pool events as documents of the official cmap format."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._changed = Event()

    def handle(self, event: Any) -> None:
        kind = type(event).__name__
        fields = ("address", "options", "connection_id", "reason", "duration", "interrupt_connections")
        values = {FIELD_NAMES.get(name, name): getattr(event, name, None) for name in fields}
        document = {name: value for name, value in values.items() if value is not None}
        self.events.append({**document, "type": EVENT_NAMES.get(kind, kind.removesuffix("Event"))})
        self._changed.set()

    def wait_for(self, kind: str, count: int, timeout: float) -> None:
        """Wait until `count` events of kind `kind` are recorded."""
        with gevent.Timeout(timeout, AssertionError(f"no {count} events {kind} in {self.events}")):
            while sum(event["type"] == kind for event in self.events) < count:
                self._changed.clear()
                self._changed.wait()


class FailPoint:
    """Fail point that delays or fails the handshakes of clients with one application name."""

    def __init__(self, command: dict[str, Any]) -> None:
        mode = command["mode"]
        self._remaining_count = mode["times"] if isinstance(mode, dict) else 1 << 30 if mode == "alwaysOn" else 0
        self._data = command.get("data", {})

    def __call__(self, command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        name = command.get("client", {}).get("application", {}).get("name")
        if self._remaining_count == 0 or self._data.get("appName") != name:
            return reply
        self._remaining_count -= 1
        gevent.sleep(self._data.get("blockTimeMS", 0) / 1000)
        if self._data.get("closeConnection"):
            raise ConnectionAbortedError
        if "errorCode" in self._data:
            return {"ok": 0, "code": self._data["errorCode"], "errmsg": "fail point"}
        return reply


class CmapTest:
    """Execution of the official test in one file."""

    def __init__(self, case: dict[str, Any]) -> None:
        assert set(case) <= KNOWN_FIELDS, f"unknown fields {set(case) - KNOWN_FIELDS}"
        self._case = case
        self._recorder = EventRecorder()
        self._threads: dict[str, Thread] = {}
        self._labelled_connections: dict[str, Connection] = {}

    def run(self) -> None:
        with ScriptedServer() as server:
            if "failPoint" in self._case:
                server.hello_edit = FailPoint(self._case["failPoint"])
            self._pool = self._make_pool(server)
            try:
                error = self._run_operations()
                self._check(error)
            finally:
                for thread in self._threads.values():
                    thread.kill()
                self._pool.close()

    def _make_pool(self, server: ScriptedServer) -> Pool:
        pool_options = dict(self._case.get("poolOptions", {}))
        interval = pool_options.pop("backgroundThreadIntervalMS", None)
        settings = ClientOptions([server.name], None, pool_options).topology()
        options = settings.pool
        if interval is not None:
            options = dataclasses.replace(options, background_interval=interval / 1000)
        owner = PoolOwner()
        events = PoolEvents(server.address, (self._recorder,), Delivery(), None, silent=False)
        owner.pool = Pool(server.address, options, settings.connection, events, owner)
        owner.pool.finish()
        return owner.pool

    def _run_operations(self) -> PyMongoError | None:
        try:
            for operation in self._case["operations"]:
                fields = dict(operation)
                run = getattr(self, "_op_" + fields.pop("name"))
                thread = fields.pop("thread", None)
                if thread is None:
                    run(**fields)
                else:
                    self._threads[thread].submit(lambda run=run, fields=fields: run(**fields))  # type: ignore[misc]
                gevent.sleep(0)  # lets the threads run until their next wait
        except PyMongoError as error:
            return error
        return None

    # Each method with the prefix `_op_` runs one operation of the official files. The name of the
    # operation follows the prefix.

    def _op_start(self, target: str) -> None:
        self._threads[target] = Thread()

    def _op_wait(self, ms: int) -> None:
        gevent.sleep(ms / 1000)

    def _op_waitForThread(self, target: str) -> None:
        self._threads[target].join()

    def _op_waitForEvent(self, event: str, count: int, timeout: int = 10_000) -> None:
        self._recorder.wait_for(event, count, timeout / 1000)

    def _op_checkOut(self, label: str | None = None) -> None:
        connection = self._pool.check_out()
        if label is not None:
            self._labelled_connections[label] = connection

    def _op_checkIn(self, connection: str) -> None:
        self._pool.check_in(self._labelled_connections[connection])

    def _op_clear(self, interruptInUseConnections: bool = False) -> None:
        self._pool.clear(interrupt=interruptInUseConnections)

    def _op_close(self) -> None:
        self._pool.close()

    def _op_ready(self) -> None:
        self._pool.ready()

    # Comparison with the expected error and with the expected events

    def _check(self, error: PyMongoError | None) -> None:
        expected = self._case.get("error")
        if expected is None:
            assert error is None, repr(error)
        else:
            assert error is not None
            assert type(error).__name__ == expected["type"]
            # The comparison ignores case, because the specification writes "a Connection", but the
            # tests write "a connection" (CMAP-A36).
            # `str(error)` may contain additional advice for the user.
            text = getattr(error, "message", str(error))
            assert text.lower() == expected.get("message", text).lower()
            assert "address" not in expected or getattr(error, "address", None) is not None
        ignored = self._case.get("ignore", [])
        actual = [event for event in self._recorder.events if event["type"] not in ignored]
        expected_events = self._case.get("events", [])
        assert len(actual) >= len(expected_events), actual
        for event, required in zip(actual, expected_events, strict=False):
            assert matches(required, event), f"{event} does not match {required} in {actual}"
        assert len(actual) == len(expected_events), f"surplus events {actual[len(expected_events) :]}"


def matches(expected: Any, actual: Any) -> bool:
    """Return True if `actual` matches `expected`. The expected values 42 and "42" match any value
    except None.

    An actual document may have additional fields.
    """
    if expected in ANY_VALUE_MARKERS:
        return actual is not None
    if isinstance(expected, dict):
        return all(key in actual and matches(value, actual[key]) for key, value in expected.items())
    return bool(expected == actual)
