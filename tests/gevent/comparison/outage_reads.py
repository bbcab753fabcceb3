"""Measure the CPU time of 1,000 greenlets that wait for a primary.

Usage: ``python -m tests.gevent.comparison.outage_reads gmongo|pymongo URI``.

The program ends each wait with a ``gevent.Timeout``, which expires before the server selection
timeout. The test kills the server, and sends a line to the program. The program prints the CPU
seconds per second of the wait. At the end, the program prints the error and answer counts as JSON.
"""

# ruff: noqa: E402 - import_driver must run before the other imports

from __future__ import annotations

import json
import sys

from tests.gevent.comparison.drivers import error_text, import_driver, receive_line, send_line

driver = import_driver(sys.argv[1])

import time
from collections import Counter
from typing import Any

import gevent

WAITER_COUNT = 1000
MEASURED_SECONDS = 1.2


def find(client: Any, number: int, errors: Counter[str]) -> None:
    own_timeout = gevent.Timeout(MEASURED_SECONDS + 0.6 + number / WAITER_COUNT)
    try:
        with own_timeout:
            client.test.c.find_one()
    except BaseException as error:
        errors["its own Timeout" if error is own_timeout else error_text(error)[:50]] += 1


def main() -> None:
    """Start the waiting greenlets after the server was killed, and print the measurements."""
    client = driver.MongoClient(sys.argv[2], serverSelectionTimeoutMS=30_000, maxPoolSize=50)
    client.test.c.find_one()
    send_line("ready")
    receive_line()  # the line means that the test has killed the server
    gevent.sleep(0.6)
    errors: Counter[str] = Counter()
    waiters = [gevent.spawn(find, client, number, errors) for number in range(WAITER_COUNT)]
    gevent.sleep(0.5)
    started, cpu = time.perf_counter(), time.process_time()
    gevent.sleep(MEASURED_SECONDS)
    send_line((time.process_time() - cpu) / (time.perf_counter() - started))
    gevent.joinall(waiters)
    send_line(json.dumps({"errors": errors, "answered": WAITER_COUNT - sum(errors.values())}))


if __name__ == "__main__":
    main()
