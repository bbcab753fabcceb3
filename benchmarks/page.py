"""The page of results: what is between two marks is written from a run, everything else is kept by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.record import Record
from benchmarks.sheets import Sheet, failures, sheets

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NAME, PLOT = "performance.md", "performance.svg"
_NEW = f"# Performance\n\n{BEGIN}\n{END}\n"


def write(record: Record, directory: Path) -> Path:
    """Put a run's results into the page, which is made if it is not there.

    :returns: the page.
    :raises ValueError: the page lacks a mark.
    """
    page = directory / NAME
    text = page.read_text() if page.exists() else _NEW
    page.write_text(renewed(text, "\n".join(results(record))))
    return page


def renewed(text: str, between: str) -> str:
    """A text with something else between its marks.

    :raises ValueError: it lacks a mark.
    """
    before, begin, rest = text.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {BEGIN!r} and {END!r}, in this order")
    return f"{before}{BEGIN}\n{between}\n{END}{after}"


def results(record: Record) -> Iterator[str]:
    """The lines between the marks."""
    yield from ("", f"![Ratios of CPU time, and throughput of a crowd]({PLOT})", "")
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
