"""The table of stalls: how long a driver blocks the event loop during the work on many documents.

Each turn runs ``benchmarks.stall_worker`` in a new process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.processes import run_python
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "stall"
READ_STALL, FIRST_DOCUMENT = "read 15 MB: longest stall", "read 15 MB: first document"
LIST_STALL, INSERT_STALL = "list() of 15 MB: longest stall", "insert 10,000: longest stall"
#: For each quantity in the result of a worker, the name of its table row.
ROW_NAMES = {"read": READ_STALL, "first": FIRST_DOCUMENT, "iterate": LIST_STALL, "insert": INSERT_STALL}
DRIVERS = ("gmongo", "pymongo")


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure gmongo and PyMongo in interleaved rounds, and yield a row of each quantity.

    Each turn of a driver measures all quantities of the table.
    """
    if TABLE not in settings.only:
        return
    settings.show_progress("stalls of the event loop")

    def measure(driver: str) -> Any:
        port = str(settings.servers.port("standalone"))
        arguments = ["-m", "benchmarks.stall_worker", "--contender", driver, "--port", port]
        return run_python(arguments, settings.timeout)

    drivers = [name for name in DRIVERS if name in settings.contenders]
    results_of, failures = take_turns(drivers, settings.fresh_rounds, measure)
    for quantity, name in ROW_NAMES.items():
        numbers = {driver: [each[quantity] for each in results] for driver, results in results_of.items()}
        yield Row(name, None, "ms", numbers, failures if name == READ_STALL else {})
