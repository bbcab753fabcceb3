"""Runs a scenario again and again, and throws at each of its switches in turn.

``greenlet.settrace`` sees every switch, also those that gevent makes in C. A run counts the switches of one greenlet
to the hub; at the chosen one something is thrown there. Scenarios are small, so the count is the same in each run; the
runs go on until one ends before its switch has come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import gevent

from gmongo import MongoClient
from gmongo.testing import Deployment
from tests.gevent.switching import checks
from tests.gevent.switching.servers import RealDeployment
from tests.gevent.switching.thrown import SPAWN, Kind
from tests.gevent.switching.tracing import Tracer
from tests.support.listeners import HearsCommands, HearsHeartbeats, HearsPools, HearsServers
from tests.support.recorder import short_name
from tests.support.wait import comes_true

MOST_POINTS = 60


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
    """The work of a greenlet into which the harness throws."""

    name = ""
    covers = ""  # further public methods, separated by spaces
    rehearses = False  # whether an undisturbed run comes first
    simulated = False  # whether it takes place only on a simulated deployment
    oldest_server = (0, 0)  # the first version of a real server that has the command
    wraps = False  # whether an error of another kind may come out, because bson or a callback catches errors
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

    def enter(self, stage: Stage) -> None:
        """Start a second greenlet that uses the same object."""

    def over(self, stage: Stage, tracer: Tracer) -> bool:
        """Whether it is over."""
        return bool(stage.greenlet.ready())

    def conclude(self, stage: Stage) -> None:
        """Use and end an object that the run has left open."""

    def check(self, stage: Stage) -> None:
        """Check what else must be true after the run, whatever was thrown."""

    @property
    def is_real(self) -> bool:
        """Whether the scenario can take place on a real server."""
        return not self.simulated and type(self).deployment is Scenario.deployment


class Stage:
    """A fresh client for one run, and what the scenario keeps about it."""

    def __init__(self, scenario: Scenario, deployment: Deployment | RealDeployment, yields: bool) -> None:
        self.deployment: Any = deployment
        self.yields = yields
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
    scenario: Scenario,
    deployment: Deployment | RealDeployment,
    point: int | None,
    kind: Kind | None,
    yields: bool = False,
) -> Result:
    """Run the scenario once, and check that nothing is lost.

    :param yields: whether listeners let others run in every event.
    """
    faults: list[str] = []
    with gevent.Timeout(20):
        before = checks.Resources(deployment)
        stage = Stage(scenario, deployment, yields)
        if scenario.warm:
            stage.warm()
        scenario.prepare(stage)
        generation = stage.pool.generation if stage.client._topology.pools() else 0
        with Tracer(point, kind, scenario.start(stage)) as tracer:
            tracer.enter = partial(scenario.enter, stage)
            scenario.meanwhile(stage)
            replaced = kind is not None and kind.landing == SPAWN and scenario.survives  # the greenlet that is followed
            if not comes_true(lambda: (replaced and tracer.thrown) or scenario.over(stage, tracer)):
                faults.append("the scenario does not end")
            gevent.joinall(stage.others, timeout=checks.PATIENCE)
        stage.errors = tracer.thrown
        faults += checks.outcome(scenario, stage, tracer)
        checks.forget_frames(*tracer.thrown, stage.error)
        try:
            scenario.conclude(stage)
        except AssertionError as error:
            faults.append(f"{error}")
        faults += checks.nothing_lost(scenario, stage, tracer, generation)
        faults += before.left_open("transactions", *(() if scenario.ends_cursors else ("cursors",)))
        stage.client.close()
        result, seen = Result(tracer), tracer.seen
        stage.greenlet = stage.error = None
        stage.errors = []
        faults += before.differences(seen, stage)
    assert not faults, f"{scenario.name}, {kind}, switch {point}: " + "; ".join(faults)
    return result


def explore(
    scenario: Scenario, kind: Kind, yields: bool = False, real: RealDeployment | None = None
) -> tuple[int, int]:
    """Throw at each switch of the scenario; returns how many there are, and how many runs had something thrown."""
    with nullcontext(real) if real is not None else scenario.deployment() as deployment:
        _fill(deployment)
        if scenario.rehearses:
            run(scenario, deployment, None, None)
        switches = thrown = 0
        while switches < scenario.most_points:
            result = run(scenario, deployment, switches, kind, yields)
            if not result.reached:  # it has gone through undisturbed
                break
            switches += 1
            thrown += result.thrown
        least = 0 if kind.landing == SPAWN else scenario.least_switches
        assert switches >= least, f"{scenario.name} switches {switches} times only"
        return switches, thrown


def _fill(deployment: Deployment | RealDeployment) -> None:
    with MongoClient(deployment.uri) as client:
        client.test.facts.delete_many({})
        client.test.facts.insert_many([{"_id": number, "of": number} for number in range(8)])
