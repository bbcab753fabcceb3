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


def _open_driver(package: str, options: argparse.Namespace) -> Opened:
    import importlib

    from benchmarks.workloads import driver_operations, silent_listener

    listeners = [silent_listener(package)] if options.listener else []
    client: Any = importlib.import_module(package).MongoClient(
        f"mongodb://127.0.0.1:{options.port}/?maxPoolSize={POOL_SIZE}",
        serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS,
        event_listeners=listeners,
    )
    return driver_operations(client), client.close


def _open_gmongo(options: argparse.Namespace) -> Opened:
    return _open_driver("gmongo", options)


def _open_pymongo(options: argparse.Namespace) -> Opened:
    # Patching comes before every other import of this process but the standard library's few above.
    from gevent import monkey

    monkey.patch_all()
    return _open_driver("pymongo", options)


def _open_floor(options: argparse.Namespace) -> Opened:
    from benchmarks.floor import Floor, operations

    floor = Floor(options.port, min(options.greenlets, POOL_SIZE))
    return operations(floor), floor.close


CONTENDERS: dict[str, Callable[[argparse.Namespace], Opened]] = {
    "gmongo": _open_gmongo,
    "pymongo": _open_pymongo,
    "floor": _open_floor,
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run what the options say and return what is printed."""
    operations, close = CONTENDERS[options.contender](options)
    from benchmarks.workloads import check, spent

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
    parser.add_argument("--listener", action="store_true", help="register a command listener")
    return parser.parse_args()


if __name__ == "__main__":
    pin_client()
    json.dump(measure(_options()), sys.stdout)
