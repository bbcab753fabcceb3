"""The page of results: what is between two marks is written from a run, everything else is kept by hand.

There are two such parts, as there are two runs: gmongo beside PyMongo and the floor, and beside all other contenders.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import contest, latency
from benchmarks.record import Record
from benchmarks.sheets import Sheet, failures, sheets

NAME = "performance.md"


class Part(NamedTuple):
    """A part of the page.

    :param name: in its marks.
    :param plot: the file of its plot.
    :param shows: what that shows.
    """

    name: str
    plot: str
    shows: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: begin -->"

    @property
    def end(self) -> str:
        return f"<!-- {self.name}: end -->"


MEASURED = Part("measured", "performance.svg", "Ratios of CPU time, and throughput of a crowd")
CONTENDERS = Part("contenders", "contenders.svg", "CPU time of all clients, and their latencies")
_NEW = "# Performance\n\n" + "".join(f"{part.begin}\n{part.end}\n" for part in (CONTENDERS, MEASURED))


def part_of(record: Record) -> Part:
    """The part that a run belongs to."""
    return CONTENDERS if any(record.tables.get(name) for name in (contest.TABLE, latency.TABLE)) else MEASURED


def write(record: Record, directory: Path) -> Path:
    """Put a run's results into the page, which is made if it is not there.

    :returns: the page.
    :raises ValueError: the page lacks a mark.
    """
    page = directory / NAME
    text = page.read_text() if page.exists() else _NEW
    page.write_text(renewed(text, "\n".join(results(record)), part_of(record)))
    return page


def renewed(text: str, between: str, part: Part) -> str:
    """A text with something else between the marks of a part.

    :raises ValueError: it lacks a mark.
    """
    before, begin, rest = text.partition(part.begin)
    _old, end, after = rest.partition(part.end)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {part.begin!r} and {part.end!r}, in this order")
    return f"{before}{begin}\n{between}\n{end}{after}"


def results(record: Record) -> Iterator[str]:
    """The lines between the marks."""
    part = part_of(record)
    yield from ("", f"![{part.shows}]({part.plot})", "")
    yield ", ".join(f"{name} {found}" for name, found in record.versions.items()) + "."
    yield "Settings: " + ", ".join(f"{name} {value}" for name, value in record.settings.items()) + "."
    for sheet in sheets(record):
        yield from ("", f"### {sheet.title}", "", *markdown(sheet))
    for line in failures(record.rows()):
        yield from ("", f"**Failed**: {line}")
    yield ""


def markdown(sheet: Sheet) -> Iterator[str]:
    """A sheet as a table of Markdown."""
    yield _line(sheet.head)
    yield "|---|" + "---:|" * (len(sheet.head) - 1)
    for group in sheet.groups:
        for line in group:
            yield _line(line)


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
