"""The state of a process is read by one thread while the clients of another one go on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo._fork import forkables, register_after_fork
from gmongo._telemetry.slow import SlowOperations
from gmongo.cmap.wait_queue import Waiter
from gmongo.sdam.event_log import SdamEvent
from gmongo.status import process_state
from gmongo.testing import Deployment
from gmongo.wire import transport
from tests.support.pools import checked_out

READERS: dict[str, Callable[[MongoClient[Any]], object]] = {
    "the page": lambda _client: process_state(query_text=True),
    "pool_stats": lambda client: client.pool_stats(),
    "metrics": lambda _client: metrics(),
    "what a fork would mark": lambda _client: forkables(),
}


class Other:
    """What another thread has registered."""

    def mark_forked(self) -> None:
        """It has nothing to mark."""


class Bustle:
    """What another thread does between two instructions of this one: it adds to everything, or takes away again.

    :param client: whose collections of waiters, connections and happenings change.
    """

    def __init__(self, client: MongoClient[Any]) -> None:
        executor, topology = client._executor, client._topology
        (self._address, self._server), *_ = topology.servers.items()
        machine = self._server.pool.machine
        assert executor.observers is not None
        (slow,) = [each for each in executor.observers.all if isinstance(each, SlowOperations)]
        self._sets = machine.in_use, machine.pending
        self._connections = list(machine.in_use)
        self._queues = machine.queue.waiters, topology.selector._queue.waiters
        self._rows = topology.history.happenings, slow.last
        self._others: list[Other] = []
        self._happening = SdamEvent(0.0, "joined", self._address, None, 1, 0.0)
        self._slow = slow.last[0]
        self._waiter: Waiter[Any] = Waiter()
        self._mappings: tuple[tuple[dict[Any, Any], Any, Any], ...] = (
            (topology.servers, ("other", 1), self._server),
            (executor.backing_off, gevent.getcurrent(), ("find", 0.0)),
        )
        self._is_there = False

    def __call__(self) -> None:
        self._is_there = not self._is_there
        (self._come if self._is_there else self._go)()

    def end(self) -> None:
        """All is as it was before."""
        if self._is_there:
            self()
        self._sets[0].update(self._connections)

    def _come(self) -> None:
        self._others.append(Other())
        register_after_fork(self._others[-1])
        for waiters in self._queues:
            waiters[self._waiter] = None
        for row, what in zip(self._rows, (self._happening, self._slow), strict=True):
            row.append(what)
        for mapping, key, value in self._mappings:
            mapping[key] = value
        for connections in self._sets:
            connections.update(self._connections)
        for connection in self._connections:
            connection.holder = gevent.getcurrent  # any function that returns a greenlet

    def _go(self) -> None:
        self._others.clear()
        for waiters in self._queues:
            waiters.clear()
        for row in self._rows:
            row.pop()
        for mapping, key, _value in self._mappings:
            del mapping[key]
        for connections in self._sets:
            connections.clear()
        for connection in self._connections:
            connection.holder = None


def metrics() -> None:
    from opentelemetry.metrics import CallbackOptions

    from gmongo._telemetry import metrics as ours

    for instruments in list(ours._instruments.values()):
        for *_, number in ours._POOL_INSTRUMENTS:
            list(instruments._pools_observed(number)(CallbackOptions()))
        for *_, read in ours._CLIENT_INSTRUMENTS:
            list(instruments._clients_observed(read)(CallbackOptions()))


@contextmanager
def between_instructions(act: Callable[[], None], every: int) -> Iterator[None]:
    """Call a function before every so many instructions of Python code."""
    numbers = count(1)

    def trace(frame: Any, what: str, _argument: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes = True
        if what == "opcode" and next(numbers) % every == 0:
            act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_whatever_changes_between_any_two_instructions(read: Callable[[MongoClient[Any]], object], every: int) -> None:
    pytest.importorskip("opentelemetry.sdk")
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri, slow_operation_ms=0, metrics=True) as client,
    ):
        client.d.c.find_one()
        with checked_out(client._topology.pools()[0]):
            bustle = Bustle(client)
            try:
                with between_instructions(bustle, every):
                    read(client)
            finally:
                bustle.end()


def test_the_last_free_buffer_may_go_to_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taken(list[memoryview]):
        """It is not empty when it is asked, and is empty when a buffer is taken."""

        def __bool__(self) -> bool:
            return True

    monkeypatch.setattr(transport, "_free_buffers", Taken())
    assert len(transport._free_buffer()) > 0
