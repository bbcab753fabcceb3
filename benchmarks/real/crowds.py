"""CPU time and memory of many greenlets on one pool, many clients, many databases, and many idle connections."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.processes import WorkerFailed, run_python
from benchmarks.real.deployments import deployment

#: For each measurement, the numbers of greenlets, clients, databases or connections.
SIZES = {
    "greenlets on 100 connections": (1000, 2000, 5000, 10_000),
    "clients opened and closed": (100, 200, 500, 1000),
    "databases": (1000, 2000, 5000, 10_000),
    "idle connections": (50, 100, 200, 400),
}
_CONTENDERS = ("gmongo", "pymongo")
_TIMEOUT = 300.0  # seconds


def measure(report_progress: Callable[[str], Any]) -> dict[str, Any]:
    """Run each measurement with each size and contender in a separate process.

    Return the two numbers that each process prints, by measurement, contender and size.
    """
    results: dict[str, Any] = {}
    with deployment("standalone") as uri:
        for number, (name, sizes) in enumerate(SIZES.items()):
            results[name] = {contender: {} for contender in _CONTENDERS}
            for size in sizes:
                for contender in _CONTENDERS:
                    report_progress(f"{size} {name}: {contender}")
                    arguments = ["-m", "benchmarks.real.crowds_worker", contender, uri, str(number), str(size)]
                    try:
                        result = run_python(arguments, _TIMEOUT)
                    except WorkerFailed as failure:
                        print(f"{contender}: {failure}", file=sys.stderr)
                        result = None
                    results[name][contender][str(size)] = result
    return results
