"""A thousand greenlets wait for a primary: ``python -m tests.gevent.beside.outage gmongo|pymongo URI PATIENCE ENDS``.

``PATIENCE`` is the driver's time-out in milliseconds. If ``ENDS`` is ``foreign``, each greenlet is ended before by a
``gevent.Timeout`` of its own, one shortly after the other.

The test kills the server and starts it again, and tells this program by lines what to do next. What it prints: the
seconds of CPU that waiting takes per second, and, at the end, the errors with their counts, as JSON.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import json
import sys

from tests.gevent.beside.drivers import described, listen, load, say

driver = load(sys.argv[1])

import time
from collections import Counter
from typing import Any

import gevent

WAITERS = 1000
PERIOD = 1.2


def ask(client: Any, number: int, ends: str, errors: Counter[str]) -> None:
    mine = gevent.Timeout(PERIOD + 0.6 + number / WAITERS if ends == "foreign" else None)
    try:
        with mine:
            client.test.c.find_one()
    except BaseException as error:
        errors["its own Timeout" if error is mine else described(error)[:50]] += 1


def main() -> None:
    """Play it."""
    client = driver.MongoClient(sys.argv[2], serverSelectionTimeoutMS=int(sys.argv[3]), maxPoolSize=50)
    client.test.c.find_one()
    say("ready")
    listen()  # the server is dead
    gevent.sleep(0.6)
    errors: Counter[str] = Counter()
    waiters = [gevent.spawn(ask, client, number, sys.argv[4], errors) for number in range(WAITERS)]
    gevent.sleep(0.5)
    begun, cpu = time.perf_counter(), time.process_time()
    gevent.sleep(PERIOD)
    say((time.process_time() - cpu) / (time.perf_counter() - begun))
    gevent.joinall(waiters)
    say(json.dumps({"errors": errors, "answered": WAITERS - sum(errors.values())}))


if __name__ == "__main__":
    main()
