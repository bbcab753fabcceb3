"""One turn of a driver for the table of stalls: ``python -m benchmarks.stall_worker --contender NAME --port PORT``.

Prints one JSON object of milliseconds: for reading and for inserting the longest time during which a ticker had no
turn, and for reading the time to the first document. Each is the least of some repetitions after a warm-up: whatever
else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.documents import DATABASE, LARGE, LARGE_BATCH, ONE, unsaved_many
from benchmarks.processors import pin_client
from benchmarks.worker import open_client, prepare

REPETITIONS = 3
TICK_SECONDS = 0.0002
#: The application goes to sleep after so many documents. ``sleep(0)`` would not do: gevent goes on with greenlets that
#: called it for 5 ms and more before it looks at timers again, whatever the driver does.
DOCUMENTS_BETWEEN_PAUSES = 100
PAUSE_SECONDS = 1e-6


class Ticker:
    """Has a turn as often as it can, and notes the longest gap between two, in seconds."""

    def __init__(self) -> None:
        import gevent

        self.longest = 0.0
        self._sleep = gevent.sleep
        self._greenlet = gevent.spawn(self._tick)
        self._sleep(0.01)
        self.longest = 0.0

    def _tick(self) -> None:
        last = perf_counter()
        while True:
            self._sleep(TICK_SECONDS)
            now = perf_counter()
            self.longest = max(self.longest, now - last)
            last = now

    def stop(self) -> float:
        """End, after a turn that follows the last stall, and return the longest gap."""
        self._sleep(0.005)
        self._greenlet.kill()
        return self.longest


def measured(activity: Callable[[Any], Any], make: Callable[[], Any]) -> tuple[float, list[Any]]:
    """The longest stall in milliseconds, in the best of some repetitions, and what the activity returned in each.

    :param make: makes the argument of the activity; this is no part of the measurement.
    """
    activity(make())
    stalls, returned = [], []
    for _ in range(REPETITIONS):
        argument = make()
        gc.collect()
        ticker = Ticker()
        returned.append(activity(argument))
        stalls.append(ticker.stop())
    return min(stalls) * 1000, returned


def read(collection: Any) -> float:
    """Read all of the large batch, and return the seconds until its first document was there."""
    import gevent

    start, first, number = perf_counter(), 0.0, 0
    for number, _document in enumerate(collection.find(), 1):
        first = first or perf_counter() - start
        if number % DOCUMENTS_BETWEEN_PAUSES == 0:
            gevent.sleep(PAUSE_SECONDS)
    if number != LARGE_BATCH:
        raise AssertionError(f"read {number} documents, not {LARGE_BATCH}")
    return first


def iterate(collection: Any) -> list[Any]:
    """Read all of the large batch, and do nothing else. The caller keeps the documents until it has measured: to free
    so many at once takes 15 ms, which is no driver's doing.
    """
    documents = list(collection.find())
    if len(documents) != LARGE_BATCH:
        raise AssertionError(f"read {len(documents)} documents, not {LARGE_BATCH}")
    return documents


def measure(database: Any) -> dict[str, float]:
    """What is printed."""
    large, one = database[LARGE], database[ONE]
    read_stall, firsts = measured(read, lambda: large)
    iterate_stall, _nothing = measured(iterate, lambda: large)
    insert_stall, _results = measured(one.insert_many, unsaved_many)
    return {"read": read_stall, "first": min(firsts) * 1000, "iterate": iterate_stall, "insert": insert_stall}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stall_worker", description=__doc__)
    parser.add_argument("--contender", required=True)
    parser.add_argument("--port", type=int, required=True, help="port of the canned server on 127.0.0.1")
    options = parser.parse_args()
    pin_client()
    prepare(options.contender)
    client = open_client(options.contender, options.port)
    found = measure(client[DATABASE])
    client.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
