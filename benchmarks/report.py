"""``python -m benchmarks.report run.json``: print all tables of a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.page import markdown
from benchmarks.record import Record, from_json
from benchmarks.sheets import failures, sheets


def print_tables(record: Record) -> None:
    """Print the tables of a run as Markdown, and then the versions and the failures."""
    for sheet in sheets(record):
        print(f"### {sheet.title}", "", *markdown(sheet), "", sep="\n")
    print(", ".join(f"{name} {version}" for name, version in record.versions.items()))
    for line in failures(record.rows()):
        print(f"failed: {line}")


if __name__ == "__main__":
    print_tables(from_json(json.loads(Path(sys.argv[1]).read_text())))
