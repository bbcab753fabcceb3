"""Run one measurement of one size: ``python -m benchmarks.real.crowds_worker CONTENDER URI MEASUREMENT SIZE``.

The program prints a JSON array: the CPU time in milliseconds, and the growth of the resident memory
in kilobytes. The program divides both numbers by SIZE, the number of greenlets, clients, databases
or connections. MEASUREMENT is an index of ``crowds.SIZES``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.start_worker import resident_memory, settled_resident_memory
from benchmarks.worker import patch_if_pymongo


def measure_greenlets(open_client: Callable[..., Any], size: int) -> int:
    """Run three operations in each greenlet on a pool of 100 connections. Return the largest resident memory."""
    import gevent
    from gevent.event import Event

    client = open_client(maxPoolSize=100)
    client.admin.command("ping")
    gate = Event()

    def call() -> None:
        gate.wait()
        for _ in range(3):
            client["benchmark"]["one"].find_one({})

    greenlets = [gevent.spawn(call) for _ in range(size)]
    gate.set()
    peak = 0
    while not all(each.dead for each in greenlets):
        gevent.sleep(0.02)
        peak = max(peak, resident_memory())
    client.close()
    return peak


def measure_clients(open_client: Callable[..., Any], size: int) -> int:
    """Run an operation on each of many clients, and return the resident memory before the clients close."""
    clients = []
    for _ in range(size):
        clients.append(open_client())
        clients[-1].admin.command("ping")
    memory = settled_resident_memory()
    for client in clients:
        client.close()
    return memory


def measure_databases(open_client: Callable[..., Any], size: int) -> int:
    """Run an operation on each of many databases, and return the resident memory."""
    client = open_client()
    databases = [client[f"customer_{number}"] for number in range(size)]
    for database in databases:
        database["orders"].find_one({})
    memory = settled_resident_memory()
    client.close()
    return memory


def measure_connections(open_client: Callable[..., Any], size: int) -> int:
    """Open idle connections through ``minPoolSize``, and return the resident memory."""
    with open_client() as observer:
        expected = _connection_count(observer) + size
        client = open_client(minPoolSize=size, maxPoolSize=size)
        client.admin.command("ping")
        deadline = time.monotonic() + 60
        while _connection_count(observer) < expected and time.monotonic() < deadline:
            settled_resident_memory()
        memory = settled_resident_memory()
        client.close()
    return memory


def _connection_count(client: Any) -> int:
    return int(client.admin.command("serverStatus")["connections"]["current"])


def main() -> None:
    """Run the measurement that the command line names, and print the result."""
    contender, uri, measurement, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    patch_if_pymongo(contender)
    from importlib import import_module

    client_class = import_module(contender).MongoClient
    warm_up_client = client_class(uri)
    warm_up_client["benchmark"]["one"].find_one({})
    memory_before = settled_resident_memory()
    start = time.process_time()
    run = (measure_greenlets, measure_clients, measure_databases, measure_connections)[measurement]
    memory = run(lambda **options: client_class(uri, **options), size)
    cpu_seconds = time.process_time() - start
    print(json.dumps([cpu_seconds * 1e3 / size, (memory - memory_before) / 1e3 / size]))


if __name__ == "__main__":
    main()
