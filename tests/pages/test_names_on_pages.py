"""Tests that the documentation pages list all keys of statistics, and all extras."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.status.schema import _STATE_WITH_TEXT
from gmongo.status.summary import summary
from gmongo.testing import Deployment
from tests.support.programs import run_python

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEY_PATTERN = re.compile(r"`([A-Za-z_]+)`")
PROGRAMS = ("gmongo", "gmongo.testing", "gmongo.status", "gmongo.stable_api")


def table(page: str, heading: str) -> str:
    """Return the rows of the first table below a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = text[text.index(heading) :].splitlines()
    first = next(number for number, row in enumerate(rows) if row.startswith("|"))
    end = next(number for number in range(first, len(rows)) if not rows[number].startswith("|"))
    return "\n".join(rows[first:end])


def first_column(text: str) -> list[str]:
    return [name for row in text.splitlines()[2:] for name in KEY_PATTERN.findall(row.split("|")[1])]


def keys(nested_value: Any) -> Iterator[str]:
    """Yield the string keys of nested dictionaries and lists, without the suffix ``?``."""
    if isinstance(nested_value, Mapping):
        for key, value in nested_value.items():
            if isinstance(key, str):
                yield key.removesuffix("?")
            yield from keys(value)
    elif isinstance(nested_value, (list, tuple)):
        for each in nested_value:
            yield from keys(each)


def test_pages_list_keys_of_pool_and_retry_statistics() -> None:
    with Deployment.replica_set(1) as deployment, MongoClient(deployment.uri) as client:
        client.t.c.find_one()
        (pool,), retries = client.pool_stats(), client.retry_stats()
    assert first_column(table("pool.md", "## Fields of `pool_stats()`")) == list(pool)
    assert first_column(table("retries.md", "### Statistics")) == list(retries)


def test_page_lists_keys_of_process_state() -> None:
    listed_keys = set(KEY_PATTERN.findall(table("telemetry.md", "### The keys of the JSON")))
    silent_process = {"process": 1, "error": "does not answer", "clients": []}
    known_keys = {*keys(_STATE_WITH_TEXT), *keys(summary([silent_process])), "summary", "processes"}
    assert known_keys <= listed_keys
    assert listed_keys <= known_keys | {"appName"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_of_program_contains_no_markup(program: str) -> None:
    completed = run_python("-m", program, "--help")
    assert completed.returncode == 0
    assert "usage:" in completed.stdout
    assert not re.search(r":\w+( \w+)?:|``", completed.stdout), completed.stdout


def test_readme_and_package_page_state_same_speed() -> None:
    speed_pattern = re.compile(r"\*\*Little CPU time\*\*: (.+? of the CPU time)")
    readme, package = (
        speed_pattern.search(path.read_text(encoding="utf-8")) for path in (ROOT / "README.md", DOCS / "package.md")
    )
    assert readme is not None
    assert package is not None
    assert readme.groups() == package.groups()


def test_package_page_names_all_extras() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert set(first_column(table("package.md", "Extras:"))) == set(settings["options.extras_require"])
