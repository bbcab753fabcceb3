"""How long a driver holds the loop: ``python -m tests.gevent.switching.stalls gmongo|pymongo URI TLS_URI``: as JSON.

For each activity, the longest time during which a ticker had no turn (the least of three rounds, which is the driver's
own part), and how many turns it had. It is processor time of the thread, in milliseconds: what others do on a busy
machine is not counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import gevent

DOCUMENTS = 15_000
TEXT = "x" * 1000  # with its frame, 15 MB in one batch


class Ticker:
    """Has a turn as often as it can, and notes the longest gap."""

    def __init__(self) -> None:
        self.turns = 0
        self.longest = 0.0
        self._greenlet = gevent.spawn(self._tick)

    def _tick(self) -> None:
        last = thread_time()
        while True:
            gevent.sleep(0.0002)
            now = thread_time()
            self.longest = max(self.longest, now - last)
            self.turns += 1
            last = now

    def stop(self) -> None:
        self._greenlet.kill()


def measured(activity: Callable[[], Any]) -> dict[str, float]:
    """The least of three rounds."""
    rounds = []
    for _ in range(3):
        ticker = Ticker()
        gevent.sleep(0.01)
        ticker.longest, ticker.turns = 0.0, 0
        activity()
        gevent.sleep(0.005)  # the ticker has its turn after the last stall, too
        rounds.append((ticker.longest * 1000, ticker.turns))
        ticker.stop()
    stall, turns = min(rounds)
    return {"stall": round(stall, 2), "turns": turns}


def main(driver: str, uri: str, tls_uri: str) -> None:
    """Measure one driver."""
    if driver == "pymongo":
        from gevent import monkey

        monkey.patch_all()
        from pymongo import MongoClient
    else:
        from gmongo import MongoClient
    client = MongoClient(uri)
    large = client.test.large
    if not large.count_documents({}):
        large.insert_many([{"_id": number, "text": TEXT} for number in range(DOCUMENTS)])
    small = [{"_id": number, "text": TEXT[:100]} for number in range(10_000)]

    def read() -> None:
        """As an application does that has something else to do between its documents, too."""
        for number, _document in enumerate(large.find(batch_size=DOCUMENTS + 1)):
            if number % 50 == 0:
                gevent.sleep(1e-6)

    def iterate() -> None:
        """As an application does that only wants all documents."""
        list(large.find(batch_size=DOCUMENTS + 1))

    def insert() -> None:
        client.test.small.drop()
        client.test.small.insert_many(small)

    def connect() -> None:
        with MongoClient(tls_uri) as encrypted:
            encrypted.admin.command("ping")

    activities = {"read": read, "iterate": iterate, "insert": insert, "tls": connect}
    print(json.dumps({name: measured(activity) for name, activity in activities.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
