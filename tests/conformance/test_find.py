"""Tests of ``python -m tests.find``, which prints the tests of a requirement or file, or tests with certain words."""

from __future__ import annotations

import pytest

from tests.conformance.pages import ROOT
from tests.find import search

# The tests are in the long tier, because each search reads all test files.
pytestmark = pytest.mark.long


@pytest.mark.parametrize("file", ["cmap/wait_queue.py", "gmongo/cmap/wait_queue.py", "./gmongo/cmap/wait_queue.py"])
def test_search_for_file_returns_tests_of_its_mutations(file: str) -> None:
    assert {"tests/sdam/test_selection.py", "tests/unit/test_fair_queue.py"} <= set(search(file))


@pytest.mark.parametrize("words", ["retries back-off", "retries backoff", "Back off, retries"])
def test_search_for_words_returns_tests_with_these_words(words: str) -> None:
    assert "tests/execution/test_prose_transactions.py::test_retries_back_off" in search(words)


@pytest.mark.parametrize("query", ["CMAP-97", "sdam/monitor.py", "killed cursor"])
def test_files_and_tests_in_search_results_exist(query: str) -> None:
    lines = search(query)
    assert lines
    for each in (target for line in lines for target in line.partition("#")[0].split()):
        file, _, name = each.partition("::")
        assert name.rpartition("::")[2] in (ROOT / file).read_text("utf-8")
