"""Runs a scenario again and again, and throws at each of its switches in turn.

``greenlet.settrace`` sees every switch, also those that gevent makes in C. A run counts the switches of one greenlet
to the hub; at the chosen one something is thrown there. Scenarios are small, so the count is the same in each run; the
runs go on until one ends before its switch has come.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import gevent
import greenlet
from gevent import get_hub

from gmongo import MongoClient
from gmongo.errors import AutoReconnect
from gmongo.testing import Deployment
from tests.gevent.switching.thrown import EARLY, LATE, Kind, Running
from tests.support.listeners import HearsCommands, HearsHeartbeats, HearsPools, HearsServers
from tests.support.pools import services
from tests.support.recorder import short_name
from tests.support.wait import comes_true, comes_true_at_last

MOST_POINTS = 60
PATIENCE = 1.0


class Tracer:
    """Follows one greenlet, and throws into it at one of its switches.

    :param point: the number of that switch, from 0; None is none of them.
    :param kind: what to throw.
    """

    def __init__(self, point: int | None, kind: Kind | None, is_subject: Callable[[Any], bool]) -> None:
        self.point = point
        self.kind = kind
        self.subject: Any = None
        self.switches = 0
        self.thrown: list[BaseException] = []
        self.reached = False
        self.seen: WeakSet[Any] = WeakSet()
        self._is_subject = is_subject
        self._over = False
        self._hub = get_hub()
        self._left = () if kind is None or kind.makes is None else kind.makes

    def __enter__(self) -> Tracer:
        greenlet.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        greenlet.settrace(None)
        self._over = True

    def _trace(self, event: str, args: tuple[Any, Any]) -> None:
        origin, target = args
        self.seen.add(target)
        if self.subject is None:
            if self._is_subject(target):
                self.subject = target
        elif origin is self.subject and target is self._hub:
            if not origin.dead:
                self._switched_out()
        elif target is self.subject and origin is self._hub and event == "switch":
            self._about_to_wake()

    def _switched_out(self) -> None:
        number = self.switches
        self.switches += 1
        if number == self.point and not self.reached:
            self.reached = True
            if self.kind is not None and self.kind.landing == EARLY:
                self._hub.loop.run_callback(self._throw)
        elif self.thrown and self._left:
            self._hub.loop.run_callback(self._throw)

    def _about_to_wake(self) -> None:
        if not self.reached or self.thrown or self.kind is None or self.kind.landing != LATE:
            return
        if self.switches != (self.point or 0) + 1:
            return
        error = self._next_error()
        if error is not None:
            # What a trace function raises is raised in the greenlet that is switched to, and ends the tracing.
            self._hub.loop.run_callback(self._trace_again)
            raise error

    def missed(self) -> bool:
        """Whether nothing was thrown although the greenlet switched again after the point.

        At its last switch it may be over before what is thrown comes: then another callback wakes it first. Which one
        is the last differs between runs, as a reply that is there already is read without a switch.
        """
        foreign = self.kind is not None and self.kind.foreign
        return foreign and self.reached and not self.thrown and self.switches > (self.point or 0) + 1

    def _trace_again(self) -> None:
        if not self._over:
            greenlet.settrace(self._trace)
        if self.subject is not None and not self.subject.dead and self._left:
            self._throw()

    def _next_error(self) -> BaseException | None:
        assert self.kind is not None
        if self.kind.makes is None:
            error = Running.of(self.subject, self.kind.innermost)
        elif self._left:
            make, self._left = self._left[0], self._left[1:]
            error = make()
        else:
            error = None
        if error is not None:
            self.thrown.append(error)
        return error

    def _throw(self) -> None:
        if self.subject.dead:
            return
        error = self._next_error()
        if error is not None:
            self.subject.throw(error)


class Witness(HearsCommands, HearsHeartbeats, HearsServers):
    """Notes what begins and ends, and which cursors the client has heard of."""

    def __init__(self) -> None:
        self.open_commands: Counter[int] = Counter()
        self.heartbeats = 0
        self.cursors: set[int] = set()
        self.unknown: list[Any] = []

    def hear(self, event: Any) -> None:
        kind = short_name(event)
        change = 1 if kind.endswith("Started") else -1
        if kind.startswith("Command"):
            self.open_commands[event.request_id] += change
        elif kind.startswith("Heartbeat"):
            self.heartbeats += change
        if kind == "CommandSucceeded":
            cursor = event.reply.get("cursor")
            if isinstance(cursor, dict) and cursor.get("id"):
                self.cursors.add(cursor["id"])
        elif kind == "ServerDescriptionChanged":
            known = [each.is_server_type_known for each in (event.previous_description, event.new_description)]
            if known == [True, False]:
                self.unknown.append(event.new_description)


class YieldingWitness(HearsPools, Witness):
    """Lets others run in every event, so that there are switches wherever the driver tells of something."""

    def hear(self, event: Any) -> None:
        Witness.hear(self, event)
        if not short_name(event).startswith("Server"):
            gevent.sleep(0)


class Scenario:
    """What a greenlet does while things are thrown into it. Subclasses say what."""

    name = ""
    options: dict[str, Any] = {}  # of the client
    limits = {"socketTimeoutMS": 20000, "waitQueueTimeoutMS": 20000}
    warm = True  # whether the pool has a connection before it begins
    clears = False  # whether it clears the pool itself
    survives = False  # whether the greenlet is the driver's own, which goes on after an exception
    limited = True  # whether the driver has a time-out of its own for any of its waits
    closes = False  # whether the client is closed at the end
    ends_cursors = False  # whether the servers end cursors with their connections, as behind a load balancer
    least_switches = 1
    most_points = MOST_POINTS

    def deployment(self) -> Deployment:
        """Where it takes place."""
        return Deployment.replica_set(members=1)

    def prepare(self, stage: Stage) -> None:
        """Before the greenlet begins."""

    def act(self, stage: Stage) -> Any:
        """What the greenlet does."""

    def start(self, stage: Stage) -> Callable[[Any], bool]:
        """Start the greenlet; returns what tells it from others."""
        stage.greenlet = gevent.Greenlet(self._act, stage)
        stage.greenlet.start()
        return lambda each: each is stage.greenlet

    def _act(self, stage: Stage) -> None:
        try:
            self.act(stage)
        except BaseException as error:
            stage.error = error  # and no traceback on the console

    def meanwhile(self, stage: Stage) -> None:
        """What others do after it has begun."""

    def over(self, stage: Stage, tracer: Tracer) -> bool:
        """Whether it is over."""
        return bool(stage.greenlet.ready())

    def check(self, stage: Stage) -> None:
        """What else must be true after it, whatever was thrown."""


class Stage:
    """A fresh client for one run, and what the scenario keeps about it."""

    def __init__(self, scenario: Scenario, deployment: Deployment, yields: bool) -> None:
        self.deployment = deployment
        self.witness = YieldingWitness() if yields else Witness()
        options = {"serverMonitoringMode": "poll", **scenario.limits, **scenario.options}
        self.client: MongoClient[Any] = MongoClient(deployment.uri, event_listeners=[self.witness], **options)
        self.greenlet: Any = None
        self.error: BaseException | None = None  # what came out of it
        self.errors: list[BaseException] = []  # what was thrown into it
        self.others: list[gevent.Greenlet] = []
        self.kept: dict[str, Any] = {}

    @property
    def db(self) -> Any:
        return self.client.test

    @property
    def pool(self) -> Any:
        return self.client._topology.pools()[0]

    def warm(self) -> None:
        assert self.db.facts.find_one({"_id": 1}) == {"_id": 1, "of": 1}

    def find_server(self) -> Any:
        return self.client._topology.select_server(self.client.read_preference, "test")


class Result:
    """What became of one run."""

    def __init__(self, tracer: Tracer) -> None:
        self.reached = tracer.reached
        self.thrown = bool(tracer.thrown)
        self.switches = tracer.switches


def run(
    scenario: Scenario, deployment: Deployment, point: int | None, kind: Kind | None, yields: bool = False
) -> Result:
    """Run the scenario once, and check that nothing is lost.

    :param yields: whether listeners let others run in every event.
    """
    faults: list[str] = []
    with gevent.Timeout(20):
        before = Resources(deployment)
        stage = Stage(scenario, deployment, yields)
        if scenario.warm:
            stage.warm()
        scenario.prepare(stage)
        generation = stage.pool.generation if stage.client._topology.pools() else 0
        with Tracer(point, kind, scenario.start(stage)) as tracer:
            scenario.meanwhile(stage)
            faults += _end_of(scenario, stage, tracer)
            gevent.joinall(stage.others, timeout=PATIENCE)
        stage.errors = tracer.thrown
        faults += _outcome(scenario, stage, tracer)
        _forget_frames(*tracer.thrown, stage.error)
        faults += _nothing_lost(scenario, stage, tracer, generation)
        stage.client.close()
        result, seen = Result(tracer), tracer.seen
        stage.greenlet = stage.error = None
        stage.errors = []
        faults += before.differences(deployment, seen, stage)
    assert not faults, f"{scenario.name}, {kind}, switch {point}: " + "; ".join(faults)
    return result


def explore(scenario: Scenario, kind: Kind, yields: bool = False) -> tuple[int, int]:
    """Throw at each switch of the scenario; returns how many there are, and how many runs had something thrown."""
    with scenario.deployment() as deployment:
        _fill(deployment)
        switches = thrown = 0
        while switches < scenario.most_points:
            result = run(scenario, deployment, switches, kind, yields)
            if not result.reached:  # it has gone through undisturbed
                break
            switches += 1
            thrown += result.thrown
        assert switches >= scenario.least_switches, f"{scenario.name} switches {switches} times only"
        return switches, thrown


def _fill(deployment: Deployment) -> None:
    with MongoClient(deployment.uri) as client:
        client.test.facts.insert_many([{"_id": number, "of": number} for number in range(8)])
    comes_true(lambda: not any(member.connections for member in deployment.members))


def _forget_frames(*errors: BaseException | None) -> None:
    """An exception keeps the frames that it went through, and what they hold."""
    for error in errors:
        if error is not None:
            error.__traceback__ = error.__context__ = error.__cause__ = None


def _end_of(scenario: Scenario, stage: Stage, tracer: Tracer) -> list[str]:
    return [] if comes_true(lambda: scenario.over(stage, tracer)) else ["the scenario does not end"]


def _outcome(scenario: Scenario, stage: Stage, tracer: Tracer) -> list[str]:
    """What came out of the greenlet."""
    if scenario.survives or not stage.greenlet.ready():
        return []
    error, faults = stage.error, []
    if tracer.kind is None or not tracer.thrown:
        if error is not None:
            faults.append(f"it fails without being disturbed: {error!r}")
        if tracer.missed():
            faults.append(f"nothing was thrown, though it switches {tracer.switches} times")
    elif not tracer.kind.foreign:
        if error is not None and not isinstance(error, Exception):
            faults.append(f"the driver's own time-out came out as {error!r}")
    elif not any(error is each for each in tracer.thrown):
        faults.append(f"{tracer.thrown!r} was thrown, but {error!r} came out")
    return faults


def _nothing_lost(scenario: Scenario, stage: Stage, tracer: Tracer, generation: int) -> list[str]:
    faults = []
    disturbed = tracer.kind is not None and (not tracer.kind.foreign or scenario.survives)
    for other in stage.others:
        may_fail = disturbed and scenario.clears and isinstance(other.exception, AutoReconnect)
        if not (other.successful() or may_fail):
            faults.append(f"a bystander got {other.exception!r}, ready: {other.ready()}")
    if not scenario.closes:
        faults += _pools(stage)
    faults += _sessions(stage)
    open_commands = {number for number, count in stage.witness.open_commands.items() if count}
    if not comes_true(lambda: not any(stage.witness.open_commands.values())):
        faults.append(f"commands {open_commands} have no end event")
    if not scenario.ends_cursors and not comes_true_at_last(lambda: not left_cursors(stage)):
        faults.append(f"cursors left on the server: {left_cursors(stage)}")
    if not disturbed:
        if stage.witness.unknown:
            faults.append(f"the server was marked Unknown: {stage.witness.unknown}")
        if not scenario.clears and not scenario.closes and stage.pool.generation != generation:
            faults.append("the pool was cleared")
    if not scenario.closes:
        faults += _next_operations(stage)
        try:
            scenario.check(stage)
        except AssertionError as error:
            faults.append(f"check: {error}")
    return faults


def left_cursors(stage: Stage) -> set[int]:
    """The cursors that are open on the servers and that the client has heard of."""
    return stage.witness.cursors & set(stage.deployment._cluster.store._state.cursors._open)


def _pools(stage: Stage) -> list[str]:
    faults = []

    def at_rest() -> bool:
        return all(
            not any(stats[name] for name in ("in_use", "pending", "waiting", "draining"))
            for stats in stage.client.pool_stats()
        )

    if not comes_true(at_rest):
        faults.append(f"not at rest: {stage.client.pool_stats()}")
    for pool in stage.client._topology.pools():
        machine, stats = pool.machine, pool.stats()
        everything = [*machine.pending, *machine.available, *machine.in_use, *machine.draining]
        counts = len(machine.pending), len(machine.available), len(machine.in_use), len(pool.machine.queue.waiters)
        if counts != (stats["pending"], stats["available"], stats["in_use"], stats["waiting"]):
            faults.append(f"{counts} are not {stats}")
        if len(set(everything)) != len(everything) or stats["total"] != len(everything):
            faults.append(f"a connection is in two sets: {everything}")
        if any(each.mid_message or each._transport is None or each._transport.closed for each in machine.available):
            faults.append("a connection that cannot be used is available")
        if sum(count for _generation, count in services(pool).values()) not in (0, len(everything)):
            faults.append(f"{services(pool)} do not count {len(everything)} connections")
    if stage.client._topology.selector.waiting:
        faults.append("a greenlet still waits for a server")
    return faults


def _sessions(stage: Stage) -> list[str]:
    sessions = stage.client._executor.sessions
    if not comes_true_at_last(lambda: not sessions.in_use):
        return [f"{sessions.in_use} sessions were not given back"]
    taken = [sessions.acquire() for _ in range(len(sessions) + 1)]
    identities = [bytes(session.lsid["id"]) for session in taken]
    for session in taken:
        sessions.release(session)
    if len(identities) != len(set(identities)):
        return ["a session was handed out twice"]
    return []


def _next_operations(stage: Stage) -> list[str]:
    """The next ones work, each gets its own reply and no other."""
    facts = stage.db.facts
    expected = [{"_id": number, "of": number} for number in range(4)]
    found = [facts.find_one({"_id": number}) for number in range(2)]
    readers = [gevent.spawn(facts.find_one, {"_id": number}) for number in (2, 3)]
    gevent.joinall(readers, timeout=PATIENCE)
    found += [each.value for each in readers]
    return [] if found == expected else [f"the next operations read {found}"]


class Resources:
    """What the process and the servers had before a run."""

    def __init__(self, deployment: Deployment) -> None:
        self._descriptors = _descriptors()
        self._watchers = _watchers()

    def differences(self, deployment: Deployment, seen: WeakSet[Any], stage: Stage) -> list[str]:
        """What is left over."""
        faults = []
        if not comes_true(lambda: not any(member.connections for member in deployment.members)):
            faults.append(f"connections left: {[member.connections for member in deployment.members]}")
        if not comes_true(lambda: _descriptors() <= self._descriptors):
            faults.append(f"descriptors left: {_descriptors() - self._descriptors}")
        if not comes_true(lambda: not _left(seen)):
            faults.append(f"greenlets left: {_left(seen)}")
        if not comes_true(lambda: _watchers() <= self._watchers):
            faults.append(f"watchers left: {_watchers()}, there were {self._watchers}")
        timers = [each for each in Running.known if each[0] in seen]  # other tests' clients may live on
        if timers:
            faults.append(f"timers left: {timers}")
        if not comes_true(lambda: not stage.witness.heartbeats):
            faults.append(f"{stage.witness.heartbeats} heartbeats have no end event")
        return faults


def _descriptors() -> set[str]:
    """What the process has open, each by the name that it has but once."""
    folder, found = "/proc/self/fd", set()
    for number in os.listdir(folder):
        with suppress(FileNotFoundError):  # that of the folder is closed again
            found.add(os.readlink(f"{folder}/{number}"))
    return found


def _watchers() -> int:
    """The active watchers that keep the hub running."""
    return int(get_hub().loop.activecnt)


def _left(seen: WeakSet[Any]) -> list[Any]:
    """Greenlets of the driver that are alive after their client has been closed."""
    return [
        each for each in list(seen) if not each.dead and "gmongo" in _origin(each) and "testing" not in _origin(each)
    ]


def _origin(each: Any) -> str:
    work = getattr(each, "_run", None)
    work = getattr(work, "func", work)
    return f"{getattr(work, '__module__', '')}"
