"""Interrupt a greenlet at each of its switches, and count the resources that the driver loses.

Usage: ``python -m tests.gevent.comparison.interruptions gmongo|pymongo SCENARIO…``.

The simulated server runs in the process of the program, so that all runs have the same switches.
The checks use only public operations, events, timeouts and the state of the server, because the
checks run with both drivers.
"""

# ruff: noqa: E402 - import_driver must run before the other imports

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.gevent.comparison.drivers import create_event_counter, error_text, import_driver

driver = import_driver(sys.argv[1])

import gc
import itertools

import gevent

from gmongo.testing import Deployment
from tests.gevent.switching.interruptions import INTERRUPTION_KINDS, InterruptionKind
from tests.gevent.switching.tracing import Tracer
from tests.support.wait import becomes_true

SELECTED_KINDS = [each for each in INTERRUPTION_KINDS if each.name in ("kill", "foreign timeout", "kill and timeout")]
TIME_LIMIT = 2.0  # seconds. An uninterrupted operation needs some milliseconds.
MAX_SWITCHES = 60

_run_numbers = itertools.count()


class Scenario(NamedTuple):
    """The operation of the interrupted greenlet, and the state of the pool before the operation."""

    operation: Callable[[Any], Any]
    starts_with_connection: bool = True  # True: the pool has an available connection at the start.
    pool_is_full: bool = False  # True: two greenlets wait for the only connection.

    @property
    def pool_size(self) -> int:
        return 1 if self.pool_is_full else 2


def run_transaction(client: Any) -> None:
    with client.start_session() as session, session.start_transaction():
        client.test.written.insert_one({"a": 1}, session=session)
        client.test.facts.find_one({"_id": 1}, session=session)


SCENARIOS = {
    "first use": Scenario(lambda client: client.test.facts.find_one({"_id": 5}), starts_with_connection=False),
    "find_one": Scenario(lambda client: client.test.facts.find_one({"_id": 5})),
    "insert_one": Scenario(lambda client: client.test.written.insert_one({"a": 1})),
    "find and getMore": Scenario(lambda client: list(client.test.facts.find(batch_size=3))),
    "transaction": Scenario(run_transaction),
    "check-out from a full pool": Scenario(lambda client: client.test.facts.find_one({"_id": 5}), pool_is_full=True),
}


class Run:
    """One run of a scenario.

    The run uses a new client, and interrupts the greenlet of the operation at one switch.
    """

    def __init__(self, deployment: Deployment, scenario: Scenario) -> None:
        self.deployment = deployment
        self.name = f"run {next(_run_numbers)}"
        self.scenario = scenario
        self.losses: set[str] = set()
        self.event_counter = create_event_counter(driver)
        self.raised: BaseException | None = None
        self.other_greenlets: list[gevent.Greenlet] = []
        self.closing_greenlet: Any = None
        options = {"serverMonitoringMode": "poll", "appName": self.name, "maxPoolSize": scenario.pool_size}
        self.client = driver.MongoClient(deployment.uri, event_listeners=[self.event_counter], **options)

    def run(self, switch_number: int, kind: InterruptionKind) -> Tracer:
        scenario, client = self.scenario, self.client
        transactions_before = open_transactions(self.deployment)
        if scenario.starts_with_connection:
            client.test.facts.find_one({"_id": 1})
        if scenario.pool_is_full:
            self.other_greenlets.append(gevent.spawn(client.admin.command, "ping"))
            becomes_true(lambda: self.event_counter.open_ping_count)
        greenlet = gevent.Greenlet(self._run_operation)
        with Tracer(switch_number, kind, lambda each: each is greenlet) as tracer:
            greenlet.start()
            gevent.sleep(0)
            if scenario.pool_is_full:
                self.other_greenlets.append(gevent.spawn(client.test.facts.find_one, {"_id": 6}))
            gevent.joinall([greenlet], timeout=TIME_LIMIT)
        self._await_others()
        if tracer.errors:
            self._check(greenlet, tracer, transactions_before)
        elif self.losses or self.raised:
            raise AssertionError(f"the scenario fails without interruption: {self.losses}, {self.raised!r}")
        return tracer

    def _run_operation(self) -> None:
        try:
            self.scenario.operation(self.client)
        except BaseException as error:
            self.raised = error

    def _await_others(self) -> None:
        gevent.joinall(self.other_greenlets, timeout=TIME_LIMIT / 8)
        if not all(each.ready() for each in self.other_greenlets):
            self.losses.add("an uninterrupted greenlet waits, although the connection is available")
        elif not all(each.successful() for each in self.other_greenlets):
            self.losses.add("an uninterrupted greenlet failed")

    def _check(self, greenlet: Any, tracer: Tracer, transactions_before: list[Any]) -> None:
        if not greenlet.ready():
            self.losses.add("does not end")
            greenlet.kill(timeout=TIME_LIMIT)
        if not any(self.raised is each for each in tracer.errors):
            self.losses.add(f"the operation did not raise the thrown error, but {error_text(self.raised)}")
        self.raised = None
        # A reference to an exception keeps its frames and the objects in the frames alive.
        tracer.errors[:] = [type(each) for each in tracer.errors]
        if self.event_counter.open_command_count:
            gc.collect()
        if not becomes_true(lambda: not self.event_counter.open_command_count, 0.005):
            self.losses.add("a command without an end event")
        if self.event_counter.unknown_count or self.event_counter.clear_count:
            self.losses.add("the server was marked Unknown, or its pool was cleared")
        if len(tracer.errors) < 2 and not becomes_true(lambda: not self._new_transactions(transactions_before), 0.05):
            self.losses.add("a transaction left open at the server")
        self._check_next_operations()

    def _new_transactions(self, transactions_before: list[Any]) -> list[Any]:
        return [each for each in open_transactions(self.deployment) if each not in transactions_before]

    def _check_next_operations(self) -> None:
        """Check that the next operations succeed, and that the pool still has its full size."""
        documents = [self._call_with_limit(self.client.test.facts.find_one, {"_id": number}) for number in range(2)]
        if documents != [{"_id": number, "of": number} for number in range(2)]:
            self.losses.add("the next operation fails")
        elif not any(self._serves_concurrently() for _ in range(4)):
            self.losses.add("the pool serves fewer concurrent operations")

    def _serves_concurrently(self) -> bool:
        self.event_counter.max_pings = 0
        pingers = [
            gevent.spawn(self._call_with_limit, self.client.admin.command, "ping")
            for _ in range(self.scenario.pool_size)
        ]
        gevent.joinall(pingers)
        return bool(self.event_counter.max_pings == self.scenario.pool_size and all(each.value for each in pingers))

    def _call_with_limit(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            with gevent.Timeout(TIME_LIMIT):
                return call(*arguments)
        except (Exception, gevent.Timeout):
            return None

    def close(self) -> None:
        """Close the client.

        The caller runs the method in a new greenlet, because `close` of PyMongo needs half a second.
        """
        if not self._call_with_limit(lambda: self.client.close() or True):
            self.losses.add("close() does not end")
        self.client = None

    def check_connections(self) -> None:
        """Check that the server has no connection of the closed client."""
        if not becomes_true(lambda: not self._connections(), 0.1):
            self.losses.add("a connection is left at the server after close()")

    def _connections(self) -> list[Any]:
        connections = [each for member in self.deployment.members for each in member.connections.values()]
        return [each for each in connections if each.app_name == self.name]


def open_transactions(deployment: Deployment) -> list[Any]:
    transactions = [each.transaction for each in deployment._cluster.store._state.sessions]
    return [each for each in transactions if each is not None and each.status == "in progress"]


def count_losses(runs: list[Run]) -> Counter[str]:
    """Return the number of interrupted runs, the number of runs with a loss, and the count of each
    loss.
    """
    tally = Counter({"interrupted runs": len(runs), "runs with a loss": sum(bool(run.losses) for run in runs)})
    for run in runs:
        tally.update(run.losses)
    return tally


def insert_documents(deployment: Deployment) -> None:
    """Insert the documents that scenarios read.

    Make the server delay each ping, so that several pings overlap.
    """
    with driver.MongoClient(deployment.uri) as client:
        client.test.facts.insert_many([{"_id": number, "of": number} for number in range(8)])
        client.test.create_collection("written")
    fail_point_data = {"failCommands": ["ping"], "blockConnection": True, "blockTimeMS": 5}
    deployment.set_fail_point("failCommand", "alwaysOn", fail_point_data)


def run_all(deployment: Deployment, scenario: Scenario) -> Iterator[Run]:
    """Run a scenario once for each kind of interruption and each switch.

    Yield the runs that were interrupted.
    """
    for kind in SELECTED_KINDS:
        for switch_number in range(MAX_SWITCHES):
            run = Run(deployment, scenario)
            tracer = run.run(switch_number, kind)
            run.closing_greenlet = gevent.spawn(run.close)
            if tracer.errors:
                yield run
            if not tracer.reached:
                break


def main() -> None:
    """Run the scenarios that the command line names, and print the losses of each scenario."""
    gc.collect()
    gc.freeze()  # Later garbage collections skip frozen objects.
    with Deployment.replica_set(members=1) as deployment:
        insert_documents(deployment)
        runs_by_scenario = {name: list(run_all(deployment, SCENARIOS[name])) for name in sys.argv[2:]}
        all_runs = [run for runs in runs_by_scenario.values() for run in runs]
        gevent.joinall([run.closing_greenlet for run in all_runs], raise_error=True)
        gc.collect()
        for run in all_runs:
            run.check_connections()
        print(json.dumps({name: count_losses(runs) for name, runs in runs_by_scenario.items()}))


if __name__ == "__main__":
    main()
