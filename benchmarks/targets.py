"""The targets that measured numbers of gmongo must reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks import contest, crowd, stall, start
from benchmarks.rounds import Quartiles, Row, ratio, ratio_to_row, summary


class Target(NamedTuple):
    """Limit for a number of gmongo in a row, or for the ratio of this number to another number.

    :param row: the name of the row.
    :param greenlets: the number of greenlets in the row; None if the row has no number of greenlets.
    :param denominator: the contender whose number in this row is the denominator. An integer means
        gmongo with this number of greenlets. None means that the target limits the number itself.
    :param limit: the largest median that reaches the target.
    :param at_least: True if `limit` is instead the smallest median that reaches the target.
    """

    row: str
    greenlets: int | None
    denominator: str | int | None
    limit: float
    at_least: bool = False

    def is_reached(self, number: float) -> bool:
        return number >= self.limit if self.at_least else number <= self.limit


WRITES = ("insert_one", "update_one", "delete_one")
SPECIAL_VARIANTS = ("stable_api", "timeout", "tls", "replica_set")
TARGETS = [
    Target("find_one", 1, "pymongo", 0.28),
    *(Target("find_one", greenlets, "floor", 1.6) for greenlets in (10, 100)),
    Target("find_one", 1000, "pymongo", 0.20),
    *(Target(name, greenlets, "pymongo", 0.20) for name in WRITES for greenlets in (10, 100)),
    *(Target(name, 1000, "pymongo", 0.22) for name in WRITES),
    *(Target(contest.row_name(name), contest.CALLER_COUNT, "rust", 1.0) for name in contest.SHARES),
    Target(contest.row_name("find_100"), contest.CALLER_COUNT, "floor", 1.1),
    *(Target("insert_many", greenlets, "pymongo", 0.70) for greenlets in (1, 10)),
    *(Target(f"{name}+{each}", 10, "pymongo", 0.22) for each in SPECIAL_VARIANTS for name in ("find_one", *WRITES[:2])),
    Target("find_one+secondary", 10, "pymongo", 0.22),
    Target("find_one+10_connections", 100, "pymongo", 0.20),
    *(Target(f"{name}+10_connections", 100, "pymongo", 0.22) for name in WRITES[:2]),
    Target("find_one+listener", 10, "pymongo", 0.22),
    Target("find_one+debug", 10, "pymongo", 0.45),
    Target(crowd.THROUGHPUT, 1000, crowd.BASE, 0.90, at_least=True),
    *(Target(name, None, None, 5.0) for name in (stall.READ_STALL, stall.LIST_STALL, stall.INSERT_STALL)),
    Target(stall.FIRST_DOCUMENT, None, "pymongo", 0.20),
    *(Target(name, None, "pymongo", 1.0) for name in start.IMPORTS),
    *(Target(name, None, "pymongo", 0.70) for name in (start.FIRST_CLIENT, start.FURTHER_CLIENT)),
]
_TARGET_BY_PLACE = {(target.row, target.greenlets, target.denominator): target for target in TARGETS}


def target_of(row: Row, denominator: str | int | None) -> Target | None:
    """Return the target of gmongo in `row` with this denominator, or None if no target exists."""
    return _TARGET_BY_PLACE.get((row.name, row.greenlets, denominator))


def measured_number(target: Target, rows: Iterable[Row]) -> Quartiles | None:
    """Return the number or the ratio that `target` limits, or None if `rows` lack the number."""
    by_place = {(row.name, row.greenlets): row for row in rows}
    row = by_place.get((target.row, target.greenlets))
    if row is None:
        return None
    if target.denominator is None:
        return summary(row.numbers.get("gmongo", ()))
    if isinstance(target.denominator, str):
        return ratio(row, "gmongo", target.denominator)
    base = by_place.get((target.row, target.denominator))
    return base and ratio_to_row(row, base, "gmongo")
