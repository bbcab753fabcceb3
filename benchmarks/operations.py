"""The first table: what an operation costs the client."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import Measurement
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings
from benchmarks.worker import CONTENDERS
from benchmarks.workloads import WORKLOADS, Workload

TABLE = "operations"
#: At least so many operations are a turn.
FEWEST = 2


def rows(settings: Settings) -> Iterator[Row]:
    """Measure all operations that the settings asks for."""
    for name, workload in WORKLOADS.items():
        if name not in settings.only:
            continue
        for greenlets in sizes(workload, settings.greenlets):
            settings.tell(f"{name}, {greenlets} greenlets")
            yield _row(name, greenlets, settings)


def sizes(workload: Workload, wanted: list[int] | None) -> list[int]:
    """With how many greenlets an operation is measured.

    :param wanted: what was asked for; None for those of the standard run.
    """
    return [size for size in wanted or workload.greenlets if not workload.most or size <= workload.most]


def contenders(workload: Workload, wanted: list[str]) -> list[str]:
    """The contenders that can run an operation; the floor has no options."""
    return [name for name in wanted if name in CONTENDERS and (not workload.circumstance or name != "floor")]


def _row(name: str, greenlets: int, settings: Settings) -> Row:
    with settings.workers() as workers:
        found, failures = take_turns(
            contenders(WORKLOADS[name], settings.contenders),
            settings.rounds,
            lambda contender: workers.run(_wanted(name, greenlets, contender, settings)),
        )
    costs = {contender: [each.microseconds for each in results] for contender, results in found.items()}
    return Row(name, greenlets, "µs", costs, failures)


def _wanted(name: str, greenlets: int, contender: str, settings: Settings) -> Measurement:
    workload = WORKLOADS[name]
    count = max(FEWEST, round(settings.operations * workload.share))
    return Measurement(contender, workload.operation, greenlets, count, workload.circumstance, settings.listener)
