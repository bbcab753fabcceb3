"""``python -m benchmarks --real``: measure on real servers, or write the page of earlier results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import programs
from benchmarks.documents import DEPLOYMENT_SUFFIX
from benchmarks.real import crowds, failover, operations, page
from benchmarks.real.deployments import DEPLOYMENTS
from benchmarks.record import versions

FAILOVER, CROWDS = "failover", "crowds"
PARTS = [*DEPLOYMENTS, FAILOVER, CROWDS]


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --real", description=__doc__)
    add = parser.add_argument
    add(
        "--only",
        action="append",
        choices=PARTS,
        help="a part of the measurement. Repeat the option for several parts (default: all)",
    )
    add("--contenders", default=",".join(programs.CONTENDERS), help="names, separated by commas (default: all)")
    add("--rounds", type=int, default=7, help="turns of each contender (default 7)")
    add("--operations", type=int, default=1000, help="find_one operations in a turn (default 1000)")
    add("--failures", type=int, default=20, help="failovers of each kind (default 20)")
    add("--json", type=Path, metavar="FILE", help="write the results to a file")
    add("--page", type=Path, nargs="+", metavar="FILE", help="write docs/performance-real.md from files of --json")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, report_progress: Callable[[str], Any]) -> dict[str, Any]:
    """Measure the selected deployments, failovers and crowds, and return the results.

    After each part, write the results to the file of the option ``--json``, if any.
    """

    def save() -> None:
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")

    contenders = [name for name in options.contenders.split(",") if not programs.missing_tool(name)]
    only = options.only or PARTS
    results: dict[str, Any] = {"versions": versions(), "rounds": options.rounds, "operations": {}}
    for name in [name for name in DEPLOYMENTS if name in only]:
        supported_contenders = [each for each in contenders if each != "floor" or name == "standalone"]
        measured = operations.measure(name, supported_contenders, options.rounds, options.operations, report_progress)
        results["operations"][name + DEPLOYMENT_SUFFIX] = {kind: each.as_json() for kind, each in measured.items()}
        save()
    if FAILOVER in only:
        results[FAILOVER] = failover.measure(options.failures, report_progress)
        save()
    if CROWDS in only:
        results[CROWDS] = crowds.measure(report_progress)
        save()
    return results


def main(arguments: list[str] | None = None) -> int:
    """Measure on real servers, or write the page from stored result files. Return the exit status."""
    options = _parse_options(arguments)
    if options.page:
        page.write([json.loads(file.read_text()) for file in options.page])
        return 0
    results = measure(options, lambda text: print(text, file=sys.stderr, flush=True))
    print("\n".join(page.lines([results])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
