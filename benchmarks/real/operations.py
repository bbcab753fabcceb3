"""CPU time, throughput and latency of each operation on a real deployment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from benchmarks import load
from benchmarks.documents import DEPLOYMENT_SUFFIX
from benchmarks.latency import quantiles_of
from benchmarks.processes import WorkerFailed
from benchmarks.programs import Program, exchange, start_contender
from benchmarks.real.deployments import deployment
from benchmarks.rounds import Row, ratio, take_turns

CALLER_COUNT = 10
#: For each operation, its number of runs in a turn, divided by the number of runs of `find_one`.
SHARES = {
    "find_one": 1.0,
    "insert_one": 1.0,
    "update_one": 1.0,
    "find_100": 0.25,
    "find_10000": 0.01,
    "aggregate": 0.5,
    "bulk_write": 0.01,
    "transaction": 0.1,
    "change_stream": 0.1,
    "first_operation": 0.05,
}
#: The operations that only a replica set supports.
REPLICA_SET_OPERATIONS = {"transaction", "change_stream"}
#: The operations that the benchmark measures on deployments with special settings.
SPECIAL_DEPLOYMENT_OPERATIONS = ("find_one", "insert_one", "update_one", "find_100", "find_10000")
_LATENCY_OPERATIONS = 2000  # find_one operations in the measurement of the latencies


class OperationResults(NamedTuple):
    """Results of all contenders for one operation on one deployment.

    :param cost: CPU time of the client for one operation in microseconds, one number for each round.
    :param latencies: contender → quantile → milliseconds, with 10 callers in a closed loop.
    :param rates: contender → operations per second in the same closed loop.
    """

    cost: Row
    latencies: dict[str, dict[str, float]]
    rates: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the median CPU times, the ratios, the latencies, the rates and the failures."""
        ratios = {name: ratio(self.cost, "gmongo", name) for name in self.cost.numbers if name != "gmongo"}
        return {
            "microseconds": {name: median(costs) for name, costs in self.cost.numbers.items() if costs},
            "gmongo over": {name: each.median for name, each in ratios.items() if each is not None},
            "latencies": self.latencies,
            "rates": self.rates,
            "failures": self.cost.failures,
        }


def operations_of(name: str) -> list[str]:
    """Return the names of the operations that the benchmark measures on a deployment."""
    if name == "replica set":
        return list(SHARES)
    if name == "standalone" and not DEPLOYMENT_SUFFIX:
        return [kind for kind in SHARES if kind not in REPLICA_SET_OPERATIONS]
    return list(SPECIAL_DEPLOYMENT_OPERATIONS)


def measure(
    name: str, contenders: Sequence[str], rounds: int, find_one_count: int, report_progress: Callable[[str], Any]
) -> dict[str, OperationResults]:
    """Measure each operation of a deployment with all contenders in interleaved rounds.

    :param name: the name of the deployment.
    :param rounds: the number of turns of each contender.
    :param find_one_count: the number of `find_one` operations in a turn.
    :param report_progress: a function that receives the name of each measurement.
    :returns: the results by operation.
    """
    results: dict[str, OperationResults] = {}
    with deployment(name) as uri, ExitStack() as stack:
        programs: dict[str, Program] = {}

        def program_of(contender: str) -> Program:
            if contender not in programs:
                programs[contender] = stack.enter_context(start_contender(contender, uri, CALLER_COUNT))
            return programs[contender]

        for kind in operations_of(name):
            report_progress(f"{name}: {kind}")
            count = max(1, round(find_one_count * SHARES[kind] / CALLER_COUNT))
            for contender in contenders:
                _warm_up(program_of, contender, kind)
            turn = partial(_measure_cost, program_of, kind, count)
            cost, failures = take_turns(contenders, rounds, turn)
            latencies, rates = {}, {}
            for contender in [each for each in contenders if each not in failures]:
                size = max(20, round(_LATENCY_OPERATIONS * SHARES[kind]))
                load_result = load.send(program_of(contender).streams, exchange(kind), size)
                latencies[contender] = quantiles_of(load_result.latencies)
                rates[contender] = size / load_result.clock
            results[kind] = OperationResults(Row(kind, CALLER_COUNT, "µs", cost, failures), latencies, rates)
    return results


def _warm_up(program_of: Callable[[str], Program], contender: str, kind: str) -> None:
    try:
        load.send(program_of(contender).streams, exchange(kind), CALLER_COUNT)
    except WorkerFailed:
        pass  # the first turn of the contender also fails, and the row reports the error


def _measure_cost(program_of: Callable[[str], Program], kind: str, count: int, contender: str) -> float:
    program = program_of(contender)
    before = program.processor_seconds
    load.send(program.streams, exchange(kind, count), CALLER_COUNT)
    return (program.processor_seconds - before) / (count * CALLER_COUNT) * 1e6
