"""Tests of the instruction budgets of operations (``python -m benchmarks.instructions``)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import instructions
from benchmarks.instructions import Counts, budget_violations

BUDGET = {"find_one": Counts(1000, 50, 30)}


@pytest.mark.skipif(
    instructions.VERSION not in instructions.budgets(),
    reason=f"benchmarks/budget.json has no budget for Python {instructions.VERSION}",
)
def test_operations_stay_within_instruction_budgets() -> None:
    # The measurement runs in a separate process, because other tests and coverage tools would
    # change the instruction counts.
    command = [sys.executable, "-m", "benchmarks.instructions"]
    done = subprocess.run(command, cwd=instructions.BUDGET.parent.parent, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert "find_one" in done.stdout


def test_count_above_budget_is_reported_with_size_and_command() -> None:
    found, how = budget_violations({"find_one": Counts(1250, 50, 30)}, BUDGET)

    assert found == "find_one: 1250 instructions are +25% of the budget of 1000, a regression"
    assert "python -m benchmarks.instructions --write" in how


def test_count_far_below_budget_is_reported_as_stale() -> None:
    found, how = budget_violations({"find_one": Counts(790, 50, 30)}, BUDGET)

    assert "790 instructions" in found and "stale" in found
    assert "--write" in how
