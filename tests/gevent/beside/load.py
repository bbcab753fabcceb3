"""Writers at work while their server is killed or stopped: ``python -m tests.gevent.beside.load gmongo|pymongo URI``.

It says when they are at work; the test says when the server is back. What it prints in the end, as JSON: whether each
writer has written again, the errors with their counts, which of them are no failures of a connection, and the writes
that were acknowledged.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import json
import sys

from tests.gevent.beside.drivers import listen, load, say

driver = load(sys.argv[1])

from collections import Counter
from typing import Any

import gevent

WRITERS = 20
PATIENCE = 20
OPTIONS = {"serverSelectionTimeoutMS": 1500, "socketTimeoutMS": 1000, "maxPoolSize": 10, "heartbeatFrequencyMS": 500}


class Writer:
    """Inserts one document after the other, each once."""

    def __init__(self, collection: Any, number: int) -> None:
        self._collection = collection
        self._number = number
        self.acknowledged: list[str] = []
        self.errors: Counter[str] = Counter()
        self.strange: set[str] = set()

    def run(self) -> None:
        """Do so until it is killed."""
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
                    self.strange.add(type(error).__name__)
            gevent.sleep(0.02)


def advance(writers: list[Writer]) -> bool:
    """Wait until each has written again."""
    before = [len(writer.acknowledged) for writer in writers]
    with gevent.Timeout(PATIENCE, False):
        while any(len(writer.acknowledged) <= count for writer, count in zip(writers, before, strict=True)):
            gevent.sleep(0.05)
        return True
    return False


def main() -> None:
    """Play it."""
    with driver.MongoClient(sys.argv[2], **OPTIONS) as client:
        writers = [Writer(client.load[sys.argv[1]], number) for number in range(WRITERS)]
        work = [gevent.spawn(writer.run) for writer in writers]
        say("at work" if advance(writers) else "cannot write")
        listen()
        recovered = advance(writers)
        gevent.killall(work)
    say(
        json.dumps(
            {
                "recovered": recovered,
                "errors": sum((writer.errors for writer in writers), Counter()),
                "strange": sorted(set().union(*(writer.strange for writer in writers))),
                "acknowledged": [name for writer in writers for name in writer.acknowledged],
            }
        )
    )


if __name__ == "__main__":
    main()
