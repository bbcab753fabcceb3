"""The memory of a driver's idle clients: ``python -m benchmarks.start_worker NAME PORT``.

Prints by how much the resident memory of this process grew: in megabytes for the import and one client that sent a
ping, from the time when gevent was imported and, for PyMongo, everything patched; and in kilobytes for each of some
further clients that found one document each. Works where there is a ``/proc`` as Linux has it.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.worker import open_client, prepare

#: So many that memory which the import left free, and which some of them get, matters little.
FURTHER_CLIENTS = 100
#: Until monitors have connected, and have done all that comes with it.
SETTLE_SECONDS = 0.3
MEGABYTE, KILOBYTE = 1e6, 1e3


def resident() -> int:
    """The resident memory of this process in bytes, after everything had the time to settle."""
    import gevent

    gevent.sleep(SETTLE_SECONDS)
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(driver: str, port: int) -> tuple[float, float]:
    """What is printed."""
    prepare(driver)
    at_first = resident()
    clients = [open_client(driver, port)]
    clients[0].admin.command("ping")
    with_one = resident()
    clients += [_used(driver, port) for _ in range(FURTHER_CLIENTS)]
    with_all = resident()
    for client in clients:
        client.close()
    return (with_one - at_first) / MEGABYTE, (with_all - with_one) / FURTHER_CLIENTS / KILOBYTE


def _used(driver: str, port: int) -> Any:
    client = open_client(driver, port)
    client["benchmark"]["one"].find_one({})
    return client


if __name__ == "__main__":
    print(list(measure(sys.argv[1], int(sys.argv[2]))))
