"""Rounds: in each one every contender is measured once, and ratios are taken within the round.

What slows the machine for some seconds slows the contenders of one round alike; their ratio keeps out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from benchmarks.processes import WorkerFailed

Entrant = TypeVar("Entrant")

#: Each ratio is the first one's cost over the second one's.
RATIOS = (("gmongo", "pymongo"), ("gmongo", "floor"), ("pymongo", "floor"))


class Ratio(NamedTuple):
    """The median over all rounds, and the lowest and highest round."""

    median: float
    low: float
    high: float


class Cell(NamedTuple):
    """One operation at one number of greenlets.

    :param costs: CPU microseconds per operation of each contender, one number a round.
    :param failures: why a contender has no numbers.
    """

    operation: str
    greenlets: int
    costs: dict[str, list[float]]
    failures: dict[str, str]


def order(contenders: Sequence[Entrant], number: int) -> list[Entrant]:
    """The contenders as they take their turns in a round: everybody goes first equally often."""
    first = number % len(contenders)
    return [*contenders[first:], *contenders[:first]]


def run_cell(
    operation: str, greenlets: int, contenders: Sequence[str], rounds: int, measure: Callable[[str], float]
) -> Cell:
    """Measure all contenders in turns. One that fails drops out, and the others go on.

    :param measure: takes a contender and gives its CPU microseconds per operation, or raises WorkerFailed.
    """
    cell = Cell(operation, greenlets, {name: [] for name in contenders}, {})
    for number in range(rounds):
        for name in order(contenders, number):
            if name in cell.failures:
                continue
            try:
                cell.costs[name].append(measure(name))
            except WorkerFailed as failure:
                cell.failures[name] = str(failure)
                cell.costs[name].clear()
    return cell


def ratio(cell: Cell, over: str, under: str) -> Ratio | None:
    """The ratio of two contenders' costs; None unless both were measured."""
    rounds = list(zip(cell.costs.get(over, ()), cell.costs.get(under, ()), strict=False))
    if not rounds:
        return None
    ratios = [one / other for one, other in rounds]
    return Ratio(median(ratios), min(ratios), max(ratios))


def cost(cell: Cell, contender: str) -> float | None:
    """The median cost of a contender in microseconds; None unless it was measured."""
    costs = cell.costs.get(contender)
    return median(costs) if costs else None
