"""How differences are judged, and that the table is in order. PyMongo's tests themselves run by ``tox -e pymongo``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pymongo_suite.__main__ import judged, report
from tests.pymongo_suite.jobs import Outcome
from tests.pymongo_suite.judgement import Difference, differences, differing, obsolete, unexplained

PASSED, SKIPPED = Outcome("passed"), Outcome("skipped", "no server")
FAILED = Outcome("failed", "AttributeError: 'Cursor' object has no attribute '_data'")
TEST = "test_cursor.TestCursor.test_batch_size"


def table_of(kind: str, *what: str) -> dict[str, Difference]:
    return {TEST: Difference(TEST, kind, what)}


def test_the_lines_of_the_table_are_in_order() -> None:
    table = differences()
    assert [problem for line in table.values() if (problem := line.problem()) is not None] == []
    assert list(table) == sorted(table)


@pytest.mark.parametrize("outcome", [FAILED, SKIPPED, None])
def test_what_passes_with_pymongo_must_pass_with_gmongo(outcome: Outcome | None) -> None:
    gmongo = {} if outcome is None else {TEST: outcome}
    assert set(differing({TEST: PASSED}, gmongo)) == {TEST}
    assert differing({TEST: FAILED}, gmongo) == differing({TEST: SKIPPED}, gmongo) == {}
    assert differing({TEST: PASSED}, {TEST: PASSED}) == {}


@pytest.mark.parametrize(
    ("table", "explained"),
    [
        ({}, False),
        (table_of("private", "_data"), True),
        (table_of("private", "_other"), False),
        (table_of("private", "_in_the_source"), True),
        (table_of("wording", "theirs", "has no attribute"), True),
        (table_of("wording", "theirs", "ours"), False),
        (table_of("documented", "README.md", "X.509 without TLS"), True),
    ],
)
def test_a_line_explains_the_failure_that_it_names(
    tmp_path: Path, table: dict[str, Difference], explained: bool
) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_cursor.py").write_text("client._in_the_source()")
    assert unexplained({TEST: FAILED}, table, tmp_path) == ([] if explained else [TEST])


def test_a_line_whose_test_passes_is_wrong(tmp_path: Path) -> None:
    table = table_of("private", "_data")
    assert obsolete([TEST], [TEST], table) == []
    assert obsolete([], [], table) == []
    assert obsolete([], [TEST], table) == [TEST]
    results = {("pymongo", "sharded"): {TEST: PASSED}, ("gmongo", "sharded"): {TEST: PASSED}}
    assert judged(results, table, tmp_path) == [f"{TEST} passes: its line is to go"]


@pytest.mark.parametrize(
    "line",
    [
        Difference(TEST, "other", ("_data",)),
        Difference(TEST, "private", ()),
        Difference(TEST, "wording", ("one",)),
        Difference(TEST, "documented", ("README.md", "what no page says")),
    ],
)
def test_a_line_that_is_not_in_order_is_wrong(line: Difference) -> None:
    assert line.problem() is not None


def test_the_report_has_both_drivers_beside_each_other() -> None:
    results = {("pymongo", "sharded"): {TEST: PASSED}, ("gmongo", "sharded"): {TEST: FAILED}}
    assert "| test_cursor | 1 | 0 | 0 | 0 | 1 | 0 |" in list(report(results))
