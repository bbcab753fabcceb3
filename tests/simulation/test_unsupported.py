"""Tests that the documentation page and the code agree with the table of unsupported constructs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gmongo.testing.unsupported import ATLAS, MONGOD, UNSUPPORTED, not_supported

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing-limits.md").read_text("utf-8")


def test_documentation_page_lists_constructs_of_table():
    rows = re.findall(r"^\| (.+) \| (.+) \|$", PAGE.replace("`", ""), re.MULTILINE)
    listed = {construct: engine for constructs, engine in rows for construct in constructs.split(", ")}
    names = {MONGOD: 'engine="mongod"', ATLAS: ATLAS}
    expected = {name: names[engine] for name, engine in UNSUPPORTED.items()}
    assert {name: engine for name, engine in listed.items() if engine in names.values()} == expected


def test_code_refuses_only_constructs_of_table():
    source = "".join(path.read_text("utf-8") for path in (ROOT / "gmongo" / "testing").rglob("*.py"))
    found = set(re.findall(r'not_supported\("([^"]+)"', source))
    assert found <= set(UNSUPPORTED)
    assert {name for name in UNSUPPORTED if not name.startswith("$") or " " in name} <= found


@pytest.mark.parametrize(
    ("construct", "engine"),
    [("$setWindowFields", 'EmbeddedDatabase(engine="mongod")'), ("$search", "MongoDB Atlas")],
)
def test_error_names_unsupported_construct_and_engine_that_supports_it(construct, engine):
    error = not_supported(construct)
    assert error.code == 115
    assert error.message == f"the simulated deployment does not support {construct}; {engine} supports it"
