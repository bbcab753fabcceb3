"""``python -m benchmarks.overload``: what the policy for overloaded servers is for.

A simulated server in a process of its own admits 500 requests a second and turns the others away. 50 to 1000 greenlets
each ask it every 0.4 seconds, so that up to five times as much is asked for. What the client makes of it is measured
with each of three ways to treat a rejection, and written to ``docs/overload.md`` and ``docs/overload.png``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any

import gevent
from rich.console import Console

from benchmarks.overload_report import Peak, Result, draw, page, peak_table
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import DeploymentProcess

DOCS = Path(__file__).resolve().parent.parent / "docs"
RATE = 500  # requests that the server admits in a second
BURST = 0.2  # seconds' worth of them that it admits at once after a rest
PEAK = 300  # requests that come all at once
PAUSE = 0.4  # seconds between two requests of a greenlet, on average
PATIENCE = 5.0  # seconds after which a naive application gives up
WARM_UP = 2.0  # seconds, after which the tokens are spent
SIZES = (50, 200, 300, 500, 1000)

Ask = Callable[[MongoClient[Any]], int]


# Strategies


def once(client: MongoClient[Any]) -> int:
    """Leave rejections to the driver; the number of commands that the application sent."""
    client.shop.orders.find_one({"_id": 1})
    return 1


def naive(client: MongoClient[Any]) -> int:
    """The loop that applications used to have: on an error try again, at once."""
    until = monotonic() + PATIENCE
    tries = 0
    while True:
        tries += 1
        try:
            client.shop.orders.find_one({"_id": 1})
            return tries
        except PyMongoError:
            if monotonic() > until:
                raise GaveUp(tries) from None


class GaveUp(PyMongoError):
    """A naive application had enough.

    :param tries: how many it made.
    """

    def __init__(self, tries: int) -> None:
        super().__init__(f"gave up after {tries} tries")
        self.tries = tries


STRATEGIES: dict[str, tuple[Ask, dict[str, Any]]] = {
    "policy": (once, {}),
    "naive": (naive, {"maxAdaptiveRetries": 0}),
    "none": (once, {"maxAdaptiveRetries": 0}),
}


# Measuring


class Tally:
    """What has happened since :meth:`begin`.

    :param ask: one request of the application.
    """

    def __init__(self, client: MongoClient[Any], ask: Ask) -> None:
        self._client, self._ask = client, ask
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self.latencies: list[float] = []
        self.failures = self.tries = 0
        self._retries = self._client.retry_stats()["retries"]
        self._begin, self._processor = monotonic(), process_time()

    def request(self) -> None:
        """Make one request and count it."""
        begin = monotonic()
        try:
            tries = self._ask(self._client)
            self.tries += tries
            self.latencies.append(monotonic() - begin)
        except PyMongoError as error:
            self.tries += getattr(error, "tries", 1)
            self.failures += 1

    def result(self, strategy: str, greenlets: int) -> Result:
        """The rates until now."""
        seconds = monotonic() - self._begin
        retries = self._client.retry_stats()["retries"] - self._retries
        requests = len(self.latencies) + self.failures
        latencies = sorted(self.latencies) or [float("nan")]
        return Result(
            strategy,
            greenlets,
            asked=requests / seconds,
            offered=(self.tries + retries) / seconds,
            served=len(self.latencies) / seconds,
            failed=self.failures / max(requests, 1),
            latency=(median(latencies), latencies[int(len(latencies) * 0.99)]),
            processor=(process_time() - self._processor) / seconds,
        )


def _customer(tally: Tally) -> None:
    while True:
        gevent.sleep(random.expovariate(1 / PAUSE))
        tally.request()


def measure(uri: str, strategy: str, greenlets: int, seconds: float) -> Result:
    """Let so many greenlets ask for so long, after a warm-up."""
    ask, options = STRATEGIES[strategy]
    with MongoClient[Any](uri, maxPoolSize=100, **options) as client:
        tally = Tally(client, ask)
        crowd = [gevent.spawn(_customer, tally) for _ in range(greenlets)]
        gevent.sleep(WARM_UP)
        tally.begin()
        gevent.sleep(seconds)
        result = tally.result(strategy, greenlets)
        gevent.killall(crowd)
    return result


def measure_peak(uri: str, strategy: str) -> Peak:
    """Let :data:`PEAK` greenlets ask once, at the same moment, after the server has had a rest."""
    ask, options = STRATEGIES[strategy]
    with MongoClient[Any](uri, maxPoolSize=100, minPoolSize=100, **options) as client:
        gevent.sleep(1.0)
        tally = Tally(client, ask)
        begin = monotonic()
        gevent.joinall([gevent.spawn(tally.request) for _ in range(PEAK)])
        commands = tally.tries + int(client.retry_stats()["retries"])
        return Peak(strategy, len(tally.latencies), commands, monotonic() - begin)


@contextmanager
def rationed() -> Any:
    """The URI of a server in its own process that admits :data:`RATE` requests a second."""
    with DeploymentProcess("--standalone") as deployment:
        with MongoClient[Any](deployment.uri) as client:
            client.shop.orders.insert_one({"_id": 1, "state": "open"})
            client.admin.command(
                "setParameter",
                1,
                ingressRequestRateLimiterEnabled=True,
                ingressRequestAdmissionRatePerSec=float(RATE),
                ingressRequestAdmissionBurstCapacitySecs=BURST,
            )
        yield deployment.uri


def main() -> None:
    """Measure everything, print the table, and write the page and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (default 4)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where to write overload.md and overload.png")
    options = parser.parse_args()
    if find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install -e '.[dev]'")
    console, results = Console(), []
    with rationed() as uri:
        peaks = [measure_peak(uri, strategy) for strategy in STRATEGIES]
        console.print(peak_table(peaks, PEAK))
        for size in SIZES:
            for strategy in STRATEGIES:
                results.append(measure(uri, strategy, size, options.seconds))
                found = results[-1]
                console.print(
                    f"{size:5} {strategy:7} offered {found.offered:7,.0f}/s  served {found.served:5,.0f}/s  "
                    f"failed {found.failed:.0%}"
                )
    text = page(
        results,
        peaks,
        rate=RATE,
        burst=RATE * BURST,
        peak=PEAK,
        patience=PATIENCE,
        pause=PAUSE,
        seconds=options.seconds,
        warm_up=WARM_UP,
    )
    (options.docs / "overload.md").write_text(text, "utf-8")
    draw(results, RATE, options.docs / "overload.png")


if __name__ == "__main__":
    main()
