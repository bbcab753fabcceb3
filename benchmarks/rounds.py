"""Rounds of a benchmark.

Each round measures every contender once, and each ratio compares two numbers of one round.

Load by other programs affects all contenders of a round alike, and therefore hardly changes their
ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple, TypeVar

from benchmarks.processes import WorkerFailed

Contender = TypeVar("Contender")
Outcome = TypeVar("Outcome")


class Quartiles(NamedTuple):
    """The median over all rounds, and the first and the third quartile."""

    median: float
    low: float
    high: float


class Row(NamedTuple):
    """Results of one quantity with one number of greenlets.

    :param greenlets: the number of greenlets; None if the quantity has no number of greenlets.
    :param unit: the unit of the numbers, such as ``µs``.
    :param numbers: the numbers of all rounds by contender; empty or missing for a failed contender.
    :param failures: the error of each failed contender.
    """

    name: str
    greenlets: int | None
    unit: str
    numbers: dict[str, list[float]]
    failures: dict[str, str]


def contender_order(contenders: Sequence[Contender], round_number: int) -> list[Contender]:
    """Return the order of the contenders in a round.

    The first contender changes from round to round, so that no contender has an advantage.
    """
    first = round_number % len(contenders)
    return [*contenders[first:], *contenders[:first]]


def take_turns(
    contenders: Sequence[Contender], rounds: int, measure: Callable[[Contender], Outcome]
) -> tuple[dict[Contender, list[Outcome]], dict[Contender, str]]:
    """Measure all contenders in interleaved rounds. If a contender fails, the other contenders continue.

    :param measure: a function that returns the result of a contender, or raises WorkerFailed.
    :returns: the results of all rounds by contender, and the error of each failed contender.
    """
    results: dict[Contender, list[Outcome]] = {contender: [] for contender in contenders}
    failures: dict[Contender, str] = {}
    for number in range(rounds if contenders else 0):
        for position in contender_order(range(len(contenders)), number):
            contender = contenders[position]
            if contender in failures:
                continue
            try:
                results[contender].append(measure(contender))
            except WorkerFailed as failure:
                failures[contender] = str(failure)
                results[contender].clear()
    return results, failures


def summary(numbers: Sequence[float]) -> Quartiles | None:
    """Return the median and the quartiles, or None if `numbers` is empty."""
    if len(numbers) < 2:
        return Quartiles(numbers[0], numbers[0], numbers[0]) if numbers else None
    low, middle, high = quantiles(numbers, n=4, method="inclusive")
    return Quartiles(middle, low, high)


def ratio(row: Row, numerator: str, denominator: str) -> Quartiles | None:
    """Return the quartiles of a ratio of contenders, or None if a contender was not measured."""
    return _ratio(row.numbers.get(numerator, ()), row.numbers.get(denominator, ()))


def ratio_to_row(row: Row, base: Row, contender: str) -> Quartiles | None:
    """Return the quartiles of a contender's numbers in `row`, divided by its numbers in `base`.

    Return None if a row has no number of the contender.
    """
    return _ratio(row.numbers.get(contender, ()), base.numbers.get(contender, ()))


def _ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Quartiles | None:
    return summary([one / other for one, other in zip(numerators, denominators, strict=False)])


def median_of(row: Row, contender: str) -> float | None:
    """Return the median of a contender, or None if the contender was not measured."""
    numbers = summary(row.numbers.get(contender, ()))
    return numbers and numbers.median
