"""Targets belong to rows that a run has, and a number is held against the right one."""

from __future__ import annotations

import pytest

from benchmarks import contest, crowd, stall, start, surcharge
from benchmarks.targets import TARGETS, Target, found, target_of
from benchmarks.workloads import WORKLOADS
from tests.benchmarks.records import record


def places() -> set[tuple[str, int | None]]:
    """The rows of the standard runs."""
    operations = {(name, size) for name, workload in WORKLOADS.items() for size in workload.greenlets}
    crowds = {(crowd.THROUGHPUT, size) for size in crowd.SIZES["gmongo"]}
    others = [*stall.NAMES.values(), *start.IMPORTS, start.FIRST_CLIENT, start.FURTHER_CLIENT]
    contests = {(contest.name(kind), contest.CALLERS) for kind in contest.SHARES}
    surcharges = {
        (surcharge.name(operation, each), surcharge.GREENLETS)
        for operation in surcharge.OPERATIONS
        for each in surcharge.UNDER
    }
    return operations | crowds | contests | surcharges | {(name, None) for name in others}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.row}-{target.greenlets}-{target.under}")
def test_a_standard_run_has_the_row(target):
    assert (target.row, target.greenlets) in places()
    assert target.under in ("pymongo", "floor", "rust", crowd.BASE, surcharge.PLAIN, None)


def test_no_number_has_two_targets():
    assert len({target[:3] for target in TARGETS}) == len(TARGETS)


def test_reaching():
    most, least = Target("row", None, None, 2.0), Target("row", None, None, 2.0, at_least=True)
    assert [most.is_reached(number) for number in (1.9, 2.0, 2.1)] == [True, True, False]
    assert [least.is_reached(number) for number in (1.9, 2.0, 2.1)] == [False, True, True]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target("find_one", 10, "pymongo", 1), 0.14),
        (Target("find_one", 10, "floor", 1), 1.4),
        (Target("insert_one", 10, "floor", 1), None),
        (Target("find_one", 100, "floor", 1), None),
        (Target(crowd.THROUGHPUT, 1000, 100, 1), 0.8),
        (Target(crowd.THROUGHPUT, 1000, 50, 1), None),
        (Target(stall.READ, None, None, 1), 4.25),
        (Target(stall.FIRST, None, "pymongo", 1), 0.5),
    ],
)
def test_the_number_of_a_target(target, expected):
    number = found(target, record().rows())
    assert (number and number.median) == (expected and pytest.approx(expected))


def test_the_target_of_a_number():
    row = record().tables["operations"][0]
    assert target_of(row, "floor") in TARGETS
    assert target_of(row, None) is None
