"""The loop is held: ``python -m tests.gevent.beside.held gmongo|pymongo URI SCENE…`` prints what came of it.

The server runs in another process and answers in time. The limits are less than half of the time for which the loop is
held.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import json
import sys

from tests.gevent.beside.drivers import hold, load, witness

driver = load(sys.argv[1])

from collections import Counter
from collections.abc import Callable
from typing import Any

import gevent

LIMIT = 200  # milliseconds
HELD = 0.5  # seconds; a check that is streamed may take 0.5 longer
ROUNDS = 4


def outcome(greenlets: list[Any]) -> Counter[str]:
    """How many were answered, and the errors of the others."""
    gevent.joinall(greenlets, timeout=20)
    return Counter(each.value for each in greenlets)


def read(client: Any) -> str:
    try:
        client.test.c.find_one()
        return "answered"
    except Exception as error:
        return type(error).__name__


def held_while(reads: int, **options: Any) -> Counter[str]:
    """So many reads of a client with one connection have been asked for when the loop is held; each round a few turns
    of the loop later."""
    found: Counter[str] = Counter()
    clients = []
    for number in range(ROUNDS):
        seen = witness(driver)
        client = driver.MongoClient(sys.argv[2], event_listeners=[seen], retryReads=False, **options)
        clients.append(client)
        client.test.c.find_one()
        readers = [gevent.spawn(read, client) for _ in range(reads)]
        for _ in range(number + 1):
            gevent.sleep(0)
        found["under way"] += sum(not each.ready() for each in readers)
        hold(HELD)
        found += outcome(readers)
        found += Counter(seen.blamed)
    gevent.joinall([gevent.spawn(client.close) for client in clients])
    return found


def checks(mode: str, seconds: float) -> Counter[str]:
    """The reply is not read; the loop is held from the first turn after a check has been sent."""
    seen, holder = witness(driver), Holder(seconds)
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with (
        gevent.Timeout(30),
        driver.MongoClient(sys.argv[2], event_listeners=[seen, holder], **options) as client,
    ):
        client.test.c.find_one()
        holder.left = ROUNDS
        while holder.left:
            gevent.sleep(0.01)
        gevent.sleep(0.1)
        client.test.c.find_one()
        return +Counter(seen.blamed)


class Holder(driver.monitoring.ServerHeartbeatListener):  # type: ignore[misc]
    """Holds the loop after checks have been sent.

    :ivar left: after how many more.
    """

    def __init__(self, seconds: float) -> None:
        self.left = 0
        self._seconds = seconds

    def started(self, event: Any) -> None:
        if self.left:
            gevent.spawn(self._hold)

    def _hold(self) -> None:
        hold(self._seconds)
        self.left = max(0, self.left - 1)

    def succeeded(self, event: Any) -> None:
        pass

    failed = succeeded


def dead() -> Counter[str]:
    """The server stops answering the monitor."""
    seen = witness(driver)
    options = {
        "connectTimeoutMS": LIMIT,
        "heartbeatFrequencyMS": 500,
        "serverMonitoringMode": "poll",
        "appName": "dead",
    }
    with driver.MongoClient(sys.argv[2], event_listeners=[seen], **options) as client, gevent.Timeout(10, False):
        silent = {
            "failCommands": ["hello", "isMaster"],
            "appName": "dead",
            "blockConnection": True,
            "blockTimeMS": 1000,
        }
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 2}, data=silent)
        while not seen.marked_unknown:
            gevent.sleep(0.01)
    return Counter({"found": seen.marked_unknown > 0})


SCENES: dict[str, Callable[[], Counter[str]]] = {
    "checks, polled": lambda: checks("poll", HELD),
    "checks, streamed": lambda: checks("stream", HELD + 0.5),
    "an operation with socketTimeoutMS": lambda: held_while(1, socketTimeoutMS=LIMIT),
    "a handshake": lambda: held_while(4, connectTimeoutMS=LIMIT),
    "a waiter whose turn comes": lambda: held_while(2, maxPoolSize=1, waitQueueTimeoutMS=LIMIT),
    "a dead server": dead,
}


if __name__ == "__main__":
    print(json.dumps({name: SCENES[name]() for name in sys.argv[3:]}))
