"""The table for people, and the same numbers for programs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from benchmarks import crowd
from benchmarks.rounds import RATIOS, Cell, Ratio, cost, ratio

TITLE = "Client CPU per operation: median ratio, ± half the range of all rounds"
CROWD_TITLE = f"A crowd on 100 connections, over {crowd.BASE} greenlets: median ratio, ± half the range of all rounds"
CROWD_QUANTITIES: tuple[crowd.Quantity, ...] = ("per_second", "microseconds")
TITLES = {"gmongo": "gmongo", "pymongo": "PyMongo", "floor": "floor"}
PACKAGES = ("pymongo", "gevent", "greenlet")


def versions() -> dict[str, str]:
    """What was measured, and on what."""
    found = {"python": platform.python_version(), "machine": f"{sys.platform} {platform.machine()}"}
    found["gmongo"] = "of this checkout"
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def table(cells: Sequence[Cell], contenders: Sequence[str]) -> Table:
    """One row for each operation and number of greenlets: ratios first, then costs for orientation.

    It fits a terminal of 80 columns.
    """
    pairs = [pair for pair in RATIOS if set(pair) <= set(contenders)]
    result = Table(title=TITLE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    result.add_column("operation", no_wrap=True)
    result.add_column("green-\nlets", justify="right", no_wrap=True)
    for over, under in pairs:
        result.add_column(f"{TITLES[over]} /\n{TITLES[under]}", justify="right", no_wrap=True)
    for name in contenders:
        result.add_column(f"{TITLES[name]}\nµs", justify="right", style="dim", no_wrap=True)
    for cell in cells:
        ratios = [_ratio_text(ratio(cell, *pair)) for pair in pairs]
        costs = [_cost_text(cost(cell, name)) for name in contenders]
        last = cell.greenlets == cells[-1].greenlets
        result.add_row(cell.operation, str(cell.greenlets), *ratios, *costs, end_section=last)
    return result


def crowd_table(measured: crowd.Crowd) -> Table:
    """One row for each contender and size: ratios over the smallest size first, then numbers for orientation."""
    result = Table(title=CROWD_TITLE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    result.add_column("contender", no_wrap=True)
    for title in ("green-\nlets", "throughput", "CPU per\noperation"):
        result.add_column(title, justify="right", no_wrap=True)
    for title in ("operations\n/ s", "µs"):
        result.add_column(title, justify="right", style="dim", no_wrap=True)
    for name, size in measured.results:
        ratios = [_ratio_text(crowd.ratio(measured, name, size, quantity)) for quantity in CROWD_QUANTITIES]
        numbers = [_cost_text(crowd.middle(measured, name, size, quantity)) for quantity in CROWD_QUANTITIES]
        result.add_row(TITLES[name], str(size), *ratios, *numbers, end_section=size == crowd.SIZES[name][-1])
    return result


def _ratio_text(found: Ratio | None) -> str:
    if found is None:
        return "-"
    spread = (found.high - found.low) / 2 / found.median
    return f"[bold]{found.median:.2f}[/bold] [dim]±{spread:.0%}[/dim]"


def _cost_text(found: float | None) -> str:
    return "-" if found is None else f"{found:.0f}"


def failures(cells: Sequence[Cell]) -> list[str]:
    """A line for each failure, with the places where it happened."""
    places: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for name, reason in cell.failures.items():
            places.setdefault((name, reason), []).append(f"{cell.operation} x{cell.greenlets}")
    return [escape(f"{TITLES[name]}: {why} ({', '.join(where)})") for (name, why), where in places.items()]


def crowd_failures(measured: crowd.Crowd) -> list[str]:
    """A line for each size at which a contender failed."""
    return [escape(f"{TITLES[name]}: {why} (crowd x{size})") for (name, size), why in measured.failures.items()]


def as_json(cells: Sequence[Cell], measured: crowd.Crowd, settings: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, round by round."""
    return {
        "versions": versions(),
        "settings": settings,
        "cells": [_cell_json(cell) for cell in cells],
        "crowd": [
            {"contender": name, "greenlets": size, "rounds": [result._asdict() for result in results]}
            for (name, size), results in measured.results.items()
        ],
    }


def _cell_json(cell: Cell) -> dict[str, Any]:
    ratios = {f"{over}/{under}": ratio(cell, over, under) for over, under in RATIOS}
    return {
        "operation": cell.operation,
        "greenlets": cell.greenlets,
        "ratios": {name: found._asdict() for name, found in ratios.items() if found},
        "microseconds": cell.costs,
        "failures": cell.failures,
    }
