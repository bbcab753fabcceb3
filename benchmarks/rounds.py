"""Rounds. Each round measures every contender once, and each ratio compares two numbers of one round.

Other load on the machine affects all contenders of a round alike, and therefore hardly changes their ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple, TypeVar

from benchmarks.processes import WorkerFailed

Entrant = TypeVar("Entrant")
Outcome = TypeVar("Outcome")


class Ratio(NamedTuple):
    """The median over all rounds, and the first and the third quartile."""

    median: float
    low: float
    high: float


class Row(NamedTuple):
    """Results of one quantity with one number of greenlets.

    :param greenlets: the number of greenlets; None if the quantity requires a single greenlet.
    :param unit: the unit of the numbers.
    :param numbers: the number of each round by contender; empty for a failed contender.
    :param failures: the error of each failed contender.
    """

    name: str
    greenlets: int | None
    unit: str
    numbers: dict[str, list[float]]
    failures: dict[str, str]


def order(entrants: Sequence[Entrant], number: int) -> list[Entrant]:
    """Return the order of the entrants in a round. Each entrant is equally often the first."""
    first = number % len(entrants)
    return [*entrants[first:], *entrants[:first]]


def take_turns(
    entrants: Sequence[Entrant], rounds: int, measure: Callable[[Entrant], Outcome]
) -> tuple[dict[Entrant, list[Outcome]], dict[Entrant, str]]:
    """Measure all entrants in turns. A failed entrant drops out, and the others continue.

    :param measure: returns the result of an entrant, or raises WorkerFailed.
    :returns: the results of all rounds by entrant, and the error of each failed entrant.
    """
    results: dict[Entrant, list[Outcome]] = {entrant: [] for entrant in entrants}
    failures: dict[Entrant, str] = {}
    for number in range(rounds if entrants else 0):
        for position in order(range(len(entrants)), number):
            entrant = entrants[position]
            if entrant in failures:
                continue
            try:
                results[entrant].append(measure(entrant))
            except WorkerFailed as failure:
                failures[entrant] = str(failure)
                results[entrant].clear()
    return results, failures


def summary(numbers: Sequence[float]) -> Ratio | None:
    """Return the median and the quartiles, or None without numbers."""
    if len(numbers) < 2:
        return Ratio(numbers[0], numbers[0], numbers[0]) if numbers else None
    low, middle, high = quantiles(numbers, n=4, method="inclusive")
    return Ratio(middle, low, high)


def ratio(row: Row, over: str, under: str) -> Ratio | None:
    """Return the ratio of two contenders, or None unless both were measured."""
    return _ratio(row.numbers.get(over, ()), row.numbers.get(under, ()))


def ratio_to_row(row: Row, base: Row, contender: str) -> Ratio | None:
    """Return the ratio of a contender in two rows with equal rounds, or None unless both were measured."""
    return _ratio(row.numbers.get(contender, ()), base.numbers.get(contender, ()))


def _ratio(over: Sequence[float], under: Sequence[float]) -> Ratio | None:
    return summary([one / other for one, other in zip(over, under, strict=False)])


def middle(row: Row, contender: str) -> float | None:
    """Return the median of a contender, or None if the contender was not measured."""
    numbers = summary(row.numbers.get(contender, ()))
    return numbers and numbers.median
