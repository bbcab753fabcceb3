"""Run a scenario repeatedly, with an interruption at a different switch in each run.

``greenlet.settrace`` reports each switch, including the switches in C code of gevent. A run counts
the switches of one greenlet to the hub, and interrupts the greenlet at the chosen switch. The
harness stops when a greenlet ends before the chosen switch, or at the maximum number of switches.
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

MAX_SWITCHES = 60


class EventRecorder(ForwardingCommandListener, ForwardingHeartbeatListener, ForwardingServerListener):
    """Recorder of cursor IDs, Unknown servers, and commands and heartbeats without an end event. The
    recorder also lists commands that use a session during another command in the same session.
    """

    def __init__(self) -> None:
        self.open_commands: Counter[int] = Counter()
        self.open_heartbeats = 0
        self.session_ids: dict[int, bytes] = {}  # request ID of an open command -> session ID
        self.concurrent_commands: list[str] = []
        self.cursor_ids: set[int] = set()
        self.unknown_servers: list[Any] = []

    def handle(self, event: Any) -> None:
        kind = short_name(event)
        change = 1 if kind.endswith("Started") else -1
        if kind.startswith("Command"):
            self.open_commands[event.request_id] += change
            self._record_session(event, kind)
        elif kind.startswith("Heartbeat"):
            self.open_heartbeats += change
        if kind == "CommandSucceeded":
            cursor = event.reply.get("cursor")
            if isinstance(cursor, dict) and cursor.get("id"):
                self.cursor_ids.add(cursor["id"])
        elif kind == "ServerDescriptionChanged":
            known = [each.is_server_type_known for each in (event.previous_description, event.new_description)]
            if known == [True, False]:
                self.unknown_servers.append(event.new_description)

    def _record_session(self, event: Any, kind: str) -> None:
        # A `killCursors` may run in the session of the `getMore` that the `killCursors` interrupts.
        if kind != "CommandStarted":
            self.session_ids.pop(event.request_id, None)
        elif "lsid" in event.command and event.command_name != "killCursors":
            session_id = bytes(event.command["lsid"]["id"])
            if session_id in self.session_ids.values():
                self.concurrent_commands.append(event.command_name)
            self.session_ids[event.request_id] = session_id


class SwitchingEventRecorder(ForwardingPoolListener, EventRecorder):
    """Recorder that switches to the hub in each command, pool and heartbeat event, so that the
    harness can interrupt the greenlet.
    """

    def handle(self, event: Any) -> None:
        EventRecorder.handle(self, event)
        if not short_name(event).startswith("Server"):
            gevent.sleep(0)


class Scenario:
    """Base class of scenarios: the operation that the harness interrupts, and further checks."""

    name = ""
    has_rehearsal = False  # True: a run without interruption precedes the interrupted runs.
    needs_simulation = False  # True: the scenario cannot run on a real server.
    min_server_version = (0, 0)  # The minimum version of a real server that can run the scenario.
    wraps = False  # True: the operation may raise an error whose cause is the interruption.
    options: dict[str, Any] = {}  # Options of the client.
    limits = {"socketTimeoutMS": 20000, "waitQueueTimeoutMS": 20000}
    starts_with_connection = True  # True: the pool has an available connection at the start.
    clears_pool = False  # True: the scenario clears the pool.
    interrupts_driver = False  # True: the harness interrupts a driver greenlet.
    has_time_limit = True  # True: a timeout of the driver limits the wait of the greenlet.
    closes_client = False  # True: the scenario closes the client.
    ends_cursors = False  # True: the server ends the cursor when the connection of the cursor closes.
    min_switches = 1
    max_switches = MAX_SWITCHES

    def deployment(self) -> Deployment:
        """Create the deployment for the runs of the scenario."""
        return Deployment.replica_set(members=1)

    def prepare(self, run_state: ScenarioRun) -> None:
        """Create objects that a run needs, before the greenlet starts."""

    def run_operation(self, run_state: ScenarioRun) -> Any:
        """Execute the operation, in the greenlet that the harness interrupts."""

    def start(self, run_state: ScenarioRun) -> Callable[[Any], bool]:
        """Start the greenlet. Return a function that returns True for the greenlet that the harness
        interrupts.
        """
        run_state.greenlet = gevent.Greenlet(self._run_and_keep_error, run_state)
        run_state.greenlet.start()
        return lambda each: each is run_state.greenlet

    def _run_and_keep_error(self, run_state: ScenarioRun) -> None:
        try:
            self.run_operation(run_state)
        except BaseException as error:
            # Catch the error, because gevent prints a traceback if a greenlet raises.
            run_state.error = error

    def run_others(self, run_state: ScenarioRun) -> None:
        """After the start of the greenlet to interrupt, start other greenlets that affect
        this greenlet.
        """

    def start_second(self, run_state: ScenarioRun) -> None:
        """Start a second greenlet that uses the object of the first greenlet.

        The harness calls this method only for the moment ENTER.
        """

    def has_ended(self, run_state: ScenarioRun, tracer: Tracer) -> bool:
        """Return True if the tracer may stop. By default, the traced greenlet must have ended."""
        return bool(run_state.greenlet.ready())

    def finish(self, run_state: ScenarioRun) -> None:
        """Use and close an object, such as a cursor, that the interrupted operation has left open."""

    def check(self, run_state: ScenarioRun) -> None:
        """Check the invariants of the scenario after the run."""

    @property
    def can_use_real_server(self) -> bool:
        """Return True if the scenario can run on a real server."""
        return not self.needs_simulation and type(self).deployment is Scenario.deployment


class ScenarioRun:
    """State of one run of a scenario."""

    def __init__(self, scenario: Scenario, deployment: Deployment | RealDeployment, listeners_switch: bool) -> None:
        self.deployment: Any = deployment
        self.listeners_switch = listeners_switch
        self.recorder = SwitchingEventRecorder() if listeners_switch else EventRecorder()
        options = {"serverMonitoringMode": "poll", **scenario.limits, **scenario.options}
        self.client: MongoClient[Any] = MongoClient(deployment.uri, event_listeners=[self.recorder], **options)
        self.greenlet: Any = None
        self.error: BaseException | None = None  # The error that the operation raised.
        self.errors: list[BaseException] = []  # The errors that the harness has thrown.
        self.others: list[gevent.Greenlet] = []
        self.kept: dict[str, Any] = {}

    @property
    def db(self) -> Any:
        return self.client.test

    @property
    def pool(self) -> Any:
        return self.client._topology.pools()[0]

    def open_connection(self) -> None:
        assert self.db.facts.find_one({"_id": 1}) == {"_id": 1, "of": 1}

    def find_server(self) -> Any:
        return self.client._topology.select_server(self.client.read_preference, "test", None)


def run(
    scenario: Scenario,
    deployment: Deployment | RealDeployment,
    switch_number: int | None,
    kind: InterruptionKind | None,
    listeners_switch: bool = False,
) -> tuple[bool, bool]:
    """Run the scenario once, interrupt the greenlet at one switch, and check the invariants.

    If `listeners_switch` is True, the event listener of the client switches to the hub.
    Return two flags: the greenlet has reached the switch, and the harness has thrown an error.
    """
    faults: list[str] = []
    with gevent.Timeout(60):  # a run on a busy server takes long
        snapshot = checks.ResourceSnapshot(deployment)
        run_state = ScenarioRun(scenario, deployment, listeners_switch)
        if scenario.starts_with_connection:
            run_state.open_connection()
        scenario.prepare(run_state)
        generation = run_state.pool.generation if run_state.client._topology.pools() else 0
        with Tracer(switch_number, kind, scenario.start(run_state)) as tracer:
            tracer.start_second = partial(scenario.start_second, run_state)
            scenario.run_others(run_state)
            # The run ends after the kill of the driver greenlet. The tracer does not trace the
            # greenlet that the driver starts instead.
            is_replaced = kind is not None and kind.moment == SPAWN and scenario.interrupts_driver
            if not becomes_true(lambda: (is_replaced and tracer.errors) or scenario.has_ended(run_state, tracer)):
                faults.append("the scenario does not end")
            gevent.joinall(run_state.others, timeout=checks.WAIT_SECONDS)
        run_state.errors = tracer.errors
        faults += checks.outcome_faults(scenario, run_state, tracer)
        checks.forget_frames(*tracer.errors, run_state.error)
        try:
            scenario.finish(run_state)
        except AssertionError as error:
            faults.append(f"{error}")
        faults += checks.resource_faults(scenario, run_state, tracer, generation)
        faults += snapshot.objects_left("transactions", *(() if scenario.ends_cursors else ("cursors",)))
        run_state.client.close()
        result, switched_greenlets = (tracer.reached, bool(tracer.errors)), tracer.switched_greenlets
        run_state.greenlet = run_state.error = None
        run_state.errors = []
        faults += snapshot.unreleased_resources(switched_greenlets, run_state)
    assert not faults, f"{scenario.name}, {kind}, switch {switch_number}: " + "; ".join(faults)
    return result


def explore(
    scenario: Scenario,
    kind: InterruptionKind,
    listeners_switch: bool = False,
    real_deployment: RealDeployment | None = None,
) -> tuple[int, int]:
    """Run the scenario repeatedly, with an interruption at the next switch in each run.

    Return the number of switches, and the number of runs in which the harness has thrown an error.
    """
    with nullcontext(real_deployment) if real_deployment is not None else scenario.deployment() as deployment:
        _insert_facts(deployment)
        if scenario.has_rehearsal:
            run(scenario, deployment, None, None)
        switch_count = thrown_count = 0
        while switch_count < scenario.max_switches:
            reached, has_thrown = run(scenario, deployment, switch_count, kind, listeners_switch)
            if not reached:  # the greenlet has ended before the chosen switch
                break
            switch_count += 1
            thrown_count += has_thrown
        min_switches = 0 if kind.moment == SPAWN else scenario.min_switches
        assert switch_count >= min_switches, f"{scenario.name} switches {switch_count} times only"
        return switch_count, thrown_count


def _insert_facts(deployment: Deployment | RealDeployment) -> None:
    with MongoClient(deployment.uri) as client:
        client.test.facts.delete_many({})
        client.test.facts.insert_many([{"_id": number, "of": number} for number in range(8)])
