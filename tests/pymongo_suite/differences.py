"""The table ``differences.tsv`` explains why some of PyMongo's tests pass only with PyMongo.

Read the table, and compare the table with the outcomes of a run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.pymongo_suite.jobs import Outcome

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
TABLE = _HERE / "differences.tsv"
KINDS = ("private", "wording", "documented")

Outcomes = Mapping[str, Outcome]
"""Outcomes by names of tests."""


@dataclass(frozen=True)
class Difference:
    """A line of ``differences.tsv``, which explains why a test passes only with PyMongo.

    :param test: Name of the test.
    :param kind: One of :data:`KINDS`.
    :param texts: Texts that explain the failure. Their meaning depends on `kind`. For ``private``: a
        private name of PyMongo in the failure, or a private name in the test and words of the
        failure. For ``wording``: the message of PyMongo, and the messages of gmongo in the failure.
        For ``documented``: a documentation page, words of a line in the page, and words of the
        failure.
    """

    test: str
    kind: str
    texts: tuple[str, ...]

    def problem(self) -> str | None:
        """Return a text that says why the line is invalid, or None if the line is valid."""
        min_count = {"private": 1, "wording": 2, "documented": 3}.get(self.kind)
        if min_count is None or len(self.texts) < min_count or not all(self.texts):
            return f"{self.test}: the kind must be one of {KINDS}, with at least one, two or three texts"
        if self.kind == "documented" and self.texts[1] not in (_ROOT / self.texts[0]).read_text("utf-8"):
            return f"{self.test}: {self.texts[0]} does not contain {self.texts[1]!r}"
        return None

    def explains_failure(self, outcome: Outcome, source: str) -> bool:
        """Return True if the line explains the failure of its test.

        :param source: Source code of the test.
        """
        first, *failures = self.texts
        if self.kind == "wording":
            return first in outcome.text and _contains_any(failures, outcome)
        if self.kind == "documented":
            return _contains_any(failures[1:], outcome)
        return first in source and _contains_any(failures, outcome) if failures else first in outcome.text


def _contains_any(texts: Iterable[str], outcome: Outcome) -> bool:
    return any(text in outcome.text for text in texts)


def read_differences() -> dict[str, Difference]:
    """Return the lines of the table, keyed by the names of the tests."""
    lines = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {test: Difference(test, kind, tuple(texts)) for test, kind, *texts in lines}


def outcomes_that_differ(pymongo: Outcomes, gmongo: Outcomes) -> dict[str, Outcome]:
    """Return the tests that pass only with PyMongo, each with its outcome with gmongo."""
    not_run = Outcome("failed", "the test was not run")
    gmongo_outcomes = {name: gmongo.get(name, not_run) for name, outcome in pymongo.items() if outcome.kind == "passed"}
    return {name: outcome for name, outcome in gmongo_outcomes.items() if outcome.kind != "passed"}


def module_of(test: str) -> str:
    """Return the module that the name of a test contains, such as ``test_cursor`` or
    ``mockupdb.test_auth``.
    """
    package, prefix, name = test.partition("test_")
    return package + prefix + name.partition(".")[0]


def file_of(test: str) -> str:
    """Return the path of the file that contains a test."""
    return f"test/{module_of(test).replace('.', '/')}.py"


def source_of(test: str, folder: Path) -> str:
    """Return the source code of a test, including its decorators, or an empty text if the test is
    generated.

    :param folder: Folder with PyMongo's package ``test``.
    """
    file = folder / file_of(test)
    if not file.exists():
        return ""
    text = file.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and test.endswith(f".{node.name}"):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return ""


def unexplained_tests(differing: Outcomes, table: Mapping[str, Difference], folder: Path) -> list[str]:
    """Return the tests whose failure the table does not explain.

    :param differing: The tests that pass only with PyMongo, each with its outcome with gmongo.
    :param folder: Folder with PyMongo's package ``test``.
    """
    return [
        name
        for name, outcome in differing.items()
        if name not in table or not table[name].explains_failure(outcome, source_of(name, folder))
    ]


def obsolete_tests(
    differing_tests: Iterable[str], passed_tests: Iterable[str], table: Mapping[str, Difference]
) -> list[str]:
    """Return the tests with an obsolete line in the table: tests that pass, and differ on no deployment.

    :param differing_tests: Tests that pass only with PyMongo on at least one deployment.
    :param passed_tests: Tests that pass with gmongo on at least one deployment.
    """
    return sorted((set(table) & set(passed_tests)) - set(differing_tests))


def unknown_tests(executed_tests: Iterable[str], table: Iterable[str]) -> list[str]:
    """Return the tests in the table that belong to an executed file, but do not exist in this file.

    :param executed_tests: Names of all executed tests.
    """
    names = set(executed_tests)
    files = {file_of(name) for name in names}
    return sorted(test for test in table if file_of(test) in files and test not in names)
