"""A crowd: many more greenlets than connections. Does throughput hold up?

The drivers are not compared with each other here, but each with itself: at 100 greenlets, which is one for each
connection. Throughput suffers from whatever else the machine does; the CPU time of an operation hardly does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal, NamedTuple

from benchmarks.processes import Result, WorkerFailed
from benchmarks.rounds import Ratio, order

NAME = "crowd"
BASE = 100
#: The sizes of the crowd for each contender.
SIZES = {"gmongo": (BASE, 1000, 10_000), "pymongo": (BASE, 1000)}
#: How many operations are run for each ``find_one`` of the other table: ten thousand greenlets shall have several each.
SHARE = 8

Turn = tuple[str, int]
Quantity = Literal["per_second", "microseconds"]


class Crowd(NamedTuple):
    """What was found for each contender at each size, once a round."""

    results: dict[Turn, list[Result]]
    failures: dict[Turn, str]


def turns(contenders: Sequence[str]) -> list[Turn]:
    """All that is measured in a round."""
    return [(name, size) for name in contenders for size in SIZES.get(name, ())]


def run(contenders: Sequence[str], rounds: int, measure: Callable[[str, int], Result]) -> Crowd:
    """Measure all sizes of all contenders in turns. What fails drops out.

    :param measure: takes a contender and a size and gives what was found, or raises WorkerFailed.
    """
    all_turns = turns(contenders)
    crowd = Crowd({turn: [] for turn in all_turns}, {})
    for number in range(rounds):
        for position in order(range(len(all_turns)), number):
            turn = all_turns[position]
            if turn in crowd.failures:
                continue
            try:
                crowd.results[turn].append(measure(*turn))
            except WorkerFailed as failure:
                crowd.failures[turn] = str(failure)
                crowd.results[turn].clear()
    return crowd


def ratio(crowd: Crowd, contender: str, size: int, quantity: Quantity) -> Ratio | None:
    """A quantity at a size over that at :data:`BASE` in the same round; None unless both were measured."""
    at_size, at_base = _all(crowd, contender, size, quantity), _all(crowd, contender, BASE, quantity)
    ratios = [one / base for one, base in zip(at_size, at_base, strict=False)]
    return Ratio(median(ratios), min(ratios), max(ratios)) if ratios else None


def middle(crowd: Crowd, contender: str, size: int, quantity: Quantity) -> float | None:
    """The median of a quantity; None unless it was measured."""
    found = _all(crowd, contender, size, quantity)
    return median(found) if found else None


def _all(crowd: Crowd, contender: str, size: int, quantity: Quantity) -> list[float]:
    return [getattr(result, quantity) for result in crowd.results.get((contender, size), ())]
