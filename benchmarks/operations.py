"""The table of operations: CPU time of the client per operation."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import Measurement
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings
from benchmarks.worker import CONTENDERS
from benchmarks.workloads import WORKLOADS, Workload

TABLE = "operations"
#: The minimum number of measured operations in a turn.
MIN_OPERATION_COUNT = 2


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure each selected operation with each number of greenlets, and yield the rows."""
    for name, workload in WORKLOADS.items():
        if name not in settings.only:
            continue
        for greenlets in sizes(workload, settings.greenlets):
            settings.show_progress(f"{name}, {greenlets} greenlets")
            yield _measure_row(name, greenlets, settings)


def sizes(workload: Workload, selected: list[int] | None) -> list[int]:
    """Return the numbers of greenlets for which the benchmark measures an operation.

    :param selected: the selected numbers; None selects the numbers of the standard run.
    """
    limit = workload.max_greenlets
    return [size for size in selected or workload.greenlets if not limit or size <= limit]


def contenders(workload: Workload, selected: list[str]) -> list[str]:
    """Return the selected contenders that can run a workload. The baseline cannot run variants."""
    return [name for name in selected if name in CONTENDERS and (not workload.variant or name != "floor")]


def _measure_row(name: str, greenlets: int, settings: Settings) -> Row:
    with settings.workers() as workers:
        results_of, failures = take_turns(
            contenders(WORKLOADS[name], settings.contenders),
            settings.rounds,
            lambda contender: workers.run(_measurement(name, greenlets, contender, settings)),
        )
    costs = {contender: [each.microseconds for each in results] for contender, results in results_of.items()}
    return Row(name, greenlets, "µs", costs, failures)


def _measurement(name: str, greenlets: int, contender: str, settings: Settings) -> Measurement:
    workload = WORKLOADS[name]
    count = max(MIN_OPERATION_COUNT, round(settings.operations * workload.share))
    return Measurement(contender, workload.operation, greenlets, count, workload.variant)
