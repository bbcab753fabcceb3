"""What came of a run, by part: for programs, and for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gevent

LIMIT = 300.0
"""Seconds in which a case ends on any deployment that answers."""
_SILENT = 3


class Outcome(Enum):
    """What came of a case."""

    PASSED = "passed"
    SKIPPED = "skipped"
    DIFFERS = "differs"
    """From the simulation, or from what MongoDB documents: a candidate for a change of the simulation."""
    FAILED = "failed"


class Skip(Exception):
    """A case cannot run here; its text says why."""


class Differs(Exception):
    """A case shows a difference; its text says which."""


class SilentError(Exception):
    """The deployment no longer answers."""


class Entry(NamedTuple):
    """A case."""

    part: str
    name: str
    outcome: Outcome
    reason: str


class Report:
    """All cases of a run.

    :param facts: about the deployment and the run.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.entries: list[Entry] = []
        self._late = 0  # cases in a row that have not ended

    def add(self, part: str, name: str, outcome: Outcome, reason: str = "") -> None:
        """Note what came of a case."""
        self.entries.append(Entry(part, name, outcome, reason))

    @contextmanager
    def case(self, part: str, name: str) -> Iterator[list[str]]:
        """Note what comes of the block, which may add remarks.

        :raises SilentError: as some before, it does not end.
        """
        remarks: list[str] = []
        limit = gevent.Timeout(LIMIT)
        late, self._late = self._late, 0
        try:
            with limit:
                yield remarks
        except gevent.Timeout as timeout:
            if timeout is not limit:
                raise
            self.add(part, name, Outcome.FAILED, f"it has not ended within {LIMIT:.0f} seconds")
            self._late = late + 1
            if self._late == _SILENT:
                raise SilentError(
                    f"the last {_SILENT} cases have not ended: the deployment no longer answers"
                ) from None
        except Skip as reason:
            self.add(part, name, Outcome.SKIPPED, str(reason))
        except Differs as reason:
            self.add(part, name, Outcome.DIFFERS, str(reason))
        except Exception as error:
            self.add(part, name, Outcome.FAILED, f"{type(error).__name__}: {error}")
        else:
            self.add(part, name, Outcome.PASSED, "; ".join(remarks))

    def has_failed(self) -> bool:
        """Whether a case has."""
        return any(entry.outcome is Outcome.FAILED for entry in self.entries)

    def summary(self) -> dict[str, Any]:
        """The numbers of each part, why cases were skipped, and every case that differs or fails."""
        parts: dict[str, Any] = {}
        for entry in self.entries:
            part = parts.setdefault(entry.part, {each.value: 0 for each in Outcome} | {"reasons": Counter()})
            part[entry.outcome.value] += 1
            if entry.outcome is Outcome.SKIPPED:
                part["reasons"][entry.reason] += 1
        return parts

    def lines(self) -> Iterator[str]:
        """The summary, for a terminal."""
        for name, part in self.summary().items():
            yield f"{name}: " + ", ".join(f"{part[each.value]} {each.value}" for each in Outcome)
            yield from (f"    {count} skipped: {_short(why)}" for why, count in part["reasons"].most_common(8))
        for entry in self.entries:
            if entry.outcome is Outcome.FAILED:
                yield f"failed: {entry.part}: {entry.name}\n    {_short(entry.reason)}"

    def write(self, folder: Path) -> None:
        """Write ``report.json`` and ``report.html``."""
        folder.mkdir(parents=True, exist_ok=True)
        cases = [entry._replace(outcome=entry.outcome.value)._asdict() for entry in self.entries]  # type: ignore[arg-type]
        content = {"facts": self.facts, "parts": self.summary(), "cases": cases}
        (folder / "report.json").write_text(json.dumps(content, indent=1), "utf-8")
        (folder / "report.html").write_text(self._page(), "utf-8")

    def _page(self) -> str:
        title = f"gmongo on {self.facts.get('deployment', 'a deployment')}"
        parts = self.summary()
        counts = [[name, *(part[each.value] for each in Outcome)] for name, part in parts.items()]
        reasons = [[name, n, why] for name, part in parts.items() for why, n in part["reasons"].most_common()]
        return "\n".join(
            [
                f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>{_STYLE}',
                f"<h1>{escape(title)}</h1>",
                _table("The run", ["", ""], [[*each] for each in self.facts.items()]),
                _table("What ran", ["part", *(each.value for each in Outcome)], counts),
                _table("What failed", _COLUMNS, self._of(Outcome.FAILED)),
                _table("What differs from the simulation or the documentation", _COLUMNS, self._of(Outcome.DIFFERS)),
                _table("What passed, with a remark", _COLUMNS, self._of(Outcome.PASSED)),
                _table("What was skipped, and why", ["part", "cases", "reason"], reasons),
                "</html>\n",
            ]
        )

    def _of(self, outcome: Outcome) -> list[list[Any]]:
        found = [entry for entry in self.entries if entry.outcome is outcome and entry.reason]
        return [[entry.part, entry.name, entry.reason] for entry in found]


_COLUMNS = ["part", "case", "what"]
_STYLE = """<style>body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .6em;text-align:left;vertical-align:top;
overflow-wrap:anywhere}</style>"""


def _table(title: str, head: list[str], rows: list[list[Any]]) -> str:
    if not rows:
        return f"<h2>{title}</h2><p>Nothing.</p>"
    lines = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    heads = "".join(f"<th>{each}</th>" for each in head)
    return f"<h2>{title}</h2><table><tr>{heads}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _short(text: str) -> str:
    return text.splitlines()[0][:300] if text else text
