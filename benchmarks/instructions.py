"""Count the instructions and calls per operation, and compare the counts with a budget.

The benchmark counts the bytecode instructions and the calls in the code of gmongo. The counts are
equal in all runs and on all machines, but differ between versions of Python. Therefore
``budget.json`` has a budget for each measured version.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from gevent import getcurrent

from benchmarks.processes import canned_server
from benchmarks.variants import silent_listener
from benchmarks.workloads import Operation, check, driver_operations
from gmongo import MongoClient

BUDGET_FILE = Path(__file__).with_name("budget.json")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
LISTENER_OPERATION = "find_one+listener"
NAMES = ["find_one", "insert_one", "update_one", "find_100", LISTENER_OPERATION]
#: The first rounds are not counted: they fill caches, and from Python 3.12 on the first traces
#: miss instructions.
WARM_UP, ROUNDS = 3, 5
EVENTS: dict[Callable[[Any], None], tuple[str, ...]] = {
    sys.settrace: ("opcode",),
    sys.setprofile: ("call", "c_call"),
}
EVENT_KINDS = [event for events in EVENTS.values() for event in events]
REGRESSION_RATIO, STALE_RATIO = 1.1, 0.8
WRITE_HINT = f"To change the budget of Python {VERSION} on purpose: python -m benchmarks.instructions --write"
#: Options that prevent a heartbeat during a run.
QUIET_OPTIONS: dict[str, Any] = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 3_600_000}


class Counts(NamedTuple):
    """Counts of bytecode instructions, of entered functions (or resumed generators), and of calls of C functions."""

    instructions: int
    python_calls: int
    c_calls: int


COLUMN_TITLES = ("instructions", "Python calls", "C calls")
CountsByName = Mapping[str, Counts]
#: The number of events for each pair of event kind and function.
Tally = Counter[tuple[str, str]]


def count_events(operation: Operation, set_hook: Callable[[Any], None]) -> Tally:
    """Run an operation, and count the trace or profile events in the code of gmongo.

    Ignore the events of other greenlets.

    :param set_hook: ``sys.settrace`` or ``sys.setprofile``.
    """
    tally: Tally = Counter()
    greenlet = getcurrent()

    def observe(frame: FrameType, event: str, _argument: Any) -> Any:
        # Compare module names, because a generated method of a dataclass has no file name.
        module, code = str(frame.f_globals.get("__name__")), frame.f_code
        if module.partition(".")[0] != "gmongo" or getcurrent() is not greenlet:
            return None
        if set_hook is sys.settrace:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event in EVENTS[set_hook]:
            tally[event, f"{module}:{code.co_firstlineno} {code.co_name}"] += 1
        return observe

    set_hook(observe)
    try:
        operation()
    finally:
        set_hook(None)
    return tally


def measure() -> dict[str, Tally]:
    """Run each operation against the canned server, and count its instructions and calls.

    All operations are traced before any operation is profiled. Python 3.12 crashes if both a trace
    function and a profile function are set. Python 3.13 misses instructions if a program alternates
    between the functions.
    """
    gc.disable()  # a garbage collection may run finalizers of the driver
    with canned_server() as port, MongoClient("127.0.0.1", port, **QUIET_OPTIONS) as plain:
        operations = driver_operations(plain)
        for name in operations.keys() & set(NAMES):
            check(name, operations[name])
        with MongoClient("127.0.0.1", port, event_listeners=[silent_listener("gmongo")], **QUIET_OPTIONS) as listened:
            operations[LISTENER_OPERATION] = driver_operations(listened)["find_one"]
            traced, profiled = (
                {name: _smallest_tally(operations[name], set_hook) for name in NAMES} for set_hook in EVENTS
            )
    return {name: traced[name] + profiled[name] for name in NAMES}


def _smallest_tally(operation: Operation, set_hook: Callable[[Any], None]) -> Tally:
    """Return the smallest tally of several runs, because a reply that arrives in pieces causes more events."""
    return min(
        [count_events(operation, set_hook) for _ in range(WARM_UP + ROUNDS)][WARM_UP:],
        key=Tally.total,
    )


def by_function(tally: Tally) -> CountsByName:
    """Return the counts of each function, sorted by instructions in descending order."""
    rows = {function: Counts(*(tally[event, function] for event in EVENT_KINDS)) for _event, function in tally}
    return dict(sorted(rows.items(), key=itemgetter(1), reverse=True))


def total(tally: Tally) -> Counts:
    """Return the counts of an operation: the sums over all functions."""
    return Counts(*map(sum, zip(*by_function(tally).values(), strict=True)))


def budgets() -> dict[str, CountsByName]:
    """Return the budgets of all measured versions of Python, such as ``{"3.12": {"find_one": Counts(...)}}``."""
    stored = json.loads(BUDGET_FILE.read_text()) if BUDGET_FILE.exists() else {}
    return {version: {name: Counts(**counts) for name, counts in each.items()} for version, each in stored.items()}


def write(measured: CountsByName) -> None:
    """Store the measured counts as the budget of this version of Python."""
    new = sorted({**budgets(), VERSION: measured}.items())
    stored = {version: {name: counts._asdict() for name, counts in budget.items()} for version, budget in new}
    BUDGET_FILE.write_text(json.dumps(stored, indent=2) + "\n")


def budget_violations(measured: CountsByName, budget: CountsByName) -> list[str]:
    """Return a line for each missing or deviating count, and finally the command that changes the budget."""
    lines = [f"{name}: only measured, or only in the budget" for name in sorted(measured.keys() ^ budget.keys())]
    for name in [name for name in measured if name in budget]:
        for kind, counted, allowed in zip(COLUMN_TITLES, measured[name], budget[name], strict=True):
            line = f"{name}: {counted} {kind} differ by {counted / allowed - 1:+.0%} from the budget of {allowed}"
            if counted > allowed * REGRESSION_RATIO:
                lines.append(f"{line}, a regression")
            elif counted < allowed * STALE_RATIO:
                lines.append(f"{line}. The budget is stale: lower the budget")
    return [*lines, WRITE_HINT] if lines else []


def table(measured: CountsByName, budget: CountsByName) -> str:
    """Return a table with a row for each operation or function, and the budget of each count in brackets."""
    width = max(map(len, measured))
    lines = [" " * width + "".join(f"{head:>16}" for head in COLUMN_TITLES)]
    for name, counts in measured.items():
        limits = [f" ({limit})" for limit in budget[name]] if name in budget else [""] * len(COLUMN_TITLES)
        cells = (f"{count}{limit}" for count, limit in zip(counts, limits, strict=True))
        lines.append(f"{name:{width}}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def main() -> int:
    """Read the command line, measure the operations, and print or store the counts.

    :returns: the exit status, which is 1 if a count is far from the budget, and otherwise 0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"store the counts as the budget of Python {VERSION}")
    parser.add_argument("--by-function", choices=NAMES, metavar="NAME", help=f"counts by function: {', '.join(NAMES)}")
    options = parser.parse_args()
    tallies = measure()
    if options.by_function:
        print(table(by_function(tallies[options.by_function]), {}))
        return 0
    measured = {name: total(tally) for name, tally in tallies.items()}
    if options.write:
        write(measured)
    budget = budgets().get(VERSION, {})
    deviations = budget_violations(measured, budget) if budget else []
    heading = f"Python {VERSION}, {'one operation (its budget)' if budget else 'which has no budget'}"
    print(heading, table(measured, budget), *deviations, sep="\n")
    return 1 if deviations else 0


if __name__ == "__main__":
    sys.exit(main())
