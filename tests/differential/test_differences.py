"""Tests of the list of intended differences from PyMongo."""

from __future__ import annotations

from pathlib import Path

import pytest

from .call_runner import GMONGO, PYMONGO, CallRunner, read_calls
from .differences import DIFFERENCES, Difference, explaining_differences
from .servers import on_the_simulation

_FOLDER = Path(__file__).parent
_PAGES = [_FOLDER.parents[1] / "docs" / name for name in ("differences.md", "differences-internals.md")]
_ROWS = [row for page in _PAGES for row in page.read_text("utf-8").splitlines() if row.startswith("|")]
_CALLS = [call for path in sorted((_FOLDER / "calls").glob("*.txt")) for call in read_calls(path)]


def test_table_of_differences_has_at_most_sixty_entries() -> None:
    assert len(DIFFERENCES) <= 60


@pytest.mark.parametrize("difference", [pytest.param(each, id=each.reason[:60]) for each in DIFFERENCES])
def test_documentation_page_contains_each_difference(difference: Difference) -> None:
    assert [row for row in _ROWS if difference.line in row]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("number", [pytest.param(n, id=each.reason[:60]) for n, each in enumerate(DIFFERENCES)])
@on_the_simulation
def test_listed_difference_occurs_in_a_call(runner: CallRunner, number: int) -> None:
    difference = DIFFERENCES[number]
    candidates = [call for call in _CALLS if difference.matches(call.source)]
    assert candidates
    for call in candidates:
        outcomes = [runner.run_call(driver, call.source) for driver in (PYMONGO, GMONGO)]
        used_numbers = explaining_differences(call.source, *outcomes)
        if used_numbers is not None and number in used_numbers:
            return
    raise AssertionError(f"none of {len(candidates)} calls shows the difference")
