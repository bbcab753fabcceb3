"""Measure how long a driver blocks the event loop, for one turn of the table of stalls.

The command is ``python -m benchmarks.stall_worker --contender NAME --port PORT``.

The worker prints a JSON object of times in milliseconds. The times are the longest stalls of reads
and of an insert, and the time to the first document of a read. A ticker measures the stalls of the
event loop. Each time is the minimum of several repetitions after a warm-up, because load by other
programs only increases a time.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.documents import DATABASE, LARGE, LARGE_BATCH_SIZE, ONE, documents_without_id
from benchmarks.processors import pin_client
from benchmarks.worker import open_client, patch_if_pymongo

REPETITIONS = 3
TICK_SECONDS = 0.0002
#: The reading greenlet sleeps after this number of documents. ``sleep(0)`` is not enough: for 5 ms or
#: more, gevent may run only greenlets that call ``sleep(0)``, before gevent checks the timer of the ticker.
DOCUMENTS_BETWEEN_PAUSES = 100
PAUSE_SECONDS = 1e-6


class Ticker:
    """Greenlet that wakes every 0.2 ms if possible, and records the longest gap between two runs."""

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
        """Let the ticker run once more, so that the ticker records the last stall.

        Stop the ticker, and return the longest gap in seconds.
        """
        self._sleep(0.005)
        self._greenlet.kill()
        return self.longest


def measure_stalls(activity: Callable[[Any], Any], make_argument: Callable[[], Any]) -> tuple[float, list[Any]]:
    """After a warm-up, run an activity several times, and measure the longest stall of each run.

    Return the minimum of these stalls in milliseconds, and the results of all runs.

    :param make_argument: a function that creates the argument of the activity before a measurement.
    """
    activity(make_argument())
    stalls, results = [], []
    for _ in range(REPETITIONS):
        argument = make_argument()
        gc.collect()
        ticker = Ticker()
        results.append(activity(argument))
        stalls.append(ticker.stop())
    return min(stalls) * 1000, results


def read(collection: Any) -> float:
    """Iterate over the large batch with pauses, and return the seconds until the first document."""
    import gevent

    start, first_document_time, number = perf_counter(), 0.0, 0
    for number, _document in enumerate(collection.find(), 1):
        first_document_time = first_document_time or perf_counter() - start
        if number % DOCUMENTS_BETWEEN_PAUSES == 0:
            gevent.sleep(PAUSE_SECONDS)
    if number != LARGE_BATCH_SIZE:
        raise AssertionError(f"read {number} documents, not {LARGE_BATCH_SIZE}")
    return first_document_time


def iterate(collection: Any) -> list[Any]:
    """Read the large batch without pauses, and return the documents.

    The caller frees the documents after the measurement, because their deallocation takes 15 ms.
    """
    documents = list(collection.find())
    if len(documents) != LARGE_BATCH_SIZE:
        raise AssertionError(f"read {len(documents)} documents, not {LARGE_BATCH_SIZE}")
    return documents


def measure(database: Any) -> dict[str, float]:
    """Measure all quantities, and return their times in milliseconds."""
    large, one = database[LARGE], database[ONE]
    read_stall, first_times = measure_stalls(read, lambda: large)
    iterate_stall, _documents = measure_stalls(iterate, lambda: large)
    insert_stall, _results = measure_stalls(one.insert_many, documents_without_id)
    return {"read": read_stall, "first": min(first_times) * 1000, "iterate": iterate_stall, "insert": insert_stall}


def main() -> None:
    """Measure a driver, and print the times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stall_worker", description=__doc__)
    parser.add_argument("--contender", required=True)
    parser.add_argument("--port", type=int, required=True, help="port of the canned server on 127.0.0.1")
    options = parser.parse_args()
    pin_client()
    patch_if_pymongo(options.contender)
    client = open_client(options.contender, options.port)
    times = measure(client[DATABASE])
    client.close()
    json.dump(times, sys.stdout)


if __name__ == "__main__":
    main()
