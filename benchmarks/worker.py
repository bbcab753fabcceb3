"""Measurement in a separate process: ``python -m benchmarks.worker --contender NAME --port PORT``.

The worker prints a JSON object with the contender, the count of operations, the CPU time of an
operation (µs), and the operations per second. With ``--turns``, the worker repeats the measurement
for each line of its input, and prints one object for each measurement.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from benchmarks.processors import pin_client

if TYPE_CHECKING:
    from benchmarks.workloads import Operation

POOL_SIZE = 100
SELECTION_TIMEOUT_MS = 5000

OpenedContender = tuple["dict[str, Operation]", Callable[[], None]]


def patch_if_pymongo(contender: str) -> None:
    """Monkey-patch the process if the contender is PyMongo, before the caller imports other modules."""
    if contender == "pymongo":
        from gevent import monkey

        monkey.patch_all()


def open_client(package: str, port: int, options: Mapping[str, str] = MappingProxyType({}), **settings: Any) -> Any:
    """Return a client of a driver.

    :param package: the package name of the driver.
    :param port: the port of the canned server on 127.0.0.1.
    :param options: the client options, as in a URI.
    :param settings: further keyword arguments of ``MongoClient``.
    """
    import importlib

    text = "&".join(f"{name}={value}" for name, value in {"maxPoolSize": POOL_SIZE, **options}.items())
    return importlib.import_module(package).MongoClient(
        f"mongodb://127.0.0.1:{port}/?{text}",
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        **settings,
    )


def _open_driver(options: argparse.Namespace) -> OpenedContender:
    package = options.contender
    patch_if_pymongo(package)
    from benchmarks.variants import VARIANTS, Variant, settings_of
    from benchmarks.workloads import bulk_operations, driver_operations

    variant = VARIANTS[options.variant] if options.variant else Variant()
    settings = settings_of(package, variant)
    client = open_client(package, options.port, variant.options, **settings)
    return {**driver_operations(client), **bulk_operations(client)}, client.close


def _open_baseline(options: argparse.Namespace) -> OpenedContender:
    from benchmarks.baseline import Baseline, operations

    baseline = Baseline(options.port, min(options.greenlets, POOL_SIZE))
    return operations(baseline), baseline.close


CONTENDERS: dict[str, Callable[[argparse.Namespace], OpenedContender]] = {
    "gmongo": _open_driver,
    "pymongo": _open_driver,
    "floor": _open_baseline,
}


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run the turns that the options specify, and yield the result of each turn."""
    operations, close = CONTENDERS[options.contender](options)
    from benchmarks.workloads import check, measure_times

    pin_client()
    count_per_greenlet = max(2, options.count // options.greenlets)
    count = count_per_greenlet * options.greenlets
    operation = operations[options.operation]
    try:
        check(options.operation, operation)
        for _turn in sys.stdin if options.turns else [None]:
            times = measure_times(operation, options.greenlets, count_per_greenlet, max(2, count_per_greenlet // 5))
            yield {
                "contender": options.contender,
                "count": count,
                "microseconds": times.processor / count * 1e6,
                "per_second": count / times.clock,
            }
    finally:
        close()


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--port", type=int, required=True, help="port of the canned server on 127.0.0.1")
    parser.add_argument("--operation", default="find_one")
    parser.add_argument("--greenlets", type=int, default=10)
    parser.add_argument("--count", type=int, default=5000, help="operations of all greenlets together")
    parser.add_argument("--variant", help="variant, such as listener, debug, tls or replica_set")
    parser.add_argument("--turns", action="store_true", help="measure once for each line of the standard input")
    return parser.parse_args()


if __name__ == "__main__":
    for result in measure(_parse_options()):
        print(json.dumps(result), flush=True)
