"""``python -m benchmarks``: measure the contenders, and print tables of ratios with their targets."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import contest, crowd, latency, operations, programs, report, service, stall, start
from benchmarks.processes import CannedServers
from benchmarks.record import Record, as_json, versions
from benchmarks.settings import Settings
from benchmarks.sheets import failures
from benchmarks.worker import CONTENDERS
from benchmarks.workloads import WORKLOADS

ROUNDS, QUICK_ROUNDS = 41, 7
OPERATIONS, QUICK_OPERATIONS = 1000, 500
TABLES = {module.TABLE: module.measure_rows for module in (operations, crowd, stall, start, contest, latency, service)}
STANDARD_SELECTION = [*WORKLOADS, crowd.TABLE, stall.TABLE, start.TABLE]
#: The default of ``--only`` if a contender is not one of the three standard contenders.
PROGRAM_SELECTION = [contest.TABLE, latency.TABLE, service.TABLE]
SELECTABLE = [*STANDARD_SELECTION, *PROGRAM_SELECTION]
ALL = "all"


def _parse_positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _parse_numbers(text: str) -> list[int]:
    return [_parse_positive(part) for part in text.split(",")]


def _make_names_parser(permitted_names: list[str]) -> Callable[[str], list[str]]:
    def parse_names(text: str) -> list[str]:
        selected = permitted_names if text == ALL else text.split(",")
        unknown = [name for name in selected if name not in permitted_names]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(permitted_names)}")
        return [name for name in permitted_names if name in selected]

    return parse_names


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=_parse_positive, help=f"turns of every contender (default {ROUNDS})")
    add("--operations", type=_parse_positive, help=f"find_one operations in a turn (default {OPERATIONS})")
    add("--quick", action="store_true", help=f"rough numbers: {QUICK_ROUNDS} rounds of {QUICK_OPERATIONS} operations")
    add("--only", type=_make_names_parser(SELECTABLE), help=f"rows and tables to measure: {', '.join(SELECTABLE)}")
    add("--greenlets", type=_parse_numbers, help="numbers of greenlets, such as 10,100 (default: depends on the row)")
    contenders = list(programs.CONTENDERS)
    parse_contenders = _make_names_parser(contenders)
    add("--contenders", type=parse_contenders, default=list(CONTENDERS), help=f"{', '.join(contenders)}, or {ALL}")
    add("--timeout", type=_parse_positive, default=120, help="seconds for one turn (default 120)")
    add("--json", type=Path, metavar="FILE", help="write every round's numbers to a file")
    add("--docs", type=Path, metavar="DIRECTORY", help="write performance.md and its plot into this directory")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.operations = options.operations or (QUICK_OPERATIONS if options.quick else OPERATIONS)
    is_standard = set(options.contenders) <= set(CONTENDERS)
    options.only = options.only or (STANDARD_SELECTION if is_standard else PROGRAM_SELECTION)
    absent_tools = {name: tool for name in options.contenders if (tool := programs.missing_tool(name))}
    options.contenders = [name for name in options.contenders if name not in absent_tools]
    options.left_out = [f"{programs.CONTENDERS[name].title} ({tool} is missing)" for name, tool in absent_tools.items()]
    if service.TABLE in options.only:
        services = {name: service.missing_package(name) for name in service.SERVICES}
        options.left_out += [f"{name} ({package} is missing)" for name, package in services.items() if package]
    return options


def _measure(options: argparse.Namespace, show_progress: Callable[[str], Any]) -> Record:
    shared_settings = {name: getattr(options, name) for name in Settings._fields if hasattr(options, name)}
    with CannedServers() as servers:
        settings = Settings(**shared_settings, servers=servers, show_progress=show_progress)
        tables = {name: list(measure_rows(settings)) for name, measure_rows in TABLES.items()}
    shown_settings = {"rounds": options.rounds, "operations": options.operations}
    shown_settings |= {"left out": " and ".join(options.left_out)} if options.left_out else {}
    return Record(versions(), shown_settings, tables)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, measure the contenders, and print the results.

    :param arguments: the command line arguments; None uses the arguments of the process.
    :returns: the exit status, which is 1 if a measurement failed, and otherwise 0.
    """
    command_line = sys.argv[1:] if arguments is None else arguments
    if command_line[:1] == ["--real"]:
        from benchmarks.real.__main__ import main as measure_real_servers

        return measure_real_servers(command_line[1:])
    options = _parse_options(arguments)
    progress = Console(stderr=True)
    record = _measure(options, lambda text: progress.print(text, style="dim"))
    if options.json:
        options.json.write_text(json.dumps(as_json(record), indent=2) + "\n")
    report.print_tables(record)
    for line in options.left_out:
        progress.print(f"left out: {line}")
    if options.docs:
        from benchmarks import plot  # imported here, because only the plots need matplotlib

        plot.write(record, options.docs)
    return 1 if failures(record.rows()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
