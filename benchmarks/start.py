"""The table of start costs: the CPU time of the import of a driver, and the memory of idle clients.

Each number is measured in a new interpreter.
"""

from __future__ import annotations

import compileall
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.processes import ROOT, run_python
from benchmarks.rounds import Row, take_turns
from benchmarks.settings import Settings

TABLE = "start"
FIRST_CLIENT, FURTHER_CLIENT = "memory of import and a client", "memory of a further client"
DRIVERS = ("gmongo", "pymongo")


class Import(NamedTuple):
    """Import whose CPU time is measured in a new interpreter.

    :param before: the Python code that runs before the measurement.
    :param measured: the Python code whose CPU time is measured.
    """

    before: str
    measured: str


IMPORT_GEVENT, IMPORT_AND_PATCH_GEVENT = "import gevent", "import gevent; from gevent import monkey; monkey.patch_all()"
# "import gmongo" alone imports only the module with the version number. The import of `MongoClient`
# imports the driver.
_IMPORT_GMONGO, _IMPORT_PYMONGO = "from gmongo import MongoClient", "from pymongo import MongoClient"
#: gmongo imports gevent, and PyMongo does not. Therefore some rows exclude the import time of gevent.
IMPORTS = {
    "import, the driver alone": {"gmongo": Import("", _IMPORT_GMONGO), "pymongo": Import("", _IMPORT_PYMONGO)},
    "import, gevent and patching included": {
        "gmongo": Import("", _IMPORT_GMONGO),
        "pymongo": Import("", f"{IMPORT_AND_PATCH_GEVENT}; {_IMPORT_PYMONGO}"),
    },
    "import, gevent already there": {
        "gmongo": Import(IMPORT_GEVENT, _IMPORT_GMONGO),
        "pymongo": Import(IMPORT_GEVENT, _IMPORT_PYMONGO),
    },
    "import, gevent already there, PyMongo patched": {
        "gmongo": Import(IMPORT_GEVENT, _IMPORT_GMONGO),
        "pymongo": Import(IMPORT_AND_PATCH_GEVENT, _IMPORT_PYMONGO),
    },
}
_PROGRAM_TEMPLATE = """{before}
from time import process_time
start = process_time()
{measured}
print((process_time() - start) * 1000)
"""


def measure_rows(settings: Settings) -> Iterator[Row]:
    """Measure both drivers in interleaved rounds. Yield the rows of imports, and then of memory."""
    if TABLE not in settings.only:
        return
    # Create the bytecode files that an installed package has. Otherwise, an interpreter would compile
    # the checkout during a measurement.
    compileall.compile_dir(ROOT / "gmongo", quiet=1)
    drivers = [name for name in DRIVERS if name in settings.contenders]
    for name, imports in IMPORTS.items():
        settings.show_progress(name)
        numbers, failures = take_turns(drivers, settings.fresh_rounds, _import_measurement(imports, settings.timeout))
        yield Row(name, None, "ms", numbers, failures)
    settings.show_progress("memory")
    results_of, failures = take_turns(drivers, settings.fresh_rounds, _memory_measurement(settings))
    for position, (name, unit) in enumerate([(FIRST_CLIENT, "MB"), (FURTHER_CLIENT, "KB")]):
        numbers = {driver: [each[position] for each in results] for driver, results in results_of.items()}
        yield Row(name, None, unit, numbers, {} if position else failures)


def _import_measurement(imports: dict[str, Import], timeout: float) -> Callable[[str], float]:
    def measure(driver: str) -> float:
        return float(run_python(["-c", _PROGRAM_TEMPLATE.format(**imports[driver]._asdict())], timeout))

    return measure


def _memory_measurement(settings: Settings) -> Callable[[str], Any]:
    def measure(driver: str) -> Any:
        arguments = ["-m", "benchmarks.start_worker", driver, str(settings.servers.port("standalone"))]
        return run_python(arguments, settings.timeout)

    return measure
