"""Rounds: in each one every contender is measured once, and ratios are taken within the round.

What slows the machine for some seconds slows the contenders of one round alike; their ratio keeps out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple, TypeVar

from benchmarks.processes import WorkerFailed

Entrant = TypeVar("Entrant")
Found = TypeVar("Found")


class Ratio(NamedTuple):
    """The median over all rounds, and between which numbers the middle half of them is."""

    median: float
    low: float
    high: float


class Row(NamedTuple):
    """One thing that is measured, at one number of greenlets.

    :param greenlets: None where only one greenlet can do it.
    :param unit: of the numbers.
    :param numbers: those of each contender, one a round; empty for one that failed.
    :param failures: why a contender has no numbers.
    """

    name: str
    greenlets: int | None
    unit: str
    numbers: dict[str, list[float]]
    failures: dict[str, str]


def order(entrants: Sequence[Entrant], number: int) -> list[Entrant]:
    """The entrants as they take their turns in a round: each goes first equally often."""
    first = number % len(entrants)
    return [*entrants[first:], *entrants[:first]]


def take_turns(
    entrants: Sequence[Entrant], rounds: int, measure: Callable[[Entrant], Found]
) -> tuple[dict[Entrant, list[Found]], dict[Entrant, str]]:
    """Measure all entrants in turns. One that fails drops out, and the others go on.

    :param measure: takes an entrant and gives what was found, or raises WorkerFailed.
    :returns: what was found for each entrant, once a round, and why an entrant has nothing.
    """
    found: dict[Entrant, list[Found]] = {entrant: [] for entrant in entrants}
    failures: dict[Entrant, str] = {}
    for number in range(rounds if entrants else 0):
        for position in order(range(len(entrants)), number):
            entrant = entrants[position]
            if entrant in failures:
                continue
            try:
                found[entrant].append(measure(entrant))
            except WorkerFailed as failure:
                failures[entrant] = str(failure)
                found[entrant].clear()
    return found, failures


def summary(numbers: Sequence[float]) -> Ratio | None:
    """The middle of some numbers and where half of them are; None if there are none."""
    if len(numbers) < 2:
        return Ratio(numbers[0], numbers[0], numbers[0]) if numbers else None
    low, middle, high = quantiles(numbers, n=4, method="inclusive")
    return Ratio(middle, low, high)


def ratio(row: Row, over: str, under: str) -> Ratio | None:
    """The ratio of two contenders; None unless both were measured."""
    return _ratio(row.numbers.get(over, ()), row.numbers.get(under, ()))


def ratio_to_row(row: Row, base: Row, contender: str) -> Ratio | None:
    """The ratio of a contender's numbers in two rows that took turns; None unless both were measured."""
    return _ratio(row.numbers.get(contender, ()), base.numbers.get(contender, ()))


def _ratio(over: Sequence[float], under: Sequence[float]) -> Ratio | None:
    return summary([one / other for one, other in zip(over, under, strict=False)])


def middle(row: Row, contender: str) -> float | None:
    """The median of a contender's numbers; None unless it was measured."""
    found = summary(row.numbers.get(contender, ()))
    return found and found.median
