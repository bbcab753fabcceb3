"""Tests of random mutations: how changes are drawn, which tests are chosen, and which outcome a run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mutations import __main__, named_trials, trials
from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.random_changes import RandomChange, choose_tests, draw_changes
from tests.mutations.recording import Recording, Test
from tests.mutations.trials import NotRun, Outcome

SOURCES = {
    name: f"def f(a):\n    b = 'ä{name}' if a > 1 else 2\n" + "    g(a)\n" * 20 for name in ("a.py", "cmap/b.py")
}


def test_draws_with_equal_seeds_return_equal_changes() -> None:
    assert draw_changes(SOURCES, 10, 1) == draw_changes(SOURCES, 10, 1) != draw_changes(SOURCES, 10, 2)


def test_draw_spreads_changes_over_lines() -> None:
    lines = [(each.file, each.line) for each in draw_changes(SOURCES, 14, 3)]
    assert len(set(lines)) == 14
    assert sum(file == "a.py" for file, _ in lines) == 7
    assert len(draw_changes(SOURCES, 1000, 3)) == 42


def test_random_change_can_be_applied_after_other_changes_of_file() -> None:
    for each in draw_changes(SOURCES, 42, 4):
        before = SOURCES[each.file]
        after = each.apply("import this\n" + before)
        assert after is not None and after.startswith("import this\ndef") and after != "import this\n" + before
        assert each.apply("nothing of it") is None


def recording(tests: list[Test], monkeypatch: pytest.MonkeyPatch) -> Recording:
    result = Recording({test.name: test for test in tests})
    monkeypatch.setattr(result, "tests_of_line", lambda file, line: sorted(tests))
    return result


def line_in_function() -> RandomChange:
    source = (ROOT / "gmongo/wire/tls.py").read_text("utf-8").splitlines()
    return RandomChange("wire/tls.py", 1 + source.index("            sent = self._try_to_send(data)"), "", "", "")


def test_cheapest_test_of_each_test_function_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [
        Test(0.3, 10, "x.py::a[1]"),
        Test(0.1, 10, "x.py::a[2]"),
        Test(0.2, 10, "y.py::b"),
        Test(9.0, 1, "y.py::long"),
    ]
    known = recording(tests, monkeypatch)
    assert choose_tests(known, line_in_function(), 0.4) == (["x.py::a[2]", "y.py::b"], 4)
    assert choose_tests(known, line_in_function(), 60) == (["x.py::a[2]", "x.py::a[1]", "y.py::b"], 4)


def test_tests_of_nearby_branch_precede_cheaper_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    branch, cheap = Test(0.2, 10, "x.py::branch"), Test(0.1, 10, "y.py::cheap")
    drawn = line_in_function()
    known = Recording({test.name: test for test in (branch, cheap)})
    lines = {drawn.line: [branch, cheap], drawn.line + 2: [branch]}
    monkeypatch.setattr(known, "tests_of_line", lambda file, line: lines.get(line, []))
    assert choose_tests(known, drawn, 0.25) == (["x.py::branch"], 2)


def test_tests_that_read_source_code_of_files_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "tests/unit/test_exception_causes.py::test_raise_in_exception_handler_has_from_clause"
    known = recording([Test(0.1, 10, "tests/tls/test_x.py::own")], monkeypatch)
    known.tests[text] = Test(0.2, 0, text)
    assert choose_tests(known, line_in_function(), 1) == ([text, "tests/tls/test_x.py::own"], 2)


@pytest.mark.parametrize("arguments", [["--only", "nosuch"], ["--random", "3", "--only", "nosuch"]])
def test_command_with_unknown_name_prints_message(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mutations", *arguments])
    assert __main__.main() == 2
    assert "nosuch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "progress", "output", "expected"),
    [
        (0, ["begun a", "ended a"], "", Outcome()),
        (1, ["begun a", "failed a", "ended a"], "", Outcome("a")),
        (1, ["begun a", "ended a", "begun b"], "", Outcome("b", timed_out=True)),
        (1, [], "ERROR collecting", Outcome("(not even imported)")),
        (2, [], "", Outcome("(not even imported)")),
        (4, [], "ImportError while loading conftest", Outcome("(not even imported)")),
        (5, [], "", Outcome()),
    ],
)
def test_exit_code_and_log_determine_outcome(code: int, progress: list[str], output: str, expected: Outcome) -> None:
    assert trials.outcome_of(code, progress, output) == expected


def test_usage_error_of_pytest_raises_not_run() -> None:
    with pytest.raises(NotRun, match="file not found"):
        trials.outcome_of(4, [], "file not found")


def row(**changed: Any) -> Mutation:
    fields = {
        "name": "x1", "what": "", "file": "wire/tls.py", "old": "_CHUNK_SIZE = 64 * 1024\n",
        "new": "", "tests": "unit/test_reply",
    }  # fmt: skip
    return Mutation(**{**fields, **changed})


@pytest.mark.parametrize(
    "broken",
    [row(old="no such text"), row(file="no_such_file.py"), row(tests="NO-1"), row(new="(")],
    ids=["anchor", "file", "requirement", "syntax"],
)
def test_invalid_mutation_is_not_tried_and_file_is_unchanged(broken: Mutation, tmp_path: Path) -> None:
    path = tmp_path / "gmongo/wire/tls.py"
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / "gmongo/wire/tls.py").read_text("utf-8"), "utf-8")
    trial = named_trials.attempt("wire", broken, tmp_path, True, frozenset())
    assert trial.outcome == named_trials.NOT_TRIED
    assert path.read_text("utf-8") == (ROOT / "gmongo/wire/tls.py").read_text("utf-8")
    assert "| all | 1 | 0 | 0 | 0 | 1 |" in named_trials.report([trial])


def test_mutation_with_failing_target_is_not_tried(tmp_path: Path) -> None:
    trial = named_trials.attempt("wire", row(), tmp_path, True, frozenset(["tests/unit/test_reply.py"]))
    assert trial.outcome == named_trials.NOT_TRIED and "tests/unit/test_reply.py" in trial.why
