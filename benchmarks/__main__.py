"""``python -m benchmarks``: measure, and print one table of ratios."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from benchmarks import crowd, report
from benchmarks.processes import Measurement, Result, canned_server, run_worker
from benchmarks.rounds import Cell, run_cell
from benchmarks.worker import CONTENDERS
from benchmarks.workloads import WORKLOADS

GREENLETS = [1, 10, 100, 1000]
ROUNDS, QUICK_ROUNDS = 7, 3
OPERATIONS, QUICK_OPERATIONS = 5000, 1000
NAMES = [*WORKLOADS, crowd.NAME]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _numbers(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _names(known: list[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return [name for name in known if name in chosen]

    return names


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=_positive, help=f"turns of every contender (default {ROUNDS})")
    add("--operations", type=_positive, help=f"find_one operations in a turn (default {OPERATIONS})")
    add("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds of {QUICK_OPERATIONS}: rough numbers")
    add("--only", type=_names(NAMES), default=NAMES, help=", ".join(NAMES))
    add("--greenlets", type=_numbers, default=GREENLETS, help="such as 10,100")
    add("--contenders", type=_names(list(CONTENDERS)), default=list(CONTENDERS), help=", ".join(CONTENDERS))
    add("--listener", action="store_true", help="register a command listener with the drivers")
    add("--timeout", type=_positive, default=120, help="seconds for one turn (default 120)")
    add("--json", type=Path, metavar="FILE", help="write every round's numbers to a file")
    options = parser.parse_args()
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.operations = options.operations or (QUICK_OPERATIONS if options.quick else OPERATIONS)
    return options


def _cells(options: argparse.Namespace, port: int, console: Console) -> Iterator[Cell]:
    for name in options.only:
        if name not in WORKLOADS:
            continue
        count = max(1, round(options.operations * WORKLOADS[name].share))
        for greenlets in options.greenlets:
            console.print(f"{name}, {greenlets} greenlets", style="dim")

            def measure(contender: str, name: str = name, count: int = count, n: int = greenlets) -> float:
                wanted = Measurement(contender, name, n, count, options.listener)
                return run_worker(wanted, port, options.timeout).microseconds

            yield run_cell(name, greenlets, options.contenders, options.rounds, measure)


def _crowd(options: argparse.Namespace, port: int, console: Console) -> crowd.Crowd:
    if crowd.NAME not in options.only:
        return crowd.Crowd({}, {})
    console.print(crowd.NAME, style="dim")

    def measure(contender: str, greenlets: int) -> Result:
        wanted = Measurement(contender, "find_one", greenlets, options.operations * crowd.SHARE, options.listener)
        return run_worker(wanted, port, options.timeout)

    return crowd.run(options.contenders, options.rounds, measure)


def main() -> int:
    """Run what the command line asks for.

    :returns: the exit status: 1 when a contender failed somewhere, else 0.
    """
    options = _options()
    progress = Console(stderr=True)
    with canned_server() as port:
        cells = list(_cells(options, port, progress))
        measured_crowd = _crowd(options, port, progress)
    console = Console()
    if cells:
        console.print(report.table(cells, options.contenders))
    if measured_crowd.results:
        console.print(report.crowd_table(measured_crowd))
    measured = ", ".join(f"{name} {found}" for name, found in report.versions().items())
    console.print(measured, style="dim", soft_wrap=True)
    settings = {"rounds": options.rounds, "operations": options.operations, "listener": options.listener}
    if options.json:
        options.json.write_text(json.dumps(report.as_json(cells, measured_crowd, settings), indent=2) + "\n")
    failed = report.failures(cells) + report.crowd_failures(measured_crowd)
    for line in failed:
        console.print(f"[red]failed[/red] {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
