"""Report of ``python -m gmongo --check``."""

from __future__ import annotations

import os
from typing import TextIO

from gmongo._stand_in.import_audit import ImportAudit

_HEAD = ("name", "available", "used by")
_MAX_MODULES = 3  # maximum number of modules in a line
_LIMITS = (
    "The check records names of modules, and absent attributes of gmongo's objects, in code that ran. It does not "
    "record names that code reads from a class or sets in a class, or names in code that did not run"
)


def write_report(record: ImportAudit, missing: dict[str, str], stream: TextIO) -> None:
    """Write a line for each used name, with the absent names first. If :mod:`rich` is installed, write a table."""
    title = f"process {os.getpid()} used {len(record.names)} names of pymongo and gridfs; {len(missing)} missing"
    status = dict.fromkeys(record.refused, "placeholder")
    status |= {name: "no" if name in missing else "not in PyMongo either" for name in record.absent}
    names = sorted(record.names, key=lambda name: (name not in missing, name not in record.absent, name))
    rows = [(missing.get(name, name), status.get(name, "yes"), _module_list(record.names[name])) for name in names]
    try:
        from rich.console import Console
        from rich.table import Column, Table
    except ImportError:
        _write_plain(title, rows, stream)
    else:
        name, *others = _HEAD
        table = Table(Column(name, no_wrap=True), *others, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row, style=None if row[1] == "yes" else "bold red" if row[1] == "no" else "dim")
        Console(file=stream).print(table)
    print(_LIMITS, file=stream)


def _write_plain(title: str, rows: list[tuple[str, str, str]], stream: TextIO) -> None:
    widths = [max(len(row[column]) for row in (_HEAD, *rows)) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *rows)]
    print(title, *(line.rstrip() for line in lines), sep="\n", file=stream)


def _module_list(modules: set[str]) -> str:
    named = sorted(modules)
    return ", ".join(named[:_MAX_MODULES]) + (
        f" and {len(named) - _MAX_MODULES} more" if len(named) > _MAX_MODULES else ""
    )
