"""``python -m benchmarks.retired``: processor instructions of an operation, and which libraries execute them.

Unlike time, they hardly depend on what else the machine does. Linux's ``perf`` counts them, where the machine lets it:
in a worker process that does few operations and in one that does many; the difference is theirs alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.circumstances import CIRCUMSTANCES, Circumstance
from benchmarks.processes import ROOT, CannedServers, Measurement, worker_arguments

OPERATIONS = ("find_one", "insert_one", "update_one", "delete_one", "find_100")
CONTENDERS = ("gmongo", "pymongo", "floor")
FEW, MANY = 2_000, 8_000
_SECONDS = 300
_PERIOD = 100_003  # instructions for each sample; a prime, so that no loop keeps step with it
_LIBRARIES = {
    "python": re.compile(r"^(libpython|python3)"),
    "bson": re.compile(r"^_cbson|^_datetime|^_struct"),
    "gevent": re.compile(r"gevent|corecext|greenlet"),
}


def measure(wanted: Measurement, port: int) -> dict[str, float]:
    """Instructions of one operation, in user mode and in the kernel."""
    few, many = (_counted(wanted._replace(repeats=count), port) for count in (FEW, MANY))
    return {mode: (many[mode] - few[mode]) / (_done(wanted, MANY) - _done(wanted, FEW)) for mode in many}


def shares(wanted: Measurement, port: int) -> dict[str, float]:
    """Which part of the instructions in user mode the libraries have, by name."""
    few, many = (_sampled(wanted._replace(repeats=count), port) for count in (FEW, MANY))
    more = {library: many[library] - few[library] for library in many}
    return {library: samples / sum(more.values()) for library, samples in more.items()}


def _done(wanted: Measurement, count: int) -> int:
    """How many operations a worker does that is asked for `count`: it warms up with a fifth of them."""
    each = count // wanted.greenlets
    return wanted.greenlets * (each + each // 5)


def _counted(wanted: Measurement, port: int) -> dict[str, int]:
    report = _run(["stat", "-x", ",", "-e", "instructions:u,instructions:k"], wanted, port)
    found = re.findall(r"^(\d+),[^,]*,instructions:([uk])", report, re.MULTILINE)
    if len(found) != 2:
        raise SystemExit(f"this machine does not count instructions: {report[-300:]}")
    return {{"u": "user", "k": "kernel"}[mode]: int(count) for count, mode in found}


def _sampled(wanted: Measurement, port: int) -> Counter[str]:
    with TemporaryDirectory() as directory:
        file = str(Path(directory, "samples"))
        _run(["record", "-q", "-e", "instructions:u", "-c", str(_PERIOD), "-o", file], wanted, port)
        report = _perf(["report", "-i", file, "--sort", "dso", "--stdio", "-n", "-g", "none"]).stdout
    samples: Counter[str] = Counter()
    for count, name in re.findall(r"^\s*[\d.]+%\s+(\d+)\s+(\S+)", report, re.MULTILINE):
        library = next((each for each, pattern in _LIBRARIES.items() if pattern.search(name)), "other")
        samples[library] += int(count)
    return samples


def _run(perf: Sequence[str], wanted: Measurement, port: int) -> str:
    return _perf([*perf, sys.executable, "-m", "benchmarks.worker", *worker_arguments(wanted, port)]).stderr


def _perf(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["perf", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"perf failed: {done.stderr.strip()[-300:]}")
    return done


def survey(operations: Sequence[str], greenlets: int) -> list[dict[str, Any]]:
    """A row for each operation, which may have a circumstance after a ``+``."""
    rows: list[dict[str, Any]] = []
    with CannedServers() as servers:
        for full in operations:
            operation, _, circumstance = full.partition("+")
            server = (CIRCUMSTANCES[circumstance] if circumstance else Circumstance()).server
            row: dict[str, Any] = {"operation": full, "greenlets": greenlets}
            for contender in CONTENDERS:
                if contender == "floor" and circumstance:
                    continue
                wanted = Measurement(contender, operation, greenlets, FEW, circumstance or None)
                counted = measure(wanted, servers.port(server))
                row[contender] = {**counted, "shares": shares(wanted, servers.port(server))}
            rows.append(row)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for people."""
    result = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    titles = ("operation", "gmongo /\nPyMongo", "gmongo /\nfloor", "PyMongo /\nfloor", *CONTENDERS)
    for position, title in enumerate(titles):
        result.add_column(title, justify="right" if position else "left")
    for row in rows:
        total = {each: row[each]["user"] + row[each]["kernel"] for each in CONTENDERS if each in row}
        pairs = ("gmongo", "pymongo"), ("gmongo", "floor"), ("pymongo", "floor")
        ratios = [f"{total[one] / total[other]:.2f}" if other in total else "-" for one, other in pairs]
        result.add_row(
            row["operation"], *ratios, *(f"{total[each]:,.0f}" if each in total else "-" for each in CONTENDERS)
        )
    return result


def profile(rows: Sequence[dict[str, Any]]) -> Table:
    """What the instructions are spent on."""
    result = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    places = (*_LIBRARIES, "other", "kernel")
    for title in ("operation", "contender", *places):
        result.add_column(title, justify="left" if title in ("operation", "contender") else "right")
    for row in rows:
        for each in CONTENDERS:
            if each in row:
                of = {place: row[each]["user"] * share for place, share in row[each]["shares"].items()}
                of["kernel"] = row[each]["kernel"]
                result.add_row(row["operation"], each, *(f"{of.get(place, 0):,.0f}" for place in places))
    return result


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retired", description=__doc__)
    parser.add_argument("--only", default=",".join(OPERATIONS), help="operations, such as find_one,find_one+tls")
    parser.add_argument("--greenlets", type=int, default=10)
    parser.add_argument("--json", metavar="FILE", help="write the numbers to a file")
    given = parser.parse_args()
    if shutil.which("perf") is None:
        raise SystemExit("there is no perf here (Debian has it as the package linux-perf)")
    rows = survey(given.only.split(","), given.greenlets)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    console = Console()
    console.print(table(rows))
    console.print(profile(rows))


if __name__ == "__main__":
    main()
