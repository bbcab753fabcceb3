"""The state of a process can be read while another thread changes pools, topologies and
event logs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo._fork import list_forkables, register_after_fork
from gmongo._telemetry.slow import SlowOperations
from gmongo.cmap.wait_queue import Waiter
from gmongo.sdam.event_log import SdamEvent
from gmongo.status import process_state
from gmongo.testing import Deployment
from tests.support.pools import checked_out

READERS: dict[str, Callable[[MongoClient[Any]], object]] = {
    "status page": lambda _client: process_state(query_text=True),
    "pool_stats": lambda client: client.pool_stats(),
    "metrics": lambda _client: read_metrics(),
    "list_forkables": lambda _client: list_forkables(),
}


class RegisteredObject:
    """Object that :class:`ConcurrentChanges` registers with :func:`register_after_fork`."""

    def mark_forked(self) -> None:
        pass


class ConcurrentChanges:
    """Callable that changes the containers in a client, to simulate another thread.

    :param client: the client whose waiters, connections and events are changed.
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
        self._deques = topology.history.events, slow.entries
        self._registered_objects: list[RegisteredObject] = []
        self._event = SdamEvent(0.0, "joined", self._address, None, 1, 0.0)
        self._slow_entry = slow.entries[0]
        self._waiter: Waiter[Any] = Waiter()
        self._mappings: tuple[tuple[dict[Any, Any], Any, Any], ...] = (
            (topology.servers, ("other", 1), self._server),
            (executor.backoffs, gevent.getcurrent(), ("find", 0.0)),
        )
        self._has_entries = False

    def __call__(self) -> None:
        self._has_entries = not self._has_entries
        (self._add_entries if self._has_entries else self._remove_entries)()

    def end(self) -> None:
        """Remove the added entries, and add the original connections again."""
        if self._has_entries:
            self()
        self._sets[0].update(self._connections)

    def _add_entries(self) -> None:
        self._registered_objects.append(RegisteredObject())
        register_after_fork(self._registered_objects[-1])
        for waiters in self._queues:
            waiters[self._waiter] = None
        for entries, entry in zip(self._deques, (self._event, self._slow_entry), strict=True):
            entries.append(entry)
        for mapping, key, value in self._mappings:
            mapping[key] = value
        for connections in self._sets:
            connections.update(self._connections)
        for connection in self._connections:
            # Use `getcurrent` in place of a weak reference: both return a greenlet when they are called.
            connection.checked_out_by = gevent.getcurrent

    def _remove_entries(self) -> None:
        self._registered_objects.clear()
        for waiters in self._queues:
            waiters.clear()
        for entries in self._deques:
            entries.pop()
        for mapping, key, _value in self._mappings:
            del mapping[key]
        for connections in self._sets:
            connections.clear()
        for connection in self._connections:
            connection.checked_out_by = None


def read_metrics() -> None:
    from opentelemetry.metrics import CallbackOptions

    from gmongo._telemetry import metrics as telemetry_metrics

    for instruments in list(telemetry_metrics._instruments.values()):
        for *_, read_counts in telemetry_metrics._POOL_INSTRUMENTS:
            list(instruments._pool_callback(read_counts)(CallbackOptions()))
        for *_, read_values in telemetry_metrics._CLIENT_INSTRUMENTS:
            list(instruments._client_callback(read_values)(CallbackOptions()))


@contextmanager
def between_instructions(action: Callable[[], None], interval: int) -> Iterator[None]:
    """Run the block. Call `action` whenever the called functions of other files have executed
    `interval` further bytecode instructions.
    """
    instruction_numbers = count(1)

    def trace(frame: Any, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(instruction_numbers) % interval == 0:
            action()
        return trace

    previous_trace = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(previous_trace)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("interval", [1, 2, 3, 7])
def test_read_of_state_succeeds_during_changes_between_instructions(
    read: Callable[[MongoClient[Any]], object], interval: int
) -> None:
    pytest.importorskip("opentelemetry.sdk")
    with (
        Deployment.standalone() as deployment,
        MongoClient(deployment.uri, slow_operation_ms=0, metrics=True) as client,
    ):
        client.d.c.find_one()
        with checked_out(client._topology.pools()[0]):
            changes = ConcurrentChanges(client)
            try:
                with between_instructions(changes, interval):
                    read(client)
            finally:
                changes.end()
