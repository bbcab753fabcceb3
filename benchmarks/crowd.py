"""A crowd: many more greenlets than connections. Does throughput hold up?

The contenders are not compared with each other here, but each with itself: at 100 greenlets, which is one for each
connection. Throughput suffers from whatever else the machine does; the CPU time of an operation hardly does.

The floor is there as the evidence of what many greenlets cost anybody: the stack and the objects of a greenlet that
waited long are no longer in the processor's caches when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.processes import Measurement, Result
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "crowd"
THROUGHPUT, COST = "throughput", "CPU per operation"
BASE = 100
#: The sizes of the crowd for each contender.
SIZES = {"gmongo": (BASE, 1000, 10_000), "pymongo": (BASE, 1000), "floor": (BASE, 1000, 10_000)}
#: How many operations are run for each ``find_one`` of the first table: ten thousand greenlets shall have three each.
SHARE = {"gmongo": 30, "pymongo": 10, "floor": 30}

Turn = tuple[str, int]


def turns(contenders: Sequence[str]) -> list[Turn]:
    """All that is measured in a round."""
    return [(name, size) for name in contenders for size in SIZES.get(name, ())]


def rows(settings: Settings) -> Iterator[Row]:
    """Measure all sizes of all contenders in turns: a row of throughput and one of cost for each size."""
    if TABLE not in settings.only:
        return
    settings.tell("a crowd on 100 connections")
    with settings.workers() as workers:

        def measure(turn: Turn) -> Result:
            contender, greenlets = turn
            return workers.run(Measurement(contender, "find_one", greenlets, settings.operations * SHARE[contender]))

        found, failures = take_turns(turns(settings.contenders), settings.fresh_rounds, measure)
    for size in sorted({size for _name, size in found}):
        at_size = {name: results for (name, other), results in found.items() if other == size}
        failed = {name: why for (name, other), why in failures.items() if other == size}
        throughput = {name: [each.per_second for each in results] for name, results in at_size.items()}
        cost = {name: [each.microseconds for each in results] for name, results in at_size.items()}
        yield Row(THROUGHPUT, size, "operations / s", throughput, failed)
        yield Row(COST, size, "µs", cost, {})
