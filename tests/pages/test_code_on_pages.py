"""The code on the pages is right: what looks like a session of Python is run, other code of Python's is compiled, and
what it imports from gmongo is there.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gmongo

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> Iterator[str]:
    """The blocks of Python on a page, without what they are indented by."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield re.sub(f"^{block['indent']}", "", block["code"], flags=re.MULTILINE)


CASES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page), start=1)
    if ">>>" not in code
]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
SESSIONS = [page for page in PAGES if any(">>> from gmongo import" in code for code in blocks(page))]


@pytest.mark.parametrize("code", CASES)
def test_code_can_be_compiled_and_imports_what_is_there(code: str) -> None:
    tree = ast.parse(f"def page():\n{re.sub('^', '    ', code, flags=re.MULTILINE)}\n")  # where a return is allowed
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gmongo":
            module = importlib.import_module(node.module or "")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("code", [case for case in CASES if "def test_" in str(case.values[0])])
def test_a_file_of_tests_imports_what_it_names(code: str) -> None:
    """It is copied as it is; other code on a page goes on where the page has begun."""
    tree = ast.parse(code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {*gmongo.__all__} <= imported


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.name)
def test_sessions_go_as_they_are_shown(page: Path) -> None:
    session = "\n".join(code for code in blocks(page) if ">>>" in code)
    told: list[str] = []
    example = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(verbose=False).run(example, out=told.append).failed == 0, "".join(told)


def test_the_guides_are_sessions() -> None:
    """They import what they use; a line of a session on another page does not."""
    guides = {"tutorial", "crud", "documents", "aggregation", "indexes", "transactions", "gridfs", "change-streams"}
    assert {*guides, "upgrading"} <= {page.stem for page in SESSIONS}


def test_upgrading_has_a_section_for_each_version() -> None:
    changes, upgrading = (
        re.findall(r"^## (\S+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        for path in ("CHANGELOG.md", "docs/upgrading.md")
    )
    assert upgrading == changes


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_what_is_there(page: Path) -> None:
    links = LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_page_of_the_package_links_to_no_files() -> None:
    """They are not where packages are shown."""
    assert LINK.findall((ROOT / "docs" / "package.md").read_text(encoding="utf-8")) == []


def test_the_site_has_all_pages() -> None:
    listed = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()
    assert [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in {*listed, "index", "package"}] == []
