"""Tests of ``differences.tsv`` and of the functions that read and use the table.

``tox -e pymongo`` runs PyMongo's tests.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from textwrap import dedent

from tests.pymongo_suite.differences import Difference, differences, unexplained_tests
from tests.pymongo_suite.jobs import Outcome
from tests.support.cases import with_cases

FAILED = Outcome("failed", "AttributeError: 'Cursor' object has no attribute '_data'")
TEST = "test_cursor.TestCursor.test_batch_size"


def table_of(kind: str, *texts: str) -> dict[str, Difference]:
    return {TEST: Difference(TEST, kind, texts)}


def test_table_is_sorted_and_valid() -> None:
    table = differences()
    assert [problem for line in table.values() if (problem := line.problem()) is not None] == []
    assert list(table) == sorted(table)


@with_cases
def test_line_explains_failure_if_failure_contains_its_texts(tmp_path: Path, line: list[str], explained: bool) -> None:
    table = table_of(*line) if line else {}
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_cursor.py").write_text(
        dedent("""
            class TestCursor:
                @patched("_of_its_decorator")
                def test_batch_size(self):
                    self._of_this_test()

                def test_other(self):
                    self._of_another_test()
        """)
    )
    assert unexplained_tests({TEST: FAILED}, table, tmp_path) == ([] if explained else [TEST])


@with_cases
def test_invalid_line_of_table_has_problem(kind: str, texts: list[str]) -> None:
    line = Difference(TEST, kind, tuple(texts))
    assert line.problem() is not None


def test_numbers_that_pymongo_tests_change_exist_in_gmongo() -> None:
    private = importlib.import_module("tests.pymongo_suite.private_names")
    assert all(hasattr(owner, name) for owner, name in private._INITIAL_VALUES)
