"""Memory of idle clients of a driver: ``python -m benchmarks.start_worker NAME PORT``.

The worker prints two increases of the resident memory of this process. The first increase, in
megabytes, is for the import of the driver and a client that sent a ping. The measurement starts after
the import of gevent (gmongo) or after monkey-patching (PyMongo). The second increase, in kilobytes,
is for each further client that found one document. The worker requires the ``/proc`` of Linux.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.worker import open_client, patch_if_pymongo

#: The number of further clients. The number is large, because the first of these clients use
#: memory that the import left free.
FURTHER_CLIENT_COUNT = 100
#: The time in seconds in which the monitors connect.
SETTLE_SECONDS = 0.3
MEGABYTE, KILOBYTE = 1e6, 1e3


def settled_resident_memory() -> int:
    """Wait for the monitors, and return the resident memory of this process in bytes."""
    import gevent

    gevent.sleep(SETTLE_SECONDS)
    gc.collect()
    return resident_memory()


def resident_memory() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(driver: str, port: int) -> tuple[float, float]:
    """Return the memory of the first client in megabytes, and of a further client in kilobytes."""
    patch_if_pymongo(driver)
    at_first = settled_resident_memory()
    clients = [open_client(driver, port)]
    clients[0].admin.command("ping")
    with_one = settled_resident_memory()
    clients += [_open_and_use_client(driver, port) for _ in range(FURTHER_CLIENT_COUNT)]
    with_all = settled_resident_memory()
    for client in clients:
        client.close()
    return (with_one - at_first) / MEGABYTE, (with_all - with_one) / FURTHER_CLIENT_COUNT / KILOBYTE


def _open_and_use_client(driver: str, port: int) -> Any:
    client = open_client(driver, port)
    client["benchmark"]["one"].find_one({})
    return client


if __name__ == "__main__":
    print(list(measure(sys.argv[1], int(sys.argv[2]))))
