"""Tests that the conformance pages agree with the tests, and tests of the program that writes and
checks the pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.pages import differences_of_pages, find_proofs, pages, read_rows, render_page

SOURCE = """
import pytest
from pytest import mark

@pytest.mark.requirement("X-1", "X-2")
@pytest.mark.parametrize("number", [1])
def test_one(number): ...

@mark.requirement("X-3")
class TestThings:
    @pytest.mark.requirement("X-4")
    def test_two(self): ...

    def no_test(self): ...

@pytest.mark.requirement("X-9")
def no_test(): ...
"""
PAGE = """# X

| ID | Level | What it demands | Proof |
|---|---|---|---|
| X-1 | MUST | one | |
| X-5 | MAY | five | none: it is a permission |
| X-6 | MUST | six | |
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(SOURCE)
    (tmp_path / "docs" / "x.md").write_text(PAGE)
    return tmp_path


def test_rendered_page_lists_proofs(project: Path) -> None:
    text = render_page(PAGE, find_proofs(project / "tests"))
    assert [row.proof for row in read_rows(text)] == [
        "[tests/test_x.py::test_one](../../tests/test_x.py)",
        "none: it is a permission",
        "**not proven**",
    ]
    assert text.startswith("# X\n\n| ID |")
    assert render_page(text, find_proofs(project / "tests")) == text


def test_check_returns_each_error_of_page_and_markers(project: Path) -> None:
    found = differences_of_pages(project / "docs", project / "tests")
    assert found == [
        "x.md: X-6 has neither a proof nor a reason",
        "x.md: out of date; run python -m tests.conformance.pages --write",
        "tests/test_x.py::test_one: no page knows X-2",
        "tests/test_x.py::TestThings::test_two: no page knows X-3",
        "tests/test_x.py::TestThings::test_two: no page knows X-4",
    ]


def test_pages_agree_with_markers_of_tests() -> None:
    assert differences_of_pages() == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_requirements_of_page_are_consecutive(page: Path) -> None:
    rows = read_rows(page.read_text("utf-8"))
    prefix = rows[0].id.split("-")[0]
    assert [row.id for row in rows] == [f"{prefix}-{number:02}" for number in range(1, len(rows) + 1)]
    assert all(row.level in ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY") for row in rows)
