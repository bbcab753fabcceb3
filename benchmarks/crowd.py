"""The table of throughput and CPU time, with many more greenlets than connections.

The table divides each number of a contender by the number of the same contender with 100 greenlets,
one greenlet for each connection. Load by other programs reduces the throughput, but hardly changes
the CPU time of an operation.

The baseline shows the cost that many greenlets have in any program. After a long wait, the stack
and objects of a greenlet are no longer in the processor caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.processes import Measurement, Result
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "crowd"
THROUGHPUT, COST = "throughput", "CPU per operation"
BASE = 100
#: The numbers of greenlets for each contender.
SIZES = {"gmongo": (BASE, 1000, 10_000), "pymongo": (BASE, 1000), "floor": (BASE, 1000, 10_000)}
#: The number of operations in a turn, divided by the ``operations`` of the settings: with the default
#: settings, each of 10,000 greenlets runs three operations.
OPERATION_FACTORS = {"gmongo": 30, "pymongo": 10, "floor": 30}

Turn = tuple[str, int]


def turns(contenders: Sequence[str]) -> list[Turn]:
    """Return the measurements of a round: pairs of a contender and a number of greenlets."""
    return [(name, size) for name in contenders for size in SIZES.get(name, ())]


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure all pairs of a contender and a number of greenlets in interleaved rounds.

    Yield a row of throughput and a row of CPU time for each number of greenlets.
    """
    if TABLE not in settings.only:
        return
    settings.show_progress("many greenlets on 100 connections")
    with settings.workers() as workers:

        def measure(turn: Turn) -> Result:
            contender, greenlet_count = turn
            count = settings.operations * OPERATION_FACTORS[contender]
            return workers.run(Measurement(contender, "find_one", greenlet_count, count))

        results_of, failures = take_turns(turns(settings.contenders), settings.fresh_rounds, measure)
    for size in sorted({size for _name, size in results_of}):
        results_at_size = {name: results for (name, other), results in results_of.items() if other == size}
        failures_at_size = {name: why for (name, other), why in failures.items() if other == size}
        throughputs = {name: [each.per_second for each in results] for name, results in results_at_size.items()}
        costs = {name: [each.microseconds for each in results] for name, results in results_at_size.items()}
        yield Row(THROUGHPUT, size, "operations / s", throughputs, failures_at_size)
        yield Row(COST, size, "µs", costs, {})
