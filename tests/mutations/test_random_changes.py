"""Tests of random mutations: how changes are drawn, which tests are chosen, and which outcome a run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mutations import named_trials, random_changes, trials
from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.random_changes import draw_changes
from tests.mutations.trials import Outcome
from tests.support.cases import with_cases

SOURCES = {
    name: f"def f(a):\n    b = 'ä{name}' if a > 1 else 2\n" + "    g(a)\n" * 20 for name in ("a.py", "cmap/b.py")
}


def test_random_change_can_be_applied_after_other_changes_of_file() -> None:
    for each in draw_changes(SOURCES, 42, 4):
        before = SOURCES[each.file]
        after = each.apply("import this\n" + before)
        assert after is not None and after.startswith("import this\ndef") and after != "import this\n" + before
        assert each.apply("nothing of it") is None


def test_tests_that_may_detect_any_change_exist() -> None:
    for name in (*random_changes._READ_ALL_TEXTS, random_changes._READS_DEFAULTS):
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text("utf-8")


@with_cases
def test_exit_code_and_log_determine_outcome(
    code: int, progress: list[str], output: str, failed: str, timed_out: bool
) -> None:
    assert trials.outcome_of(code, progress, output) == Outcome(failed, timed_out)


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
    trial = named_trials.attempt("wire", broken, tmp_path, frozenset())
    assert trial.outcome == named_trials.NOT_TRIED
    assert path.read_text("utf-8") == (ROOT / "gmongo/wire/tls.py").read_text("utf-8")
