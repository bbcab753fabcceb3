"""Greenlets that write during an outage of the server.

Usage: ``python -m tests.gevent.comparison.outage_writes gmongo|pymongo URI``.

``tests/engines/test_outages.py`` sends a line to the program after the outage. The program prints
the outcome as JSON. The outcome contains a flag (True if all writers continue), error counts, classes
of unexpected errors, and the acknowledged writes.
"""

# ruff: noqa: E402 - import_driver must run before the other imports

from __future__ import annotations

import json
import sys

from tests.gevent.comparison.drivers import import_driver, receive_line, send_line

driver = import_driver(sys.argv[1])

from collections import Counter
from typing import Any

import gevent

WRITER_COUNT = 20
WAIT_SECONDS = 20
OPTIONS = {"serverSelectionTimeoutMS": 1500, "socketTimeoutMS": 1000, "maxPoolSize": 10, "heartbeatFrequencyMS": 500}


class Writer:
    """Writer that inserts documents one after another. The writer does not repeat a failed insert."""

    def __init__(self, collection: Any, number: int) -> None:
        self._collection = collection
        self._number = number
        self.acknowledged: list[str] = []
        self.errors: Counter[str] = Counter()
        self.unexpected_errors: set[str] = set()

    def run(self) -> None:
        """Insert documents until the greenlet is killed."""
        attempt = 0
        while True:
            attempt += 1
            name = f"{self._number}-{attempt}"
            try:
                self._collection.insert_one({"_id": name})
                self.acknowledged.append(name)
            except Exception as error:
                self.errors[type(error).__name__] += 1
                if not isinstance(error, driver.errors.ConnectionFailure):
                    self.unexpected_errors.add(type(error).__name__)
            gevent.sleep(0.02)


def await_writes(writers: list[Writer]) -> bool:
    """Wait until the server has acknowledged one more write of each writer.

    Return False if the wait times out.
    """
    before = [len(writer.acknowledged) for writer in writers]
    with gevent.Timeout(WAIT_SECONDS, False):
        while any(len(writer.acknowledged) <= count for writer, count in zip(writers, before, strict=True)):
            gevent.sleep(0.05)
        return True
    return False


def main() -> None:
    """Run the writers, and print the outcome after the outage."""
    with driver.MongoClient(sys.argv[2], **OPTIONS) as client:
        writers = [Writer(client.outage[sys.argv[1]], number) for number in range(WRITER_COUNT)]
        greenlets = [gevent.spawn(writer.run) for writer in writers]
        send_line("writing" if await_writes(writers) else "cannot write")
        receive_line()
        recovered = await_writes(writers)
        gevent.killall(greenlets)
    send_line(
        json.dumps(
            {
                "recovered": recovered,
                "errors": sum((writer.errors for writer in writers), Counter()),
                "unexpected": sorted(set().union(*(writer.unexpected_errors for writer in writers))),
                "acknowledged": [name for writer in writers for name in writer.acknowledged],
            }
        )
    )


if __name__ == "__main__":
    main()
