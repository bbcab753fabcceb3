"""``python -m tests.spec.unified.report [arguments of pytest]``: run the official unified tests, and print a table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spec.unified.skips import CLASSES

_MODULE = Path(__file__).parents[1] / "test_unified.py"
_PASSED, _FAILED = "passed", "failed"


class Report:
    """Pytest plugin that counts, for each suite, the cases with each outcome."""

    def __init__(self) -> None:
        self.suites: dict[str, Counter[str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        suite = report.nodeid.partition("[")[2].partition("/")[0]
        outcome = _outcome(report)
        if suite and outcome is not None:
            self.suites.setdefault(suite, Counter())[outcome] += 1

    def lines(self) -> list[str]:
        """Return the lines of the table in Markdown."""
        columns = [_PASSED, *CLASSES, _FAILED]
        lines = [_row("suite", "cases", *columns), _row(*["---"] * (len(columns) + 2))]
        total: Counter[str] = Counter()
        for suite, counts in sorted(self.suites.items()):
            lines.append(_row(suite, sum(counts.values()), *(counts[column] for column in columns)))
            total += counts
        return [*lines, _row("all", sum(total.values()), *(total[column] for column in columns))]


def _outcome(report: Any) -> str | None:
    """Return the outcome of the case to which a pytest report belongs.

    Return None for the report about a successful set-up or teardown, because another report has the
    outcome.
    """
    if report.skipped:
        reason = getattr(report, "wasxfail", None) or report.longrepr[2].removeprefix("Skipped: ")
        return next((kind for kind in CLASSES if reason.startswith(kind)), _FAILED)
    if report.failed:
        return _FAILED
    return _PASSED if report.when == "call" else None


def _row(*cells: Any) -> str:
    return f"| {' | '.join(str(cell or '') for cell in cells)} |"


def main() -> int:
    """Run the unified tests, print the table, and return the exit code of pytest."""
    report = Report()
    code = pytest.main([str(_MODULE), "-q", "--no-header", "-r", "f", "--tb=line", *sys.argv[1:]], plugins=[report])
    print(*report.lines(), sep="\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
