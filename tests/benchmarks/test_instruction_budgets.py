"""Tests of the instruction budgets of operations (``python -m benchmarks.instructions``)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import instructions


@pytest.mark.skipif(
    instructions.VERSION not in instructions.budgets(),
    reason=f"benchmarks/budget.json has no budget for Python {instructions.VERSION}",
)
def test_operations_stay_within_instruction_budgets() -> None:
    # The measurement runs in a separate process, because other tests and coverage tools would
    # change the instruction counts.
    command = [sys.executable, "-m", "benchmarks.instructions"]
    run = subprocess.run(command, cwd=instructions.BUDGET_FILE.parents[1], capture_output=True, text=True, check=False)

    assert run.returncode == 0, f"\n{run.stdout}\n{run.stderr}"
    assert "find_one" in run.stdout
