"""Memory of idle clients of a driver: ``python -m benchmarks.start_worker NAME PORT``.

The worker prints two increases of the resident memory of this process. The first increase, in
megabytes, is for the import of the driver and a client that sent a ping. The measurement starts after
the import of gevent (gmongo) or after monkey-patching (PyMongo). The second increase, in kilobytes,
is the mean of further clients that each found one document. The worker requires ``/proc`` (Linux).
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.worker import open_client, patch_if_pymongo

#: The number is large, because the first few clients reuse memory that the import has freed.
FURTHER_CLIENT_COUNT = 100
#: Seconds that :func:`settled_resident_memory` waits, so that the monitors can connect.
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
    """Return the memory of import and first client (MB), and the mean of the further clients (KB)."""
    patch_if_pymongo(driver)
    initial_memory = settled_resident_memory()
    clients = [open_client(driver, port)]
    clients[0].admin.command("ping")
    memory_with_one_client = settled_resident_memory()
    clients += [_open_and_use_client(driver, port) for _ in range(FURTHER_CLIENT_COUNT)]
    memory_with_all_clients = settled_resident_memory()
    for client in clients:
        client.close()
    further_memory = memory_with_all_clients - memory_with_one_client
    return (memory_with_one_client - initial_memory) / MEGABYTE, further_memory / FURTHER_CLIENT_COUNT / KILOBYTE


def _open_and_use_client(driver: str, port: int) -> Any:
    client = open_client(driver, port)
    client["benchmark"]["one"].find_one({})
    return client


if __name__ == "__main__":
    print(list(measure(sys.argv[1], int(sys.argv[2]))))
