"""One measurement in a process of its own: ``python -m benchmarks.worker --contender NAME --port PORT``.

Prints one JSON object: the contender, the count of operations, the CPU microseconds of each, and how many were done in
a second.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.processors import pin_client

if TYPE_CHECKING:
    from benchmarks.workloads import Operation

POOL_SIZE = 100
SELECTION_TIMEOUT_MS = 5000

Opened = tuple["dict[str, Operation]", Callable[[], None]]


def prepare(contender: str) -> None:
    """What a contender needs before anything else of its process is imported."""
    if contender == "pymongo":
        from gevent import monkey

        monkey.patch_all()


def open_client(package: str, port: int, **settings: Any) -> Any:
    """A client of a driver.

    :param package: the driver's name.
    :param port: of the canned server on 127.0.0.1.
    :param settings: further keyword arguments of ``MongoClient``.
    """
    import importlib

    return importlib.import_module(package).MongoClient(
        f"mongodb://127.0.0.1:{port}/?maxPoolSize={POOL_SIZE}",
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        **settings,
    )


def _open_driver(options: argparse.Namespace) -> Opened:
    package = options.contender
    prepare(package)
    from benchmarks.workloads import bulk_operations, driver_operations, log_silently, silent_listener

    if options.extra == "debug":
        log_silently(package)
    listeners = [silent_listener(package)] if options.listener or options.extra == "listener" else []
    client = open_client(package, options.port, event_listeners=listeners)
    return {**driver_operations(client), **bulk_operations(client)}, client.close


def _open_floor(options: argparse.Namespace) -> Opened:
    from benchmarks.floor import Floor, operations

    floor = Floor(options.port, min(options.greenlets, POOL_SIZE))
    return operations(floor), floor.close


CONTENDERS: dict[str, Callable[[argparse.Namespace], Opened]] = {
    "gmongo": _open_driver,
    "pymongo": _open_driver,
    "floor": _open_floor,
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run what the options say and return what is printed."""
    operations, close = CONTENDERS[options.contender](options)
    from benchmarks.workloads import check, spent

    pin_client()
    each = max(2, options.count // options.greenlets)
    operation = operations[options.operation]
    try:
        check(options.operation, operation)
        seconds = spent(operation, options.greenlets, each, warm_up=max(2, each // 5))
    finally:
        close()
    count = each * options.greenlets
    return {
        "contender": options.contender,
        "count": count,
        "microseconds": seconds.processor / count * 1e6,
        "per_second": count / seconds.clock,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--port", type=int, required=True, help="port of the canned server on 127.0.0.1")
    parser.add_argument("--operation", default="find_one")
    parser.add_argument("--greenlets", type=int, default=10)
    parser.add_argument("--count", type=int, default=5000, help="operations of all greenlets together")
    parser.add_argument("--extra", choices=["listener", "debug"], help="what else is switched on in a driver")
    parser.add_argument("--listener", action="store_true", help="the same as --extra listener, beside another extra")
    return parser.parse_args()


if __name__ == "__main__":
    json.dump(measure(_options()), sys.stdout)
