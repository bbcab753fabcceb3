"""Checks after each run of a scenario: a run must lose no resource, reply, session, event or
document.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import gevent
from gevent import get_hub

from gmongo.errors import AutoReconnect, PyMongoError
from tests.gevent.switching.interruptions import ENTER, SPAWN, RunningTimeouts
from tests.gevent.switching.servers import count_open_resources
from tests.gevent.switching.tracing import Tracer
from tests.support.pools import service_counts
from tests.support.wait import becomes_true, becomes_true_after_collection

if TYPE_CHECKING:
    from tests.gevent.switching.harness import Scenario, ScenarioRun

WAIT_SECONDS = 10.0


def forget_frames(*errors: BaseException | None) -> None:
    """Delete the references from exceptions to their frames, so that Python can release the objects
    in the frames.
    """
    for error in errors:
        if error is not None:
            error.__traceback__ = error.__context__ = error.__cause__ = None


def outcome_faults(scenario: Scenario, run_state: ScenarioRun, tracer: Tracer) -> list[str]:
    """Return a text for each violated rule about the error that the greenlet raised."""
    if scenario.interrupts_driver or not run_state.greenlet.ready():
        return []
    error, faults = run_state.error, list[str]()
    if tracer.kind is not None and tracer.kind.moment == ENTER:
        if error is not None:
            faults.append(f"the first greenlet got {error!r}")
    elif tracer.kind is None or not tracer.errors:
        if error is not None:
            faults.append(f"the scenario fails without interruption: {error!r}")
        if tracer.has_missed_interruption():
            faults.append(f"nothing was thrown in {tracer.switch_count} switches")
    elif not tracer.kind.is_from_application:
        if error is not None and not isinstance(error, Exception):
            faults.append(f"the timeout of the driver was raised as {error!r}")
    elif tracer.kind.moment == SPAWN:
        if error is not None and not isinstance(error, PyMongoError):
            faults.append(f"the kill of a new driver greenlet was raised as {error!r}")
    elif (scenario.wraps or run_state.listeners_switch) and all(isinstance(each, Exception) for each in tracer.errors):
        pass
    elif not any(error is each for each in tracer.errors):
        faults.append(f"{tracer.errors!r} was thrown, but {error!r} was raised")
    return faults


def resource_faults(scenario: Scenario, run_state: ScenarioRun, tracer: Tracer, generation: int) -> list[str]:
    faults = []
    may_clear_pool = tracer.kind is not None and (not tracer.kind.is_from_application or scenario.interrupts_driver)
    for other in run_state.others:
        may_fail = may_clear_pool and scenario.clears_pool and isinstance(other.exception, AutoReconnect)
        if not (other.successful() or may_fail):
            faults.append(f"an uninterrupted greenlet got {other.exception!r}, ready: {other.ready()}")
    if not scenario.closes_client:
        faults += _pool_faults(run_state)
    faults += _session_faults(run_state)
    open_commands = {number for number, count in run_state.recorder.open_commands.items() if count}
    if not becomes_true(lambda: not any(run_state.recorder.open_commands.values())):
        faults.append(f"commands {open_commands} have no end event")
    if not may_clear_pool:
        if run_state.recorder.unknown_servers and not scenario.clears_pool:
            faults.append(f"the server was marked Unknown: {run_state.recorder.unknown_servers}")
        if not scenario.clears_pool and not scenario.closes_client and run_state.pool.generation != generation:
            faults.append("the pool was cleared")
    if not scenario.closes_client:
        faults += _next_operation_faults(run_state)
        try:
            scenario.check(run_state)
        except AssertionError as error:
            faults.append(f"check: {error}")
    return faults


def _pool_faults(run_state: ScenarioRun) -> list[str]:
    faults = []

    def pools_are_idle() -> bool:
        return all(
            not any(stats[name] for name in ("in_use", "pending", "waiting", "draining"))
            for stats in run_state.client.pool_stats()
        )

    if not becomes_true(pools_are_idle):
        faults.append(f"the pools are not idle: {run_state.client.pool_stats()}")
    for pool in run_state.client._topology.pools():
        machine, stats = pool.machine, pool.stats()
        connections = [*machine.pending, *machine.available, *machine.in_use, *machine.draining]
        counts = len(machine.pending), len(machine.available), len(machine.in_use), len(pool.machine.queue.waiters)
        if counts != (stats["pending"], stats["available"], stats["in_use"], stats["waiting"]):
            faults.append(f"the counts {counts} differ from the statistics {stats}")
        if len(set(connections)) != len(connections) or stats["total"] != len(connections):
            faults.append(f"a connection is in two sets: {connections}")
        if any(each.mid_message or each._transport is None or each._transport.closed for each in machine.available):
            faults.append("an unusable connection is available")
        if sum(count for _generation, count in service_counts(pool).values()) not in (0, len(connections)):
            faults.append(f"{service_counts(pool)} do not count {len(connections)} connections")
    if run_state.client._topology.selector.waiter_count:
        faults.append("a greenlet still waits for a server")
    return faults


def _session_faults(run_state: ScenarioRun) -> list[str]:
    sessions = run_state.client._executor.sessions
    if concurrent := run_state.recorder.concurrent_commands:
        return [f"commands used a session during another command: {concurrent}"]
    if not becomes_true_after_collection(lambda: not sessions.in_use):
        return [f"{sessions.in_use} sessions are still in use"]
    acquired = [sessions.acquire() for _ in range(len(sessions) + 1)]
    session_ids = [bytes(session.lsid["id"]) for session in acquired]
    for session in acquired:
        sessions.release(session)
    if len(session_ids) != len(set(session_ids)):
        return ["a session was handed out twice"]
    return []


def _next_operation_faults(run_state: ScenarioRun) -> list[str]:
    """Run further operations after the interruption.

    Return a list, which contains a text if a further operation does not return its document.
    """
    facts = run_state.db.facts
    expected = [{"_id": number, "of": number} for number in range(4)]
    documents = [facts.find_one({"_id": number}) for number in range(2)]
    readers = [gevent.spawn(facts.find_one, {"_id": number}) for number in (2, 3)]
    gevent.joinall(readers, timeout=WAIT_SECONDS)
    documents += [each.value for each in readers]
    return [] if documents == expected else [f"the next operations read {documents}"]


class ResourceSnapshot:
    """Open resources before a run: descriptors, watchers, and objects on the servers."""

    def __init__(self, deployment: Any) -> None:
        self._deployment = deployment
        self._open_counts = count_open_resources(deployment)
        self._descriptors = open_descriptors()
        self._watcher_count = _count_watchers()

    def objects_left(self, *kinds: str) -> list[str]:
        """Return a list, which contains a text if the servers have more open objects of `kinds` (such
        as ``cursors``) than before the run.
        """

        def count_remaining_objects() -> dict[str, int]:
            now = count_open_resources(self._deployment)
            return {kind: now[kind] - self._open_counts[kind] for kind in kinds if now[kind] > self._open_counts[kind]}

        return (
            []
            if becomes_true_after_collection(lambda: not count_remaining_objects())
            else [f"left open on the servers: {count_remaining_objects()}"]
        )

    def unreleased_resources(self, switched_greenlets: WeakSet[Any], run_state: ScenarioRun) -> list[str]:
        """Return a text for each kind of resource that the client did not release at its close."""
        faults = self.objects_left("connections")
        switched_greenlets -= getattr(self._deployment, "greenlets", set())
        if not becomes_true(lambda: open_descriptors() <= self._descriptors):
            faults.append(f"descriptors left: {open_descriptors() - self._descriptors}")
        if not becomes_true(lambda: not _living_driver_greenlets(switched_greenlets)):
            faults.append(f"greenlets left: {_living_driver_greenlets(switched_greenlets)}")
        if not becomes_true(lambda: _count_watchers() <= self._watcher_count):
            faults.append(f"watchers left: {_count_watchers()}, there were {self._watcher_count}")
        # The list contains only timers of this run, because clients of other tests may be alive.
        timers = [each for each in RunningTimeouts.entries if each[0] in switched_greenlets]
        if timers:
            faults.append(f"timers left: {timers}")
        if not becomes_true(lambda: not run_state.recorder.open_heartbeats):
            faults.append(f"{run_state.recorder.open_heartbeats} heartbeats have no end event")
        return faults


def open_descriptors() -> set[str]:
    """Return the name of the file or socket of each open file descriptor."""
    folder, targets = "/proc/self/fd", set()
    for number in os.listdir(folder):
        with suppress(FileNotFoundError):  # `listdir` has closed the descriptor of the directory
            targets.add(os.readlink(f"{folder}/{number}"))
    return targets


def _count_watchers() -> int:
    """Return the number of watchers that keep the event loop alive."""
    return int(get_hub().loop.activecnt)


def _living_driver_greenlets(switched_greenlets: WeakSet[Any]) -> list[Any]:
    """Return the driver greenlets in `switched_greenlets` that have not ended."""
    return [
        each
        for each in list(switched_greenlets)
        if not each.dead and "gmongo" in _module_of(each) and "testing" not in _module_of(each)
    ]


def _module_of(greenlet: Any) -> str:
    work = getattr(greenlet, "_run", None)
    work = getattr(work, "func", work)
    return f"{getattr(work, '__module__', '')}"
