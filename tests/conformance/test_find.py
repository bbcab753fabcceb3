"""Tests of ``python -m tests.find``, which prints the tests of a requirement or file, or tests with certain words."""

from __future__ import annotations

import pytest

from tests.conformance.pages import ROOT
from tests.find import main, search

# The tests are in the long tier, because each search reads all test files.
pytestmark = pytest.mark.long


def test_search_for_requirement_returns_tests_with_its_marker() -> None:
    assert "tests/cmap/test_populating.py::test_ready_pool_opens_min_pool_size_connections" in search("CMAP-97")


@pytest.mark.parametrize("file", ["cmap/wait_queue.py", "gmongo/cmap/wait_queue.py", "./gmongo/cmap/wait_queue.py"])
def test_search_for_file_returns_tests_of_its_mutations(file: str) -> None:
    assert {"tests/sdam/test_selection.py", "tests/unit/test_fair_queue.py"} <= set(search(file))


def test_search_for_file_returns_tests_that_import_it() -> None:
    assert "tests/unit/test_truncated_repr.py" in search("_truncated_repr.py")


@pytest.mark.parametrize("words", ["retries back-off", "retries backoff", "Back off, retries"])
def test_search_for_words_returns_tests_with_these_words(words: str) -> None:
    assert "tests/execution/test_prose_transactions.py::test_retries_back_off" in search(words)


def test_search_for_words_returns_tests_of_mutations() -> None:
    assert any(line.endswith("# a new description wakes the first waiter only") for line in search("wakes waiter"))


@pytest.mark.parametrize("query", ["CMAP-97", "sdam/monitor.py", "killed cursor"])
def test_files_and_tests_in_search_results_exist(query: str) -> None:
    lines = search(query)
    assert lines
    for each in (target for line in lines for target in line.partition("#")[0].split()):
        file, _, name = each.partition("::")
        assert name.rpartition("::")[2] in (ROOT / file).read_text("utf-8")


def test_search_without_results_prints_message_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy", "plugh"]) == 1
    assert "no tests found for xyzzy plugh" in capsys.readouterr().out


def test_command_without_query_prints_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "tests.find CMAP-97" in capsys.readouterr().out


def test_long_list_of_results_is_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cursor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("more: add words to the query")
