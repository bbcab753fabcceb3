"""No operation executes many more instructions than its budget says (``python -m benchmarks.instructions``)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import instructions
from benchmarks.instructions import Counts, complaints

BUDGET = {"find_one": Counts(1000, 50, 30)}


@pytest.mark.skipif(
    instructions.VERSION not in instructions.budgets(),
    reason=f"benchmarks/budget.json has no budget for Python {instructions.VERSION}",
)
def test_every_operation_keeps_to_its_budget() -> None:
    # In a process of its own: what other tests leave behind, or a coverage tool's trace, would change the counts.
    command = [sys.executable, "-m", "benchmarks.instructions"]
    done = subprocess.run(command, cwd=instructions.BUDGET.parent.parent, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert "find_one" in done.stdout


@pytest.mark.parametrize("counts", [Counts(1000, 50, 30), Counts(1100, 55, 33), Counts(800, 40, 24)])
def test_small_differences_are_no_complaint(counts: Counts) -> None:
    assert complaints({"find_one": counts}, BUDGET) == []


def test_a_regression_is_named_with_its_size_and_the_way_to_accept_it() -> None:
    found, how = complaints({"find_one": Counts(1250, 50, 30)}, BUDGET)

    assert found == "find_one: 1250 instructions are +25% of the budget of 1000, a regression"
    assert "python -m benchmarks.instructions --write" in how


@pytest.mark.parametrize("counts", [Counts(1000, 56, 30), Counts(1000, 50, 34)])
def test_more_calls_are_a_regression_too(counts: Counts) -> None:
    assert "calls" in complaints({"find_one": counts}, BUDGET)[0]


def test_a_budget_far_above_what_is_needed_is_stale() -> None:
    found, how = complaints({"find_one": Counts(790, 50, 30)}, BUDGET)

    assert "790 instructions" in found and "stale" in found
    assert "--write" in how


@pytest.mark.parametrize("measured", [{}, {**BUDGET, "insert_one": Counts(1, 1, 1)}])
def test_an_operation_without_a_counterpart_is_a_complaint(measured: dict[str, Counts]) -> None:
    assert "only measured, or only in the budget" in complaints(measured, BUDGET)[0]
