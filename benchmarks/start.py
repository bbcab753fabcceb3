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
    """Python code whose CPU time is measured in a new interpreter.

    :param before: the code that runs before the measurement.
    :param measured: the code that the benchmark measures.
    """

    before: str
    measured: str


IMPORT_GEVENT, IMPORT_AND_PATCH_GEVENT = "import gevent", "import gevent; from gevent import monkey; monkey.patch_all()"
# "import gmongo" alone imports no module of the driver. The import of `MongoClient` imports the
# driver.
_IMPORT_GMONGO, _IMPORT_PYMONGO = "from gmongo import MongoClient", "from pymongo import MongoClient"
#: gmongo imports gevent, unlike PyMongo. Therefore the table shows the imports with and without gevent.
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
    """Measure gmongo and PyMongo in interleaved rounds: first all imports, then the memory."""
    if TABLE not in settings.only:
        return
    # Without bytecode files, which an installed package has, each new interpreter would compile the
    # checkout.
    compileall.compile_dir(ROOT / "gmongo", quiet=1)
    drivers = [name for name in DRIVERS if name in settings.contenders]
    for name, imports in IMPORTS.items():
        settings.show_progress(name)
        numbers, failures = take_turns(drivers, settings.fresh_rounds, _import_measurement(imports, settings.timeout))
        yield Row(name, None, "ms", numbers, failures)
    settings.show_progress("memory")
    results_of, failures = take_turns(drivers, settings.fresh_rounds, _memory_measurement(settings))
    for number, (name, unit) in enumerate([(FIRST_CLIENT, "MB"), (FURTHER_CLIENT, "KB")]):
        numbers = {driver: [each[number] for each in results] for driver, results in results_of.items()}
        yield Row(name, None, unit, numbers, {} if number else failures)


def _import_measurement(imports: dict[str, Import], timeout: float) -> Callable[[str], float]:
    def measure(driver: str) -> float:
        return float(run_python(["-c", _PROGRAM_TEMPLATE.format(**imports[driver]._asdict())], timeout))

    return measure


def _memory_measurement(settings: Settings) -> Callable[[str], Any]:
    def measure(driver: str) -> Any:
        arguments = ["-m", "benchmarks.start_worker", driver, str(settings.servers.port("standalone"))]
        return run_python(arguments, settings.timeout)

    return measure
