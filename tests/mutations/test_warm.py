"""What functions do is exchanged in a process that has imported everything; what runs at import is left to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.trials import Outcome, copy_project
from tests.mutations.warm import RunsAtImport, Warm, exchanged

SOURCE = """
LIMIT = 5
class A:
    field = [n + 1 for n in range(3)]
    def method(self, a=1):
        def inner(): return a + 7
        return inner
    key = lambda self: 8
    class B:
        def deep(self): return 9
def generate(): return (each for each in range(10))
"""


def names(before: str, after: str) -> list[str]:
    codes = (compile(text, "a.py", "exec", dont_inherit=True) for text in (SOURCE, SOURCE.replace(before, after)))
    return [old.co_name for old, _ in exchanged(*codes)]


@pytest.mark.parametrize(
    ("before", "after", "functions"),
    [
        ("return inner", "return None", ["method"]),
        ("a + 7", "a + 6", ["method", "inner"]),
        ("self: 8", "self: 7", ["<lambda>"]),
        ("return 9", "return 8", ["deep"]),
        ("range(10)", "range(9)", ["generate"]),
        ("each for each", "-each for each", ["generate"]),
        ("LIMIT = 5", "LIMIT = 5 ", []),
    ],
)
def test_functions_that_change_are_found(before: str, after: str, functions: list[str]) -> None:
    assert names(before, after) == functions


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 5", "LIMIT = 6"),
        ("a=1", "a=2"),
        ("n + 1", "n"),
        ("range(3)", "range(2)"),
        ("lambda self: 8", "8"),
        ("return a + 7", "return 7"),  # closes over nothing any more, as no closure that is there can do
    ],
)
def test_what_runs_at_import_is_not_exchanged(before: str, after: str) -> None:
    with pytest.raises(RunsAtImport):
        names(before, after)


@pytest.mark.long
def test_tests_see_changes_in_a_process_that_has_imported_everything(tmp_path: Path) -> None:
    root = copy_project(tmp_path / "copy")
    code, name = root / "gmongo/_extra.py", "tests/extra/test_extra.py::test_answer"
    before = "def answer() -> int:\n    return 42\n"
    code.write_text(before, "utf-8")
    (root / "tests/extra").mkdir()
    (root / "tests/extra/test_extra.py").write_text(
        "from gmongo._extra import answer\n\n\ndef test_answer() -> None:\n    assert answer() == 42\n", "utf-8"
    )
    warm = Warm(root, ["extra"])

    def outcome(after: str, seconds: float = 5) -> Outcome:
        code.write_text(after, "utf-8")
        return warm.first_failure("_extra.py", before, {name: 1}, seconds)

    try:
        assert outcome(before) == Outcome()
        assert outcome(before.replace("42", "43")) == Outcome(name)
        assert outcome(before.replace("42", "43"), 0).ran == 0  # its time is over
        assert outcome(before.replace("return 42", "while True: pass")) == Outcome(name, timed_out=True)
        with pytest.raises(RunsAtImport):
            outcome(before + "import this\n")
        assert outcome(before) == Outcome()
    finally:
        warm.close()
