"""Report of a run in JSON and HTML."""

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

CASE_TIMEOUT = 300.0
"""Timeout of a case in seconds."""
_MAX_TIMEOUTS = 3


class Outcome(Enum):
    """Outcome of a case."""

    PASSED = "passed"
    SKIPPED = "skipped"
    DIFFERS = "differs"
    """Difference from the simulation or the documentation, perhaps a fault of the simulation."""
    FAILED = "failed"


class Skip(Exception):
    """Raised by a case that cannot run on this deployment. The text of the error is the reason."""


class DifferenceError(Exception):
    """Raised by a case whose outcomes differ. The text of the error describes the difference."""


class SilentError(Exception):
    """Raised if the deployment no longer replies to commands, to end the current part of the run."""


class Entry(NamedTuple):
    """A row of the report, which contains the outcome of one case."""

    part: str
    name: str
    outcome: Outcome
    reason: str


class Report:
    """Report with the outcomes of all cases of a run.

    :param facts: Properties of the deployment and of the run that the report shows.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.entries: list[Entry] = []
        self._consecutive_timeouts = 0  # number of consecutive timeouts up to the latest case

    def add(self, part: str, name: str, outcome: Outcome, reason: str = "") -> None:
        self.entries.append(Entry(part, name, outcome, reason))

    @contextmanager
    def case(self, part: str, name: str) -> Iterator[list[str]]:
        """Add the outcome of the case that the block runs.

        The block may add remarks for the report to the yielded list.

        :raises SilentError: Three consecutive cases have timed out.
        """
        remarks: list[str] = []
        limit = gevent.Timeout(CASE_TIMEOUT)
        consecutive_timeouts, self._consecutive_timeouts = self._consecutive_timeouts, 0
        try:
            with limit:
                yield remarks
        except gevent.Timeout as timeout:
            if timeout is not limit:
                raise
            self.add(part, name, Outcome.FAILED, f"the case has not ended within {CASE_TIMEOUT:.0f} seconds")
            self._consecutive_timeouts = consecutive_timeouts + 1
            if self._consecutive_timeouts == _MAX_TIMEOUTS:
                raise SilentError(
                    f"the last {_MAX_TIMEOUTS} cases have not ended: the deployment no longer answers"
                ) from None
        except Skip as reason:
            self.add(part, name, Outcome.SKIPPED, str(reason))
        except DifferenceError as reason:
            self.add(part, name, Outcome.DIFFERS, str(reason))
        except Exception as error:
            self.add(part, name, Outcome.FAILED, f"{type(error).__name__}: {error}")
        else:
            self.add(part, name, Outcome.PASSED, "; ".join(remarks))

    def has_failed(self) -> bool:
        """Return True if a case has failed."""
        return any(entry.outcome is Outcome.FAILED for entry in self.entries)

    def summary(self) -> dict[str, Any]:
        """Return, for each part, the number of cases by outcome, and the number of skipped cases by
        reason.
        """
        parts: dict[str, Any] = {}
        for entry in self.entries:
            part = parts.setdefault(entry.part, {each.value: 0 for each in Outcome} | {"reasons": Counter()})
            part[entry.outcome.value] += 1
            if entry.outcome is Outcome.SKIPPED:
                part["reasons"][entry.reason] += 1
        return parts

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary that the program prints."""
        for name, part in self.summary().items():
            yield f"{name}: " + ", ".join(f"{part[each.value]} {each.value}" for each in Outcome)
            yield from (
                f"    {count} skipped: {_shortened(reason)}" for reason, count in part["reasons"].most_common(8)
            )
        for entry in self.entries:
            if entry.outcome is Outcome.FAILED:
                yield f"failed: {entry.part}: {entry.name}\n    {_shortened(entry.reason, 3000)}"

    def write(self, folder: Path) -> None:
        """Write ``report.json`` and ``report.html`` to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        cases = [entry._replace(outcome=entry.outcome.value)._asdict() for entry in self.entries]  # type: ignore[arg-type]
        content = {"facts": self.facts, "parts": self.summary(), "cases": cases}
        (folder / "report.json").write_text(json.dumps(content, indent=1), "utf-8")
        (folder / "report.html").write_text(self._page(), "utf-8")

    def _page(self) -> str:
        title = f"gmongo on {self.facts.get('deployment', 'a deployment')}"
        parts = self.summary()
        counts = [[name, *(part[each.value] for each in Outcome)] for name, part in parts.items()]
        reasons = [[name, n, reason] for name, part in parts.items() for reason, n in part["reasons"].most_common()]
        return "\n".join(
            [
                f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>{_STYLE}',
                f"<h1>{escape(title)}</h1>",
                _table("The run", ["", ""], [[*each] for each in self.facts.items()]),
                _table("Parts", ["part", *(each.value for each in Outcome)], counts),
                _table("Failed cases", _COLUMNS, self._rows_with_reason(Outcome.FAILED)),
                _table(
                    "Differences from the simulation or the documentation",
                    _COLUMNS,
                    self._rows_with_reason(Outcome.DIFFERS),
                ),
                _table("Passed cases with remarks", _COLUMNS, self._rows_with_reason(Outcome.PASSED)),
                _table("Skipped cases", ["part", "cases", "reason"], reasons),
                "</html>\n",
            ]
        )

    def _rows_with_reason(self, outcome: Outcome) -> list[list[Any]]:
        entries = [entry for entry in self.entries if entry.outcome is outcome and entry.reason]
        return [[entry.part, entry.name, entry.reason] for entry in entries]


_COLUMNS = ["part", "case", "reason"]
_STYLE = """<style>body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .6em;text-align:left;vertical-align:top;
overflow-wrap:anywhere}</style>"""


def _table(title: str, headings: list[str], rows: list[list[Any]]) -> str:
    if not rows:
        return f"<h2>{title}</h2><p>None.</p>"
    lines = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    header_row = "".join(f"<th>{each}</th>" for each in headings)
    return f"<h2>{title}</h2><table><tr>{header_row}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _shortened(text: str, length: int = 300) -> str:
    return text.splitlines()[0][:length] if text else text
