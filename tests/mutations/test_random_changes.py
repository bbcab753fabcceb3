"""Tests that a random change applies to a file after edits, and that hard-coded test IDs exist."""

from __future__ import annotations

from tests.mutations import random_changes
from tests.mutations.mutation import ROOT
from tests.mutations.random_changes import draw_changes

SOURCES = {
    name: f"def f(a):\n    b = 'ä{name}' if a > 1 else 2\n" + "    g(a)\n" * 20 for name in ("a.py", "cmap/b.py")
}


def test_random_change_can_be_applied_after_other_changes_of_file() -> None:
    for each in draw_changes(SOURCES, 42, 4):
        before = SOURCES[each.file]
        after = each.apply("import this\n" + before)
        assert after is not None and after.startswith("import this\ndef") and after != "import this\n" + before
        assert each.apply("nothing of it") is None


def test_hard_coded_test_ids_name_existing_tests() -> None:
    for name in random_changes._SOURCE_CODE_TESTS + random_changes._COMPARISONS:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text("utf-8")
