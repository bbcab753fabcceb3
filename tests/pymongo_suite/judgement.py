"""What fails with gmongo and passes with PyMongo, and whether the table of differences explains it."""

from __future__ import annotations

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
    :param what: private: what the test wants of PyMongo's inside, as its failure or its file names it. Wording:
        PyMongo's text, and gmongo's. Documented: a page and words of a line in it.
    """

    test: str
    kind: str
    what: tuple[str, ...]

    def problem(self) -> str | None:
        """What is wrong with the line itself."""
        if self.kind not in KINDS or len(self.what) != (1 if self.kind == "private" else 2):
            return f"{self.test}: a line has a kind of {KINDS}, and one text if private, else two"
        if self.kind == "documented" and self.what[1] not in (_ROOT / self.what[0]).read_text("utf-8"):
            return f"{self.test}: {self.what[0]} does not say {self.what[1]!r}"
        return None

    def explains(self, outcome: Outcome, source: str) -> bool:
        """Whether a failure is the one that the line is about.

        :param source: the text of the file with the test.
        """
        if self.kind == "documented":
            return True
        return self.what[-1] in outcome.text or (self.kind == "private" and self.what[0] in source)


def differences() -> dict[str, Difference]:
    """The table, by the names of tests."""
    lines = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {test: Difference(test, kind, tuple(what)) for test, kind, *what in lines}


def differing(pymongo: Outcomes, gmongo: Outcomes) -> dict[str, Outcome]:
    """The tests that pass with PyMongo, and do not with gmongo, with what comes of them with gmongo."""
    missing = Outcome("failed", "the test was not run")
    found = {name: gmongo.get(name, missing) for name, outcome in pymongo.items() if outcome.kind == "passed"}
    return {name: outcome for name, outcome in found.items() if outcome.kind != "passed"}


def file_of(test: str) -> str:
    """The file with a test, from its name."""
    return f"test/{test.partition('.Test')[0].replace('.', '/')}.py"


def unexplained(found: Outcomes, table: Mapping[str, Difference], folder: Path) -> list[str]:
    """The tests among the differing ones that no line of the table explains.

    :param folder: with the package ``test``.
    """
    unknown = []
    for name, outcome in found.items():
        file = folder / file_of(name)
        source = file.read_text("utf-8") if file.exists() else ""
        if name not in table or not table[name].explains(outcome, source):
            unknown.append(name)
    return unknown


def obsolete(seen: Iterable[str], run: Iterable[str], table: Mapping[str, Difference]) -> list[str]:
    """The tests in the table that were run, and pass with gmongo wherever they pass with PyMongo.

    :param seen: the tests that differ on some deployment.
    :param run: all that PyMongo passed on some deployment.
    """
    return sorted((set(table) & set(run)) - set(seen))
