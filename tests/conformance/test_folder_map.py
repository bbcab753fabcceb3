"""Tests that ``tests/README.md`` lists the test folders, and that the listed files exist. Names of
test files are unique, and each module uses the tables of its data file.
"""

from __future__ import annotations

import re

from tests.conformance.pages import TESTS
from tests.support.cases import all_rows

_README = (TESTS / "README.md").read_text("utf-8")
_FOLDERS = {each.name for each in TESTS.iterdir() if each.is_dir() and each.name != "__pycache__"}


def test_readme_lists_every_folder() -> None:
    table = _README.partition("## support")[0]
    named = {match.partition("/")[0] for match in re.findall(r"`([\w/]+)`", table)}
    assert named >= _FOLDERS - {"support"}


def test_files_in_readme_exist() -> None:
    folders = ("", "support/", "gevent/switching/", "differential/", "mutations/")
    for match in re.findall(r"`(?:tests/)?((?:\w+/)*\w+\.py)`|pytest (tests/[\w/]+(?:\.py)?)", _README):
        path = match[0] or match[1].removeprefix("tests/")
        assert any((TESTS / folder / path).exists() for folder in folders), path


def test_names_of_test_files_are_unique() -> None:
    names = [each.name for each in TESTS.rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted(each for each in set(names) if names.count(each) > 1)


def test_each_table_in_data_files_is_used_by_its_module() -> None:
    for path in TESTS.rglob("*.jsonl"):
        module = path.with_suffix(".py")
        tables = {row["table"] for row in all_rows(path) if "table" in row}
        assert not tables or [table for table in tables if table not in module.read_text("utf-8")] == [], path
