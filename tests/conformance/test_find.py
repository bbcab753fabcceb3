"""``python -m tests.find`` leads from a rule, a file or a symptom to tests that are there."""

from __future__ import annotations

import pytest

from tests.conformance.pages import ROOT
from tests.find import found, main

pytestmark = pytest.mark.long  # each question reads all tests


def test_a_rule_leads_to_the_tests_that_prove_it() -> None:
    assert "tests/cmap/test_populating.py::test_a_ready_pool_is_populated_by_itself" in found("CMAP-97")


@pytest.mark.parametrize("file", ["cmap/wait_queue.py", "gmongo/cmap/wait_queue.py", "./gmongo/cmap/wait_queue.py"])
def test_a_file_leads_to_the_tests_that_notice_its_changes(file: str) -> None:
    assert {"tests/sdam/test_selection.py", "tests/unit/test_fair_queue.py"} <= set(found(file))


def test_a_file_leads_to_the_tests_that_import_it() -> None:
    assert "tests/unit/test_short_text.py" in found("_truncated_repr.py")


@pytest.mark.parametrize("words", ["retries back-off", "retries backoff", "Back off, retries"])
def test_words_lead_to_the_tests_that_say_them(words: str) -> None:
    assert "tests/execution/test_prose_transactions.py::test_retries_back_off" in found(words)


def test_words_lead_to_the_faults_that_mutations_make() -> None:
    assert any(line.endswith("# a new description wakes the first waiter only") for line in found("wakes waiter"))


@pytest.mark.parametrize("asked", ["CMAP-97", "sdam/monitor.py", "killed cursor"])
def test_what_is_found_is_there(asked: str) -> None:
    lines = found(asked)
    assert lines
    for each in (target for line in lines for target in line.partition("#")[0].split()):
        file, _, name = each.partition("::")
        assert name.rpartition("::")[2] in (ROOT / file).read_text("utf-8")


def test_what_is_not_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no", "test", "says", "xyzzy"]) == 1
    assert "no test says so: no test says xyzzy" in capsys.readouterr().out


def test_without_a_question_it_says_how_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "tests.find CMAP-97" in capsys.readouterr().out


def test_a_long_answer_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cursor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("more: ask with further words")
