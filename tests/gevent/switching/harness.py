"""Run a scenario repeatedly, with an interruption at a different switch in each run.

``greenlet.settrace`` reports each switch, including the switches in C code of gevent. A run counts the switches of a
greenlet to the hub, and throws at the chosen switch. The runs continue until a run has fewer switches.
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
from tests.gevent.switching.interruptions import SPAWN, InterruptionKind
from tests.gevent.switching.servers import RealDeployment
from tests.gevent.switching.tracing import Tracer
from tests.support.listeners import (
    ForwardingCommandListener,
    ForwardingHeartbeatListener,
    ForwardingPoolListener,
    ForwardingServerListener,
)
from tests.support.recorder import short_name
from tests.support.wait import becomes_true

MOST_POINTS = 60


class EventRecorder(ForwardingCommandListener, ForwardingHeartbeatListener, ForwardingServerListener):
    """Record starts and ends of commands and heartbeats, and the cursors in replies."""

    def __init__(self) -> None:
        self.open_commands: Counter[int] = Counter()
        self.heartbeats = 0
        self.cursors: set[int] = set()
        self.unknown: list[Any] = []

    def handle(self, event: Any) -> None:
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


class SwitchingEventRecorder(ForwardingPoolListener, EventRecorder):
    """Switch in each event, so that there are switches at all places with events."""

    def handle(self, event: Any) -> None:
        EventRecorder.handle(self, event)
        if not short_name(event).startswith("Server"):
            gevent.sleep(0)


class Scenario:
    """The work of the interrupted greenlet."""

    name = ""
    rehearses = False  # True: the first run has no interruption
    simulated = False  # True: needs a simulated deployment
    oldest_server = (0, 0)  # the minimum version of a real server
    wraps = False  # True: bson or a callback may replace the error
    options: dict[str, Any] = {}  # options of the client
    limits = {"socketTimeoutMS": 20000, "waitQueueTimeoutMS": 20000}
    warm = True  # True: the pool has a connection at the start
    clears = False  # True: the scenario clears the pool
    survives = False  # True: a driver greenlet, which continues after an exception
    limited = True  # True: the driver has a timeout for a wait
    closes = False  # True: the scenario closes the client
    ends_cursors = False  # True: servers end cursors with the connections
    least_switches = 1
    most_points = MOST_POINTS

    def deployment(self) -> Deployment:
        """Return the deployment of the scenario."""
        return Deployment.replica_set(members=1)

    def prepare(self, run_state: ScenarioRun) -> None:
        """Prepare a run, before the greenlet starts."""

    def act(self, run_state: ScenarioRun) -> Any:
        """Do the work of the greenlet."""

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        """Start the greenlet, and return a function that identifies the greenlet."""
        run_state.greenlet = gevent.Greenlet(self._act, run_state)
        run_state.greenlet.start()
        return lambda each: each is run_state.greenlet

    def _act(self, run_state: ScenarioRun) -> None:
        try:
            self.act(run_state)
        except BaseException as error:
            run_state.error = error  # avoids a traceback on the console

    def run_others(self, run_state: ScenarioRun) -> None:
        """Do the work of other greenlets after the start."""

    def start_second(self, run_state: ScenarioRun) -> None:
        """Start a second greenlet that uses the same object."""

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        """True if the run has ended."""
        return bool(run_state.greenlet.ready())

    def finish(self, run_state: ScenarioRun) -> None:
        """Use and end an object that the run has left open."""

    def check(self, run_state: ScenarioRun) -> None:
        """Check further invariants after the run."""

    @property
    def is_real(self) -> bool:
        """True if the scenario can run on a real server."""
        return not self.simulated and type(self).deployment is Scenario.deployment


class ScenarioRun:
    """A new client for a run, and the data of the scenario."""

    def __init__(self, scenario: Scenario, deployment: Deployment | RealDeployment, yields: bool) -> None:
        self.deployment: Any = deployment
        self.yields = yields
        self.recorder = SwitchingEventRecorder() if yields else EventRecorder()
        options = {"serverMonitoringMode": "poll", **scenario.limits, **scenario.options}
        self.client: MongoClient[Any] = MongoClient(deployment.uri, event_listeners=[self.recorder], **options)
        self.greenlet: Any = None
        self.error: BaseException | None = None  # the error of the greenlet
        self.errors: list[BaseException] = []  # the thrown errors
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
    """The result of a run."""

    def __init__(self, tracer: Tracer) -> None:
        self.reached = tracer.reached
        self.thrown = bool(tracer.thrown)
        self.switches = tracer.switches


def run(
    scenario: Scenario,
    deployment: Deployment | RealDeployment,
    point: int | None,
    kind: InterruptionKind | None,
    yields: bool = False,
) -> Result:
    """Run the scenario once, and check the invariants.

    :param yields: True if listeners switch in each event.
    """
    faults: list[str] = []
    with gevent.Timeout(20):
        before = checks.Resources(deployment)
        run_state = ScenarioRun(scenario, deployment, yields)
        if scenario.warm:
            run_state.warm()
        scenario.prepare(run_state)
        generation = run_state.pool.generation if run_state.client._topology.pools() else 0
        with Tracer(point, kind, scenario.start(run_state)) as tracer:
            tracer.start_second = partial(scenario.start_second, run_state)
            scenario.run_others(run_state)
            # Another greenlet replaces the traced greenlet.
            replaced = kind is not None and kind.landing == SPAWN and scenario.survives
            if not becomes_true(lambda: (replaced and tracer.thrown) or scenario.has_ended(run_state, tracer)):
                faults.append("the scenario does not end")
            gevent.joinall(run_state.others, timeout=checks.PATIENCE)
        run_state.errors = tracer.thrown
        faults += checks.outcome_faults(scenario, run_state, tracer)
        checks.forget_frames(*tracer.thrown, run_state.error)
        try:
            scenario.finish(run_state)
        except AssertionError as error:
            faults.append(f"{error}")
        faults += checks.resource_faults(scenario, run_state, tracer, generation)
        faults += before.remaining("transactions", *(() if scenario.ends_cursors else ("cursors",)))
        run_state.client.close()
        result, seen = Result(tracer), tracer.seen
        run_state.greenlet = run_state.error = None
        run_state.errors = []
        faults += before.differences(seen, run_state)
    assert not faults, f"{scenario.name}, {kind}, switch {point}: " + "; ".join(faults)
    return result


def explore(
    scenario: Scenario, kind: InterruptionKind, yields: bool = False, real: RealDeployment | None = None
) -> tuple[int, int]:
    """Throw at each switch of the scenario. Return the numbers of switches and of runs with an interruption."""
    with nullcontext(real) if real is not None else scenario.deployment() as deployment:
        _fill(deployment)
        if scenario.rehearses:
            run(scenario, deployment, None, None)
        switches = thrown = 0
        while switches < scenario.most_points:
            result = run(scenario, deployment, switches, kind, yields)
            if not result.reached:  # the run had fewer switches
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
