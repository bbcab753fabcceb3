"""All that a run has found, as it is written to a file and read from one."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rounds import Ratio, Row
from benchmarks.targets import TARGETS, Target, found

PACKAGES = ("pymongo", "gevent", "greenlet")
_PROCESSORS = Path("/proc/cpuinfo")


class Record(NamedTuple):
    """A run.

    :param versions: what was measured, and on what.
    :param settings: how it was measured.
    :param tables: the rows of each table.
    """

    versions: dict[str, str]
    settings: dict[str, Any]
    tables: dict[str, list[Row]]

    def rows(self) -> list[Row]:
        """Those of all tables."""
        return [row for table in self.tables.values() for row in table]


def versions() -> dict[str, str]:
    """What is measured, and on what."""
    found = {"python": platform.python_version(), "gmongo": "of this checkout"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["machine"] = f"{sys.platform} {platform.machine()}, {os.cpu_count()} processors{_processor()}"
    return found


def _processor() -> str:
    """Which one it is, where the kernel tells."""
    lines = _PROCESSORS.read_text().splitlines() if _PROCESSORS.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({models[0]})" if models else ""


def as_json(record: Record) -> dict[str, Any]:
    """Everything, round by round, and what it means for the targets."""
    rows = record.rows()
    return {
        "versions": record.versions,
        "settings": record.settings,
        "tables": {name: [row._asdict() for row in table] for name, table in record.tables.items()},
        "targets": [
            {**target._asdict(), "found": number and number._asdict(), "reached": _is_reached(target, number)}
            for target in TARGETS
            for number in [found(target, rows)]
        ],
    }


def _is_reached(target: Target, number: Ratio | None) -> bool | None:
    return target.is_reached(number.median) if number else None


def from_json(stored: dict[str, Any]) -> Record:
    """The run that :func:`as_json` had."""
    tables = {name: [Row(**row) for row in table] for name, table in stored["tables"].items()}
    return Record(stored["versions"], stored["settings"], tables)
