"""``python -m benchmarks.overload``: measurement of the retry policy for overloaded servers.

A simulated server in a separate process admits 500 requests per second, and rejects further requests.
In the long overload, 50 to 1000 greenlets send requests, with pauses of 0.4 seconds on average. In
the short peak, 300 greenlets send one request each. The benchmark compares three reactions of a
client to a rejection, and updates ``docs/overload.md`` and ``docs/overload.png``.
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

from benchmarks.overload_report import Peak, Result, draw, peak_table, table
from benchmarks.page import markdown, replace_part
from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import DeploymentProcess

DOCS = Path(__file__).resolve().parent.parent / "docs"
RATE = 500  # Requests per second that the server admits.
BURST = 0.2  # Unit: seconds. A server without recent requests admits RATE * BURST requests at once.
PEAK_REQUEST_COUNT = 300  # Number of simultaneous requests.
PAUSE = 0.4  # Seconds from a reply to the next request of the greenlet, on average.
RETRY_SECONDS = 5.0  # Seconds after which the retry loop of the application ends.
WARM_UP = 2.0  # Seconds in which the client uses up its retry tokens.
GREENLET_COUNTS = (50, 200, 300, 500, 1000)

SendRequest = Callable[[MongoClient[Any]], int]


# Retry strategies


def send_one_request(client: MongoClient[Any]) -> int:
    """Send one request without a retry loop. Return 1, the number of calls of ``find_one``."""
    client.shop.orders.find_one({"_id": 1})
    return 1


def retry_immediately(client: MongoClient[Any]) -> int:
    """Call ``find_one`` without pauses until success or the time limit. Return the count of calls."""
    deadline = monotonic() + RETRY_SECONDS
    attempt_count = 0
    while True:
        attempt_count += 1
        try:
            client.shop.orders.find_one({"_id": 1})
            return attempt_count
        except PyMongoError:
            if monotonic() > deadline:
                raise RetriesStopped(attempt_count) from None


class RetriesStopped(PyMongoError):
    """Error of a request whose retries have reached the time limit.

    :param attempt_count: the number of times that the application has sent the request.
    """

    def __init__(self, attempt_count: int) -> None:
        super().__init__(f"gave up after {attempt_count} attempts")
        self.attempt_count = attempt_count


STRATEGIES: dict[str, tuple[SendRequest, dict[str, Any]]] = {
    "policy": (send_one_request, {}),
    "naive": (retry_immediately, {"maxAdaptiveRetries": 0}),
    "none": (send_one_request, {"maxAdaptiveRetries": 0}),
}


# Measurements


class RequestTally:
    """Counts of requests, attempts and failures since the last call of :meth:`reset_counts`.

    :param send: a function that sends one request of the application, and returns the attempt count.
    """

    def __init__(self, client: MongoClient[Any], send: SendRequest) -> None:
        self._client, self._send = client, send
        self.reset_counts()

    def reset_counts(self) -> None:
        """Reset the counts."""
        self.latencies: list[float] = []
        self.failure_count = self.attempt_count = 0
        self._retries_before = self._client.retry_stats()["retries"]
        self._begin, self._processor_before = monotonic(), process_time()

    def request(self) -> None:
        """Send one request, and count the attempts and the outcome."""
        begin = monotonic()
        try:
            attempt_count = self._send(self._client)
            self.attempt_count += attempt_count  # no other greenlet runs between the read and the write
            self.latencies.append(monotonic() - begin)
        except PyMongoError as error:
            self.attempt_count += getattr(error, "attempt_count", 1)
            self.failure_count += 1

    def results(self, strategy: str, greenlet_count: int) -> Result:
        """Return the rates, latencies and CPU use since the last call of :meth:`reset_counts`."""
        seconds = monotonic() - self._begin
        retries = self._client.retry_stats()["retries"] - self._retries_before
        requests = len(self.latencies) + self.failure_count
        latencies = sorted(self.latencies) or [float("nan")]
        return Result(
            strategy,
            greenlet_count,
            requested=requests / seconds,
            offered=(self.attempt_count + retries) / seconds,
            served=len(self.latencies) / seconds,
            failed=self.failure_count / max(requests, 1),
            latency=(median(latencies), latencies[int(len(latencies) * 0.99)]),
            processor=(process_time() - self._processor_before) / seconds,
        )


def _send_requests(tally: RequestTally) -> None:
    while True:
        gevent.sleep(random.expovariate(1 / PAUSE))
        tally.request()


def measure(uri: str, strategy: str, greenlet_count: int, seconds: float) -> Result:
    """Measure requests of `greenlet_count` greenlets for `seconds` seconds, after a warm-up."""
    send, options = STRATEGIES[strategy]
    with MongoClient[Any](uri, maxPoolSize=100, **options) as client:
        tally = RequestTally(client, send)
        senders = [gevent.spawn(_send_requests, tally) for _ in range(greenlet_count)]
        gevent.sleep(WARM_UP)
        tally.reset_counts()
        gevent.sleep(seconds)
        result = tally.results(strategy, greenlet_count)
        gevent.killall(senders)
    return result


def measure_peak(uri: str, strategy: str) -> Peak:
    """Send nothing for a second, and then measure `PEAK_REQUEST_COUNT` simultaneous requests."""
    send, options = STRATEGIES[strategy]
    with MongoClient[Any](uri, maxPoolSize=100, minPoolSize=100, **options) as client:
        gevent.sleep(1.0)
        tally = RequestTally(client, send)
        begin = monotonic()
        gevent.joinall([gevent.spawn(tally.request) for _ in range(PEAK_REQUEST_COUNT)])
        command_count = tally.attempt_count + int(client.retry_stats()["retries"])
        return Peak(strategy, len(tally.latencies), command_count, monotonic() - begin)


@contextmanager
def rate_limited_server() -> Any:
    """Run a server that admits :data:`RATE` requests per second, and yield its URI."""
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
    """Measure all strategies, print the long overload results, and update the page and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each measurement (default 4)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder for overload.md and overload.png")
    options = parser.parse_args()
    if find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install -e '.[dev]'")
    results = []
    with rate_limited_server() as uri:
        peaks = [measure_peak(uri, strategy) for strategy in STRATEGIES]
        for size in GREENLET_COUNTS:
            for strategy in STRATEGIES:
                results.append(measure(uri, strategy, size, options.seconds))
                print(results[-1], flush=True)
    page = options.docs / "overload.md"
    text = page.read_text("utf-8")
    for name, sheet in (
        ("overload", table(results)),
        ("peak", peak_table(peaks, PEAK_REQUEST_COUNT)),
    ):
        text = replace_part(text, "\n".join(["", *markdown(sheet), ""]), name)
    page.write_text(text, "utf-8")
    draw(results, RATE, options.docs / "overload.png")


if __name__ == "__main__":
    main()
