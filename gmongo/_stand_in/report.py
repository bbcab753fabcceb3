"""The table of ``python -m gmongo --check``."""

from __future__ import annotations

import os
from typing import TextIO

from gmongo._stand_in.asked import Asked

_HEAD = ("name", "there", "asked for by")
_MOST = 3  # modules named in a line
_LIMITS = (
    "Seen are the names of modules, and attributes that gmongo's objects do not have, in the code that ran. Not seen "
    "are names that code reads from a class itself, or replaces there, and what code that did not run would ask for"
)


def write(asked: Asked, missing: dict[str, str], stream: TextIO) -> None:
    """Write a line for each name, those that are absent first; with :mod:`rich`, if it is installed.

    :param missing: those that are absent and in PyMongo, with the names that they have there.
    """
    title = f"process {os.getpid()} asked for {len(asked.names)} names of pymongo and gridfs; {len(missing)} missing"
    there = dict.fromkeys(asked.refused, "to be named only")
    there |= {name: "no" if name in missing else "not in PyMongo either" for name in asked.absent}
    names = sorted(asked.names, key=lambda name: (name not in missing, name not in asked.absent, name))
    rows = [(missing.get(name, name), there.get(name, "yes"), _places(asked.names[name])) for name in names]
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


def _places(modules: set[str]) -> str:
    named = sorted(modules)
    return ", ".join(named[:_MOST]) + (f" and {len(named) - _MOST} more" if len(named) > _MOST else "")
