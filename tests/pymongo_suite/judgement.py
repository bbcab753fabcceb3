"""What fails with gmongo and passes with PyMongo, and whether the table of differences explains it."""

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
"""By the names of tests."""


@dataclass(frozen=True)
class Difference:
    """A line of the table: a test that passes with PyMongo only.

    :param test: its name.
    :param kind: one of :data:`KINDS`.
    :param what: private: what the test wants of PyMongo's inside, which its failure names; or which the test itself
        names, and words of its failures. Wording: PyMongo's text, and gmongo's, both in the failure; there may be more
        of gmongo's. Documented: a page, words of a line in it, and words of the failures.
    """

    test: str
    kind: str
    what: tuple[str, ...]

    def problem(self) -> str | None:
        """What is wrong with the line itself."""
        least = {"private": 1, "wording": 2, "documented": 3}.get(self.kind)
        if least is None or len(self.what) < least or not all(self.what):
            return f"{self.test}: a line has a kind of {KINDS}, and its one, two or three texts"
        if self.kind == "documented" and self.what[1] not in (_ROOT / self.what[0]).read_text("utf-8"):
            return f"{self.test}: {self.what[0]} does not say {self.what[1]!r}"
        return None

    def explains(self, outcome: Outcome, source: str) -> bool:
        """Whether a failure is the one that the line is about.

        :param source: the text of the test itself.
        """
        name, *failures = self.what
        if self.kind == "wording":
            return name in outcome.text and _any(failures, outcome)
        if self.kind == "documented":
            return _any(failures[1:], outcome)
        return name in source and _any(failures, outcome) if failures else name in outcome.text


def _any(texts: Iterable[str], outcome: Outcome) -> bool:
    return any(text in outcome.text for text in texts)


def differences() -> dict[str, Difference]:
    """The table, by the names of tests."""
    lines = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {test: Difference(test, kind, tuple(what)) for test, kind, *what in lines}


def differing(pymongo: Outcomes, gmongo: Outcomes) -> dict[str, Outcome]:
    """The tests that pass with PyMongo, and do not with gmongo, with what comes of them with gmongo."""
    missing = Outcome("failed", "the test was not run")
    found = {name: gmongo.get(name, missing) for name, outcome in pymongo.items() if outcome.kind == "passed"}
    return {name: outcome for name, outcome in found.items() if outcome.kind != "passed"}


def module_of(test: str) -> str:
    """The module with a test, from its name: ``test_cursor``, ``mockupdb.test_auth``."""
    package, prefix, name = test.partition("test_")
    return package + prefix + name.partition(".")[0]


def file_of(test: str) -> str:
    """The file with a test, from its name."""
    return f"test/{module_of(test).replace('.', '/')}.py"


def source_of(test: str, folder: Path) -> str:
    """The text of a test, with its decorators; empty for one that a generator makes.

    :param folder: with the package ``test``.
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


def unexplained(found: Outcomes, table: Mapping[str, Difference], folder: Path) -> list[str]:
    """The tests among the differing ones that no line of the table explains.

    :param folder: with the package ``test``.
    """
    return [
        name
        for name, outcome in found.items()
        if name not in table or not table[name].explains(outcome, source_of(name, folder))
    ]


def obsolete(seen: Iterable[str], passed: Iterable[str], table: Mapping[str, Difference]) -> list[str]:
    """The tests in the table that pass with gmongo wherever they pass with PyMongo.

    :param seen: the tests that differ on some deployment.
    :param passed: all that pass with gmongo on some deployment.
    """
    return sorted((set(table) & set(passed)) - set(seen))


def unknown(outcomes: Iterable[str], table: Iterable[str]) -> list[str]:
    """The tests in the table whose files were run, and have no such test.

    :param outcomes: the names of all tests that were run.
    """
    names = set(outcomes)
    files = {file_of(name) for name in names}
    return sorted(test for test in table if file_of(test) in files and test not in names)
