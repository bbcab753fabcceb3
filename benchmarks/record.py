"""Results of a benchmark run, and the conversion of the results to and from JSON."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rounds import Row

PACKAGES = ("pymongo", "gevent", "greenlet")
_PROCESSORS = Path("/proc/cpuinfo")


class Record(NamedTuple):
    """Results of a run.

    :param versions: the versions of Python and of packages, and a description of the machine.
    :param settings: the settings of the run.
    :param tables: the rows of each table.
    """

    versions: dict[str, str]
    settings: dict[str, Any]
    tables: dict[str, list[Row]]

    def rows(self) -> list[Row]:
        """Return the rows of all tables."""
        return [row for table in self.tables.values() for row in table]


def versions() -> dict[str, str]:
    """Return the versions of Python and of packages, and a description of the machine."""
    result = {"python": platform.python_version(), "gmongo": "of this checkout"}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed"
    result["machine"] = f"{sys.platform} {platform.machine()}, {os.cpu_count()} processors{_processor()}"
    return result


def _processor() -> str:
    """Return the model of the processor in parentheses, or an empty text if the model is unknown."""
    lines = _PROCESSORS.read_text().splitlines() if _PROCESSORS.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({models[0]})" if models else ""


def as_json(record: Record) -> dict[str, Any]:
    """Return the record as an object for JSON, with the numbers of each round."""
    return {
        "versions": record.versions,
        "settings": record.settings,
        "tables": {name: [row._asdict() for row in table] for name, table in record.tables.items()},
    }


def from_json(stored: dict[str, Any]) -> Record:
    """Return the record from which :func:`as_json` made `stored`."""
    tables = {name: [Row(**row) for row in table] for name, table in stored["tables"].items()}
    return Record(stored["versions"], stored["settings"], tables)
