"""Tests of the code on documentation pages.

Python sessions print the shown output, other code is valid, and imported names of gmongo exist.
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
CODE_BLOCK_PATTERN = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)


def code_blocks(page: Path) -> Iterator[str]:
    """Yield the Python code blocks of a page, without their indentation."""
    for block in CODE_BLOCK_PATTERN.finditer(page.read_text(encoding="utf-8")):
        yield re.sub(f"^{block['indent']}", "", block["code"], flags=re.MULTILINE)


CASES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(code_blocks(page), start=1)
    if ">>>" not in code
]
FILE_LINK_PATTERN = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
SESSION_PAGES = [page for page in PAGES if any(">>> from gmongo import" in code for code in code_blocks(page))]


@pytest.mark.parametrize("code", CASES)
def test_code_has_valid_syntax_and_its_imports_exist(code: str) -> None:
    # The code of a page may be the body of a function, for example code with a `return`.
    tree = ast.parse(f"def page():\n{re.sub('^', '    ', code, flags=re.MULTILINE)}\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gmongo":
            module = importlib.import_module(node.module or "")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("code", [case for case in CASES if "def test_" in str(case.values[0])])
def test_example_test_file_imports_its_names_of_gmongo(code: str) -> None:
    """A user copies a whole test file, so the file must import all names.

    Other code may use names that earlier code of the page has imported.
    """
    tree = ast.parse(code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported_names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {*gmongo.__all__} <= imported_names


@pytest.mark.parametrize("page", SESSION_PAGES, ids=lambda page: page.name)
def test_python_session_prints_output_that_page_shows(page: Path) -> None:
    session = "\n".join(code for code in code_blocks(page) if ">>>" in code)
    output: list[str] = []
    example = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(verbose=False).run(example, out=output.append).failed == 0, "".join(output)


def test_guides_contain_python_sessions_that_import_gmongo() -> None:
    guides = {"tutorial", "crud", "documents", "aggregation", "indexes", "transactions", "gridfs", "change-streams"}
    assert {*guides} <= {page.stem for page in SESSION_PAGES}


def test_page_about_upgrading_has_section_for_each_version() -> None:
    changelog_versions, upgrading_versions = (
        re.findall(r"^## (\S+)", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        for path in ("CHANGELOG.md", "docs/upgrading.md")
    )
    assert upgrading_versions == changelog_versions


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_to_which_page_links_exist(page: Path) -> None:
    links = FILE_LINK_PATTERN.findall(CODE_BLOCK_PATTERN.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_package_page_links_to_no_files() -> None:
    """A package index shows the page without the files of the repository."""
    assert FILE_LINK_PATTERN.findall((ROOT / "docs" / "package.md").read_text(encoding="utf-8")) == []


def test_table_of_contents_lists_all_pages() -> None:
    listed = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()
    assert [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in {*listed, "index", "package"}] == []
