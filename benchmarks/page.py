"""Write the main tables of a run into the result pages.

Each generated part of a page is between two marks. All other text is handwritten.

``performance.md`` has parts from two runs: a run of gmongo, PyMongo and the baseline, and a run of
all contenders. ``concurrency.md`` contains the service tables. ``python -m benchmarks.report`` prints
all tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import contest, latency, operations, service
from benchmarks.record import Record
from benchmarks.sheets import Sheet, failures, sheets_of

PAGE_NAME = "performance.md"
SHOWN_TABLES = (operations.TABLE, contest.TABLE)
#: The page shows each operation with this number of greenlets.
SHOWN_GREENLET_COUNT = 10


class PagePart(NamedTuple):
    """Part of a page between two marks.

    :param name: the name of the part, which both marks contain.
    :param plot: the file name of the plot.
    :param description: the description of the plot.
    """

    name: str
    plot: str
    description: str


MEASURED_PART = PagePart("measured", "performance.svg", "Ratios of CPU time, and throughput with many greenlets")
CONTENDERS_PART = PagePart("contenders", "contenders.svg", "CPU time per operation and latency of each client")


def part_of(record: Record) -> PagePart:
    """Return the part of the page that shows the results of a run."""
    return CONTENDERS_PART if any(record.tables.get(name) for name in (contest.TABLE, latency.TABLE)) else MEASURED_PART


def write(record: Record, directory: Path) -> Path:
    """Write results into ``performance.md``, and service tables into an existing ``concurrency.md``.

    :returns: the path of ``performance.md``, which the function creates if the page is missing.
    :raises ValueError: a page lacks a mark.
    """
    page = directory / PAGE_NAME
    text = page.read_text() if page.exists() else _empty_page()
    part = part_of(record)
    page.write_text(replace_part(text, "\n".join(results(record)), part.name))
    guide = directory / "concurrency.md"
    if record.tables.get(service.TABLE) and guide.exists():
        guide.write_text(replace_part(guide.read_text(), "\n".join(_tables(record, [service.TABLE])), service.TABLE))
    return page


def replace_part(text: str, content: str, name: str) -> str:
    """Return `text` with `content` as the new text between the marks of the part `name`.

    :raises ValueError: the text lacks a mark, or the marks are in the wrong order.
    """
    begin_mark, end_mark = marks(name)
    before, begin, rest = text.partition(begin_mark)
    _old, end, after = rest.partition(end_mark)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {begin_mark!r} and {end_mark!r}, in this order")
    return f"{before}{begin}\n{content}\n{end}{after}"


def marks(name: str) -> tuple[str, str]:
    """Return the mark at the beginning and the mark at the end of a part."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def results(record: Record) -> Iterator[str]:
    """Yield the lines of the part that shows a run."""
    part = part_of(record)
    yield from ("", f"![{part.description}]({part.plot})", "")
    yield ", ".join(f"{name} {version}" for name, version in record.versions.items()) + "."
    yield "Settings: " + ", ".join(f"{name} {value}" for name, value in record.settings.items()) + "."
    yield from _tables(_without_hidden_rows(record), SHOWN_TABLES)
    for line in failures(record.rows()):
        yield from ("", f"**Failed**: {line}")
    yield ""


def _without_hidden_rows(record: Record) -> Record:
    """Return a record without the rows of operations that the page does not show."""
    rows = record.tables.get(operations.TABLE, [])
    rows = [row for row in rows if row.greenlets == SHOWN_GREENLET_COUNT and "+" not in row.name]
    return record._replace(tables={**record.tables, operations.TABLE: rows})


def _tables(record: Record, names: Iterable[str]) -> Iterator[str]:
    for sheet in sheets_of(record, names):
        yield from ("", f"### {sheet.title}", "", *markdown(sheet))
    yield ""


def _empty_page() -> str:
    return "\n".join(
        ["# Performance", "", *(mark for part in (CONTENDERS_PART, MEASURED_PART) for mark in marks(part.name)), ""]
    )


def markdown(sheet: Sheet) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield _line(sheet.head)
    yield "|---|" + "---:|" * (len(sheet.head) - 1)
    for group in sheet.groups:
        for line in group:
            yield _line(line)


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
