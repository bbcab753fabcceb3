"""The table of stalls: the time for which a driver blocks the event loop while the driver processes a large batch.

Each turn runs ``benchmarks.stall_worker`` in a new process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.processes import run_python
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "stall"
READ, FIRST = "read 15 MB: longest stall", "read 15 MB: first document"
ITERATE, INSERT = "list() of 15 MB: longest stall", "insert 10,000: longest stall"
#: For each quantity in the result of a worker, the name of its table row.
NAMES = {"read": READ, "first": FIRST, "iterate": ITERATE, "insert": INSERT}
DRIVERS = ("gmongo", "pymongo")


def rows(settings: Settings) -> Iterator[Row]:
    """Measure gmongo and PyMongo in interleaved rounds.

    Each turn of a driver measures all quantities of the table.
    """
    if TABLE not in settings.only:
        return
    settings.show_progress("stalls of the event loop")

    def measure(driver: str) -> Any:
        arguments = [
            "-m",
            "benchmarks.stall_worker",
            "--contender",
            driver,
            "--port",
            str(settings.servers.port("standalone")),
        ]
        return run_python(arguments, settings.timeout)

    drivers = [name for name in DRIVERS if name in settings.contenders]
    results_of, failures = take_turns(drivers, settings.fresh_rounds, measure)
    for quantity, name in NAMES.items():
        numbers = {driver: [each[quantity] for each in results] for driver, results in results_of.items()}
        yield Row(name, None, "ms", numbers, failures if name == READ else {})
