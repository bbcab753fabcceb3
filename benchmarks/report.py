"""``python -m benchmarks.report run.json``: print all tables of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.record import Record, from_json
from benchmarks.sheets import MISSED, REACHED, Sheet, failures, sheets

_STYLES = {REACHED: f"[green]{REACHED}[/green]", MISSED: f"[bold red]{MISSED}[/bold red]"}


def show(record: Record, console: Console) -> None:
    """Print all tables of a run, the versions, and the failures."""
    for sheet in sheets(record):
        console.print(table(sheet))
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    console.print(versions, style="dim", soft_wrap=True, highlight=False)
    for line in failures(record.rows()):
        console.print(f"[red]failed[/red] {escape(line)}", soft_wrap=True)


def table(sheet: Sheet) -> Table:
    """Return a table for the terminal. Most tables fit into 80 columns."""
    result = Table(title=sheet.title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for position, title in enumerate(sheet.head):
        result.add_column(
            _two_line_title(title),
            justify="right" if position else "left",
            no_wrap=position > 0 and len(sheet.head) < 9 and "·" not in sheet.title,
        )
    for group in sheet.groups:
        for line in group:
            result.add_row(*(_with_mark_style(text) for text in line), end_section=line is group[-1])
    return result


def _two_line_title(title: str) -> str:
    """Return the title of a column. Split the title into two lines if this makes the column narrower."""
    return title.replace(" / ", " /\n").replace("greenlets", "green-\nlets").replace(" µs", "\nµs")


def _with_mark_style(text: str) -> str:
    mark = _STYLES.get(text[-1:])
    return escape(text[:-2]) + mark if mark else escape(text.replace("+", "\n+"))


if __name__ == "__main__":
    show(from_json(json.loads(Path(sys.argv[1]).read_text())), Console())
