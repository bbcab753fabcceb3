"""Run operations and server checks of a driver while the event loop is blocked.

Usage: ``python -m tests.gevent.comparison.blocked_loop gmongo|pymongo URI SCENARIO…``. The program
prints how many operations and checks succeeded and failed.

The server runs in another process, and replies while the event loop of this process is blocked. The
time limits of the driver are less than half of the time for which the loop is blocked.
"""

# ruff: noqa: E402 - the process is monkey-patched before the other imports

from __future__ import annotations

import json
import sys

from tests.gevent.comparison.drivers import block_loop, create_event_counter, import_driver

driver = import_driver(sys.argv[1])

from collections import Counter
from collections.abc import Callable
from typing import Any

import gevent

LIMIT = 200  # milliseconds
# Seconds. A streamed check also waits 0.5 s, so the program then blocks the loop for 1 s.
BLOCKED = 0.5
ROUNDS = 4


def outcomes_of(greenlets: list[Any]) -> Counter[str]:
    """Wait for the greenlets that read.

    Return the number of successful reads, and of failed reads by error class.
    """
    gevent.joinall(greenlets, timeout=20)
    return Counter(each.value for each in greenlets)


def read(client: Any) -> str:
    try:
        client.test.c.find_one()
        return "answered"
    except Exception as error:
        return type(error).__name__


def read_while_blocked(reads: int, **options: Any) -> Counter[str]:
    """Start `reads` concurrent reads, and then block the event loop.

    The rounds block the loop after one, two, three and four iterations.

    Return the number of reads by outcome, and how often the client marked the server Unknown or
    cleared a pool.
    """
    outcomes: Counter[str] = Counter()
    clients = []
    for number in range(ROUNDS):
        seen = create_event_counter(driver)
        client = driver.MongoClient(sys.argv[2], event_listeners=[seen], retryReads=False, **options)
        clients.append(client)
        client.test.c.find_one()
        readers = [gevent.spawn(read, client) for _ in range(reads)]
        for _ in range(number + 1):
            gevent.sleep(0)
        outcomes["pending"] += sum(not each.ready() for each in readers)
        block_loop(BLOCKED)
        outcomes += outcomes_of(readers)
        outcomes += Counter(seen.server_faults)
    gevent.joinall([gevent.spawn(client.close) for client in clients])
    return outcomes


def check_while_blocked(mode: str, seconds: float) -> Counter[str]:
    """Block the event loop after the start of a server check.

    Return how often the client marked the server Unknown or cleared a pool.
    """
    seen, blocker = create_event_counter(driver), LoopBlocker(seconds)
    options = {"connectTimeoutMS": LIMIT, "heartbeatFrequencyMS": 500, "serverMonitoringMode": mode}
    with gevent.Timeout(30), driver.MongoClient(sys.argv[2], event_listeners=[seen, blocker], **options) as client:
        client.test.c.find_one()
        blocker.left = ROUNDS
        while blocker.left:
            gevent.sleep(0.01)
        gevent.sleep(0.1)
        client.test.c.find_one()
        return +Counter(seen.server_faults)


class LoopBlocker(driver.monitoring.ServerHeartbeatListener):  # type: ignore[misc]
    """Listener that blocks the event loop after the start of a server check.

    :ivar left: the remaining number of checks during which the listener blocks the loop.
    """

    def __init__(self, seconds: float) -> None:
        self.left = 0
        self._seconds = seconds

    def started(self, event: Any) -> None:
        if self.left:
            gevent.spawn(self._block)

    def _block(self) -> None:
        block_loop(self._seconds)
        self.left = max(0, self.left - 1)

    def succeeded(self, event: Any) -> None:
        pass

    failed = succeeded


def run_with_dead_server() -> Counter[str]:
    """Run a client whose server replies to two checks only after the time limit.

    Return ``{"found": True}`` if the client marks the server Unknown.
    """
    seen = create_event_counter(driver)
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


SCENARIOS: dict[str, Callable[[], Counter[str]]] = {
    "polled checks": lambda: check_while_blocked("poll", BLOCKED),
    "streamed checks": lambda: check_while_blocked("stream", BLOCKED + 0.5),
    "operation with socketTimeoutMS": lambda: read_while_blocked(1, socketTimeoutMS=LIMIT),
    "handshake": lambda: read_while_blocked(4, connectTimeoutMS=LIMIT),
    "served waiter": lambda: read_while_blocked(2, maxPoolSize=1, waitQueueTimeoutMS=LIMIT),
    "dead server": run_with_dead_server,
}


if __name__ == "__main__":
    print(json.dumps({name: SCENARIOS[name]() for name in sys.argv[3:]}))
