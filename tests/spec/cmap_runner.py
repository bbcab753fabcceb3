"""The runner of the cmap-format tests: real pool, real sockets; strict about what it is asked to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event
from gevent.queue import Queue

from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import PyMongoError
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from tests.support.listeners import HearsPools
from tests.support.server import ScriptedServer

KNOWN_FIELDS = {"version", "style", "description", "runOn", "failPoint", "poolOptions", "operations"}
KNOWN_FIELDS |= {"error", "events", "ignore"}
ANYTHING = (42, "42")

# Where the specification's names and the classes' names differ.
EVENT_NAMES = {
    "PoolCreatedEvent": "ConnectionPoolCreated",
    "PoolReadyEvent": "ConnectionPoolReady",
    "PoolClearedEvent": "ConnectionPoolCleared",
    "PoolClosedEvent": "ConnectionPoolClosed",
}
FIELD_NAMES = {"connection_id": "connectionId", "interrupt_connections": "interruptInUseConnections"}


class Transcript(HearsPools):
    """All events of a pool, as the tests write them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._changed = Event()

    def hear(self, event: Any) -> None:
        kind = type(event).__name__
        fields = ("address", "options", "connection_id", "reason", "duration", "interrupt_connections")
        found = {
            FIELD_NAMES.get(name, name): getattr(event, name)
            for name in fields
            if getattr(event, name, None) is not None
        }
        found["type"] = EVENT_NAMES.get(kind, kind.removesuffix("Event"))
        self.events.append(found)
        self._changed.set()

    def wait_for(self, kind: str, count: int, timeout: float) -> None:
        """Wait until `count` events of this kind have been seen."""
        with gevent.Timeout(timeout, AssertionError(f"no {count} events {kind} in {self.events}")):
            while sum(event["type"] == kind for event in self.events) < count:
                self._changed.clear()
                self._changed.wait()


class Owner:
    """What the topology does for a pool, as far as these tests see it: a failed handshake clears the pool."""

    pool: Pool

    def connection_established(self, connection: Connection) -> None:
        pass

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        self.pool.clear(error)


class FailPoint:
    """Lets handshakes come late, or fail.

    :param command: a ``configureFailPoint``; it applies to handshakes of its ``appName``.
    """

    def __init__(self, command: dict[str, Any]) -> None:
        mode = command["mode"]
        self._times = mode["times"] if isinstance(mode, dict) else 1 << 30 if mode == "alwaysOn" else 0
        self._data = command.get("data", {})

    def __call__(self, command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        name = command.get("client", {}).get("application", {}).get("name")
        if self._times == 0 or self._data.get("appName") != name:
            return reply
        self._times -= 1
        gevent.sleep(self._data.get("blockTimeMS", 0) / 1000)
        if self._data.get("closeConnection"):
            raise ConnectionAbortedError
        if "errorCode" in self._data:
            return {"ok": 0, "code": self._data["errorCode"], "errmsg": "fail point"}
        return reply


class Thread:
    """A named thread of a test: it runs what it is given, one after the other."""

    def __init__(self) -> None:
        self._work: Queue[Any] = Queue()
        self._greenlet = gevent.spawn(self._run)

    def _run(self) -> None:
        for work in self._work:
            work()

    def submit(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def join(self) -> None:
        """Wait for the end; raises what the thread raised."""
        self._work.put(StopIteration)
        self._greenlet.get(timeout=20)

    def kill(self) -> None:
        self._greenlet.kill()


class CmapTest:
    """One file.

    :param case: its content.
    """

    def __init__(self, case: dict[str, Any]) -> None:
        assert set(case) <= KNOWN_FIELDS, f"unknown fields {set(case) - KNOWN_FIELDS}"
        self._case = case
        self._transcript = Transcript()
        self._threads: dict[str, Thread] = {}
        self._labels: dict[str, Connection] = {}

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
        given = dict(self._case.get("poolOptions", {}))
        interval = given.pop("backgroundThreadIntervalMS", None)
        settings = ClientOptions([server.name], None, given).topology()
        options = settings.pool
        if interval is not None:
            options = dataclasses.replace(options, upkeep_interval=interval / 1000)
        owner = Owner()
        events = PoolEvents(server.address, (self._transcript,), Delivery(), None, silent=False)
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
                gevent.sleep(0)  # the other threads run as far as they can
        except PyMongoError as error:
            return error
        return None

    # Operations, by their names in the files

    def _op_start(self, target: str) -> None:
        self._threads[target] = Thread()

    def _op_wait(self, ms: int) -> None:
        gevent.sleep(ms / 1000)

    def _op_waitForThread(self, target: str) -> None:
        self._threads[target].join()

    def _op_waitForEvent(self, event: str, count: int, timeout: int = 10_000) -> None:
        self._transcript.wait_for(event, count, timeout / 1000)

    def _op_checkOut(self, label: str | None = None) -> None:
        connection = self._pool.check_out()
        if label is not None:
            self._labels[label] = connection

    def _op_checkIn(self, connection: str) -> None:
        self._pool.check_in(self._labels[connection])

    def _op_clear(self, interruptInUseConnections: bool = False) -> None:
        self._pool.clear(interrupt=interruptInUseConnections)

    def _op_close(self) -> None:
        self._pool.close()

    def _op_ready(self) -> None:
        self._pool.ready()

    # What must have come of it

    def _check(self, error: PyMongoError | None) -> None:
        expected = self._case.get("error")
        if expected is None:
            assert error is None, repr(error)
        else:
            assert error is not None
            assert type(error).__name__ == expected["type"]
            # The seed writes "a Connection", the tests "a connection" (CMAP-A36).
            text = getattr(error, "message", str(error))  # which may go on, with what to change
            assert text.lower() == expected.get("message", text).lower()
            assert "address" not in expected or getattr(error, "address", None) is not None
        ignored = self._case.get("ignore", [])
        actual = [event for event in self._transcript.events if event["type"] not in ignored]
        wanted = self._case.get("events", [])
        assert len(actual) >= len(wanted), actual
        for found, event in zip(actual, wanted, strict=False):
            assert matches(event, found), f"{found} does not match {event} in {actual}"
        assert len(actual) == len(wanted), f"surplus events {actual[len(wanted) :]}"


def matches(expected: Any, actual: Any) -> bool:
    """Whether `expected` is a part of `actual`; 42 stands for anything that is there."""
    if expected in ANYTHING:
        return actual is not None
    if isinstance(expected, dict):
        return all(key in actual and matches(value, actual[key]) for key, value in expected.items())
    return bool(expected == actual)
