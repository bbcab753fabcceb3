"""Tests that run each scenario with gmongo and, for comparison, with PyMongo under monkey-patching.

The tests assert the outcomes of gmongo, and only print the outcomes of PyMongo (``pytest -rP``).
One test also asserts that gmongo needs less CPU time than PyMongo during an outage.
"""

from __future__ import annotations

import json
from collections import Counter

import gevent
import pytest

from gmongo.testing import Deployment
from tests.gevent.comparison.driver_programs import DriverProgram, run_both, run_program
from tests.support.wait import until

pytestmark = pytest.mark.long

WAITER_COUNT = 1000


SCENARIO_GROUPS = (
    ("first use", "find_one", "insert_one"),
    ("find and getMore", "check-out from a full pool"),
    ("transaction",),
)


def run_each(names, scenario):
    """Call `scenario` once for each name, concurrently, and return the results by name."""
    greenlets = [gevent.spawn(scenario, name) for name in names]
    try:
        gevent.joinall(greenlets, raise_error=True)
    finally:
        gevent.killall(greenlets)
    return {name: greenlet.value for name, greenlet in zip(names, greenlets, strict=True)}


def run_groups(program, driver, *arguments, groups):
    """Run each group of scenarios in its own process, and return the outcome of each scenario."""
    outcomes = run_each(groups, lambda group: json.loads(run_program(program, driver, *arguments, *group)))
    return {name: outcome for group in outcomes.values() for name, outcome in group.items()}


def test_interruption_at_any_switch_loses_nothing():
    """Interrupt by a kill, by a timeout of the application, and by a kill followed by a timeout."""
    outcomes = run_both(lambda driver: run_groups("interruptions", driver, groups=SCENARIO_GROUPS))
    for driver, tallies in outcomes.items():
        total = sum((Counter(tally) for tally in tallies.values()), Counter())
        print(f"{driver}, all scenarios: {dict(total)}")
    for name, tally in outcomes["gmongo"].items():
        assert tally.pop("interrupted runs") >= 6, name
        assert tally == {"runs with a loss": 0}, name


def run_outage(driver):
    """Run 1,000 waiting greenlets, and return the outcomes of the greenlets and the CPU time."""
    with (
        Deployment.replica_set(members=1) as deployment,
        DriverProgram("outage_reads", driver, deployment.uri) as program,
    ):
        assert program.read_line() == "ready", program.stderr
        deployment.members[0].kill()
        program.send_line()
        return {"CPU": float(program.read_line()), **json.loads(program.read_remaining_output())}


def test_application_timeouts_in_outage_raise_only_their_own_exception():
    outcomes = run_both(run_outage)
    assert outcomes["gmongo"]["errors"] == {"its own Timeout": WAITER_COUNT}
    assert outcomes["gmongo"]["CPU"] < outcomes["pymongo"]["CPU"]


FORK_FUNCTIONS = ("os", "gevent", "multiprocessing")


def run_fork(driver, fork_function, state):
    """Use a client, fork with `fork_function`, and return the outcomes of the parent and the child.

    ``sent`` lists the commands that arrive on connections of the parent after the fork. ``lost`` is
    the number of parent connections that the child breaks.
    """
    with (
        Deployment.replica_set(members=1) as deployment,
        DriverProgram("forked_child", driver, deployment.uri, fork_function, state) as program,
    ):
        assert program.read_line() == "before the fork", program.stderr
        (member,) = deployment.members
        if state == "busy":
            until(lambda: len(deployment.commands.named("find")) == 8)
        else:
            until(lambda: not any(connection.busy_with for connection in member.connections.values()))
        connections, log_length = set(member.connections), len(deployment.commands)
        program.send_line()
        output = [program.read_line(), program.read_line()]
        names = [command.name for command in deployment.commands[log_length:] if command.connection in connections]
        lost_count = len(connections - set(member.connections))
        program.send_line()
        output += [json.loads(program.read_line()), program.read_remaining_output()]
        return {"output": output, "sent": names, "lost": lost_count, "warnings_and_tracebacks": log_counts(program)}


def log_counts(program):
    return {**program.warning_counts, "tracebacks": program.stderr.count("Traceback")}


def run_forks(state):
    """Run the program ``forked_child`` with each fork function, and return the outcomes of gmongo."""
    return run_both(
        lambda driver: run_each(FORK_FUNCTIONS, lambda fork_function: run_fork(driver, fork_function, state))
    )["gmongo"]


def test_forked_child_sends_nothing_on_connections_of_idle_parent():
    """Use an idle parent, so that only the child sends commands while the child runs."""
    output = ["child: works", "child ended with 0", {}, "parent: answered"]
    expected = {"output": output, "sent": [], "lost": 0, "warnings_and_tracebacks": {"tracebacks": 0}}
    assert run_forks("quiet") == dict.fromkeys(FORK_FUNCTIONS, expected)


def test_fork_keeps_pending_replies_of_parent():
    for outcomes in run_forks("busy").values():
        # After the fork, the monitor of the parent may send commands.
        assert not set(outcomes.pop("sent")) - {"hello", "ismaster"}
        output = ["child: works", "child ended with 0", {"answered": 8}, "parent: answered"]
        assert outcomes == {"output": output, "lost": 0, "warnings_and_tracebacks": {"tracebacks": 0}}
